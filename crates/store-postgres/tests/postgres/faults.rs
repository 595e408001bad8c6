//! Writes and exports that meet a failure of the server.

use std::time::Duration;

use kernel::{Asset, Mode, StoreError, Timestamp};
use partner_core::export::Window;
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::ports::{Exports as _, PoolsReads as _, PoolsStore as _};
use sqlx::Connection as _;
use store_postgres::Options;

use crate::fixture::{self, Database, Postgres, give_up_locked_rows, run};

fn acme() -> Tenant {
    Tenant {
        partner: PartnerId::parse("acme").unwrap(),
        mode: Mode::Test,
    }
}

fn eur() -> Asset {
    Asset::fiat("EUR").unwrap()
}

async fn with_partner(change: impl FnOnce(&mut Options)) -> Postgres {
    let database = Database::make().await;
    let url = database.serving();
    let opened = fixture::open_with(database, &url, change).await;
    let provision = &test_support::contract::Fixture::ports(&opened).provision;
    let mut tx = provision.provision_begin("partner").await.unwrap();
    let partner = Partner {
        id: acme().partner,
        name: "Acme".to_owned(),
        status: PartnerStatus::Active,
    };
    tx.partner_put(Mode::Test, &partner).await.unwrap();
    tx.commit().await.unwrap();
    opened
}

/// Ends every other session of the database.
pub(crate) async fn terminate(database: &Database) {
    let mut owner = database.owner().await;
    let ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run(&mut owner, ending).await;
    owner.close().await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn wait_for_held_partner_lock_times_out() {
    let opened = with_partner(give_up_locked_rows).await;
    let mut owner = opened.database.owner().await;
    let mut tx = owner.begin().await.unwrap();
    run(&mut tx, "SELECT FROM books FOR UPDATE").await;
    let mut waiting = opened.store.begin("waits").await.unwrap();
    let locked = waiting.account_lock(&acme(), eur()).await;
    assert!(
        matches!(locked, Err(StoreError::Unavailable(_))),
        "{locked:?}"
    );
    tx.rollback().await.unwrap();
    owner.close().await.unwrap();
    let mut next = opened.store.begin("goes on").await.unwrap();
    next.account_lock(&acme(), eur()).await.unwrap();
}

#[tokio::test]
async fn session_ended_before_commit_writes_nothing() {
    let opened = with_partner(|_| {}).await;
    let mut tx = opened.store.begin("ended").await.unwrap();
    tx.commitment_put(&acme(), eur(), 5).await.unwrap();
    terminate(&opened.database).await;
    let ended = tx.commit().await;
    assert!(
        matches!(
            ended,
            Err(StoreError::Unavailable(_) | StoreError::CommitUnknown(_))
        ),
        "{ended:?}"
    );
    let above = opened.store.commitments_above(Mode::Test, 0).await;
    let above = match above {
        // The next use of the ended connection fails.
        Err(StoreError::Unavailable(_)) => opened.store.commitments_above(Mode::Test, 0).await,
        above => above,
    };
    assert_eq!(above.unwrap().rows, []);
}

/// Each ended session fails at most one call, and the store opens new sessions.
#[tokio::test]
async fn sessions_that_were_ended_are_opened_again() {
    let opened = with_partner(|_| {}).await;
    for _ in 0..3 {
        terminate(&opened.database).await;
        let mut failed = 0;
        while let Err(fault) = opened.store.account_get(&acme(), eur()).await {
            assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
            failed += 1;
            assert!(failed < 9);
        }
    }
}

/// An export that ended early would look complete.
// rule: cli.export
#[tokio::test]
async fn export_fails_when_its_session_ends_between_two_pages() {
    let opened = with_partner(|_| {}).await;
    let account = "INSERT INTO accounts (mode, partner_id, asset, available, sequence)
         VALUES ('test', 'acme', 'EUR', 0, 0)";
    opened.database.damage(account).await;
    let at = |millis| Timestamp::from_millis(millis).unwrap();
    let ever = Window::new(at(0), at(253_402_300_799_999)).unwrap();
    let mut trades = opened.store.trades_export(&acme(), ever).await.unwrap();
    let mut entries = opened.store.ledger_export(&acme(), ever).await.unwrap();
    terminate(&opened.database).await;
    let page = trades.next(2).await;
    assert!(matches!(page, Err(StoreError::Unavailable(_))), "{page:?}");
    let page = entries.next(2).await;
    assert!(matches!(page, Err(StoreError::Unavailable(_))), "{page:?}");
}
