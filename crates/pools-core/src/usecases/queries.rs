//! Pure reads. They never write and never change a trade.

use std::sync::Arc;

use kernel::{Asset, Seen, StoreResult};
use partner_core::Tenant;
use partner_core::page::Page;

use crate::ledger::{Account, Entry, EntryId};
use crate::ports::{LedgerFilter, PoolsReads, TradeFilter};
use crate::quote::{Quote, QuoteId, QuoteStatus};
use crate::trade::{Trade, TradeId};

/// The pure reads of the pools API.
#[derive(Clone)]
pub struct PoolsQueries {
    reads: Arc<dyn PoolsReads>,
}

/// An account with a page of its entries.
#[derive(Debug, Clone)]
pub struct AccountStatement {
    /// The account as of the read.
    pub account: Account,
    /// Its entries, newest first.
    pub page: Page<Entry>,
}

/// The position of a page's last entry in a partner's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerCursor {
    /// The sequence number of the entry.
    pub sequence: i64,
    /// The id of the entry.
    pub entry: EntryId,
}

impl PoolsQueries {
    /// Reads through the given port.
    #[must_use]
    pub fn new(reads: Arc<dyn PoolsReads>) -> Self {
        Self { reads }
    }

    /// A quote with its status.
    ///
    /// A quote that appears expired is read again after the writes in progress, so no reader sees `expired` change to
    /// `consumed`.
    pub async fn quote(
        &self,
        who: &Tenant,
        id: QuoteId,
    ) -> StoreResult<Option<(Quote, QuoteStatus)>> {
        let Some(id) = id.in_mode(who.mode) else {
            return Ok(None);
        };
        let Some(seen) = self.reads.quote_get(who, id).await? else {
            return Ok(None);
        };
        let status = seen.value.status(seen.at);
        if status != QuoteStatus::Expired {
            return Ok(Some((seen.value, status)));
        }
        let again = self.reads.quote_get_behind_writes(who, id).await?;
        Ok(again.map(|Seen { value, at }| {
            let status = value.status(at);
            (value, status)
        }))
    }

    /// A trade by its own id.
    pub async fn trade(&self, who: &Tenant, id: TradeId) -> StoreResult<Option<Trade>> {
        match id.in_mode(who.mode) {
            Some(id) => self.reads.trade_get(who, id).await,
            None => Ok(None),
        }
    }

    /// A page of trades, newest first.
    pub async fn trades(
        &self,
        who: &Tenant,
        filter: &TradeFilter,
        limit: u32,
    ) -> StoreResult<Page<Trade>> {
        if filter.cursor.is_some_and(|id| id.mode() != who.mode) {
            return Ok(Page::empty());
        }
        let rows = self
            .reads
            .trades_page(who, filter, limit.saturating_add(1))
            .await?;
        Ok(Page::cut(rows, limit))
    }

    /// An account; `None` before its first entry.
    pub async fn account(&self, who: &Tenant, asset: Asset) -> StoreResult<Option<Account>> {
        self.reads.account_get(who, asset).await
    }

    /// An account with a page of its entries, after the cursor if one is given.
    ///
    /// `None` before the account's first entry. A cursor of another account returns an empty page.
    pub async fn statement(
        &self,
        who: &Tenant,
        asset: Asset,
        filter: &LedgerFilter,
        after: Option<LedgerCursor>,
        limit: u32,
    ) -> StoreResult<Option<AccountStatement>> {
        let mut filter = filter.clone();
        if let Some(place) = after {
            let here = self.entry_at(who, asset, place.sequence).await?;
            // Sequence numbers start at 1, so this page is empty.
            let known = here == Some(place.entry);
            filter.before_sequence = Some(if known { place.sequence } else { 1 });
        }
        let found = self
            .reads
            .ledger_page(who, asset, &filter, limit.saturating_add(1))
            .await?;
        Ok(found.map(|found| AccountStatement {
            account: found.account,
            page: Page::cut(found.entries, limit),
        }))
    }

    /// The entry with a sequence number in an account. Entries never change, so a second snapshot may read it.
    async fn entry_at(
        &self,
        who: &Tenant,
        asset: Asset,
        sequence: i64,
    ) -> StoreResult<Option<EntryId>> {
        let up_to = LedgerFilter {
            before_sequence: Some(sequence.saturating_add(1)),
            ..LedgerFilter::default()
        };
        let found = self.reads.ledger_page(who, asset, &up_to, 1).await?;
        let newest = found.and_then(|found| found.entries.into_iter().next());
        let newest =
            newest.filter(|entry| entry.mark.is_some_and(|mark| mark.sequence == sequence));
        Ok(newest.map(|entry| entry.id))
    }
}
