//! All rows of a partner, for comparison before and after.

use kernel::{Asset, StoreError};
use partner_core::Tenant;
use partner_core::key::{KeyKind, NewKey};
use pools_core::batch::TransactCommand;
use pools_core::ledger::{Account, Entry};
use pools_core::ports::{LedgerFilter, TradeFilter};
use pools_core::trade::Trade;
use pools_core::velocity::Velocity;

use crate::contract::fixture::Fixture;
use crate::contract::world::{Decided, Member, World, eur, usdt};

/// Accounts and entries in euro and in tether, trades, and the running total.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    accounts: Vec<Option<Account>>,
    entries: Vec<Vec<Entry>>,
    trades: Vec<Trade>,
    total: Option<Velocity>,
}

impl<F: Fixture> World<F> {
    pub(crate) async fn standing(&self, who: &Tenant) -> Standing {
        let (port, all) = (&self.ports().store, TradeFilter::default());
        let (mut accounts, mut entries) = (Vec::new(), Vec::new());
        for asset in [eur(), usdt()] {
            accounts.push(self.account(who, asset).await);
            entries.push(self.entries(who, asset).await);
        }
        Standing {
            accounts,
            entries,
            trades: port.trades_page(who, &all, 10_000).await.unwrap(),
            total: self.total(who).await,
        }
    }

    /// Every entry of an account, newest first.
    pub(crate) async fn entries(&self, who: &Tenant, asset: Asset) -> Vec<Entry> {
        let (port, all) = (&self.ports().store, LedgerFilter::default());
        let page = port.ledger_page(who, asset, &all, 10_000).await.unwrap();
        page.map_or_else(Vec::new, |page| page.entries)
    }

    /// Creates a second secret key of a partner.
    pub(crate) async fn another_key(&self, member: &Member) -> Member {
        let mode = member.who.mode;
        let (key, _) = NewKey::generate(KeyKind::Secret, mode, self.now(), &self.entropy);
        let mut tx = self.provision_begin("another_key").await;
        tx.key_insert(&member.who, &key).await.unwrap();
        tx.commit().await.unwrap();
        Member {
            who: member.who.clone(),
            key: key.record.id,
            hash: key.hash,
        }
    }

    /// Runs batches concurrently. Returns the outcomes of their commands, in any order.
    pub(crate) async fn race(&self, batches: Vec<Vec<TransactCommand>>) -> Vec<Decided> {
        let mut running = tokio::task::JoinSet::new();
        for batch in batches {
            let port = self.ports().transact.clone();
            running.spawn(async move {
                for _ in 0..10 {
                    match port.transact(&batch).await {
                        // On a busy machine the wait for a connection or a lock may time out. Nothing was written.
                        Err(StoreError::Unavailable(_)) => {}
                        decided => return decided.unwrap(),
                    }
                }
                panic!("the store stays unavailable")
            });
        }
        running.join_all().await.into_iter().flatten().collect()
    }
}
