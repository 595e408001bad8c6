//! Callers that disconnect at various points leave no open transaction to the next caller.

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::{Mode, Timestamp};
use partner_core::events::{DeliveryId, NewEvent, Service};
use partner_core::sealing::Sealed;
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::ports::PoolsStore as _;
use provisioning::ports::ProvisionStore as _;
use sqlx::Connection as _;
use store_postgres::{Options, PostgresStore};
use test_support::contract::WINDOW;
use ulid::Ulid;

use crate::fixture::{Database, options};

async fn open_small(database: &Database) -> PostgresStore {
    let options = Options {
        connections: 4,
        ..options(WINDOW, None)
    };
    let store = PostgresStore::open(&database.serving(), options).await;
    store.unwrap()
}

fn acme() -> Tenant {
    Tenant {
        partner: PartnerId::parse("acme").unwrap(),
        mode: Mode::Test,
    }
}

async fn with_partner(database: &Database) {
    let operating = PostgresStore::open(&database.operating(), options(WINDOW, None)).await;
    let store = operating.unwrap();
    let mut tx = store.provision_begin("partner").await.unwrap();
    let partner = Partner {
        id: acme().partner,
        name: "Acme".to_owned(),
        status: PartnerStatus::Active,
    };
    tx.partner_put(Mode::Test, &partner).await.unwrap();
    tx.commit().await.unwrap();
}

async fn emit(store: PostgresStore, number: u128) -> Result<String, kernel::StoreError> {
    let event = NewEvent {
        tenant: acme(),
        id: format!("event-{number}"),
        service: Service::Pools,
        kind: format!("kind-{number}"),
        object_id: format!("object-{number}"),
        body: Sealed(vec![0; 64]),
        created_at: Timestamp::from_millis(0).unwrap(),
        delivery: DeliveryId::from_parts(Mode::Test, Ulid(number)),
    };
    let mut tx = store.begin("emit").await?;
    tx.event_insert(&event).await?;
    tx.commit().await?;
    Ok(event.id)
}

/// The stored events, as another session reads them.
async fn stored(database: &Database) -> BTreeSet<String> {
    let mut owner = database.owner().await;
    let ids = sqlx::query_scalar("SELECT id FROM events")
        .fetch_all(&mut owner)
        .await
        .unwrap();
    owner.close().await.unwrap();
    ids.into_iter().collect()
}

async fn idle_in_transaction(database: &Database) -> i64 {
    let mut owner = database.owner().await;
    let idle = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap();
    owner.close().await.unwrap();
    idle
}

/// Waits until no transaction is open, for less time than the server lets an idle one stay open.
async fn no_transaction_stays_open(database: &Database) {
    let mut left = idle_in_transaction(database).await;
    for _ in 0..200 {
        if left == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        left = idle_in_transaction(database).await;
    }
    assert_eq!(left, 0);
}

/// Nine of ten callers disconnect at various points. Every acknowledged event is stored, and the store still works.
#[tokio::test]
async fn acknowledged_events_survive_many_disconnecting_callers() {
    let database = Database::make().await;
    let store = open_small(&database).await;
    with_partner(&database).await;
    let mut callers = Vec::new();
    for number in 0..300_u128 {
        let caller = tokio::spawn(emit(store.clone(), number));
        if number % 10 > 0 {
            let delay = Duration::from_micros(u64::try_from(number * 7919 % 20_011).unwrap());
            let abort = caller.abort_handle();
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                abort.abort();
            });
        }
        callers.push(caller);
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    let mut acknowledged = BTreeSet::new();
    for caller in callers {
        if let Ok(Ok(id)) = caller.await {
            acknowledged.insert(id);
        }
    }
    assert!(!acknowledged.is_empty());
    no_transaction_stays_open(&database).await;
    for number in 1000..1016 {
        acknowledged.insert(emit(store.clone(), number).await.unwrap());
    }
    store.close().await;
    let stored = stored(&database).await;
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(lost.is_empty(), "{lost:?}");
}
