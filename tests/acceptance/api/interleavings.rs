//! Pairs of requests in every order of their steps, on the real store. Every invariant is checked after at most 25 orders; the
//! test of each pair expects exactly its list of outcomes.
#![expect(
    clippy::print_stdout,
    reason = "how many orders there were is shown where asked for"
)]

use std::collections::{BTreeMap, BTreeSet};

use acceptance::{ACME, ACME_SECRET, ACME_SECRET_2, Cast, Orders, Paced, World, money};
use kernel::Asset;
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};
use pools_core::batch::{Refusal, TransactOutcome};
use pools_core::ports::LedgerFilter;
use pools_core::profile::{PoolId, PoolsAccess};
use pools_core::quote::QuoteId;
use pools_core::usecases::credit_account::Credit;
use pools_core::usecases::reject_quote::RejectError;
use pools_core::usecases::transact_quote::{Transact, TransactError};

/// Number of orders that share a database: the invariants cover the whole database after each order.
const PER_WORLD: usize = 25;

/// Plays a scene in every order, with a new database at intervals; counts the outcomes.
pub(crate) struct Played {
    orders: Orders,
    world: Option<World>,
    outcomes: BTreeMap<String, usize>,
}

impl Played {
    pub(crate) fn new() -> Self {
        Self {
            orders: Orders::default(),
            world: None,
            outcomes: BTreeMap::new(),
        }
    }

    /// Whether the next order needs a new database; `None` after the last order. Ends the database of the orders before.
    pub(crate) async fn needs_world(&mut self) -> Option<bool> {
        let more = self.orders.more();
        let new = self.orders.played().is_multiple_of(PER_WORLD);
        if (new || !more)
            && let Some(world) = self.world.take()
        {
            world.finish().await;
        }
        more.then_some(new)
    }

    /// Sets the database of the next orders.
    pub(crate) fn set_world(&mut self, world: &World) {
        self.world = Some(world.clone());
    }

    /// The database of the next order; `None` after the last.
    async fn next(&mut self, funds: &str) -> Option<World> {
        if self.needs_world().await? {
            let world = World::new().await;
            if !funds.is_empty() {
                world.operator().credit(ACME, funds, "EUR").await;
            }
            self.set_world(&world);
        }
        self.world.clone()
    }

    pub(crate) async fn play(&mut self, cast: Cast) -> Vec<String> {
        self.orders.play(cast).await
    }

    /// Records the outcome of an order. The check of the invariants is slower than the order itself, so it runs once, when the
    /// database is closed: a breach persists until then.
    pub(crate) async fn ended(&mut self, world: &World, outcome: &str) {
        world.notice_all().await;
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
    }

    /// Expects exactly these outcomes.
    pub(crate) fn had(&self, name: &str, outcomes: &[&str]) {
        println!(
            "{name}: {} orders, {} waits for a lock, {:?}",
            self.orders.played(),
            self.orders.blocked(),
            self.outcomes
        );
        let found: BTreeSet<&str> = self.outcomes.keys().map(String::as_str).collect();
        assert_eq!(
            found,
            outcomes.iter().copied().collect(),
            "outcomes of {name}"
        );
    }
}

fn id(quote: &str) -> QuoteId {
    QuoteId::parse(quote).unwrap()
}

/// Executes a quote; returns `opened` or `existing` with the trade's id, or the refusal.
async fn transact(
    paced: Paced,
    world: World,
    secret: &'static str,
    quote: String,
    key: String,
) -> String {
    let access = world.access(secret).await;
    let request = Transact {
        pool: PoolId::parse("EUR-USDT").unwrap(),
        quote: id(&quote),
        key: OperationKey {
            operation: Operation::new("POST", "/v1/pools/EUR-USDT/transact"),
            key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
        },
    };
    match paced.transacting.transact(&access, request).await {
        Ok(TransactOutcome::Opened(_)) => "opened".to_owned(),
        Ok(TransactOutcome::Existing(_)) => "existing".to_owned(),
        Err(TransactError::InProgress) => "in progress".to_owned(),
        Err(TransactError::QuoteInProgress) => "quote in progress".to_owned(),
        Err(TransactError::Refused(refusal)) => refused(refusal).to_owned(),
        Err(TransactError::Store(fault)) => panic!("{fault:?}"),
    }
}

fn refused(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Denied(_) => "denied",
        Refusal::QuoteClosed(_) => "closed",
        Refusal::VelocityCapExceeded => "cap",
        Refusal::InsufficientBalance => "balance",
        Refusal::KeyReused => "reused",
        Refusal::QuoteUnknown
        | Refusal::SideNotEnabled
        | Refusal::VelocityBehind
        | Refusal::ReservationFailed
        | Refusal::NoRoomForReturn
        | Refusal::EngineUnavailable => panic!("{refusal}"),
    }
}

/// Polls a trade; returns its status.
async fn poll(paced: Paced, world: World, quote: String) -> String {
    let who = world.operator().tenant(ACME);
    let trade = paced.polling.poll(&who, id(&quote)).await.unwrap();
    trade.state.status().as_str().to_owned()
}

async fn reject(paced: Paced, world: World, quote: String) -> String {
    let who = world.operator().tenant(ACME);
    match paced.rejecting.reject(&who, id(&quote)).await {
        Ok(_) => "rejected".to_owned(),
        Err(RejectError::Closed(_)) => "closed".to_owned(),
        Err(fault) => panic!("{fault:?}"),
    }
}

async fn read(paced: &Paced, world: &World, quote: &str) -> &'static str {
    let who = world.operator().tenant(ACME);
    let found = paced.reading.quote(&who, id(quote)).await.unwrap();
    found.unwrap().1.as_str()
}

/// The number of stored trades and of reservations, from the database.
async fn debits(world: &World) -> (i64, i64) {
    let debits = "SELECT count(*) FROM ledger_entries WHERE part = 'reserve'";
    (
        world.database().count("trades").await,
        world.database().number(debits).await,
    )
}

// rule: pools.transact.once, idempotency.same-transaction
#[tokio::test]
async fn transact_and_transact_of_one_quote() {
    // Two processes that share only the database.
    for keys in [["k", "k"], ["k", "l"]] {
        let mut played = Played::new();
        while let Some(world) = played.next("100000.00").await {
            let quote = world.acme().buy("EUR-USDT", "100").await;
            let before = debits(&world).await;
            let run = |key: &str| {
                let (world, quote, key) = (world.clone(), quote.clone(), format!("{key}-{quote}"));
                move |paced| transact(paced, world, ACME_SECRET, quote, key)
            };
            let cast = Cast::of(&world).and(run(keys[0]));
            let mut answers = played.play(cast.elsewhere().and(run(keys[1]))).await;
            answers.sort_unstable();
            let after = debits(&world).await;
            assert_eq!(after, (before.0 + 1, before.1 + 1), "one trade, one debit");
            played.ended(&world, &answers.join(", ")).await;
        }
        played.had("transact and transact", &["existing, opened"]);
    }
}

// rule: pools.transact.balance, money.never-negative, pools.velocity.exact
#[tokio::test]
async fn transact_and_transact_of_two_quotes() {
    for (funds, cap, refusal) in [
        ("100.00", None, "balance"),
        ("100000.00", Some(11_000_000_000), "cap"),
    ] {
        let mut orders = Orders::default();
        let mut first = BTreeSet::new();
        while orders.more() {
            let world = World::new().await;
            world.operator().credit(ACME, funds, "EUR").await;
            world
                .operator()
                .change(ACME, |profile| profile.velocity_cap = cap)
                .await;
            let mut cast = Cast::of(&world);
            for _ in 0..2 {
                let quote = world.acme().buy("EUR-USDT", "100").await;
                let world = world.clone();
                cast = cast
                    .and(move |paced| transact(paced, world, ACME_SECRET, quote.clone(), quote));
            }
            let answers = orders.play(cast).await;
            let opened = answers.iter().position(|answer| answer == "opened");
            assert_eq!(answers[1 - opened.unwrap()], refusal);
            assert_eq!(debits(&world).await, (1, 1));
            first.extend(opened);
            world.finish().await;
        }
        println!("two quotes, {refusal}: {} orders", orders.played());
        assert_eq!(first, [0, 1].into(), "each side has won at least once");
    }
}

// rule: pools.reject.or-consume, pools.reject.once
#[tokio::test]
async fn transact_and_reject() {
    let mut played = Played::new();
    while let Some(world) = played.next("100000.00").await {
        let quote = world.acme().buy("EUR-USDT", "100").await;
        let (one, other) = (
            (world.clone(), quote.clone()),
            (world.clone(), quote.clone()),
        );
        let cast = Cast::of(&world)
            .and(move |paced| transact(paced, one.0, ACME_SECRET, one.1.clone(), one.1))
            .and(move |paced| reject(paced, other.0, other.1));
        let answers = played.play(cast).await;
        let status = world.acme().quote(&quote).await.ok()["status"].clone();
        played
            .ended(
                &world,
                &format!("{}: {}", answers.join(", "), status.as_str().unwrap()),
            )
            .await;
    }
    played.had(
        "transact and reject",
        &["opened, closed: consumed", "closed, rejected: rejected"],
    );
}

// rule: pools.transact.expired, pools.quote-record.monotone, time.read-after-lock
#[tokio::test]
async fn transact_behind_a_lock_held_over_the_instant_of_expiry() {
    let mut played = Played::new();
    while let Some(world) = played.next("100000.00").await {
        let quote = world.acme().buy("EUR-USDT", "100").await;
        let other = world.acme().buy("EUR-USDT", "100").await;
        world.after(14_999);
        let (one, two, three) = (
            (world.clone(), quote.clone()),
            world.clone(),
            (world.clone(), quote.clone()),
        );
        let cast = Cast::of(&world)
            .and(move |paced| transact(paced, one.0, ACME_SECRET, one.1.clone(), one.1))
            .and(move |paced| reject(paced, two, other))
            .and(async move |paced: Paced| {
                let (world, quote) = three;
                paced.turn().await;
                let made = world.trades_of(&quote).await;
                world.after(1);
                format!("{made} {}", read(&paced, &world, &quote).await)
            });
        let answers = played.play(cast).await;
        let status = world.acme().quote(&quote).await.ok()["status"].clone();
        let status = status.as_str().unwrap();
        let in_time = usize::from(answers[0] == "opened");
        // Stored before the instant or not at all; and an observed result persists.
        assert_eq!(answers[2], format!("{in_time} {status}"));
        played
            .ended(&world, &format!("{}: {status}", answers[0]))
            .await;
    }
    played.had(
        "transact behind a lock",
        &["opened: consumed", "closed: expired"],
    );
}

// rule: pools.transact.balance, money.zero-sum
#[tokio::test]
async fn transact_and_credit() {
    let mut orders = Orders::default();
    let mut outcomes = BTreeSet::new();
    while orders.more() {
        let world = World::new().await;
        world.operator().credit(ACME, "60.00", "EUR").await;
        let quote = world.acme().buy("EUR-USDT", "100").await;
        let (one, other) = (world.clone(), world.clone());
        let cast = Cast::of(&world)
            .and(move |paced| transact(paced, one, ACME_SECRET, quote.clone(), quote))
            .and(async move |paced: Paced| {
                let credit = Credit {
                    amount: money("60.00", "EUR"),
                    network: None,
                    reference: "deposit".to_owned(),
                };
                let who = other.operator().tenant(ACME);
                let credited = paced.crediting.credit(&who, &credit).await.unwrap();
                assert!(credited.applied);
                "credited".to_owned()
            });
        let answers = orders.play(cast).await;
        let left = world.acme().balance("EUR-USDT").await;
        let opened = answers[0] == "opened";
        assert_eq!(left, if opened { "20.00" } else { "120.00" });
        outcomes.insert(answers[0].clone());
        world.finish().await;
    }
    println!("transact and credit: {} orders", orders.played());
    assert_eq!(outcomes, ["balance".to_owned(), "opened".to_owned()].into());
}

// rule: auth.revocation-beats-money
#[tokio::test]
async fn transact_and_revocation() {
    for revoked in [false, true] {
        let mut orders = Orders::default();
        let mut outcomes = BTreeSet::new();
        while orders.more() {
            let world = World::new().await;
            world.operator().credit(ACME, "1000.00", "EUR").await;
            let quote = world.acme().buy("EUR-USDT", "100").await;
            let (one, other) = (world.clone(), world.clone());
            let cast = Cast::of(&world)
                .and(move |paced| transact(paced, one, ACME_SECRET_2, quote.clone(), quote))
                .and(async move |paced: Paced| {
                    paced.turn_to_write().await;
                    if revoked {
                        other.operator().revoke(ACME_SECRET_2).await;
                    } else {
                        let suspend = |profile: &mut pools_core::profile::PoolsProfile| {
                            profile.access = PoolsAccess::Suspended
                        };
                        other.operator().change(ACME, suspend).await;
                    }
                    let made = other.database().count("trades").await;
                    paced.turn().await;
                    made.to_string()
                });
            let answers = orders.play(cast).await;
            let made = world.database().count("trades").await;
            assert_eq!(
                answers[1],
                made.to_string(),
                "no write after the revocation"
            );
            assert_eq!(answers[0] == "opened", made == 1);
            outcomes.insert(answers[0].clone());
            world.finish().await;
        }
        println!("transact and revocation: {} orders", orders.played());
        assert_eq!(outcomes, ["denied".to_owned(), "opened".to_owned()].into());
    }
}

// rule: pools.trade.converge, pools.event.once, pools.trade.second-poller, pools.trade.return
#[tokio::test]
async fn poll_and_poll() {
    // Both polls see settled, failed or released; or one settles the trade and both see the return.
    for (amount, polled, ends) in [
        ("10", 0, &["settled"][..]),
        ("10.31", 0, &["failed"]),
        ("10.32", 0, &["released"]),
        ("10.41", 1, &["returned"]),
        ("10.41", 0, &["returned", "settled"]),
    ] {
        let mut played = Played::new();
        while let Some(world) = played.next("100000.00").await {
            let (quote, _) = world.acme().trade("EUR-USDT", amount).await;
            for _ in 0..polled {
                world.acme().poll(&quote).await.ok();
            }
            let mut cast = Cast::of(&world);
            for _ in 0..2 {
                let (world, quote) = (world.clone(), quote.clone());
                cast = cast.and(move |paced| poll(paced, world, quote));
            }
            played.play(cast).await;
            let entries =
                format!("SELECT count(*) FROM ledger_entries WHERE reference = '{quote}'");
            let status = world.acme().trade_of(&quote).await;
            let parts = 2 + i64::from(status == "returned");
            assert_eq!(world.database().number(&entries).await, parts);
            played.ended(&world, &status).await;
        }
        played.had(&format!("poll and poll, {amount}"), ends);
    }
}

// rule: pools.trade.second-poller, pools.event.once
#[tokio::test]
async fn poll_and_its_successor_after_a_lease_ends() {
    let mut played = Played::new();
    while let Some(world) = played.next("100000.00").await {
        let (quote, _) = world.acme().trade("EUR-USDT", "10.31").await;
        let (one, other) = (
            (world.clone(), quote.clone()),
            (world.clone(), quote.clone()),
        );
        let cast = Cast::of(&world)
            .and(move |paced| poll(paced, one.0, one.1))
            .and(async move |paced: Paced| {
                let (world, quote) = other;
                paced.turn().await;
                world.after(60_000);
                poll(paced, world, quote).await
            });
        played.play(cast).await;
        let status = world.acme().trade_of(&quote).await;
        played.ended(&world, &status).await;
    }
    played.had("a late response", &["failed"]);
}

// rule: pools.ledger.chain, pools.ledger.pure
#[tokio::test]
async fn poll_and_reads() {
    let mut played = Played::new();
    while let Some(world) = played.next("100000.00").await {
        let (quote, trade) = world.acme().trade("EUR-USDT", "10.31").await;
        let (one, other) = ((world.clone(), quote.clone()), (world.clone(), trade));
        let cast = Cast::of(&world)
            .and(move |paced| poll(paced, one.0, one.1))
            .and(async move |paced: Paced| {
                let (world, trade) = other;
                let who = world.operator().tenant(ACME);
                let id = pools_core::trade::TradeId::parse(&trade).unwrap();
                let status = paced
                    .reading
                    .trade(&who, id)
                    .await
                    .unwrap()
                    .unwrap()
                    .state
                    .status();
                let euro = Asset::fiat("EUR").unwrap();
                let filter = LedgerFilter::default();
                let page = paced.reading.statement(&who, euro, &filter, None, 100);
                let page = page.await.unwrap().unwrap();
                let newest = page.page.items[0].mark.unwrap();
                assert_eq!(
                    newest.balance_after, page.account.available,
                    "a page is a consistent snapshot"
                );
                let refunded = page.page.items.iter().any(|entry| {
                    entry.trade == Some((id, pools_core::ledger::TransferRole::Close))
                });
                format!("{}, {refunded}", status.as_str())
            });
        let answers = played.play(cast).await;
        played.ended(&world, &answers[1]).await;
    }
    // The trade is read before the ledger: a status `returned` implies that the refund is visible.
    played.had(
        "poll and reads",
        &["reserved, false", "reserved, true", "failed, true"],
    );
}
