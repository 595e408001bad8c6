//! The sandbox's rail, for mode test: no money moves, and its instructions say so beside an account or address of the live shape.
//!
//! A payment in the widget is in progress until its time is over or its customer pretends to have paid; the time is a setting. A partner's
//! own pay-in or pay-out ends with its first poll. The fractional part of a record's fiat amount chooses how. It is compared by value, as
//! by the sandbox's engine.
//!
//! | fraction | what happens |
//! |---|---|
//! | `.31` | it fails: `provider_declined` |
//! | `.32` | a pay-in or swap is cancelled, a pay-out settles |
//! | `.33` | a payment in the widget stays in progress for 10 s, also if its customer pretends to have paid; then it settles |
//! | `.34` | a payment in the widget never ends by itself: its money does not arrive |
//! | else | it settles |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{
    CancelReport, GivenUp, Pretence, Rail, RailOrder, RailPoll, RailSimulation,
};
use gate_core::rail::{Instructions, PaymentId, RailAnswer, RailKind, RailReport};
use gate_core::signed_quote::Conversion;
use kernel::{Clock, Named, Timestamp, UpstreamName};

use crate::sandbox::SandboxScenario;
use crate::sandbox_pages::SandboxPages;

/// How long a payment of `.33` is in progress.
const SLOW: Duration = Duration::from_secs(10);
/// How many letters of its id the reference of a payment has.
const REFERENCE_LETTERS: usize = 10;
/// The longest wait before the next poll.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The sandbox's rail. It stores nothing; each report follows from the request and the clock.
#[derive(Clone)]
pub struct SandboxRail {
    clock: Arc<dyn Clock>,
    settles_after: Duration,
    pages: SandboxPages,
}

impl SandboxRail {
    /// A rail that ends payments in the widget after this time by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, settles_after: Duration, pages: SandboxPages) -> Self {
        Self {
            clock,
            settles_after,
            pages,
        }
    }

    /// How long a payment still is in progress; `None` if it never ends by itself.
    fn left(&self, order: &RailOrder) -> Option<Duration> {
        if !is_hosted(order) {
            return Some(Duration::ZERO);
        }
        let time = match SandboxScenario::of(order.terms.priced.fiat) {
            SandboxScenario::NeverArrives => return None,
            SandboxScenario::SilentFirstPoll => SLOW,
            _ => self.settles_after,
        };
        Some(began(order)?.plus(time).since(self.clock.now()))
    }

    fn report(&self, order: &RailOrder) -> RailReport {
        match self.left(order) {
            Some(Duration::ZERO) => end_of(order),
            Some(_) | None => RailReport::InProgress,
        }
    }
}

/// When the payment began.
fn began(order: &RailOrder) -> Option<Timestamp> {
    let millis = order.id.id().ulid().timestamp_ms();
    Timestamp::from_millis(i64::try_from(millis).ok()?)
}

/// How a payment ends that is not declined.
fn end_of(order: &RailOrder) -> RailReport {
    match (
        SandboxScenario::of(order.terms.priced.fiat),
        order.id.kind(),
    ) {
        (SandboxScenario::Fails, _) => declined(),
        (SandboxScenario::Releases, RailKind::PayIn | RailKind::Swap) => RailReport::Cancelled,
        _ => RailReport::Settled { reference: None },
    }
}

fn declined() -> RailReport {
    RailReport::Failed {
        code: "provider_declined".to_owned(),
        reason: None,
    }
}

/// Whether a customer makes the payment in the widget.
const fn is_hosted(order: &RailOrder) -> bool {
    order.wallet_address.is_some() || order.payout.is_some()
}

impl Named for SandboxRail {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("sandbox")
    }
}

#[async_trait]
impl Rail for SandboxRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        let mut named = match order.id.kind() {
            RailKind::PayIn => self.fiat_instructions(order),
            RailKind::PayOut | RailKind::Swap => crypto_instructions(order),
        };
        named.push(("type", "sandbox".to_owned()));
        named.push(("note", note(order)));
        let named = named
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text));
        Some(Instructions(named.collect()))
    }

    async fn advance(&self, order: &RailOrder, _: RailPoll) -> RailAnswer {
        self.report(order).into()
    }

    async fn watch(&self, _: &RailOrder) -> RailAnswer {
        RailAnswer::Unknown
    }

    fn ask_again(&self, order: &RailOrder, _: u32) -> Option<Duration> {
        // A clock that was behind for a moment must not delay the end.
        let left = self.left(order).map(|left| left.min(LONGEST_WAIT));
        left.filter(|left| !left.is_zero())
    }

    async fn cancel(&self, order: &RailOrder, _: GivenUp) -> Option<CancelReport> {
        Some(match self.left(order) {
            Some(Duration::ZERO) => CancelReport::TooLate,
            Some(_) | None => CancelReport::Cancelled,
        })
    }

    fn simulation(&self) -> Option<Arc<dyn RailSimulation>> {
        Some(Arc::new(self.clone()))
    }
}

impl RailSimulation for SandboxRail {
    fn pretend(&self, order: &RailOrder, pretence: Pretence) -> RailReport {
        match (pretence, SandboxScenario::of(order.terms.priced.fiat)) {
            (Pretence::Declined, _) => declined(),
            (Pretence::Paid, SandboxScenario::SilentFirstPoll | SandboxScenario::NeverArrives) => {
                self.report(order)
            }
            (Pretence::Paid, _) => end_of(order),
        }
    }
}

/// Names and texts of instructions.
type Texts = Vec<(&'static str, String)>;

impl SandboxRail {
    /// Where the user pays the fiat of a purchase: by transfer, or on the page of the sandbox's card.
    fn fiat_instructions(&self, order: &RailOrder) -> Texts {
        let terms = &order.terms;
        let method = terms.payment_method().unwrap_or_default();
        let mut texts = vec![
            ("payment_method", method.to_owned()),
            ("currency", terms.currency().code().to_owned()),
            ("amount", terms.priced.fiat.to_string()),
        ];
        if method == "card" {
            let payment = PaymentId::from_parts(order.id.id().mode(), order.id.id().ulid());
            let page = self.pages.card(payment).filter(|_| is_hosted(order));
            texts.extend(page.map(|page| ("url", page)));
        } else {
            texts.extend(account(terms.currency().code()));
            texts.push(("reference", reference(order)));
        }
        texts
    }
}

fn note(order: &RailOrder) -> String {
    let note = match order.id.kind() {
        RailKind::PayIn => "Sandbox: pay nothing. No money moves.",
        RailKind::PayOut | RailKind::Swap => {
            "Sandbox: send nothing to this address. No money moves."
        }
    };
    note.to_owned()
}

/// An account of the form that the currency's transfers go to. No bank has it.
fn account(currency: &str) -> Texts {
    let holder = ("account_holder", "Penstock Sandbox");
    let form = match currency {
        "GBP" => [
            holder,
            ("sort_code", "000000"),
            ("account_number", "12345678"),
        ],
        "USD" => [
            holder,
            ("routing_number", "000000000"),
            ("account_number", "0012345678"),
        ],
        _ => [
            holder,
            ("iban", "DE52000000000012345678"),
            ("bic", "TESTDE00XXX"),
        ],
    };
    form.map(|(name, text)| (name, text.to_owned())).into()
}

/// What the payer of a transfer writes on it.
fn reference(order: &RailOrder) -> String {
    let ulid = order.id.id().ulid().to_string();
    let end = ulid.len().saturating_sub(REFERENCE_LETTERS);
    format!("TEST-{}", ulid.get(end..).unwrap_or_default())
}

/// Where the user sends the sold asset of a sale, or the source of a swap.
fn crypto_instructions(order: &RailOrder) -> Texts {
    let terms = &order.terms;
    let (sent, network) = match &terms.conversion {
        Conversion::Swap(source) => (source.amount, &source.network),
        Conversion::Purchase { .. } | Conversion::Sale { .. } => {
            (terms.priced.crypto, &terms.network)
        }
    };
    vec![
        ("asset", sent.asset().code().to_owned()),
        ("network", network.clone()),
        ("amount", sent.to_string()),
        ("address", sandbox_address(network).to_owned()),
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
    use partner_core::origin::Origin;

    use super::*;
    use crate::sandbox::tests::StoppedClock;

    const SETTLES_AFTER: Duration = Duration::from_secs(3);

    /// The rail, this many milliseconds after the payments of these tests began.
    pub(crate) fn rail_after(waited: i64) -> SandboxRail {
        let began = began(&pay_in("100.00")).unwrap();
        let now = Timestamp::from_millis(began.millis() + waited).unwrap();
        let pages = SandboxPages::default();
        pages.are_at(Origin::of_address(([127, 0, 0, 1], 4030).into()));
        SandboxRail::new(Arc::new(StoppedClock(now)), SETTLES_AFTER, pages)
    }

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

    /// A purchase in the widget.
    fn purchase(fiat: &str) -> RailOrder {
        RailOrder {
            wallet_address: Some("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8".to_owned()),
            ..pay_in(fiat)
        }
    }

    fn settled() -> RailReport {
        RailReport::Settled { reference: None }
    }

    // rule: gate.rail.sandbox
    #[tokio::test]
    async fn fraction_of_fiat_amount_chooses_outcome() {
        let pay_out = |fiat| order(RailKind::PayOut, "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", fiat);
        for (order, waited, expected) in [
            (pay_in("100.31"), 0, declined()),
            (pay_in("100.32"), 0, RailReport::Cancelled),
            (pay_in("100.00"), 0, settled()),
            (pay_in("100.21"), 0, settled()),
            (pay_in("100.34"), 0, settled()),
            (pay_in("31.00"), 0, settled()),
            (pay_out("100.32"), 0, settled()),
            (pay_out("100.31"), 9_000, declined()),
            (purchase("100.00"), -5_000, RailReport::InProgress),
            (purchase("100.00"), 2_999, RailReport::InProgress),
            (purchase("100.00"), 3_000, settled()),
            (purchase("100.31"), 2_999, RailReport::InProgress),
            (purchase("100.31"), 3_000, declined()),
            (swap("100.32"), 3_000, RailReport::Cancelled),
            (swap("100.33"), 9_999, RailReport::InProgress),
            (swap("100.33"), 10_000, settled()),
            (swap("100.34"), 9_000_000, RailReport::InProgress),
        ] {
            let rail = rail_after(waited);
            let answer = rail.advance(&order, poll(1)).await;
            assert_eq!(answer, RailAnswer::from(expected.clone()), "{order:?}");
            let is_over = expected != RailReport::InProgress;
            let cancelled = match is_over {
                true => CancelReport::TooLate,
                false => CancelReport::Cancelled,
            };
            let cancel = rail.cancel(&order, GivenUp::ByCustomer).await;
            assert_eq!(cancel, Some(cancelled), "{order:?}");
        }
        let waits = |fiat, waited| rail_after(waited).ask_again(&purchase(fiat), 1);
        assert_eq!(waits("100.00", 1_000), Some(Duration::from_secs(2)));
        assert_eq!(waits("100.33", 1_000), Some(Duration::from_secs(9)));
        assert_eq!((waits("100.00", 3_000), waits("100.34", 0)), (None, None));
    }

    // rule: gate.embed.pretend
    #[test]
    fn pretence_ends_a_payment_as_its_amount_says() {
        for (fiat, waited, paid) in [
            ("100.00", 0, settled()),
            ("100.31", 0, declined()),
            ("100.32", 0, RailReport::Cancelled),
            ("100.33", 9_999, RailReport::InProgress),
            ("100.33", 10_000, settled()),
            ("100.34", 10_000, RailReport::InProgress),
        ] {
            let simulation = rail_after(waited).simulation().unwrap();
            let pretend = |pretence| simulation.pretend(&purchase(fiat), pretence);
            assert_eq!(pretend(Pretence::Paid), paid, "{fiat}");
            assert_eq!(pretend(Pretence::Declined), declined(), "{fiat}");
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
            let instructions = rail_after(0).instructions(&order).await.unwrap();
            let differing = instructions.differences(&order.terms, form);
            assert_eq!(differing, [""; 0], "{instructions:?}");
        }
    }

    // rule: gate.payment.swap
    #[tokio::test]
    async fn swap_is_sent_as_its_source_on_the_chain_of_its_source() {
        let instructions = rail_after(0).instructions(&swap("100.00")).await.unwrap().0;
        for (name, text) in [
            ("asset", "BTC"),
            ("network", "bitcoin"),
            ("amount", "0.002"),
            ("address", "1BitcoinEaterAddressDontSendf59kuE"),
        ] {
            assert_eq!(instructions[name], text);
        }
    }

    // rule: gate.rail.sandbox-instructions
    #[tokio::test]
    async fn instructions_have_the_shape_of_live_and_state_that_no_money_moves() {
        let mut card = purchase("100.00");
        card.terms.conversion = Conversion::ramp(Side::OnRamp, "card".to_owned());
        let page = "http://127.0.0.1:4030/sandbox/card?payment=pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
        let pay_nothing = ("note", "Sandbox: pay nothing. No money moves.");
        let send_nothing = (
            "note",
            "Sandbox: send nothing to this address. No money moves.",
        );
        for (order, expected) in [
            (
                purchase("100.00"),
                [("reference", "TEST-D3F5G7H8JK"), pay_nothing],
            ),
            (pay_in("100.00"), [("bic", "TESTDE00XXX"), pay_nothing]),
            (card, [("url", page), pay_nothing]),
            (swap("100.00"), [("asset", "BTC"), send_nothing]),
        ] {
            let instructions = rail_after(0).instructions(&order).await.unwrap().0;
            for (name, text) in [expected[0], expected[1], ("type", "sandbox")] {
                assert_eq!(instructions[name], text);
            }
        }
        let transfer = rail_after(0).instructions(&purchase("100.00")).await;
        assert_eq!(mod_97(&transfer.unwrap().0["iban"]), 1);
        let names = |currency| account(currency).into_iter().map(|(name, _)| name);
        assert!(names("GBP").eq(["account_holder", "sort_code", "account_number"]));
        assert!(names("USD").eq(["account_holder", "routing_number", "account_number"]));
    }

    /// The remainder of an IBAN, which is 1 if its check digits are right.
    fn mod_97(iban: &str) -> u32 {
        let (head, tail) = iban.split_at(4);
        let letters = tail.chars().chain(head.chars());
        letters.fold(0, |sum, letter| {
            let digit = letter.to_digit(36).unwrap();
            (sum * if digit < 10 { 10 } else { 100 } + digit) % 97
        })
    }
}
