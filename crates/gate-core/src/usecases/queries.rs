//! Reads. They write nothing but an expiry they are the first to meet.

use kernel::{Seen, StoreError};
use partner_core::Tenant;
use partner_core::page::Page;

use super::expiry::GateContext;
use crate::branding::Branding;
use crate::error::GateError;
use crate::ports::{SessionFilter, TransactionFilter};
use crate::rail::{RailId, RailRecord};
use crate::session::{Session, SessionId};
use crate::signed_quote::{SignedQuote, SignedQuoteId, SignedQuoteStatus};
use crate::transaction::{RefId, Transaction};

/// How often a page is read again because a session on it has expired meanwhile.
const ROUNDS: u32 = 3;

/// The reads of the gate API.
#[derive(Clone)]
pub struct GateQueries {
    /// The store, and how expiry is applied.
    pub context: GateContext,
}

impl GateQueries {
    /// A session.
    ///
    /// # Errors
    /// [`GateError`].
    pub async fn session(&self, who: &Tenant, id: SessionId) -> Result<Option<Session>, GateError> {
        let Some(id) = id.in_mode(who.mode) else {
            return Ok(None);
        };
        let Some(seen) = self.context.store.session_get(who, id).await? else {
            return Ok(None);
        };
        if seen.value.is_overdue(seen.at) {
            return self.context.expire_if_due(who, id).await;
        }
        Ok(Some(seen.value))
    }

    /// A page of sessions, newest first. What is overdue is expired first, so that a filter finds
    /// it where it belongs.
    ///
    /// # Errors
    /// [`GateError`].
    pub async fn sessions(
        &self,
        who: &Tenant,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Page<Session>, GateError> {
        if filter
            .after
            .is_some_and(|id| id.in_mode(who.mode).is_none())
        {
            return Ok(Page::empty());
        }
        let wanted = limit.saturating_add(1);
        let mut left = ROUNDS;
        loop {
            left = left.saturating_sub(1);
            self.context.expire_all_due(who).await?;
            let page = self.context.store.sessions_page(who, filter, wanted);
            let seen = page.await?;
            let overdue = |session: &Session| session.is_overdue(seen.at);
            if left == 0 || !seen.value.iter().any(overdue) {
                let mut rows = seen.value;
                rows.retain(|session| !session.is_overdue(seen.at));
                return Ok(Page::cut(rows, limit));
            }
        }
    }

    /// A transaction by its reference.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn transaction(
        &self,
        who: &Tenant,
        refid: RefId,
    ) -> Result<Option<Transaction>, StoreError> {
        match refid.in_mode(who.mode) {
            Some(refid) => self.context.store.transaction_get(who, refid).await,
            None => Ok(None),
        }
    }

    /// A page of transactions, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn transactions(
        &self,
        who: &Tenant,
        filter: &TransactionFilter,
        limit: u32,
    ) -> Result<Page<Transaction>, StoreError> {
        let stray = filter
            .after
            .is_some_and(|it| it.in_mode(who.mode).is_none())
            || filter
                .session
                .is_some_and(|it| it.in_mode(who.mode).is_none());
        if stray {
            return Ok(Page::empty());
        }
        let wanted = limit.saturating_add(1);
        let page = self.context.store.transactions_page(who, filter, wanted);
        Ok(Page::cut(page.await?, limit))
    }

    /// A signed quote, at the instant its status is told of. One that looks expired is read again
    /// behind the writes under way: nobody sees `expired` turn into `consumed`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn signed_quote(
        &self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<Seen<SignedQuote>>, StoreError> {
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
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rail(&self, who: &Tenant, id: RailId) -> Result<Option<RailRecord>, StoreError> {
        match id.in_mode(who.mode) {
            Some(id) => self.context.store.rail_get(who, id).await,
            None => Ok(None),
        }
    }

    /// The partner's branding.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn branding(&self, who: &Tenant) -> Result<Branding, StoreError> {
        Ok(self.context.store.branding_get(who).await?.value)
    }
}
