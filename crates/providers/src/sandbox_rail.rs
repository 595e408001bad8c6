//! The sandbox's rail, for mode test: no money moves, and its instructions say so.
//!
//! The fractional part of a record's fiat amount chooses what happens to the record. It is compared by value, as by the sandbox's
//! engine. Every outcome depends only on this amount and the kind of the record.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.31` | it fails: `provider_declined` |
//! | `.32` | a pay-in or swap is cancelled, a pay-out settles |
//! | `.33` | a hosted payment stays in progress for four polls and 10 s, and can be cancelled until then; then it settles |
//! | else | it settles |

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{CancelReport, GivenUp, Rail, RailOrder, RailPoll};
use gate_core::rail::{Instructions, RailAnswer, RailKind, RailReport};
use gate_core::signed_quote::Conversion;
use kernel::{Named, UpstreamName};

use crate::sandbox::SandboxScenario;

/// How many polls find a payment of `.33` in progress: those 0, 1, 3 and 7 s after it began.
const POLLS_IN_PROGRESS: u32 = 4;
/// The wait after the last of them, so that the next poll is due 10 s after the payment began.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// The sandbox's rail. It stores nothing; each report follows from the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct SandboxRail;

impl Named for SandboxRail {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("sandbox")
    }
}

#[async_trait]
impl Rail for SandboxRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let named = match order.id.kind() {
            RailKind::PayIn => fiat_instructions(order),
            RailKind::PayOut | RailKind::Swap => crypto_instructions(order),
        };
        let named = named.map(|(name, text)| (name.to_owned(), text));
        Some(Instructions(BTreeMap::from(named)))
    }

    async fn advance(&self, order: &RailOrder, poll: RailPoll) -> RailAnswer {
        let path = SandboxScenario::of(order.terms.priced.fiat);
        let report = match (path, order.id.kind()) {
            (SandboxScenario::SilentFirstPoll, _) if is_slow(order, poll.attempt) => {
                RailReport::InProgress
            }
            (SandboxScenario::Fails, _) => RailReport::Failed {
                code: "provider_declined".to_owned(),
                reason: None,
            },
            (SandboxScenario::Releases, RailKind::PayIn | RailKind::Swap) => RailReport::Cancelled,
            _ => RailReport::Settled { reference: None },
        };
        report.into()
    }

    async fn watch(&self, _: &RailOrder) -> RailAnswer {
        RailAnswer::Unknown
    }

    fn ask_again(&self, order: &RailOrder, attempt: u32) -> Option<Duration> {
        let slow = SandboxScenario::of(order.terms.priced.fiat) == SandboxScenario::SilentFirstPoll;
        let last = slow && is_slow(order, attempt) && !is_slow(order, attempt.saturating_add(1));
        last.then_some(LAST_WAIT)
    }

    async fn cancel(&self, order: &RailOrder, _: GivenUp) -> Option<CancelReport> {
        Some(match SandboxScenario::of(order.terms.priced.fiat) {
            SandboxScenario::SilentFirstPoll => CancelReport::Cancelled,
            _ => CancelReport::TooLate,
        })
    }
}

fn is_slow(order: &RailOrder, attempt: u32) -> bool {
    let hosted = order.wallet_address.is_some() || order.payout.is_some();
    hosted && attempt <= POLLS_IN_PROGRESS
}

fn fiat_instructions(order: &RailOrder) -> [(&'static str, String); 6] {
    let terms = &order.terms;
    let note = "Sandbox: no payment is needed, and no money moves.";
    [
        ("type", "sandbox".to_owned()),
        (
            "payment_method",
            terms.payment_method().unwrap_or_default().to_owned(),
        ),
        ("currency", terms.currency().code().to_owned()),
        ("amount", terms.priced.fiat.to_string()),
        ("reference", order.id.to_string()),
        ("note", note.to_owned()),
    ]
}

/// Where the user sends the sold asset of a sale, or the source of a swap.
fn crypto_instructions(order: &RailOrder) -> [(&'static str, String); 6] {
    let terms = &order.terms;
    let (sent, network) = match &terms.conversion {
        Conversion::Swap(source) => (source.amount, &source.network),
        Conversion::Purchase { .. } | Conversion::Sale { .. } => {
            (terms.priced.crypto, &terms.network)
        }
    };
    let note = "Sandbox: send nothing to this address. No money moves.";
    [
        ("type", "sandbox".to_owned()),
        ("asset", sent.asset().code().to_owned()),
        ("network", network.clone()),
        ("amount", sent.to_string()),
        ("address", sandbox_address(network).to_owned()),
        ("note", note.to_owned()),
    ]
}

/// An address of the network's form that no key is known for.
fn sandbox_address(network: &str) -> &'static str {
    match network {
        "tron" => "T9yD14Nj9j7xAB4dbGeiX9h8upfCg3PBbY",
        "solana" => "1nc1nerator11111111111111111111111111111111",
        "bitcoin" => "1BitcoinEaterAddressDontSendf59kuE",
        _ => "0x50656e73746f636B2073616e64626f782065766D",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gate_core::pricing::{Fees, Priced};
    use gate_core::rail::RailId;
    use gate_core::signed_quote::{QuoteTerms, Source};
    use kernel::address::AddressForm;
    use kernel::rates::Side;
    use kernel::{Amount, Asset, Rate};
    use partner_core::PartnerId;

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
            conversion: match kind {
                RailKind::PayIn => Conversion::ramp(Side::OnRamp, "sepa".to_owned()),
                RailKind::PayOut => Conversion::ramp(Side::OffRamp, "sepa".to_owned()),
                RailKind::Swap => Conversion::Swap(Source {
                    amount: Amount::parse("0.002", Asset::crypto("BTC").unwrap()).unwrap(),
                    network: "bitcoin".to_owned(),
                }),
            },
            network: "tron".to_owned(),
            priced,
        };
        let partner = PartnerId::parse("acme").unwrap();
        let id = RailId::parse(kind, id).unwrap();
        RailOrder::of_redemption(partner, (id, None), terms)
    }

    /// A poll that may begin the payment.
    pub(crate) fn poll(attempt: u32) -> RailPoll {
        RailPoll {
            attempt,
            may_begin: true,
        }
    }

    pub(crate) fn pay_in(fiat: &str) -> RailOrder {
        order(RailKind::PayIn, "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", fiat)
    }

    /// A swap of bitcoin for USDT on Tron.
    pub(crate) fn swap(fiat: &str) -> RailOrder {
        RailOrder {
            wallet_address: Some("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8".to_owned()),
            ..order(RailKind::Swap, "sw_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", fiat)
        }
    }

    // rule: gate.rail.sandbox
    #[tokio::test]
    async fn fraction_of_fiat_amount_chooses_outcome() {
        let settled = || RailReport::Settled { reference: None };
        let failed = || RailReport::Failed {
            code: "provider_declined".to_owned(),
            reason: None,
        };
        let pay_out = |fiat| order(RailKind::PayOut, "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", fiat);
        for (order, attempt, expected) in [
            (pay_in("100.31"), 1, failed()),
            (pay_in("100.32"), 1, RailReport::Cancelled),
            (pay_in("100.00"), 1, settled()),
            (pay_in("100.21"), 1, settled()),
            (pay_in("31.00"), 1, settled()),
            (pay_out("100.32"), 1, settled()),
            (pay_out("100.31"), 7, failed()),
            (swap("100.32"), 1, RailReport::Cancelled),
            (swap("100.33"), 4, RailReport::InProgress),
            (swap("100.33"), 5, settled()),
        ] {
            let answer = SandboxRail.advance(&order, poll(attempt)).await;
            assert_eq!(answer, RailAnswer::from(expected), "{order:?}");
        }
    }

    // rule: gate.rail.instructions-repeat-terms
    #[tokio::test]
    async fn instructions_of_the_sandbox_repeat_the_terms() {
        let sale = |network: &str| {
            let id = "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
            let mut sale = order(RailKind::PayOut, id, "100.00");
            sale.terms.network = network.to_owned();
            sale
        };
        for (order, form) in [
            (pay_in("100.00"), None),
            (swap("100.00"), Some(AddressForm::Bitcoin)),
            (sale("tron"), Some(AddressForm::Tron)),
            (sale("solana"), Some(AddressForm::Solana)),
            (sale("bitcoin"), Some(AddressForm::Bitcoin)),
            (sale("ethereum"), Some(AddressForm::Evm)),
        ] {
            let instructions = SandboxRail.instructions(&order).await.unwrap();
            let differing = instructions.differences(&order.terms, form);
            assert_eq!(differing, [""; 0], "{instructions:?}");
        }
    }

    // rule: gate.payment.swap
    #[tokio::test]
    async fn swap_is_sent_as_its_source_on_the_chain_of_its_source() {
        let instructions = SandboxRail.instructions(&swap("100.00")).await.unwrap().0;
        for (name, text) in [
            ("asset", "BTC"),
            ("network", "bitcoin"),
            ("amount", "0.002"),
            ("address", "1BitcoinEaterAddressDontSendf59kuE"),
        ] {
            assert_eq!(instructions[name], text);
        }
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
