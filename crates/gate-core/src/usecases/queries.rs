//! Reads. The only write is a due expiry.

use kernel::{Seen, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::page::Page;

use super::context::GateContext;
use crate::branding::Branding;
use crate::error::GateError;
use crate::ports::{SessionFilter, TransactionFilter};
use crate::rail::{RailId, RailRecord};
use crate::session::Session;
use crate::signed_quote::{SignedQuote, SignedQuoteId, SignedQuoteStatus};
use crate::transaction::{RefId, Transaction};

/// The reads of the gate API.
#[derive(Clone)]
pub struct GateQueries {
    pub context: GateContext,
}

impl GateQueries {
    /// A page of sessions, newest first. Overdue sessions are expired first, so that the status filter is correct and a walk over the
    /// pages misses no session.
    ///
    /// # Errors
    /// [`GateError`]. With a status filter, [`StoreError::Overloaded`] while more sessions are overdue than one call expires; a
    /// repeated call continues.
    pub async fn sessions(
        &self,
        who: &Tenant,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Page<Session>, GateError> {
        if filter.after.is_some_and(|id| id.mode() != who.mode) {
            return Ok(Page::empty());
        }
        let is_current = self.context.expire_all_due(who).await?;
        if !is_current && filter.status.is_some() {
            return Err(StoreError::Overloaded.into());
        }
        let wanted = limit.saturating_add(1);
        let mut filter = *filter;
        let mut found: Vec<Session> = Vec::new();
        loop {
            let page = self.context.store.sessions_page(who, &filter, wanted);
            let Seen { value: rows, at } = page.await?;
            let is_last = rows.len() < usize::try_from(wanted).unwrap_or(usize::MAX);
            filter.after = rows.last().map(|session| session.id).or(filter.after);
            for row in rows {
                found.extend(self.context.current(who, row, at).await?.filter(|session| {
                    let status = session.state.status();
                    filter.status.is_none_or(|wanted| wanted == status)
                }));
            }
            if is_last || found.len() >= usize::try_from(wanted).unwrap_or(usize::MAX) {
                return Ok(Page::cut(found, limit));
            }
        }
    }

    /// A transaction by its reference.
    pub async fn transaction(
        &self,
        who: &Tenant,
        refid: RefId,
    ) -> StoreResult<Option<Transaction>> {
        match refid.in_mode(who.mode) {
            Some(refid) => self.context.store.transaction_get(who, refid).await,
            None => Ok(None),
        }
    }

    /// A page of transactions, newest first.
    pub async fn transactions(
        &self,
        who: &Tenant,
        filter: &TransactionFilter,
        limit: u32,
    ) -> StoreResult<Page<Transaction>> {
        let stray_cursor = filter.after.is_some_and(|it| it.id().mode() != who.mode);
        let stray_session = filter.session.is_some_and(|id| id.mode() != who.mode);
        if stray_cursor || stray_session {
            return Ok(Page::empty());
        }
        let wanted = limit.saturating_add(1);
        let page = self.context.store.transactions_page(who, filter, wanted);
        Ok(Page::cut(page.await?, limit))
    }

    /// A signed quote, with the instant of its status.
    ///
    /// A quote that appears expired is read again after the writes in progress, so no reader sees `expired` change to
    /// `consumed`.
    pub async fn signed_quote(
        &self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> StoreResult<Option<Seen<SignedQuote>>> {
        let Some(id) = id.in_mode(who.mode) else {
            return Ok(None);
        };
        let store = &self.context.store;
        let Some(seen) = store.signed_quote_get(who, id).await? else {
            return Ok(None);
        };
        if seen.value.status(seen.at) != SignedQuoteStatus::Expired {
            return Ok(Some(seen));
        }
        let mut tx = store.gate_begin("signed_quote_read").await?;
        let quote = tx.signed_quote_lock(who, id).await?;
        Ok(quote.map(|value| Seen { value, at: seen.at }))
    }

    /// A rail record.
    pub async fn rail(&self, who: &Tenant, id: RailId) -> StoreResult<Option<RailRecord>> {
        match id.in_mode(who.mode) {
            Some(id) => self.context.store.rail_get(who, id).await,
            None => Ok(None),
        }
    }

    /// The partner's branding.
    pub async fn branding(&self, who: &Tenant) -> StoreResult<Branding> {
        Ok(self.context.store.branding_get(who).await?.value)
    }
}
