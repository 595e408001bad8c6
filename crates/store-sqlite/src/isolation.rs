//! Tests that the reads of one partner leave readers to other partners and to the service itself.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use gate_core::ports::{CustomerFilter, GateReads as _, SessionFilter, TransactionFilter};
use kernel::{Asset, Mode, StoreResult};
use partner_core::events::Service;
use partner_core::ports::{
    ClockGuard as _, ConfigVersions as _, DeliveryAdmin as _, DeliveryFilter, PartnerStore as _,
    Readiness as _,
};
use partner_core::{PartnerId, Tenant};
use pools_core::ports::{LedgerFilter, PoolsReads as _, TradeFilter};
use tempfile::TempDir;
use test_support::contract::ManualClock;
use tokio::task::JoinSet;

use crate::open::READERS;
use crate::{Options, SqliteStore};

/// A list that a partner reads page by page.
#[derive(Debug, Clone, Copy)]
enum List {
    Sessions,
    Transactions,
    Customers,
    Deliveries,
    Trades,
    Ledger,
}

impl List {
    const ALL: [Self; 6] = [
        Self::Sessions,
        Self::Transactions,
        Self::Customers,
        Self::Deliveries,
        Self::Trades,
        Self::Ledger,
    ];

    async fn read(self, store: &SqliteStore, who: &Tenant) -> StoreResult<()> {
        match self {
            Self::Sessions => {
                let filter = SessionFilter::default();
                store.sessions_page(who, &filter, 1).await.map(drop)
            }
            Self::Transactions => {
                let filter = TransactionFilter::default();
                store.transactions_page(who, &filter, 1).await.map(drop)
            }
            Self::Customers => {
                let filter = CustomerFilter::default();
                store.customers_page(who, &filter, 1).await.map(drop)
            }
            Self::Deliveries => {
                let (service, filter) = (Service::Gate, DeliveryFilter::default());
                let page = store.deliveries_page(who, service, filter, 1);
                page.await.map(drop)
            }
            Self::Trades => {
                let filter = TradeFilter::default();
                store.trades_page(who, &filter, 1).await.map(drop)
            }
            Self::Ledger => {
                let (asset, filter) = (Asset::fiat("EUR").unwrap(), LedgerFilter::default());
                let page = store.ledger_page(who, asset, &filter, 1);
                page.await.map(drop)
            }
        }
    }
}

fn tenant(name: &str) -> Tenant {
    Tenant {
        partner: PartnerId::parse(name).unwrap(),
        mode: Mode::Test,
    }
}

async fn open() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        velocity_window: Duration::from_secs(60),
        idempotency_ttl: Duration::from_secs(60),
        turn_timeout: store_sql::TURN_TIMEOUT,
    };
    let path = folder.path().join("isolation.db");
    let store = SqliteStore::open(&path, Arc::new(ManualClock::default()), options);
    (folder, store.await.unwrap())
}

// rule: base.reads-isolated
#[tokio::test]
async fn pages_of_a_partner_leave_readers_to_other_partners() {
    let (_folder, store) = open().await;
    let (busy, other) = (tenant("busy"), tenant("other"));
    // Slow pages of the partner have all of its turns.
    let turns: Vec<_> = iter::from_fn(|| store.inner.turns.try_take(&busy)).collect();
    assert_eq!(turns.len(), READERS as usize / 2);
    let mut waiting = JoinSet::new();
    for list in List::ALL {
        let (store, busy) = (store.clone(), busy.clone());
        waiting.spawn(async move { (list, list.read(&store, &busy).await) });
    }
    for list in List::ALL {
        list.read(&store, &other).await.unwrap();
    }
    // On a machine that is very busy the waiting reads have timed out.
    while let Some(read) = waiting.try_join_next() {
        let (list, outcome) = read.unwrap();
        assert!(outcome.is_err(), "{list:?} was read without a turn");
    }
    waiting.shutdown().await;
    drop(turns);
    for list in List::ALL {
        list.read(&store, &busy).await.unwrap();
    }
}

// rule: base.reads-isolated
#[tokio::test]
async fn service_reads_its_own_state_while_partners_occupy_every_reader() {
    let (_folder, store) = open().await;
    let mut occupied = Vec::new();
    for _ in 0..READERS {
        occupied.push(store.inner.reader().await.unwrap());
    }
    store.config_version().await.unwrap();
    store.master_key_fingerprint().await.unwrap();
    store.clock_check().await.unwrap();
    store.ready().await.unwrap();
    drop(occupied);
}
