//! The status poll: the only use case that changes a trade.
//!
//! A poll commits its attempt with a lease, asks the engine outside any transaction, and applies the report under the
//! lease. A concurrent poll returns the current status at once, and so does a poll that gets no permit, because too
//! many polls wait for the engine. A timeout decides nothing: the next poll asks again under the same id.
//!
//! A poll that does not change a reserved trade has no second write: the process remembers that the poll ended. A
//! poll that does not change a settled trade keeps its lease for [`QUIET`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{Asset, Entropy, Seen, StoreError, Timestamp, Upstreams};
use partner_core::Tenant;
use partner_core::events::{NewEvent, OpenEvent, Service};
use partner_core::ports::Ticket;
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::sealing::Sealer;
use partner_core::stored_response::RenderError;

use super::transact_quote::order_of;
use crate::events::{self, RenderTradeEvent};
use crate::ledger::{Account, Entry, EntryId, PostError};
use crate::ports::{Confirmation, Engine, PoolsStore, PoolsTx, TradeReportRequest};
use crate::quote::QuoteId;
use crate::trade::{
    EngineReport, Lease, Step, Trade, TradeEvent, TradeId, TradeState, TradeStatus,
};

/// The time after its settlement in which polls ask the engine for returns of a trade: 30 days.
pub const RETURN_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Margin of a lease beyond the engine's timeout.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// The time after an unchanged report in which polls do not ask the engine about a settled trade.
pub const QUIET: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct PollTrade {
    store: Arc<dyn PoolsStore>,
    engines: Upstreams<dyn Engine>,
    /// Seals event bodies.
    sealer: Arc<Sealer>,
    /// Randomness for tokens and ids.
    entropy: Arc<dyn Entropy>,
    render: RenderTradeEvent,
    asking: Asking,
}

/// The leases of this process's polls in progress.
///
/// A stored lease of a reserved trade that is not listed here belongs to a poll that ended without a second write, or
/// to another process. It does not delay a poll.
#[derive(Clone, Default)]
struct Asking(Arc<Mutex<BTreeMap<u64, Timestamp>>>);

impl Asking {
    fn leases(&self) -> MutexGuard<'_, BTreeMap<u64, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a lease and drops the expired leases.
    fn begin(&self, lease: Lease, now: Timestamp) {
        let mut leases = self.leases();
        leases.retain(|_, until| now < *until);
        leases.insert(lease.token, lease.until);
    }

    fn end(&self, token: u64) {
        self.leases().remove(&token);
    }

    fn contains(&self, token: u64) -> bool {
        self.leases().contains_key(&token)
    }
}

/// Why a poll has no result.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The partner has no such quote, or the quote has no trade.
    #[error("no trade of such a quote")]
    NotFound,
    /// The ledger refused a transfer of the state machine. Nothing was changed.
    #[error("a transfer could not be posted")]
    Post(#[from] PostError),
    /// The body of an event could not be made. Nothing was changed.
    #[error("an event's body could not be made")]
    Event(#[from] RenderError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for PollError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

/// A poll's claim on a trade.
struct Claim {
    /// The trade at the time of the claim.
    trade: Trade,
    lease: Lease,
    attempt: u32,
    at: Timestamp,
}

impl PollTrade {
    /// Polls through these ports, and renders the events of trades that end.
    #[must_use]
    pub fn new(
        store: Arc<dyn PoolsStore>,
        engines: Upstreams<dyn Engine>,
        sealer: Arc<Sealer>,
        entropy: Arc<dyn Entropy>,
        render: RenderTradeEvent,
    ) -> Self {
        Self {
            store,
            engines,
            sealer,
            entropy,
            render,
            asking: Asking::default(),
        }
    }

    /// Applies the engine's report to the trade of a quote and returns the trade.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all, fields(quote.id = %quote))]
    pub async fn poll(&self, who: &Tenant, quote: QuoteId) -> Result<Trade, PollError> {
        let quote = quote.in_mode(who.mode).ok_or(PollError::NotFound)?;
        let seen = self.find(who, quote).await?;
        // Another engine does not know the trade.
        let mut engines = self.engines.iter();
        let Some(engine) = engines.find(|engine| seen.value.is_held_by(&engine.name())) else {
            return Ok(seen.value);
        };
        if self.rests(&seen.value, seen.at) {
            return Ok(seen.value);
        }
        let Some(permit) = engine.admit_poll(who) else {
            return Ok(seen.value);
        };
        let claim = match retry_lost_races(|| self.claim(who, seen.value.id, engine)).await? {
            Ok(claim) => claim,
            Err(present) => return Ok(present),
        };
        let polled = self.ask_and_apply(who, engine, &claim, permit).await;
        self.asking.end(claim.lease.token);
        polled
    }

    async fn find(&self, who: &Tenant, quote: QuoteId) -> Result<Seen<Trade>, PollError> {
        let found = self.store.trade_by_quote(who, quote).await?;
        found.ok_or(PollError::NotFound)
    }

    /// Whether the engine is not asked now: the trade has ended, its last report is recent, or another poll is
    /// asking.
    fn rests(&self, trade: &Trade, now: Timestamp) -> bool {
        let runs = |lease: &Lease| now < lease.until;
        match &trade.state {
            TradeState::Reserved => {
                let lease = trade.lease.filter(runs);
                lease.is_some_and(|lease| self.asking.contains(lease.token))
            }
            TradeState::Settled(settlement) => {
                now >= settlement.at.plus(RETURN_WINDOW) || trade.lease.as_ref().is_some_and(runs)
            }
            TradeState::Released { .. }
            | TradeState::Failed { .. }
            | TradeState::Returned { .. } => true,
        }
    }

    /// Commits the attempt with a lease. `Err` returns the unchanged trade if the engine is not asked now.
    async fn claim(
        &self,
        who: &Tenant,
        id: TradeId,
        engine: &Arc<dyn Engine>,
    ) -> Result<Result<Claim, Trade>, PollError> {
        let mut tx = self.store.begin("trade_claim").await?;
        let trade = tx.trade_lock(who, id).await?.ok_or(PollError::NotFound)?;
        let now = tx.now().await?;
        if self.rests(&trade, now) {
            return Ok(Err(trade));
        }
        let attempt = trade.attempts.saturating_add(1);
        let lease = Lease {
            token: self.entropy.number(),
            until: now.plus(engine.timeout()).plus(LEASE_MARGIN),
        };
        tx.trade_claim(who, id, attempt, lease).await?.won()?;
        // The lease is listed before the commit, so that a concurrent poll of this process does not take it for an
        // ended one.
        self.asking.begin(lease, now);
        if let Err(error) = tx.commit().await {
            self.asking.end(lease.token);
            return Err(error.into());
        }
        Ok(Ok(Claim {
            trade,
            lease,
            attempt,
            at: now,
        }))
    }

    /// Asks the engine and applies its report. The permit is returned when the engine has reported.
    async fn ask_and_apply(
        &self,
        who: &Tenant,
        engine: &Arc<dyn Engine>,
        claim: &Claim,
        permit: Ticket,
    ) -> Result<Trade, PollError> {
        let report = ask(engine.as_ref(), who, claim).await;
        drop(permit);
        let Some(report) = report else {
            return self.end(who, claim, None).await;
        };
        match claim.trade.steps(&report, claim.at) {
            Ok(steps) if steps.is_empty() => self.end(who, claim, Some(QUIET)).await,
            Ok(steps) => {
                let assets = moved_assets(&steps);
                let applied = retry_lost_races(|| self.apply(who, claim, &report, &assets)).await;
                if let Err(PollError::Post(_) | PollError::Event(_)) = applied {
                    // The process failed, not the engine, so the next poll need not wait for the lease.
                    retry_lost_races(|| self.unclaim(who, claim, None)).await?;
                }
                applied
            }
            Err(contradiction) => {
                tracing::error!(
                    trade.id = %contradiction.trade,
                    engine.report = contradiction.report,
                    "The engine's report contradicts a settled trade, which stays settled. Ask the engine's operator"
                );
                engine.contradicted(&contradiction);
                self.end(who, claim, None).await
            }
        }
    }

    /// Ends a claim that changed nothing and returns the current trade. The lease of a settled trade is extended by
    /// `rest`. Without `rest`, or if the trade is reserved, the next poll may ask.
    async fn end(
        &self,
        who: &Tenant,
        claim: &Claim,
        rest: Option<Duration>,
    ) -> Result<Trade, PollError> {
        if claim.trade.state == TradeState::Reserved {
            let present = self.find(who, claim.trade.quote).await?;
            return Ok(present.value);
        }
        retry_lost_races(|| self.unclaim(who, claim, rest)).await
    }

    async fn unclaim(
        &self,
        who: &Tenant,
        claim: &Claim,
        rest: Option<Duration>,
    ) -> Result<Trade, PollError> {
        let mut tx = self.store.begin("trade_unclaim").await?;
        let trade = tx
            .trade_lock(who, claim.trade.id)
            .await?
            .ok_or(PollError::NotFound)?;
        let token = claim.lease.token;
        // If the lease was lost, another poll has it and keeps it.
        let _ = match rest {
            Some(rest) => {
                let until = tx.now().await?.plus(rest);
                tx.trade_rest(who, trade.id, Lease { token, until }).await?
            }
            None => tx.trade_unclaim(who, trade.id, token).await?,
        };
        tx.commit().await?;
        Ok(trade)
    }

    /// Applies a report: states, transfers, velocity and events in one transaction.
    async fn apply(
        &self,
        who: &Tenant,
        claim: &Claim,
        report: &EngineReport,
        assets: &BTreeSet<Asset>,
    ) -> Result<Trade, PollError> {
        let mut tx = self.store.begin("trade_apply").await?;
        let velocity = tx.velocity_lock(who).await?;
        let mut accounts = BTreeMap::new();
        for asset in assets {
            accounts.insert(*asset, tx.account_lock(who, *asset).await?);
        }
        let trade = tx
            .trade_lock(who, claim.trade.id)
            .await?
            .ok_or(PollError::NotFound)?;
        let now = tx.now().await?;
        let Some(token) = claim.may_apply(&trade, now) else {
            return Ok(trade);
        };
        let steps = trade.steps(report, now).unwrap_or_default();
        if steps.is_empty() {
            return Ok(trade);
        }
        if let (true, Some(velocity)) = (steps.iter().any(|step| step.leaves_velocity), velocity) {
            tx.velocity_put(
                who,
                &velocity.remove_trade(trade.terms.notional, trade.created_at),
            )
            .await?;
        }
        for step in &steps {
            self.post(who, tx.as_mut(), &trade, step, &mut accounts)
                .await?;
        }
        tx.trade_apply(who, &trade, &steps, token).await?.won()?;
        let mut after = Trade {
            lease: None,
            ..trade
        };
        for step in steps {
            after.state = step.state;
            if let Some(event) = step.event {
                tx.event_insert(&self.event(who, &after, event, now)?)
                    .await?;
            }
        }
        tx.commit().await?;
        Ok(after)
    }

    /// Posts the entry of a step's transfer, if the step has one.
    async fn post(
        &self,
        who: &Tenant,
        tx: &mut dyn PoolsTx,
        trade: &Trade,
        step: &Step,
        accounts: &mut BTreeMap<Asset, Account>,
    ) -> Result<(), PollError> {
        let Some((transfer, part)) = step.transfer else {
            return Ok(());
        };
        let asset = transfer.amount.asset();
        let account = accounts.get_mut(&asset).ok_or(PostError::WrongAsset)?;
        let (after, mark) = account.post(&transfer)?;
        let now = step.reached_at(trade);
        let entry = Entry {
            id: EntryId::new(who.mode, now, self.entropy.as_ref()),
            transfer,
            mark,
            reference: trade.quote.to_string(),
            trade: Some((trade.id, part)),
            created_at: now,
        };
        tx.entry_post(who, account, &entry).await?;
        *account = after;
        Ok(())
    }

    fn event(
        &self,
        who: &Tenant,
        trade: &Trade,
        event: TradeEvent,
        now: Timestamp,
    ) -> Result<NewEvent, PollError> {
        let id = events::event_id(trade, event);
        let body = (self.render)(trade, event)?;
        let event = OpenEvent {
            id,
            service: Service::Pools,
            kind: event.as_str(),
            object_id: trade.id.to_string(),
            body: &body,
        };
        let sealed = event.seal(who, now, &self.sealer, self.entropy.as_ref());
        sealed.map_err(|refused| PollError::Store(refused.into()))
    }
}

/// Confirms the hold of a reserved trade, then asks for the report. Only the report decides: a lapsed hold does
/// not release the trade unless the report agrees.
async fn ask(engine: &dyn Engine, who: &Tenant, claim: &Claim) -> Option<EngineReport> {
    let known = claim.trade.state.status();
    let trade = claim.trade.id;
    let lapsed = known == TradeStatus::Reserved
        && engine.confirm_again(who, trade).await? == Confirmation::Lapsed;
    let order = order_of(&claim.trade.terms);
    let request = TradeReportRequest {
        trade,
        order,
        attempt: claim.attempt,
        known,
    };
    let report = engine.report(who, &request).await?;
    if lapsed
        && matches!(
            report,
            EngineReport::Delivered(_) | EngineReport::Reversed(_)
        )
    {
        tracing::warn!(trade.id = %trade, "The engine says that the trade's hold lapsed, and reports a delivery. The report counts");
    }
    Some(report)
}

impl Claim {
    /// The token that allows to apply the report to the current trade; `None` if the report is too late.
    ///
    /// Another process may have claimed the trade since. The report still counts if this claim's own lease has not
    /// expired and no report was applied since. Otherwise two processes that poll alternately could discard each
    /// other's reports for ever.
    fn may_apply(&self, trade: &Trade, now: Timestamp) -> Option<u64> {
        let own = self.lease.token;
        let holder = trade.lease?.token;
        let in_time = now < self.lease.until && trade.state == self.trade.state;
        (holder == own || in_time).then_some(holder)
    }
}

/// The assets that the steps move, in the order of the account locks.
fn moved_assets(steps: &[Step]) -> BTreeSet<Asset> {
    let transfers = steps.iter().filter_map(|step| step.transfer);
    let amounts = transfers.map(|(transfer, _)| transfer.amount);
    amounts.map(|amount| amount.asset()).collect()
}
