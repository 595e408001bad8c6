//! Rows that cannot be read. In the delivery queue they delay no other delivery; a list that has one fails.

use std::time::Duration;

use gate_core::ports::CustomerFilter;
use kernel::{Cas, StoreError, StoreResult};
use partner_core::events::Service;
use partner_core::ports::{ClaimedDelivery, DeliveryFilter};
use partner_core::webhooks::delivery::AttemptOutcome::Delivered;
use partner_core::webhooks::delivery::DeliveryState;
use pools_core::ports::{LedgerFilter, TradeFilter};
use pools_core::quote::Side;

use crate::contract::exports::ever;
use crate::contract::fixture::{Fixture, GateFixture};
use crate::contract::world::{MILLI, ONE, World, eur};

/// How long a row is left out. It is longer than the lease of [`World::order`].
const LEFT_OUT_FOR: Duration = Duration::from_secs(60);

impl<F: Fixture> World<F> {
    /// Sets the attempts of an event's delivery.
    async fn set_attempts(&self, event: &str, attempts: i64) {
        let sql = format!("UPDATE deliveries SET attempts = {attempts} WHERE event_id = '{event}'");
        self.fixture.damage(&sql).await;
    }

    /// Claims one delivery of each endpoint. Returns the events' ids in order, and the claims.
    async fn claim_one_each(&self) -> (Vec<String>, Vec<(u64, ClaimedDelivery)>) {
        let mut order = self.order(64);
        order.capacity.max_per_endpoint = 1;
        let claimed = self.claim_by(&order).await;
        let mut events: Vec<String> = claimed.iter().map(|one| one.event.id.clone()).collect();
        events.sort();
        let claims = claimed.into_iter().map(|one| (order.token, one));
        (events, claims.collect())
    }
}

/// The delivery would fill the capacity of its endpoint, and fail every claim.
// rule: background.unreadable
pub async fn unreadable_delivery_is_left_out(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    let (other, _) = world.listener("other").await;
    for event in ["a1", "a2", "a3"] {
        world.emit(&acme.who, event, event).await;
    }
    world.emit(&other.who, "o1", "o1").await;
    world.set_attempts("a1", -1).await;
    assert_eq!(world.claim_one_each().await.0, ["o1"]);
    // From now on the claims leave it out.
    let (events, claims) = world.claim_one_each().await;
    assert_eq!(events, ["a2"]);
    // A delivery that was damaged after its claim delays neither the end of other leases nor other outcomes.
    world.set_attempts("a2", -1).await;
    let (token, a2) = &claims[0];
    assert_eq!(world.conclude(*token, a2, Delivered).await, Cas::Lost);
    let (events, claims) = world.claim_one_each().await;
    assert_eq!(events, ["a3"]);
    let (token, a3) = &claims[0];
    assert_eq!(world.conclude(*token, a3, Delivered).await, Cas::Won);
    world.clock().advance(LEFT_OUT_FOR);
    assert_eq!(world.claim_one_each().await.0, ["o1"]);
    for event in ["a1", "a2"] {
        world.set_attempts(event, 0).await;
    }
    world.clock().advance(LEFT_OUT_FOR);
    for expected in [&["a1", "o1"][..], &["a2"]] {
        let (events, claims) = world.claim_one_each().await;
        assert_eq!(events, expected);
        for (token, one) in &claims {
            assert_eq!(world.conclude(*token, one, Delivered).await, Cas::Won);
        }
    }
    for (who, event) in [(&acme.who, "a1"), (&acme.who, "a2"), (&other.who, "o1")] {
        let state = world.deliveries(who, event).await[0].progress.state;
        assert!(
            matches!(state, DeliveryState::Succeeded { .. }),
            "{state:?}"
        );
    }
    world.assert_clean().await;
}

/// The attempts of its endpoint fail, as if the secret did not decrypt.
// rule: background.unreadable
pub async fn unreadable_secret_hides_no_other_endpoint(world: World<impl Fixture>) {
    let (acme, _) = world.listener("acme").await;
    let (other, endpoint) = world.listener("other").await;
    world.emit(&acme.who, "a1", "a1").await;
    world.emit(&other.who, "o1", "o1").await;
    let spoil =
        "UPDATE webhook_secrets SET created_at = 9223372036854775807 WHERE partner_id = 'acme'";
    world.fixture.damage(spoil).await;
    let (events, claims) = world.claim_one_each().await;
    assert_eq!(events, ["a1", "o1"]);
    for (_, one) in claims {
        if one.tenant == other.who {
            assert_eq!(*one.endpoint, endpoint);
        } else {
            assert!(one.endpoint.secrets.is_empty());
        }
    }
}

fn is_inconsistent<T>(read: &StoreResult<T>) -> bool {
    matches!(read, Err(StoreError::Inconsistent { .. }))
}

/// Without the row a page would be short, and the list would seem to end with it.
// rule: list.no-loss, cli.export
pub async fn unreadable_row_fails_its_page_and_its_export(world: World<impl Fixture>) {
    let who = &world.rich("acme").await;
    let mut trades = Vec::new();
    for _ in 0..3 {
        world.clock().advance(MILLI);
        trades.push(world.trade(who, Side::OnRamp, ONE).await.id);
    }
    let (oldest, who) = (trades[0].ulid(), &who.who);
    let spoil = format!(
        "UPDATE trades SET attempts = -1 WHERE id = '{oldest}';
         UPDATE ledger_entries SET reason = 'none' WHERE trade_id = '{oldest}'"
    );
    world.fixture.damage(&spoil).await;
    let (store, exports) = (&world.ports().store, &world.ports().exports);

    let mut filter = TradeFilter::default();
    let newest = store.trades_page(who, &filter, 2).await.unwrap();
    assert_eq!(newest.len(), 2);
    filter.cursor = Some(trades[1]);
    let last = store.trades_page(who, &filter, 2).await;
    assert!(is_inconsistent(&last), "{last:?}");
    let mut pages = exports.trades_export(who, ever()).await.unwrap();
    let first = pages.next(2).await;
    assert!(is_inconsistent(&first), "{first:?}");

    let filter = LedgerFilter::default();
    let newest = store.ledger_page(who, eur(), &filter, 2).await.unwrap();
    assert_eq!(newest.unwrap().entries.len(), 2);
    let whole = store.ledger_page(who, eur(), &filter, 100).await;
    assert!(is_inconsistent(&whole), "{whole:?}");
    let mut pages = exports.ledger_export(who, ever()).await.unwrap();
    let whole = pages.next(100).await;
    assert!(is_inconsistent(&whole), "{whole:?}");
}

/// Without the row a page would be short, and the list would seem to end with it.
// rule: list.no-loss
pub async fn unreadable_customer_or_delivery_fails_its_page(world: World<impl GateFixture>) {
    let (acme, _) = world.listener("acme").await;
    let who = &acme.who;
    let mut customers = Vec::new();
    for (number, event) in [(1, "e1"), (2, "e2"), (3, "e3")] {
        world.clock().advance(MILLI);
        let customer = world.customer(who, number, None);
        world.insert(who, &customer).await.unwrap();
        customers.push(customer.id);
        world.emit(who, event, event).await;
    }
    let oldest = customers[0].ulid();
    let spoil = format!("UPDATE customers SET kyc_status = '?' WHERE id = '{oldest}'");
    world.fixture.damage(&spoil).await;
    world.set_attempts("e1", -1).await;

    let ports = world.fixture.gate();
    let mut filter = CustomerFilter::default();
    let newest = ports.store.customers_page(who, &filter, 2).await.unwrap();
    assert_eq!(newest.len(), 2);
    filter.after = Some(customers[1]);
    let last = ports.store.customers_page(who, &filter, 2).await;
    assert!(is_inconsistent(&last), "{last:?}");

    for status in [None, Some("pending")] {
        let page = async |skip| {
            let filter = DeliveryFilter {
                status,
                skip,
                ..DeliveryFilter::default()
            };
            let page = ports
                .deliveries
                .deliveries_page(who, Service::Pools, filter, 2);
            page.await
        };
        assert_eq!(page(0).await.unwrap().len(), 2);
        let last = page(2).await;
        assert!(is_inconsistent(&last), "{last:?}");
    }
}
