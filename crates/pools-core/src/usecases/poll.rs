//! The status poll: the only thing that moves a trade.
//!
//! A poll commits its attempt with a lease, asks the engine outside any transaction, and applies
//! the answer under the lease's token. A second poller meanwhile answers the present status at
//! once. Nothing is ever decided on a timeout: the next poll asks again under the same id.

use std::sync::Arc;
use std::time::Duration;

use kernel::planted::{self, planted};
use kernel::{Asset, Entropy, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::events::{NewEvent, OpenEvent, Service};
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::sealing::Sealer;

use super::transact::order_of_terms;
use crate::events;
use crate::ledger::{Account, Entry, EntryId, PostFault};
use crate::ports::{Confirmation, Engine, Enquiry, PoolsStore, PoolsTx};
use crate::quote::QuoteId;
use crate::trade::{
    Contradiction, EngineReport, Lease, Step, Trade, TradeEvent, TradeId, TradeState, TradeStatus,
};

/// How long after its settlement a trade is still asked about, for returns.
pub const RETURN_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What a lease lasts beyond the engine's own timeout.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// Polls trades.
#[derive(Clone)]
pub struct Polling {
    /// The store.
    pub store: Arc<dyn PoolsStore>,
    /// The liquidity engine.
    pub engine: Arc<dyn Engine>,
    /// Seals event bodies.
    pub sealer: Arc<Sealer>,
    /// For tokens and ids.
    pub entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for Polling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Polling")
    }
}

/// Why a poll has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The quote is not this partner's, or has no trade.
    #[error("no trade of such a quote")]
    NotFound,
    /// A transfer that the rules had allowed could not be posted; nothing was changed.
    #[error("a transfer could not be posted")]
    Post(#[from] PostFault),
    /// An event's body could not be made; nothing was changed.
    #[error("an event's body could not be made")]
    Event(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for PollError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

/// A poll's hold on a trade.
struct Claim {
    trade: Trade,
    token: u64,
    attempt: u32,
}

impl Polling {
    /// Advances the trade of a quote by what the engine reports, and returns it as it is then.
    ///
    /// # Errors
    /// [`PollError`].
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(quote.id = %quote))]
    pub async fn poll(&self, who: &Tenant, quote: QuoteId) -> Result<Trade, PollError> {
        let quote = quote.in_mode(who.mode).ok_or(PollError::NotFound)?;
        let trade = self
            .store
            .trade_by_quote(who, quote)
            .await?
            .ok_or(PollError::NotFound)?;
        if is_final(&trade.state) {
            return Ok(trade);
        }
        let claim = match retry_lost_races(|| self.claim(who, trade.id)).await? {
            Ok(claim) => claim,
            Err(present) => return Ok(present),
        };
        let Some(report) = self.ask(&claim).await else {
            return retry_lost_races(|| self.give_up(who, &claim)).await;
        };
        let applied = retry_lost_races(|| self.apply(who, &claim, report.clone())).await;
        if let Err(PollError::Post(_) | PollError::Event(_)) = applied {
            // A fault of ours, which the next poll need not wait for.
            retry_lost_races(|| self.give_up(who, &claim)).await?;
        }
        applied
    }

    /// Commits the attempt. `Err` carries the trade as it is where there is nothing to ask, or
    /// where another poll is asking already.
    async fn claim(&self, who: &Tenant, id: TradeId) -> Result<Result<Claim, Trade>, PollError> {
        let mut tx = self.store.begin("trade_claim").await?;
        let trade = tx.trade_lock(who, id).await?.ok_or(PollError::NotFound)?;
        let now = tx.now().await?;
        if is_over(&trade.state, now) || trade.lease.is_some_and(|lease| now < lease.until) {
            return Ok(Err(trade));
        }
        let attempt = trade.attempts.saturating_add(1);
        let lease = Lease {
            token: self.token(),
            until: now.plus(self.engine.timeout()).plus(LEASE_MARGIN),
        };
        tx.trade_claim(who, id, attempt, lease).await?.won()?;
        tx.commit().await?;
        Ok(Ok(Claim {
            trade,
            token: lease.token,
            attempt,
        }))
    }

    /// Confirms the hold of a reserved trade first; one that has lapsed is reported let go.
    async fn ask(&self, claim: &Claim) -> Option<EngineReport> {
        let known = claim.trade.state.status();
        let mut trade = claim.trade.id;
        if planted(planted::ENGINE_ID_PER_POLL) {
            trade = TradeId::new(trade.mode(), claim.trade.created_at, self.entropy.as_ref());
        }
        if known == TradeStatus::Reserved
            && self.engine.confirm(trade).await? == Confirmation::Lapsed
        {
            return Some(EngineReport::LetGo);
        }
        let order = order_of_terms(&claim.trade.terms);
        self.engine
            .report(&Enquiry {
                trade,
                order,
                attempt: claim.attempt,
                known,
            })
            .await
    }

    /// The engine did not answer, or its answer cannot be applied: the trade stays as it is, and
    /// the next poll may ask.
    async fn give_up(&self, who: &Tenant, claim: &Claim) -> Result<Trade, PollError> {
        let mut tx = self.store.begin("trade_unclaim").await?;
        let trade = tx
            .trade_lock(who, claim.trade.id)
            .await?
            .ok_or(PollError::NotFound)?;
        // A lost lease is another poll's now, and stays so.
        let _ = tx.trade_unclaim(who, trade.id, claim.token).await?;
        tx.commit().await?;
        Ok(trade)
    }

    /// Applies a report: state, transfer, velocity and event in one transaction.
    async fn apply(
        &self,
        who: &Tenant,
        claim: &Claim,
        report: EngineReport,
    ) -> Result<Trade, PollError> {
        let mut tx = self.store.begin("trade_apply").await?;
        let velocity = tx.velocity_lock(who).await?;
        if planted(planted::LOST_UPDATE) {
            drop(tx);
            tx = self.store.begin("trade_apply").await?;
        }
        let account = match moved_asset(&claim.trade) {
            Some(asset) => Some(tx.account_lock(who, asset).await?),
            None => None,
        };
        let trade = tx
            .trade_lock(who, claim.trade.id)
            .await?
            .ok_or(PollError::NotFound)?;
        let leased = trade.lease.is_some_and(|lease| lease.token == claim.token);
        if !leased && !planted(planted::LATE_REPORT) {
            return Ok(trade);
        }
        let now = tx.now().await?;
        let step = match trade.advance(report, now) {
            Ok(Some(step)) => step,
            Ok(None) => return self.leave(who, tx, trade, claim.token).await,
            Err(Contradiction(id)) => {
                tracing::error!(trade.id = %id, "The engine reports a reversal of what it has not delivered; nothing was changed");
                return self.leave(who, tx, trade, claim.token).await;
            }
        };
        if let (true, Some(velocity)) = (step.uncounts, velocity) {
            tx.velocity_put(
                who,
                &velocity.forget(trade.terms.notional, trade.created_at),
            )
            .await?;
        }
        if let Some(account) = account
            && let Some(entry) = self.entry(who, &trade, &step, &account, now)?
        {
            tx.entry_post(who, &account, &entry).await?;
        }
        tx.trade_apply(who, &trade, &step, claim.token)
            .await?
            .won()?;
        let after = Trade {
            state: step.state,
            lease: None,
            ..trade
        };
        if planted(planted::EVENT_AFTERWARDS) {
            tx.commit().await?;
            tx = self.store.begin("trade_apply").await?;
        }
        if let Some(event) = step.event {
            tx.event_insert(&self.event(who, &after, event, now)?)
                .await?;
        }
        tx.commit().await?;
        Ok(after)
    }

    async fn leave(
        &self,
        who: &Tenant,
        mut tx: Box<dyn PoolsTx>,
        trade: Trade,
        token: u64,
    ) -> Result<Trade, PollError> {
        tx.trade_unclaim(who, trade.id, token).await?.won()?;
        tx.commit().await?;
        Ok(Trade {
            lease: None,
            ..trade
        })
    }

    /// The entry of the transfer that goes with a step, if one does.
    fn entry(
        &self,
        who: &Tenant,
        trade: &Trade,
        step: &Step,
        account: &Account,
        now: Timestamp,
    ) -> Result<Option<Entry>, PostFault> {
        let Some((transfer, part)) = step.transfer else {
            return Ok(None);
        };
        let (_, mark) = account.post(&transfer)?;
        Ok(Some(Entry {
            id: EntryId::new(who.mode, now, self.entropy.as_ref()),
            transfer,
            mark,
            reference: trade.quote.to_string(),
            trade: Some((trade.id, part)),
            created_at: now,
        }))
    }

    fn event(
        &self,
        who: &Tenant,
        trade: &Trade,
        event: TradeEvent,
        now: Timestamp,
    ) -> Result<NewEvent, PollError> {
        let id = events::event_id(trade, event);
        let body =
            events::event_body(trade, event).map_err(|fault| PollError::Event(fault.into()))?;
        let event = OpenEvent {
            id,
            service: Service::Pools,
            kind: event.as_str(),
            object_id: trade.id.to_string(),
            body: &body,
        };
        let sealed = event.seal(who, now, &self.sealer, self.entropy.as_ref());
        sealed.map_err(|fault| PollError::Event(fault.into()))
    }

    fn token(&self) -> u64 {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }
}

/// The currency of the transfers a poll may still post: that of the reserve while it is open,
/// that of the return once it is settled.
fn moved_asset(trade: &Trade) -> Option<Asset> {
    let amount = match trade.state {
        TradeState::Reserved => trade.reserved,
        TradeState::Settled(_) => trade.return_amount(),
        TradeState::Released { .. } | TradeState::Failed { .. } | TradeState::Returned { .. } => {
            None
        }
    };
    amount.map(|amount| amount.asset())
}

/// Can the trade never move again, whatever the time?
const fn is_final(state: &TradeState) -> bool {
    match state {
        TradeState::Released { .. } | TradeState::Failed { .. } | TradeState::Returned { .. } => {
            true
        }
        TradeState::Reserved | TradeState::Settled(_) => false,
    }
}

/// Is there nothing left to ask the engine about? A settled trade is asked about for its return
/// window.
fn is_over(state: &TradeState, now: Timestamp) -> bool {
    match state {
        TradeState::Settled(settlement) => now >= settlement.at.plus(RETURN_WINDOW),
        TradeState::Reserved
        | TradeState::Released { .. }
        | TradeState::Failed { .. }
        | TradeState::Returned { .. } => is_final(state),
    }
}
