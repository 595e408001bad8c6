//! One partner's locked row holds up no other partner.

use kernel::{Mode, StoreError};
use partner_core::ports::{ClockGuard as _, ConfigVersions as _, PartnerStore as _};
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::ports::PoolsStore as _;
use pools_core::quote::QuoteId;
use sqlx::Connection as _;
use store_postgres::{Options, Waits};
use test_support::contract::Fixture as _;
use test_support::contract::outages::soon_ready;

use crate::fixture::{Database, Postgres, give_up_locked_rows, open_with, run};

fn tenant(name: &str) -> Tenant {
    Tenant {
        partner: PartnerId::parse(name).unwrap(),
        mode: Mode::Test,
    }
}

async fn provisioned(names: &[&str], change: impl FnOnce(&mut Options)) -> Postgres {
    let database = Database::make().await;
    let url = database.serving();
    let world = open_with(database, &url, change).await;
    let provision = &world.ports().provision;
    let mut tx = provision.provision_begin("partners").await.unwrap();
    for name in names {
        let partner = Partner {
            id: tenant(name).partner,
            name: (*name).to_owned(),
            status: PartnerStatus::Active,
        };
        tx.partner_put(Mode::Test, &partner).await.unwrap();
    }
    tx.commit().await.unwrap();
    world
}

/// An `apply` over several partners does not keep other partners locked while it waits for one.
// rule: pools.transact.isolated
#[tokio::test]
async fn transaction_over_several_partners_does_not_wait_for_a_locked_one() {
    let world = provisioned(&["free", "locked"], |_| {}).await;
    let mut other = world.database.owner().await;
    run(
        &mut other,
        "BEGIN; SELECT FROM books WHERE partner_id = 'locked' FOR UPDATE",
    )
    .await;
    let provision = &world.ports().provision;
    let mut tx = provision.provision_begin("apply").await.unwrap();
    tx.partner_lock(&tenant("free")).await.unwrap().unwrap();
    let refused = tx.partner_lock(&tenant("locked")).await;
    assert!(matches!(refused, Err(StoreError::Retry)), "{refused:?}");
    drop(tx);
    run(&mut other, "ROLLBACK").await;
    other.close().await.unwrap();

    let mut tx = provision.provision_begin("apply").await.unwrap();
    for name in ["free", "locked"] {
        tx.partner_lock(&tenant(name)).await.unwrap().unwrap();
    }
    assert!(tx.partner_lock(&tenant("unknown")).await.unwrap().is_none());
    tx.commit().await.unwrap();
}

/// More reads wait for a locked partner than there are connections, and other partners still get a connection.
// rule: pools.transact.isolated
#[tokio::test]
async fn reads_of_a_locked_partner_leave_connections_to_others() {
    const READERS: usize = 32;
    let world = provisioned(&["free", "locked"], |_| {}).await;
    let mut other = world.database.owner().await;
    run(
        &mut other,
        "BEGIN; SELECT FROM books WHERE partner_id = 'locked' FOR UPDATE",
    )
    .await;
    let store = world.ports().store.clone();
    let quote = QuoteId::parse("pq_test_01KSFG35G0WP12EHATV5JVPSSR").unwrap();
    let reading: Vec<_> = (0..READERS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                loop {
                    let read = store
                        .quote_get_behind_writes(&tenant("locked"), quote)
                        .await;
                    assert!(read.is_err(), "the row is locked");
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let read = store.quote_get_behind_writes(&tenant("free"), quote).await;
        assert_eq!(read.unwrap().map(|seen| seen.value), None);
    }
    for one in reading {
        one.abort();
    }
    other.close().await.unwrap();
}

/// One connection, which a caller waits for as long as in a service.
fn full_soon(options: &mut Options) {
    options.connections = 1;
    options.waits.connection = Waits::default().connection;
}

/// A process that cannot read its configuration and its master key is no longer ready.
// rule: base.reads-isolated
#[tokio::test]
async fn service_reads_its_own_state_while_every_connection_is_in_use() {
    let database = Database::make().await;
    let url = database.serving();
    let world = open_with(database, &url, full_soon).await;
    let held = world.store.begin("held").await.unwrap();
    world.store.config_version().await.unwrap();
    world.store.master_key_fingerprint().await.unwrap();
    assert_eq!(world.store.clock_check().await.unwrap(), None);
    assert_eq!(world.store.clock_noted().await.unwrap(), None);
    let Err(busy) = world.store.begin("refused").await else {
        panic!("the only connection is in use");
    };
    assert!(busy.is_busy(), "{busy:?}");
    drop(held);
}

/// The background tasks leave out a partner whose rows are locked. A pool without a free connection is no such lock, although the store
/// is ready.
// rule: background.isolated
#[tokio::test]
async fn exhausted_pool_is_distinguished_from_a_locked_partner() {
    let database = Database::make().await;
    let url = database.serving();
    let world = open_with(database, &url, full_soon).await;
    let held = world.store.begin("held").await.unwrap();
    let Err(busy) = world.store.begin("refused").await else {
        panic!("the only connection is in use");
    };
    assert!(busy.is_busy(), "{busy:?}");
    soon_ready(&world.store).await;
    // Unlike a rollback, a commit returns the connection before it ends.
    held.commit().await.unwrap();
    drop(world.store.begin("free").await.unwrap());

    let world = provisioned(&["locked"], give_up_locked_rows).await;
    let mut other = world.database.owner().await;
    run(
        &mut other,
        "BEGIN; SELECT FROM books WHERE partner_id = 'locked' FOR UPDATE",
    )
    .await;
    let quote = QuoteId::parse("pq_test_01KSFG35G0WP12EHATV5JVPSSR").unwrap();
    let store = world.ports().store.clone();
    let read = store
        .quote_get_behind_writes(&tenant("locked"), quote)
        .await;
    let locked = read.unwrap_err();
    assert!(!locked.is_busy(), "{locked:?}");
    other.close().await.unwrap();
}
