//! The order of the checks of a transact, idempotency keys, and the limits of cap and balance.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Amount, Mode, Timestamp, UpstreamName};
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Operation, OperationKey};
use partner_core::{Access, Denial, PartnerStatus};
use pools_core::access::PoolsDenial;
use pools_core::batch::{
    BatchState, IdempotencyRecord, Refusal, TransactCommand, TransactOutcome, decide_batch,
};
use pools_core::ledger::{Account, BALANCE_LIMIT, EntryId};
use pools_core::ports::Hold;
use pools_core::profile::{Kyc, PoolId, PoolsAccess, PoolsProfile};
use pools_core::quote::{Quote, QuoteClosed, QuoteId, QuoteOutcome, Side};
use pools_core::trade::{Trade, TradeId};
use pools_core::usecases::transact_quote::Transact;
use pools_core::velocity::{Velocity, cutoff};

use crate::fixtures::{
    Counter, DAY, access, after, eur, fingerprint, forbid_sales, key_id, noon, of_another, pool,
    quote, scope, tenant, trade, usdt,
};

type Decided = Result<TransactOutcome, Refusal>;

/// A partner with a valid order. Tests change it.
struct Scene {
    access: Access<PoolsProfile>,
    state: BatchState,
    command: TransactCommand,
    now: Timestamp,
}

fn scene(side: Side) -> Scene {
    let mut access = access("acme", key_id(1), &[pool()]);
    access.profile.velocity_cap = Some(200 * 100_000_000);
    let who = tenant("acme");
    let quote = quote(side);
    let command = TransactCommand {
        key: access.key.id,
        scope: scope(&who, pool(), "first"),
        fingerprint: fingerprint(quote.id),
        pool: pool(),
        quote: quote.id,
        trade: TradeId::new(Mode::Test, noon(), &Counter::from(50)),
        entry: EntryId::new(Mode::Test, noon(), &Counter::from(51)),
        engine: UpstreamName::built_in("engine"),
        hold: Some(Hold::Held),
    };
    let mut state = BatchState {
        window: DAY,
        idempotency_ttl: DAY,
        ..BatchState::default()
    };
    state.quotes.insert((who.partner, quote.id), quote);
    let mut scene = Scene {
        access,
        state,
        command,
        now: after(1_000),
    };
    scene.balance(eur("100"));
    scene.balance(usdt("100"));
    scene
}

impl Scene {
    fn at(&self) -> (partner_core::PartnerId, QuoteId) {
        (self.access.partner.id.clone(), self.command.quote)
    }

    fn quote(&mut self, change: impl Fn(&mut Quote)) {
        let at = self.at();
        if let Some(quote) = self.state.quotes.get_mut(&at) {
            change(quote);
        }
    }

    fn balance(&mut self, available: Amount) {
        let account = Account {
            available,
            sequence: 1,
        };
        let place = (self.access.partner.id.clone(), available.asset());
        self.state.accounts.insert(place, account);
    }

    fn committed(&mut self, total: i64) {
        let place = (self.access.partner.id.clone(), eur("100").asset());
        self.state.commitments.insert(place, total);
    }

    fn traded(&mut self, total: i128) {
        let floor = cutoff(self.now, DAY);
        self.state
            .velocity
            .insert(self.access.partner.id.clone(), Velocity { total, floor });
    }

    /// A further order of the same partner, under another key.
    fn another(&mut self, number: u64) -> TransactCommand {
        let id = QuoteId::new(Mode::Test, noon(), &Counter::from(number));
        let quote = Quote {
            id,
            ..quote(Side::OnRamp)
        };
        let who = self.access.tenant.clone();
        self.state.quotes.insert((who.partner.clone(), id), quote);
        TransactCommand {
            scope: scope(&who, pool(), &format!("key-{number}")),
            fingerprint: fingerprint(id),
            quote: id,
            trade: TradeId::new(Mode::Test, noon(), &Counter::from(number)),
            entry: EntryId::new(Mode::Test, noon(), &Counter::from(number)),
            ..self.command.clone()
        }
    }

    fn decide_all(&mut self, batch: &[TransactCommand]) -> Vec<Decided> {
        self.state
            .access
            .insert(self.command.key, Arc::new(self.access.clone()));
        decide_batch(&mut self.state, batch, self.now)
    }

    fn decide(&mut self) -> Decided {
        let command = self.command.clone();
        self.decide_all(&[command]).remove(0)
    }
}

fn opened(outcome: &Decided) -> &Trade {
    match outcome {
        Ok(TransactOutcome::Opened(trade)) => trade,
        other => panic!("expected a new trade, got {other:?}"),
    }
}

/// A test case: its name, a change of the scene, and the expected decision.
type Fault = (&'static str, fn(&mut Scene), Result<(), Refusal>);

/// The cases in the order of the contract. `Ok` stands for the existing trade.
fn faults() -> Vec<Fault> {
    use Refusal as R;
    vec![
        (
            "revoked",
            |s| s.access.key.revoked_at = Some(s.now),
            Err(R::Denied(PoolsDenial::Access(Denial::KeyRevoked))),
        ),
        (
            "organization",
            |s| s.access.partner.status = PartnerStatus::Suspended,
            Err(R::Denied(PoolsDenial::Access(
                Denial::OrganizationSuspended,
            ))),
        ),
        (
            "product",
            |s| s.access.profile.enabled = false,
            Err(R::Denied(PoolsDenial::NotEnabled)),
        ),
        (
            "access",
            |s| s.access.profile.access = PoolsAccess::Suspended,
            Err(R::Denied(PoolsDenial::AccessSuspended)),
        ),
        (
            "kyc",
            |s| s.access.profile.kyc = Kyc::Revoked,
            Err(R::Denied(PoolsDenial::KycNotApproved)),
        ),
        (
            "pool",
            |s| s.access.profile.allowed.clear(),
            Err(R::Denied(PoolsDenial::PoolNotAllowed)),
        ),
        (
            "key",
            |s| {
                let answered = of_another(noon().plus(DAY));
                s.state.answered.insert(s.command.scope.clone(), answered);
            },
            Err(R::KeyReused),
        ),
        (
            "quote",
            |s| {
                s.state.quotes.clear();
            },
            Err(R::QuoteUnknown),
        ),
        (
            "existing",
            |s| {
                s.state.trades.insert(s.at(), trade(Side::OffRamp, None));
            },
            Ok(()),
        ),
        (
            "side",
            |s| forbid_sales(&mut s.access.profile),
            Err(R::SideNotEnabled),
        ),
        (
            "rejected",
            |s| s.quote(|quote| quote.outcome = QuoteOutcome::Rejected(noon())),
            Err(R::QuoteClosed(QuoteClosed::Rejected)),
        ),
        (
            "expired",
            |s| s.quote(|quote| quote.expires_at = noon()),
            Err(R::QuoteClosed(QuoteClosed::Expired)),
        ),
        (
            "velocity",
            |s| s.traded(200 * 100_000_000),
            Err(R::VelocityCapExceeded),
        ),
        (
            "balance",
            |s| s.balance(usdt("99.999999")),
            Err(R::InsufficientBalance),
        ),
        (
            "no room for a return",
            |s| s.committed(BALANCE_LIMIT),
            Err(R::NoRoomForReturn),
        ),
        (
            "refused by the engine",
            |s| s.command.hold = Some(Hold::Refused),
            Err(R::ReservationFailed),
        ),
    ]
}

fn plain(outcome: Decided) -> Result<(), Refusal> {
    match outcome {
        Ok(TransactOutcome::Opened(trade)) => panic!("opened {trade:?}"),
        Ok(TransactOutcome::Existing(_)) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

// rule: pools.transact.order, access.denial-order, auth.revocation-beats-money, pools.transact.not-found, pools.transact.side, pools.transact.rejected, pools.transact.expired, pools.transact.balance, pools.transact.reservation-failed, pools.transact.sale-needs-receipt
#[test]
fn earlier_check_refuses_first() {
    let faults = faults();
    for (at, (earlier, change_earlier, due)) in faults.iter().enumerate() {
        for (later, change_later, _) in &faults[at..] {
            let mut scene = scene(Side::OffRamp);
            change_later(&mut scene);
            change_earlier(&mut scene);
            assert_eq!(plain(scene.decide()), *due, "{earlier}, and {later}");
            assert!(scene.state.opened.is_empty(), "{earlier}, and {later}");
        }
    }
}

// rule: pools.transact.engine-silent, pools.transact.order
#[test]
fn silent_engine_is_checked_last() {
    for (name, change, due) in faults()
        .iter()
        .filter(|(name, ..)| *name != "refused by the engine")
    {
        let mut scene = scene(Side::OffRamp);
        change(&mut scene);
        scene.command.hold = None;
        assert_eq!(plain(scene.decide()), *due, "{name}");
    }
    for hold in [None, Some(Hold::Unsent)] {
        let mut scene = scene(Side::OffRamp);
        scene.command.hold = hold;
        assert_eq!(plain(scene.decide()), Err(Refusal::EngineUnavailable));
    }
}

// rule: pools.engine.confirm-own
#[test]
fn rerun_command_finds_its_own_trade() {
    for (name, change, _) in &faults() {
        let mut scene = scene(Side::OffRamp);
        let Ok(TransactOutcome::Opened(first)) = scene.decide() else {
            panic!("{name}")
        };
        scene.state.opened.clear();
        // No later change affects the decision, although the quote is consumed.
        change(&mut scene);
        let again = scene.decide();
        let found = match *name {
            "existing" => trade(Side::OffRamp, None),
            _ => first,
        };
        assert_eq!(again, Ok(TransactOutcome::Existing(found)), "{name}");
        assert!(scene.state.opened.is_empty(), "the batch writes nothing");
    }
}

// rule: money.sale-limit
#[test]
fn sale_may_use_whole_capacity_of_return_account() {
    let mut sold = scene(Side::OffRamp);
    let at = sold.at();
    let fiat = sold.state.quotes[&at].terms.fiat;
    sold.committed(BALANCE_LIMIT - fiat.units() + 1);
    assert_eq!(plain(sold.decide()), Err(Refusal::NoRoomForReturn));
    sold.committed(BALANCE_LIMIT - fiat.units());
    assert!(matches!(sold.decide(), Ok(TransactOutcome::Opened(_))));
    let full = [(&at.0, fiat.asset(), BALANCE_LIMIT)];
    assert_eq!(sold.state.touched_commitments(), full);

    // A purchase never returns more than it reserved.
    let mut bought = scene(Side::OnRamp);
    bought.committed(BALANCE_LIMIT);
    assert!(matches!(bought.decide(), Ok(TransactOutcome::Opened(_))));
    assert_eq!(bought.state.touched_commitments(), []);
}

// rule: pools.transact.not-found
#[test]
fn quote_of_other_pool_or_partner_is_unknown() {
    let other = PoolId::parse("EUR-USDC").unwrap();
    let mut wrong_pool = scene(Side::OnRamp);
    wrong_pool.access.profile.allowed.insert(other);
    wrong_pool.command.pool = other;
    assert_eq!(plain(wrong_pool.decide()), Err(Refusal::QuoteUnknown));

    let mut foreign = scene(Side::OnRamp);
    let quote = foreign.state.quotes.remove(&foreign.at()).unwrap();
    let owner = tenant("bolt").partner;
    foreign
        .state
        .trades
        .insert((owner.clone(), quote.id), trade(Side::OnRamp, None));
    foreign.state.quotes.insert((owner, quote.id), quote);
    assert_eq!(plain(foreign.decide()), Err(Refusal::QuoteUnknown));
}

// rule: pools.transact.expired, time.deadline-exclusive
#[test]
fn quote_is_executable_until_expiry() {
    let mut last = scene(Side::OnRamp);
    last.now = after(14_999);
    let trade = opened(&last.decide()).clone();
    assert_eq!(trade.created_at, after(14_999));
    assert_eq!(
        last.state.quotes[&last.at()].outcome,
        QuoteOutcome::Consumed(after(14_999))
    );

    let mut late = scene(Side::OnRamp);
    late.now = after(15_000);
    assert_eq!(
        plain(late.decide()),
        Err(Refusal::QuoteClosed(QuoteClosed::Expired))
    );
}

// rule: idempotency.kept, idempotency.reused
#[test]
fn key_serves_one_request_until_record_expires() {
    let day = u64::try_from(DAY.as_millis()).unwrap();
    for (passed, due) in [
        (day - 1, Err(Refusal::KeyReused)),
        (day, Ok(())),
        (day + 1, Ok(())),
    ] {
        let mut scene = scene(Side::OnRamp);
        let answered = of_another(noon().plus(DAY));
        let key = scene.command.scope.clone();
        scene.state.answered.insert(key, answered);
        scene.now = after(passed);
        scene.quote(|quote| quote.expires_at = after(u64::from(u32::MAX)));
        let outcome = scene.decide();
        assert_eq!(outcome.map(|_| ()), due, "{passed}");
        let fresh = IdempotencyRecord {
            fingerprint: scene.command.fingerprint,
            expires_at: scene.now.plus(DAY),
        };
        let kept = scene.state.answered[&scene.command.scope];
        assert_eq!(
            kept,
            if due.is_ok() { fresh } else { answered },
            "an expired record is overwritten"
        );
    }
}

// rule: pools.transact.idempotent, pools.transact.repeat-leaves-key, pools.transact.once, pools.transact.batch-equals-single
#[test]
fn repeat_in_same_batch_finds_trade_and_leaves_key_unused() {
    let mut scene = scene(Side::OnRamp);
    let first = scene.command.clone();
    let repeat = TransactCommand {
        hold: None,
        ..first.clone()
    };
    let under_another_key = TransactCommand {
        scope: scope(&tenant("acme"), pool(), "second"),
        ..first.clone()
    };
    let other_quote = scene.another(60);
    let reused = TransactCommand {
        scope: first.scope.clone(),
        ..other_quote
    };
    let outcomes = scene.decide_all(&[first, repeat, under_another_key.clone(), reused]);
    let made = opened(&outcomes[0]).clone();
    assert_eq!(outcomes[1], Ok(TransactOutcome::Existing(made.clone())));
    assert_eq!(outcomes[2], Ok(TransactOutcome::Existing(made)));
    assert_eq!(outcomes[3], Err(Refusal::KeyReused));
    assert!(!scene.state.answered.contains_key(&under_another_key.scope));
    assert_eq!(scene.state.opened.len(), 1);
}

// rule: pools.velocity.boundary, pools.velocity.window
#[test]
fn cap_may_be_reached_but_not_exceeded() {
    let order = i128::from(quote(Side::OnRamp).terms.notional);
    let cap = 200 * 100_000_000;
    for (before, due) in [
        (cap - order, Ok(())),
        (cap - order + 1, Err(Refusal::VelocityCapExceeded)),
    ] {
        let mut scene = scene(Side::OnRamp);
        scene.traded(before);
        assert_eq!(scene.decide().map(|_| ()), due);
    }
    let mut two = scene(Side::OnRamp);
    two.balance(eur("1000"));
    let batch = [two.command.clone(), two.another(60)];
    let outcomes = two.decide_all(&batch);
    opened(&outcomes[0]);
    assert_eq!(
        outcomes[1],
        Err(Refusal::VelocityCapExceeded),
        "2 x 108.5 pass 200"
    );
}

// rule: pools.velocity.off
#[test]
fn velocity_is_counted_but_not_limited_without_cap() {
    let mut scene = scene(Side::OnRamp);
    scene.access.profile.velocity_cap = None;
    scene.traded(i128::from(i64::MAX));
    opened(&scene.decide());
    let total = scene.state.velocity[&scene.access.partner.id].total;
    assert_eq!(total, i128::from(i64::MAX) + 10_850_000_000);
}

// rule: pools.transact.balance, money.never-negative
#[test]
fn balance_may_reach_zero_but_not_below() {
    let mut scene = scene(Side::OnRamp);
    scene.access.profile.velocity_cap = None;
    let batch = [scene.command.clone(), scene.another(60)];
    let outcomes = scene.decide_all(&batch);
    opened(&outcomes[0]);
    assert_eq!(outcomes[1], Err(Refusal::InsufficientBalance));
    let touched: Vec<_> = scene.state.touched_accounts();
    assert_eq!(touched.len(), 1);
    assert_eq!(
        touched[0].1,
        &Account {
            available: eur("0"),
            sequence: 2
        }
    );
}

// rule: pools.ledger.buy, pools.ledger.sell, pools.gate-off.reserves-nothing, pools.gate-off.sale
#[test]
fn reserve_depends_on_side_and_balance_gate() {
    for (side, gate, reserved) in [
        (Side::OnRamp, true, Some(eur("100"))),
        (Side::OnRamp, false, None),
        (Side::OffRamp, true, Some(usdt("100"))),
        (Side::OffRamp, false, Some(usdt("100"))),
    ] {
        let mut scene = scene(side);
        scene.access.profile.balance_gate = gate;
        let outcome = scene.decide();
        assert_eq!(opened(&outcome).reserved, reserved);
        let written = &scene.state.opened[0];
        let entry = written.entry.as_ref();
        assert_eq!(entry.map(|entry| entry.transfer.amount), reserved);
        assert!(entry.is_none_or(|entry| entry.reference == scene.command.quote.to_string()));
        assert_eq!(written.trade, *opened(&outcome));
        assert!(
            scene.state.velocity.contains_key(&scene.access.partner.id),
            "velocity counts either way"
        );
    }
}

// rule: idempotency.scope
#[test]
fn idempotency_key_is_shared_by_keys_of_one_partner() {
    let mut scene = scene(Side::OnRamp);
    let made = opened(&scene.decide()).clone();
    let second = access("acme", key_id(2), &[pool()]);
    let stranger = access("bolt", key_id(3), &[pool()]);
    let own = TransactCommand {
        key: second.key.id,
        ..scene.command.clone()
    };
    let foreign = TransactCommand {
        key: stranger.key.id,
        scope: scope(&stranger.tenant, pool(), "first"),
        fingerprint: Fingerprint::of(b"another"),
        ..scene.command.clone()
    };
    for access in [second, stranger] {
        scene.state.access.insert(access.key.id, Arc::new(access));
    }
    let outcomes = scene.decide_all(&[own, foreign]);
    assert_eq!(
        outcomes,
        [
            Ok(TransactOutcome::Existing(made)),
            Err(Refusal::QuoteUnknown)
        ]
    );
}

// rule: pools.velocity.window
#[test]
fn trade_leaves_window_after_one_day() {
    let floor = |passed| cutoff(after(passed), DAY);
    let day = u64::try_from(DAY.as_millis()).unwrap();
    assert!(noon() > floor(day - 1), "still counts");
    assert_eq!(
        noon(),
        floor(day),
        "no longer counts: only what was made after the floor does"
    );
    let total = Velocity {
        total: 5,
        floor: floor(0),
    };
    assert_eq!(total.slide(floor(day), &[5]).total, 0);
    assert_eq!(
        total.remove_trade(5, floor(0)).total,
        5,
        "what has left cannot leave again"
    );
    assert_eq!(
        total
            .remove_trade(5, floor(0).plus(Duration::from_millis(1)))
            .total,
        0
    );
}

// rule: idempotency.canonical
#[test]
fn fingerprint_depends_on_quote_only() {
    let request = |number, key: &str| Transact {
        pool: pool(),
        quote: QuoteId::new(kernel::Mode::Test, noon(), &Counter::from(number)),
        key: OperationKey {
            operation: Operation::new("POST", "/v1/pools/EUR-USDT/transact"),
            key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
        },
    };
    assert_eq!(request(1, "a").fingerprint(), request(1, "b").fingerprint());
    assert_ne!(request(1, "a").fingerprint(), request(2, "a").fingerprint());
}
