//! Lists of which a read fails. A walk over the pages ends with an error, and never early.

use std::fmt::Display;

use acceptance::{ACME, Call, Cast, Gate, Orders, Paced, World};
use gate_core::ports::{SessionFilter, TransactionFilter};
use gate_core::session::SessionStatus;
use gate_core::usecases::customers::{CustomerSearch, Customers};
use gate_core::usecases::queries::GateQueries;
use kernel::Asset;
use partner_core::Tenant;
use partner_core::events::Service;
use partner_core::ports::DeliveryFilter;
use pools_core::ports::{LedgerFilter, TradeFilter};
use pools_core::usecases::queries::LedgerCursor;
use serde_json::{Value, json};

/// The outcome of a walk that ended with an error.
const FAILED: &str = "failed";
/// Items on a page. Every list has more pages than one.
const PAGE: u32 = 2;
const ITEMS: usize = 5;
const DAY: u64 = 24 * 60 * 60 * 1000;
/// More calls than a walk makes.
const NEVER: u32 = u32::MAX;

/// The items of a walk in the order of the list.
fn walked(items: &[impl Display]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(" ")
}

/// Makes a walk whose call after this many fails, and returns its outcome.
async fn play<R>(world: &World, calls: u32, walk: impl FnOnce(Paced) -> R) -> String
where
    R: Future<Output = String> + Send + 'static,
{
    let cast = Cast::of(world).failing_after(calls).and(walk);
    let mut outcomes = Orders::default().play(cast).await;
    outcomes.remove(0)
}

/// Fails each call of a walk in turn. `least` is the number of calls that it makes at least.
async fn every_fault_ends_walk<R>(
    world: &World,
    list: &str,
    least: u32,
    all: &str,
    walk: impl Fn(Paced) -> R,
) where
    R: Future<Output = String> + Send + 'static,
{
    assert_eq!(play(world, NEVER, &walk).await, all, "{list}");
    for calls in 0.. {
        let outcome = play(world, calls, &walk).await;
        if outcome == all {
            assert!(calls >= least, "{list}: {calls} calls");
            return;
        }
        assert_eq!(outcome, FAILED, "{list}, after {calls} calls");
    }
}

async fn trades(paced: Paced, who: Tenant) -> String {
    let mut filter = TradeFilter::default();
    let mut all = Vec::new();
    loop {
        let Ok(page) = paced.reading.trades(&who, &filter, PAGE).await else {
            return FAILED.to_owned();
        };
        all.extend(page.items.iter().map(|trade| trade.id));
        filter.cursor = all.last().copied();
        if !page.has_more {
            return walked(&all);
        }
    }
}

/// The numbers of the entries of an account.
async fn entries(paced: Paced, who: Tenant, asset: Asset) -> String {
    let filter = LedgerFilter::default();
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let statement = paced
            .reading
            .statement(&who, asset, &filter, after, PAGE)
            .await;
        let Ok(statement) = statement else {
            return FAILED.to_owned();
        };
        let page = statement.unwrap().page;
        for entry in &page.items {
            let sequence = entry.mark.unwrap().sequence;
            all.push(sequence);
            let entry = entry.id;
            after = Some(LedgerCursor { sequence, entry });
        }
        if !page.has_more {
            return walked(&all);
        }
    }
}

fn queries(paced: &Paced) -> GateQueries {
    let context = paced.gate().context;
    GateQueries { context }
}

async fn sessions(paced: Paced, who: Tenant, status: Option<SessionStatus>) -> String {
    let queries = queries(&paced);
    let mut filter = SessionFilter {
        status,
        ..SessionFilter::default()
    };
    let mut all = Vec::new();
    loop {
        let Ok(page) = queries.sessions(&who, &filter, PAGE).await else {
            return FAILED.to_owned();
        };
        all.extend(page.items.iter().map(|session| session.id));
        filter.after = all.last().copied();
        if !page.has_more {
            return walked(&all);
        }
    }
}

async fn transactions(paced: Paced, who: Tenant) -> String {
    let queries = queries(&paced);
    let mut filter = TransactionFilter::default();
    let mut all = Vec::new();
    loop {
        let Ok(page) = queries.transactions(&who, &filter, PAGE).await else {
            return FAILED.to_owned();
        };
        all.extend(page.items.iter().map(|it| it.refid));
        filter.after = all.last().copied();
        if !page.has_more {
            return walked(&all);
        }
    }
}

async fn customers(paced: Paced, who: Tenant) -> String {
    let gate = paced.gate();
    let customers = Customers {
        context: gate.context,
        idempotent: gate.acting.idempotent,
    };
    let mut wanted = CustomerSearch::default();
    let mut all = Vec::new();
    loop {
        let Ok(page) = customers.list(&who, &wanted, PAGE).await else {
            return FAILED.to_owned();
        };
        all.extend(page.items.iter().map(|customer| customer.id));
        wanted.after = all.last().copied();
        if !page.has_more {
            return walked(&all);
        }
    }
}

async fn deliveries(paced: Paced, who: Tenant, status: Option<&'static str>) -> String {
    let delivered = paced.deliveries(Service::Gate);
    let mut filter = DeliveryFilter {
        status,
        ..DeliveryFilter::default()
    };
    let mut all = Vec::new();
    loop {
        let Ok(page) = delivered.list(&who, filter, PAGE).await else {
            return FAILED.to_owned();
        };
        all.extend(page.items.iter().map(|view| view.record.id));
        filter.skip = u32::try_from(all.len()).unwrap();
        if !page.has_more {
            return walked(&all);
        }
    }
}

/// The ids of a list that the gate returned.
fn ids(list: &Value) -> Vec<String> {
    let listed = list["data"].as_array().unwrap().iter();
    listed
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

// rule: list.no-loss
#[tokio::test]
async fn walk_over_trades_or_entries_never_ends_early_when_a_read_fails() {
    let world = World::new().await;
    let who = world.operator().tenant(ACME);
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let mut made = Vec::new();
    for _ in 0..ITEMS {
        world.after(1);
        made.insert(0, world.acme().trade("EUR-USDT", "10.00").await.1);
    }
    let walk = |paced| trades(paced, who.clone());
    every_fault_ends_walk(&world, "trades", 3, &walked(&made), walk).await;

    // The credit, and a reservation of each trade.
    let numbers: Vec<usize> = (1..=ITEMS + 1).rev().collect();
    let eur = Asset::fiat("EUR").unwrap();
    let walk = |paced| entries(paced, who.clone(), eur);
    // Each page after the first one also reads the entry of its cursor.
    every_fault_ends_walk(&world, "entries", 5, &walked(&numbers), walk).await;
    world.finish().await;
}

// rule: list.no-loss
#[tokio::test]
async fn walk_over_sessions_never_ends_early_when_a_read_fails() {
    let gate = Gate::new().await;
    let (world, acme) = (gate.world(), gate.acme());
    let who = world.operator().tenant(ACME);
    let mut made = Vec::new();
    for item in 0..ITEMS {
        world.after(1);
        made.insert(0, acme.open_id(&format!("k{item}")).await);
    }
    // A page reads what is overdue, and then the sessions.
    for status in [None, Some(SessionStatus::Open)] {
        let walk = |paced| sessions(paced, who.clone(), status);
        every_fault_ends_walk(world, "sessions", 6, &walked(&made), walk).await;
    }
    // The first page expires a session: it reads what is overdue twice, and begins and commits a transaction in between.
    for calls in 0..10 {
        world.after(DAY);
        made.insert(0, acme.open_id(&format!("overdue{calls}")).await);
        world.after(DAY);
        let walk = |paced| sessions(paced, who.clone(), Some(SessionStatus::Expired));
        assert_eq!(
            play(world, calls, walk).await,
            FAILED,
            "after {calls} calls"
        );
    }
    let walk = |paced| sessions(paced, who.clone(), Some(SessionStatus::Expired));
    assert_eq!(play(world, NEVER, walk).await, walked(&made));
    world.notice_all().await;
    gate.finish().await;
}

// rule: list.no-loss
#[tokio::test]
async fn walk_over_transactions_never_ends_early_when_a_read_fails() {
    let gate = Gate::new().await;
    let (world, acme) = (gate.world(), gate.acme());
    let who = world.operator().tenant(ACME);
    for item in 0..ITEMS {
        world.after(1);
        let session = acme.open_id(&format!("k{item}")).await;
        acme.complete(&session).await.ok();
    }
    let whole = acme.get("/v1/transactions?limit=100").await.ok();
    let listed = whole["data"].as_array().unwrap().iter();
    let made: Vec<&str> = listed.map(|it| it["refid"].as_str().unwrap()).collect();
    assert_eq!(made.len(), ITEMS);
    let walk = |paced| transactions(paced, who.clone());
    every_fault_ends_walk(world, "transactions", 3, &walked(&made), walk).await;
    world.notice_all().await;
    gate.finish().await;
}

// rule: list.no-loss
#[tokio::test]
async fn walk_over_customers_or_deliveries_never_ends_early_when_a_read_fails() {
    let gate = Gate::new().await;
    let (world, acme) = (gate.world(), gate.acme());
    let who = world.operator().tenant(ACME);
    for item in 0..ITEMS {
        world.after(1);
        let body = json!({ "email": format!("p{item}@shop.example") });
        acme.create_customer(&body, &format!("k{item}"))
            .await
            .created();
    }
    let made = ids(&acme.get("/v1/customers?limit=100").await.ok());
    assert_eq!(made.len(), ITEMS);
    let walk = |paced| customers(paced, who.clone());
    every_fault_ends_walk(world, "customers", 3, &walked(&made), walk).await;

    // The event of each customer, and test events.
    for _ in 0..ITEMS {
        world.after(1);
        acme.send(Call::post("/v1/webhooks/test")).await.ok();
    }
    for (status, query) in [(None, ""), (Some("pending"), "&status=pending")] {
        let path = format!("/v1/webhooks/deliveries?limit=100{query}");
        let queued = ids(&acme.get(&path).await.ok());
        assert_eq!(queued.len(), 2 * ITEMS);
        let walk = |paced| deliveries(paced, who.clone(), status);
        every_fault_ends_walk(world, "deliveries", 5, &walked(&queued), walk).await;
    }
    world.notice_all().await;
    gate.finish().await;
}
