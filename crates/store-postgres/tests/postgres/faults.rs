//! Faults of the server, and what becomes of a write that meets one.

use std::time::Duration;

use kernel::{Asset, Mode, StoreError};
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::ports::{PoolsReads as _, PoolsStore as _};
use sqlx::Connection as _;

use crate::fixture::{self, Postgres, run};

fn acme() -> Tenant {
    Tenant {
        partner: PartnerId::parse("acme").unwrap(),
        mode: Mode::Test,
    }
}

fn eur() -> Asset {
    Asset::fiat("EUR").unwrap()
}

async fn with_partner() -> Postgres {
    let opened = fixture::open().await;
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

/// Ends every session that serves.
async fn terminate(opened: &Postgres) {
    let mut owner = opened.database.owner().await;
    let ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run(&mut owner, ending).await;
    owner.close().await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn books_that_somebody_keeps_are_not_waited_for_for_ever() {
    let opened = with_partner().await;
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
async fn a_session_that_ends_before_the_commit_leaves_it_open_or_nothing() {
    let opened = with_partner().await;
    let mut tx = opened.store.begin("ended").await.unwrap();
    tx.commitment_put(&acme(), eur(), 5).await.unwrap();
    terminate(&opened).await;
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
        // The connection that was ended is found so by whoever uses it next.
        Err(StoreError::Unavailable(_)) => opened.store.commitments_above(Mode::Test, 0).await,
        above => above,
    };
    assert_eq!(above.unwrap(), []);
}

/// A caller meets a session that was ended at most once for each, and the store goes on.
#[tokio::test]
async fn sessions_that_were_ended_are_opened_again() {
    let opened = with_partner().await;
    for _ in 0..3 {
        terminate(&opened).await;
        let mut away = 0;
        while let Err(fault) = opened.store.account_get(&acme(), eur()).await {
            assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
            away += 1;
            assert!(away < 9);
        }
    }
}
