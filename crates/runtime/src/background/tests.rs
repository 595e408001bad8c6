//! Tests of the background tasks over fake stores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use kernel::{Asset, Mode, Readable, StoreResult, Timestamp};
use partner_core::events::Service;
use partner_core::key::{KeyId, KeyUse};
use partner_core::ports::{KeySweep, KeysSwept, Maintenance};
use partner_core::{PartnerId, Tenant};
use pools_core::ports::{Forgotten, QuoteRetention};
use tokio_util::sync::CancellationToken;

use super::contingent_credits::{Recounts, recount_due};
use super::idempotency::{SWEEP_GRACE, sweep_keys};
use super::key_uses::store_uses;
use super::quotes::forget;
use super::*;
use crate::process::OsEntropy;

/// A store with this many due records, and one that expires later.
struct Records(AtomicU64);

const START: i64 = 1_779_710_400_000;

#[async_trait]
impl Maintenance for Records {
    async fn idempotency_sweep(&self, sweep: &KeySweep, limit: u32) -> StoreResult<KeysSwept> {
        assert_eq!(
            sweep.age,
            Duration::from_secs(3660),
            "an hour, plus a minute's margin"
        );
        assert_eq!((sweep.mode, sweep.service), (Mode::Test, Service::Gate));
        let due = self.0.load(Ordering::SeqCst);
        let deleted = due.min(u64::from(limit));
        self.0.store(due - deleted, Ordering::SeqCst);
        let start = Timestamp::from_millis(START).unwrap();
        let after = sweep.after.unwrap_or(start);
        Ok(KeysSwept {
            deleted,
            reached: after.plus(Duration::from_millis(1)),
            more: due > deleted,
            left: sweep.after.is_none(),
        })
    }

    async fn gather_statistics(&self) -> StoreResult<u64> {
        Ok(0)
    }

    async fn key_uses_record(&self, _: &[KeyUse]) -> StoreResult<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn sweep_deletes_all_due_records_and_stops() {
    let records = Arc::new(Records(AtomicU64::new(1200)));
    let stop = CancellationToken::new();
    let (of, hour) = ((Mode::Test, Service::Gate), Duration::from_secs(3600));
    let sweeping = sweep_idempotency(records.clone(), of, hour, stop.clone());
    let sweeping = tokio::spawn(sweeping);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(records.0.load(Ordering::SeqCst), 0);
    records.0.store(3, Ordering::SeqCst);
    tokio::time::sleep(SWEEP_INTERVAL).await;
    assert_eq!(records.0.load(Ordering::SeqCst), 0);
    stop.cancel();
    sweeping.await.unwrap();
}

#[tokio::test]
async fn sweep_continues_where_it_stopped_and_reports_remaining_records() {
    let records = Records(AtomicU64::new(1200));
    let mut sweep = KeySweep {
        mode: Mode::Test,
        service: Service::Gate,
        after: None,
        age: Duration::from_secs(3660),
        grace: SWEEP_GRACE,
    };
    let (mut left, stop) = (false, CancellationToken::new());
    let swept = sweep_keys(&records, &mut sweep, &mut left, &stop).await;
    assert_eq!(swept.unwrap(), 1200);
    assert!(left, "the sweep reports a record that expires later");
    assert_eq!(
        sweep.after,
        Timestamp::from_millis(START + 3),
        "the sweep advanced by three steps"
    );
}

fn tenant(name: &str) -> Tenant {
    Tenant {
        partner: PartnerId::parse(name).unwrap(),
        mode: Mode::Test,
    }
}

/// A store in which another transaction has locked the rows of the partner `locked`. The other partners have one old quote each.
#[derive(Default)]
struct LockedStore {
    uses: Mutex<Vec<KeyUse>>,
    /// The partners whose quotes were deleted, or not.
    forgotten: Mutex<Vec<(Tenant, bool)>>,
    /// The accounts of which a slice was counted, or not.
    counted: Mutex<Vec<(Tenant, Asset, bool)>>,
}

fn check(who: &Tenant) -> StoreResult<()> {
    if who.partner.as_str() == "locked" {
        return Err(StoreError::unavailable("the row is locked"));
    }
    Ok(())
}

#[async_trait]
impl Readiness for LockedStore {
    async fn ready(&self) -> StoreResult<()> {
        Ok(())
    }
}

#[async_trait]
impl Maintenance for LockedStore {
    async fn idempotency_sweep(&self, _: &KeySweep, _: u32) -> StoreResult<KeysSwept> {
        Err(StoreError::Overloaded)
    }

    async fn gather_statistics(&self) -> StoreResult<u64> {
        Ok(0)
    }

    async fn key_uses_record(&self, uses: &[KeyUse]) -> StoreResult<()> {
        uses.iter().try_for_each(|one| check(&one.who))?;
        self.uses.lock().unwrap().extend(uses.iter().cloned());
        Ok(())
    }
}

#[async_trait]
impl QuoteRetention for LockedStore {
    async fn quotes_overdue(&self, _: Mode, _: Duration, _: u32) -> StoreResult<Readable<Tenant>> {
        let forgotten = self.forgotten.lock().unwrap();
        let partners = ["a", "locked", "z"].map(tenant).into_iter();
        let overdue = partners.filter(|who| !forgotten.contains(&(who.clone(), true)));
        Ok(overdue.map(Ok).collect())
    }

    async fn quotes_forget(&self, who: &Tenant, _: Duration, _: u32) -> StoreResult<Forgotten> {
        let checked = check(who);
        let outcome = (who.clone(), checked.is_ok());
        self.forgotten.lock().unwrap().push(outcome);
        checked?;
        Ok(Forgotten {
            deleted: 1,
            more: false,
        })
    }
}

// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn old_quotes_are_deleted_although_another_partner_is_locked() {
    let (store, stop) = (LockedStore::default(), CancellationToken::new());
    let of = (Mode::Test, Duration::ZERO);
    let deleted = forget(&store, &store, of, &stop).await;
    assert_eq!(deleted.unwrap(), 2);
    let tried = store.forgotten.into_inner().unwrap();
    let expected = [("a", true), ("locked", false), ("z", true)];
    assert_eq!(
        tried,
        expected.map(|(name, deleted)| (tenant(name), deleted))
    );
}

/// Each account needs one slice.
#[async_trait]
impl Recounts for LockedStore {
    async fn due(&self) -> StoreResult<Readable<(Tenant, Asset)>> {
        let partners = ["a", "locked", "z"].map(tenant).into_iter();
        let accounts = partners.flat_map(|who| accounts().map(|asset| (who.clone(), asset)));
        Ok(accounts.map(Ok).collect())
    }

    async fn advance(&self, who: &Tenant, asset: Asset) -> StoreResult<bool> {
        let mut counted = self.counted.lock().unwrap();
        if counted.contains(&(who.clone(), asset, true)) {
            return Ok(false);
        }
        let checked = check(who);
        counted.push((who.clone(), asset, checked.is_ok()));
        checked.map(|()| true)
    }
}

fn accounts() -> [Asset; 2] {
    ["EUR", "CHF"].map(|code| Asset::fiat(code).unwrap())
}

// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn contingent_credits_are_recounted_although_another_partner_is_locked() {
    let (store, stop) = (LockedStore::default(), CancellationToken::new());
    recount_due(&store, &store, &stop).await;
    let counted = store.counted.into_inner().unwrap();
    let [one, other] = accounts();
    // The second account of `locked` would wait for the same lock, so it is not tried.
    let expected = [
        ("a", one, true),
        ("a", other, true),
        ("locked", one, false),
        ("z", one, true),
        ("z", other, true),
    ];
    assert_eq!(
        counted,
        expected.map(|(name, asset, is_counted)| (tenant(name), asset, is_counted))
    );
}

#[tokio::test]
async fn missing_connection_concerns_every_partner_although_the_store_is_ready() {
    let store = LockedStore::default();
    let locked = check(&tenant("locked")).unwrap_err();
    assert!(concerns_one_partner(&locked, &store).await);
    let busy = StoreError::busy("every connection is in use");
    assert!(!concerns_one_partner(&busy, &store).await);
}

// rule: background.isolated, auth.last-use
#[tokio::test]
async fn key_uses_are_stored_although_another_partner_is_locked() {
    let store = LockedStore::default();
    let at = Timestamp::from_millis(START).unwrap();
    let uses = ["a", "locked", "z"].map(|name| KeyUse {
        who: tenant(name),
        key: KeyId::new(Mode::Test, at, &OsEntropy),
        at,
    });
    let failed = store_uses(&store, &store, uses.to_vec()).await;
    let [a, locked, z] = uses;
    assert_eq!(failed, [locked]);
    assert_eq!(store.uses.into_inner().unwrap(), [a, z]);
}
