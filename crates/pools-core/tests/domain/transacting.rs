//! Executing a quote: the calls that the engine receives, and their order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Named, Seen, StoreError, StoreResult, Timestamp, UpstreamName};
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey, Scope};
use partner_core::ports::{InFlight, Submit, Ticket};
use partner_core::{Access, Tenant};
use pools_core::batch::{Decision, Funds, Refusal, TransactCommand, TransactOutcome};
use pools_core::ledger::Account;
use pools_core::ports::{
    Confirmation, Depth, Engine, Hold, Order, Recalled, TradeReportRequest, TransactPreflight,
    TransactQueue, TransactSnapshot,
};
use pools_core::profile::{PoolId, PoolsProfile};
use pools_core::quote::{QuoteClosed, QuoteId, QuoteOutcome, Side};
use pools_core::trade::{EngineReport, Trade, TradeId};
use pools_core::usecases::transact_quote::{Transact, TransactError, TransactQuote, order_of};
use pools_core::velocity::Velocity;

use crate::fixtures::{
    Counter, DAY, Journal, access, after, eur, forbid_sales, key_id, noon, of_another, pool, quote,
    ready, stopped, trade, usdt,
};
use crate::unused_store::catch_up;

type QueueResult = fn(&TransactCommand) -> StoreResult<Decision>;

/// The upstreams and the batch queue, with their prepared responses.
struct Scene {
    journal: Journal,
    access: Access<PoolsProfile>,
    recalled: Option<Recalled>,
    seen: TransactSnapshot,
    at: Timestamp,
    twin: bool,
    busy: bool,
    hold: Option<Hold>,
    confirmation: Option<Confirmation>,
    queue: QueueResult,
    asked: Arc<Mutex<Vec<(TradeId, Order)>>>,
    commands: Arc<Mutex<Vec<TransactCommand>>>,
}

/// An executable quote, an engine that holds, and a queue that opens a trade.
fn scene(side: Side) -> Scene {
    Scene {
        journal: Journal::default(),
        access: access("acme", key_id(1), &[pool()]),
        recalled: None,
        seen: TransactSnapshot {
            answered: None,
            quote: Some(quote(side)),
            trade: None,
            funds: funds("100", "100"),
        },
        at: after(1_000),
        twin: false,
        busy: false,
        hold: Some(Hold::Held),
        confirmation: Some(Confirmation::Confirmed),
        queue: |command| Ok(Ok(TransactOutcome::Opened(made(command)))),
        asked: Arc::default(),
        commands: Arc::default(),
    }
}

fn funds(fiat: &str, crypto: &str) -> Funds {
    let account = |available| Account {
        available,
        sequence: 1,
    };
    Funds {
        accounts: vec![account(eur(fiat)), account(usdt(crypto))],
        velocity: None,
    }
}

fn made(command: &TransactCommand) -> Trade {
    Trade {
        id: command.trade,
        ..trade(Side::OnRamp, None)
    }
}

impl Scene {
    /// Runs the use case. Returns the outcome and the journal.
    fn run(self) -> (Result<TransactOutcome, TransactError>, Vec<String>) {
        let request = Transact {
            pool: pool(),
            quote: quote(Side::OnRamp).id,
            key: OperationKey {
                operation: Operation::new("POST", "/v1/pools/EUR-USDT/transact"),
                key: IdempotencyKey::parse(b"first").unwrap(),
            },
        };
        let (access, journal) = (self.access.clone(), self.journal.clone());
        let all = Arc::new(self);
        let transacting = TransactQuote {
            preflight: Arc::clone(&all) as Arc<dyn TransactPreflight>,
            queue: Arc::clone(&all) as Arc<TransactQueue>,
            catch_up: catch_up(),
            engine: Arc::clone(&all) as Arc<dyn Engine>,
            in_flight: all,
            clock: stopped(),
            entropy: Arc::new(Counter::from(90)),
        };
        let outcome = ready(transacting.transact(&access, request));
        (outcome, journal.lines())
    }

    /// Notes a call of the engine. It names the partner of the request.
    fn note_call(&self, who: &Tenant, what: &str) {
        assert_eq!(who, &self.access.tenant);
        self.journal.note(what);
    }
}

/// Runs a purchase in a changed scene.
fn run_with(
    change: impl FnOnce(&mut Scene),
) -> (Result<TransactOutcome, TransactError>, Vec<String>) {
    let mut scene = scene(Side::OnRamp);
    change(&mut scene);
    scene.run()
}

struct Leave(Journal, &'static str);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

#[async_trait]
impl InFlight for Scene {
    async fn enter(&self, scope: &Scope) -> Option<Ticket> {
        self.journal.note(format!("enter {}", scope.route));
        (!self.twin).then(|| Ticket(Box::new(Leave(self.journal.clone(), "leave"))))
    }

    async fn enter_within(&self, scope: &Scope, patience: Duration) -> Option<Ticket> {
        let quote = quote(Side::OnRamp).id.to_string();
        assert_eq!(
            (scope.key.as_str(), &scope.tenant),
            (&*quote, &self.access.tenant)
        );
        assert_eq!(
            patience,
            Duration::from_secs(4),
            "the engine's two seconds, and two"
        );
        self.journal.note(TURN);
        (!self.busy).then(|| Ticket(Box::new(Leave(self.journal.clone(), NEXT))))
    }
}

#[async_trait]
impl Submit<TransactCommand, Decision> for Scene {
    async fn submit(&self, command: TransactCommand) -> StoreResult<Decision> {
        self.journal.note(format!("queue, hold {:?}", command.hold));
        self.commands.lock().unwrap().push(command.clone());
        (self.queue)(&command)
    }
}

impl Named for Scene {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("engine")
    }
}

#[async_trait]
impl Engine for Scene {
    async fn depth(&self, _: &Tenant, _: &Order) -> Option<Depth> {
        panic!("a transact must not ask for depth")
    }

    async fn hold(&self, who: &Tenant, trade: TradeId, order: &Order, _: Amount) -> Option<Hold> {
        self.note_call(who, "hold");
        self.asked.lock().unwrap().push((trade, order.clone()));
        self.hold
    }

    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.note_call(who, "confirm");
        assert_eq!(trade, self.asked.lock().unwrap()[0].0);
        self.confirmation
    }

    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()> {
        self.note_call(who, "release");
        assert_eq!(trade, self.asked.lock().unwrap()[0].0);
        Some(())
    }

    async fn report(&self, _: &Tenant, _: &TradeReportRequest) -> Option<EngineReport> {
        panic!("a transact must not ask for reports")
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(2)
    }
}

#[async_trait]
impl TransactPreflight for Scene {
    fn quote_recall(&self, who: &Tenant, id: QuoteId) -> Option<Recalled> {
        assert_eq!((who, id), (&self.access.tenant, quote(Side::OnRamp).id));
        self.recalled.clone()
    }

    async fn transact_snapshot(
        &self,
        _: &Scope,
        _: &PoolId,
        _: QuoteId,
    ) -> StoreResult<Seen<TransactSnapshot>> {
        self.journal.note("read");
        Ok(Seen {
            value: self.seen.clone(),
            at: self.at,
        })
    }
}

const ENTER: &str = "enter POST /v1/pools/EUR-USDT/transact";
/// The request has the quote's turn, then the next request has it.
const TURN: &str = "turn";
const NEXT: &str = "next";

/// The complete journal of a transact that reached its queue and opened no trade.
fn through(hold: Option<Hold>, after: Option<&str>) -> Vec<String> {
    journal(&["read", "hold"], hold, &[after, Some(NEXT)])
}

fn opened(after: Option<&str>) -> Vec<String> {
    journal(&["read", "hold"], Some(Hold::Held), &[Some(NEXT), after])
}

fn journal(before: &[&str], hold: Option<Hold>, after: &[Option<&str>]) -> Vec<String> {
    let queue = format!("queue, hold {hold:?}");
    let after = after.iter().flatten().copied();
    let lines = [ENTER, TURN].into_iter().chain(before.iter().copied());
    let lines = lines.chain([&*queue]).chain(after).chain(["leave"]);
    lines.map(str::to_owned).collect()
}

/// The journal of a transact that ended in the preflight.
const PREFLIGHT_ONLY: [&str; 5] = [ENTER, TURN, "read", NEXT, "leave"];

// rule: pools.engine.one-key, pools.engine.confirm, pools.trade.delivers-to-quote
#[test]
fn engine_holds_under_trade_id_before_batch_and_confirms_after_it() {
    let scene = scene(Side::OnRamp);
    let (asked, commands) = (Arc::clone(&scene.asked), Arc::clone(&scene.commands));
    let (outcome, journal) = scene.run();
    assert_eq!(journal, opened(Some("confirm")));
    let (asked, commands) = (asked.lock().unwrap(), commands.lock().unwrap());
    let ([(trade, order)], [command]) = (asked.as_slice(), commands.as_slice()) else {
        panic!("expected one call and one command")
    };
    assert_eq!(
        (*trade, order),
        (command.trade, &order_of(&quote(Side::OnRamp).terms))
    );
    assert_eq!(order.destination, quote(Side::OnRamp).terms.destination);
    assert!(matches!(outcome, Ok(TransactOutcome::Opened(made)) if made.id == *trade));
}

// rule: pools.transact.refusal-leaves-nothing
#[test]
fn hold_is_released_when_no_trade_was_opened() {
    let queues: [QueueResult; 7] = [
        |_| Ok(Err(Refusal::VelocityCapExceeded)),
        |_| Ok(Err(Refusal::InsufficientBalance)),
        |_| Err(StoreError::Retry),
        |_| Err(StoreError::Overloaded),
        |_| Err(StoreError::unavailable("away")),
        |_| Err(StoreError::Guard("a constraint".to_owned())),
        |_| Err(StoreError::unexpected("a fault")),
    ];
    for queue in queues {
        let (_, journal) = run_with(|scene| scene.queue = queue);
        assert_eq!(journal, through(Some(Hold::Held), Some("release")));
    }
    let (_, journal) = run_with(|scene| {
        scene.queue = |_| Ok(Ok(TransactOutcome::Existing(trade(Side::OnRamp, None))))
    });
    assert_eq!(journal, opened(Some("release")));
}

// rule: idempotency.unknown-commit
#[test]
fn engine_receives_nothing_after_unknown_commit() {
    let queue = |_: &TransactCommand| Err(StoreError::CommitUnknown("cut off".into()));
    let (outcome, journal) = run_with(|scene| scene.queue = queue);
    assert_eq!(journal, through(Some(Hold::Held), None));
    assert!(matches!(
        outcome,
        Err(TransactError::Store(StoreError::CommitUnknown(_)))
    ));
}

// rule: pools.transact.reservation-failed, pools.transact.engine-silent, pools.engine.unsent
#[test]
fn refusing_or_silent_engine_is_decided_in_batch() {
    // A silent engine may hold anyway, so the hold is released, unless the engine was not asked.
    for (hold, due, told) in [
        (Some(Hold::Refused), Refusal::ReservationFailed, None),
        (Some(Hold::Unsent), Refusal::EngineUnavailable, None),
        (None, Refusal::EngineUnavailable, Some("release")),
    ] {
        let mut silent = scene(Side::OnRamp);
        silent.hold = hold;
        silent.queue = |command| {
            Ok(Err(match command.hold {
                Some(Hold::Refused) => Refusal::ReservationFailed,
                _ => Refusal::EngineUnavailable,
            }))
        };
        let (outcome, journal) = silent.run();
        assert_eq!(journal, through(hold, told));
        assert!(matches!(outcome, Err(TransactError::Refused(refusal)) if refusal == due));
    }
}

// rule: pools.engine.confirm
#[test]
fn trade_stays_open_when_confirmation_fails() {
    for confirmation in [None, Some(Confirmation::Lapsed)] {
        let (outcome, journal) = run_with(|scene| scene.confirmation = confirmation);
        assert_eq!(journal, opened(Some("confirm")));
        assert!(matches!(outcome, Ok(TransactOutcome::Opened(_))));
    }
}

// rule: pools.engine.no-second-ask, pools.transact.idempotent
#[test]
fn quote_with_trade_needs_neither_engine_nor_queue() {
    let mut repeat = scene(Side::OnRamp);
    repeat.seen.trade = Some(trade(Side::OnRamp, None));
    repeat.at = after(3_600_000);
    let (outcome, journal) = repeat.run();
    assert_eq!(journal, PREFLIGHT_ONLY);
    assert!(
        matches!(outcome, Ok(TransactOutcome::Existing(found)) if found == trade(Side::OnRamp, None))
    );
}

// rule: pools.transact.order, idempotency.reused, pools.transact.not-found, pools.transact.side, pools.transact.rejected
#[test]
fn preflight_refusal_asks_no_engine() {
    type Change = fn(&mut Scene);
    let reused: Change = |s| s.seen.answered = Some(of_another(noon().plus(DAY)));
    let foreign: Change = |s| s.seen.quote = None;
    let other_pool: Change = |s| {
        let quote = s.seen.quote.as_mut().unwrap();
        quote.terms.pool = PoolId::parse("EUR-USDC").unwrap();
    };
    let side: Change = |s| forbid_sales(&mut s.access.profile);
    let rejected: Change =
        |s| s.seen.quote.as_mut().unwrap().outcome = QuoteOutcome::Rejected(noon());
    let with_trade: Change = |s| s.seen.trade = Some(trade(Side::OffRamp, None));
    for (bends, due) in [
        (vec![reused, foreign, with_trade], Refusal::KeyReused),
        (vec![foreign, with_trade], Refusal::QuoteUnknown),
        (vec![other_pool, with_trade], Refusal::QuoteUnknown),
        (vec![side, rejected], Refusal::SideNotEnabled),
        (vec![rejected], Refusal::QuoteClosed(QuoteClosed::Rejected)),
    ] {
        let mut scene = scene(Side::OffRamp);
        bends.iter().rev().for_each(|change| change(&mut scene));
        scene
            .seen
            .quote
            .as_mut()
            .into_iter()
            .for_each(|quote| quote.expires_at = noon());
        let (outcome, journal) = scene.run();
        assert_eq!(journal, PREFLIGHT_ONLY);
        assert!(
            matches!(outcome, Err(TransactError::Refused(refusal)) if refusal == due),
            "{outcome:?}"
        );
    }
}

/// Moves the snapshot's quote into the process's memory.
fn recalled(scene: &mut Scene) -> Option<Recalled> {
    Some(Recalled {
        quote: scene.seen.quote.take()?,
        funds: scene.seen.funds.clone(),
        at: scene.at,
    })
}

// rule: pools.engine.one-key
#[test]
fn new_quote_is_executed_without_preflight_read() {
    let mut scene = scene(Side::OffRamp);
    scene.recalled = recalled(&mut scene);
    let asked = Arc::clone(&scene.asked);
    let (outcome, journal) = scene.run();
    let with_read = opened(Some("confirm"));
    assert_eq!(journal, [&with_read[..2], &with_read[3..]].concat());
    assert_eq!(
        asked.lock().unwrap()[0].1,
        order_of(&quote(Side::OffRamp).terms)
    );
    assert!(matches!(outcome, Ok(TransactOutcome::Opened(_))));
}

// rule: pools.transact.order, idempotency.reused, pools.transact.idempotent
#[test]
fn remembered_figures_refuse_nothing() {
    type Change = fn(&mut Scene);
    let other_pool: Change = |s| {
        let recalled = s.recalled.as_mut().unwrap();
        recalled.quote.terms.pool = PoolId::parse("EUR-USDC").unwrap();
    };
    let poor: Change = |s| s.recalled.as_mut().unwrap().funds = funds("100", "99.999999");
    let side: Change = |s| forbid_sales(&mut s.access.profile);
    for change in [other_pool, side, poor] {
        let remembering = || {
            let mut scene = scene(Side::OffRamp);
            let quote = scene.seen.quote.clone();
            scene.recalled = recalled(&mut scene);
            scene.seen.quote = quote;
            change(&mut scene);
            scene
        };
        let mut reused = remembering();
        reused.seen.answered = Some(of_another(noon().plus(DAY)));
        let (outcome, journal) = reused.run();
        assert_eq!(journal, PREFLIGHT_ONLY);
        let Err(TransactError::Refused(Refusal::KeyReused)) = outcome else {
            panic!("{outcome:?}")
        };
        let mut executed = remembering();
        executed.seen.trade = Some(trade(Side::OffRamp, None));
        let (outcome, journal) = executed.run();
        assert_eq!(journal, PREFLIGHT_ONLY);
        assert!(
            matches!(outcome, Ok(TransactOutcome::Existing(_))),
            "{outcome:?}"
        );
    }
}

// rule: idempotency.kept
#[test]
fn expired_record_does_not_block_key() {
    let mut late = scene(Side::OnRamp);
    late.seen.answered = Some(of_another(late.at));
    assert!(matches!(late.run().0, Ok(TransactOutcome::Opened(_))));
}

// rule: pools.engine.no-second-ask
#[test]
fn expired_quote_in_snapshot_is_decided_in_batch_without_engine() {
    type Change = fn(&mut Scene);
    let expired: Change = |s| s.at = after(15_000);
    let consumed: Change =
        |s| s.seen.quote.as_mut().unwrap().outcome = QuoteOutcome::Consumed(noon());
    for change in [expired, consumed] {
        let mut scene = scene(Side::OnRamp);
        change(&mut scene);
        scene.queue = |command| Ok(Ok(TransactOutcome::Existing(made(command))));
        let (_, journal) = scene.run();
        assert_eq!(journal, self::journal(&["read"], None, &[Some(NEXT)]));
    }
}

// rule: pools.transact.hold-after-check, pools.transact.order
#[test]
fn engine_is_not_asked_when_access_cap_or_balance_refuse() {
    type Change = fn(&mut Scene);
    let denied: Change = |s| s.access.profile.allowed.clear();
    let cap: Change = |s| s.access.profile.velocity_cap = Some(10_850_000_000 - 1);
    let used: Change = |s| {
        s.access.profile.velocity_cap = Some(10_850_000_000);
        s.seen.funds.velocity = Some(Velocity {
            total: 1,
            floor: noon(),
        });
    };
    let balance: Change = |s| s.seen.funds = funds("99.99", "1000");
    let no_account: Change = |s| s.seen.funds.accounts.clear();
    for change in [denied, cap, used, balance, no_account] {
        let mut refused = scene(Side::OnRamp);
        change(&mut refused);
        refused.queue = |_| Ok(Err(Refusal::InsufficientBalance));
        let (outcome, journal) = refused.run();
        assert_eq!(journal, self::journal(&["read"], None, &[Some(NEXT)]));
        // The transaction names the reason.
        let Err(TransactError::Refused(Refusal::InsufficientBalance)) = outcome else {
            panic!("{outcome:?}")
        };
    }
    let mut exact = scene(Side::OnRamp);
    exact.access.profile.velocity_cap = Some(10_850_000_000);
    exact.seen.funds = funds("100", "0");
    assert_eq!(exact.run().1, opened(Some("confirm")));
    let mut ungated = scene(Side::OnRamp);
    ungated.access.profile.balance_gate = false;
    ungated.seen.funds = funds("0", "0");
    assert_eq!(ungated.run().1, opened(Some("confirm")));
}

// rule: pools.transact.hold-after-check
#[test]
fn engine_is_asked_when_transaction_finds_funds() {
    let mut credited = scene(Side::OnRamp);
    credited.seen.funds = funds("0", "0");
    credited.queue = |command| match command.hold {
        None => Ok(Err(Refusal::EngineUnavailable)),
        Some(_) => Ok(Ok(TransactOutcome::Opened(made(command)))),
    };
    let commands = Arc::clone(&credited.commands);
    let (outcome, journal) = credited.run();
    let found = ["read", "queue, hold None", "hold"];
    let after = [Some(NEXT), Some("confirm")];
    assert_eq!(journal, self::journal(&found, Some(Hold::Held), &after));
    let commands = commands.lock().unwrap();
    assert_eq!(commands[0].trade, commands[1].trade);
    assert!(matches!(outcome, Ok(TransactOutcome::Opened(made)) if made.id == commands[1].trade));
}

// rule: pools.engine.confirm-own
#[test]
fn hold_is_confirmed_when_command_finds_own_trade() {
    let (outcome, journal) =
        run_with(|scene| scene.queue = |command| Ok(Ok(TransactOutcome::Existing(made(command)))));
    assert_eq!(journal, opened(Some("confirm")));
    assert!(matches!(outcome, Ok(TransactOutcome::Opened(_))));
}

// rule: pools.transact.one-hold
#[test]
fn transact_only_reads_while_another_works_on_its_quote() {
    let (outcome, journal) = run_with(|scene| scene.busy = true);
    assert_eq!(journal, [ENTER, TURN, "read", "leave"]);
    assert!(matches!(outcome, Err(TransactError::QuoteInProgress)));
    let mut finished = scene(Side::OnRamp);
    finished.busy = true;
    finished.seen.trade = Some(trade(Side::OnRamp, None));
    let (outcome, journal) = finished.run();
    assert_eq!(journal, [ENTER, TURN, "read", "leave"]);
    assert!(matches!(outcome, Ok(TransactOutcome::Existing(_))));
}

// rule: idempotency.in-flight
#[test]
fn twin_in_flight_is_refused_before_any_read() {
    let (outcome, journal) = run_with(|scene| scene.twin = true);
    assert_eq!(journal, [ENTER]);
    assert!(matches!(outcome, Err(TransactError::InProgress)));
}
