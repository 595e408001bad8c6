//! Signed quotes and rail records in memory.

use async_trait::async_trait;
use gate_core::ports::{RailTx, SignedQuoteTx};
use gate_core::rail::{PollLease, RailId, RailRecord, RailState, RailStep};
use gate_core::session::SessionId;
use gate_core::signed_quote::{SignedQuote, SignedQuoteId};
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;

use super::{MemoryTx, guarded};

#[async_trait]
impl SignedQuoteTx for MemoryTx {
    async fn signed_quote_insert(
        &mut self,
        who: &Tenant,
        quote: &SignedQuote,
    ) -> Result<(), StoreError> {
        let at = (who.clone(), quote.id);
        assert!(self.rows.quotes.insert(at, quote.clone()).is_none());
        Ok(())
    }

    async fn signed_quote_lock(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
    ) -> Result<Option<SignedQuote>, StoreError> {
        Ok(self.rows.quotes.get(&(who.clone(), id)).cloned())
    }

    async fn signed_quotes_supersede(
        &mut self,
        who: &Tenant,
        session: SessionId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for ((owner, _), quote) in &mut self.rows.quotes {
            let open = quote.consumed_at.is_none() && quote.superseded_at.is_none();
            if owner == who && quote.session == Some(session) && open {
                quote.superseded_at = Some(now);
            }
        }
        Ok(())
    }

    async fn signed_quote_consume(
        &mut self,
        who: &Tenant,
        id: SignedQuoteId,
        now: Timestamp,
    ) -> Result<Cas, StoreError> {
        let stored = self.rows.quotes.get_mut(&(who.clone(), id)).unwrap();
        let holds = stored.must_be_active(now).is_ok();
        Ok(guarded(holds, || stored.consumed_at = Some(now)))
    }
}

#[async_trait]
impl RailTx for MemoryTx {
    async fn rail_insert(&mut self, who: &Tenant, record: &RailRecord) -> Result<(), StoreError> {
        let at = (who.clone(), record.id);
        assert!(self.rows.rails.insert(at, record.clone()).is_none());
        Ok(())
    }

    async fn rail_lock(
        &mut self,
        who: &Tenant,
        id: RailId,
    ) -> Result<Option<RailRecord>, StoreError> {
        Ok(self.rows.rails.get(&(who.clone(), id)).cloned())
    }

    async fn rail_ask(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        after: &PollLease,
    ) -> Result<Cas, StoreError> {
        let stored = self.rows.rails.get_mut(&(who.clone(), id)).unwrap();
        let holds = stored.state == RailState::Processing && stored.asking == *before;
        if holds && self.rows.woken.remove(&id) && after.token.is_none() {
            stored.asking = PollLease {
                next_at: self.rows.now.unwrap(),
                ..*after
            };
            return Ok(Cas::Won);
        }
        Ok(guarded(holds, || stored.asking = *after))
    }

    async fn rail_wake(
        &mut self,
        who: &Tenant,
        id: RailId,
        now: Timestamp,
    ) -> Result<Cas, StoreError> {
        let stored = self.rows.rails.get_mut(&(who.clone(), id)).unwrap();
        let holds = stored.state == RailState::Processing && !stored.is_due(now);
        if holds && stored.asking.token.is_some() {
            return Ok(guarded(self.rows.woken.insert(id), || {}));
        }
        Ok(guarded(holds, || stored.asking.next_at = now))
    }

    async fn rail_apply(
        &mut self,
        who: &Tenant,
        id: RailId,
        before: &PollLease,
        step: &RailStep,
    ) -> Result<Cas, StoreError> {
        let stored = self.rows.rails.get_mut(&(who.clone(), id)).unwrap();
        let holds = stored.state == RailState::Processing && stored.asking == *before;
        Ok(guarded(holds, || {
            *stored = stored.clone().after(step.clone());
            stored.asking.token = None;
        }))
    }
}
