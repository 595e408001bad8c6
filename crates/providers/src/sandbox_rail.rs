//! The sandbox's rail, for mode test: no money moves, and its instructions say so.
//!
//! The fractional part of a record's fiat amount chooses what happens to the record. It is compared by value, as by the sandbox's
//! engine. Every outcome depends only on this amount and the kind of the record.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.31` | it fails: `provider_declined` |
//! | `.32` | a pay-in is cancelled, a pay-out settles |
//! | else | it settles |

use std::collections::BTreeMap;

use async_trait::async_trait;
use gate_core::ports::{Rail, RailOrder};
use gate_core::rail::{Instructions, RailKind, RailReport};

use crate::sandbox::SandboxScenario;

/// The sandbox's rail. It stores nothing; each report follows from the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct SandboxRail;

#[async_trait]
impl Rail for SandboxRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let terms = &order.terms;
        let note = "Sandbox: no payment is needed, and no money moves.";
        let named = [
            ("type", "sandbox".to_owned()),
            ("payment_method", terms.payment_method.clone()),
            ("currency", terms.currency().code().to_owned()),
            ("amount", terms.priced.fiat.to_string()),
            ("reference", order.id.to_string()),
            ("note", note.to_owned()),
        ];
        let named = named.map(|(name, text)| (name.to_owned(), text));
        Some(Instructions(BTreeMap::from(named)))
    }

    async fn advance(&self, order: &RailOrder, _: u32) -> Option<RailReport> {
        let path = SandboxScenario::of(order.terms.priced.fiat);
        Some(match (path, order.id.kind()) {
            (SandboxScenario::Fails, _) => RailReport::Failed {
                code: "provider_declined".to_owned(),
            },
            (SandboxScenario::Releases, RailKind::PayIn) => RailReport::Cancelled,
            _ => RailReport::Settled,
        })
    }
}

#[cfg(test)]
mod tests {
    use gate_core::pricing::{Fees, Priced};
    use gate_core::rail::RailId;
    use gate_core::signed_quote::QuoteTerms;
    use kernel::{Amount, Asset, Rate};

    use super::*;

    fn order(kind: RailKind, id: &str, fiat: &str) -> RailOrder {
        let eur = Asset::fiat("EUR").unwrap();
        let priced = Priced {
            rate: Rate::parse("1").unwrap(),
            fiat: Amount::parse(fiat, eur).unwrap(),
            crypto: Amount::parse("1", Asset::crypto("USDT").unwrap()).unwrap(),
            fees: Fees::of(Amount::zero(eur), Amount::zero(eur)).unwrap(),
        };
        let terms = QuoteTerms {
            side: kind.side(),
            network: "tron".to_owned(),
            payment_method: "sepa".to_owned(),
            priced,
        };
        RailOrder {
            id: RailId::parse(kind, id).unwrap(),
            terms,
        }
    }

    fn pay_in(fiat: &str) -> RailOrder {
        order(RailKind::PayIn, "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", fiat)
    }

    // rule: gate.rail.sandbox
    #[tokio::test]
    async fn fraction_of_fiat_amount_chooses_outcome() {
        let failed = RailReport::Failed {
            code: "provider_declined".to_owned(),
        };
        for (fiat, expected) in [
            ("100.31", &failed),
            ("100.32", &RailReport::Cancelled),
            ("100.00", &RailReport::Settled),
            ("100.21", &RailReport::Settled),
            ("31.00", &RailReport::Settled),
        ] {
            let report = SandboxRail.advance(&pay_in(fiat), 1).await;
            assert_eq!(report.as_ref(), Some(expected), "{fiat}");
        }
        let pay_out = |fiat| order(RailKind::PayOut, "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", fiat);
        let report = SandboxRail.advance(&pay_out("100.32"), 1).await;
        assert_eq!(report, Some(RailReport::Settled));
        let report = SandboxRail.advance(&pay_out("100.31"), 7).await;
        assert_eq!(report, Some(failed));
    }

    #[tokio::test]
    async fn instructions_state_that_no_money_moves() {
        let instructions = SandboxRail.instructions(&pay_in("100.00")).await.unwrap().0;
        assert_eq!(instructions["amount"], "100.00");
        assert_eq!(
            instructions["reference"],
            "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"
        );
        assert!(instructions["note"].ends_with("no money moves."));
    }
}
