//! The money path: decides a batch of transacts on the batch state loaded for it.
//!
//! A store locks and loads [`BatchState`], reads its clock, calls [`decide_batch`] and writes every [`NewTrade`], in one
//! transaction. Each command sees the effects of the earlier commands, so a batch equals its commands one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kernel::{Amount, Asset, Mode, StoreError, StoreResult, Timestamp, UpstreamName};
use partner_core::idempotency::{Fingerprint, Scope, counts};
use partner_core::key::KeyId;
use partner_core::{Access, Denial, PartnerId};

use crate::access::{PoolsDenial, may_transact_in};
use crate::ledger::{Account, BALANCE_LIMIT, Entry, EntryId, PostError, TransferRole};
use crate::ports::Hold;
use crate::profile::{PoolId, PoolsProfile};
use crate::quote::{Quote, QuoteClosed, QuoteId, Side};
use crate::trade::{Trade, TradeId, TradeState};
use crate::velocity::{self, DoesNotFit, Velocity};

/// One transact, with everything that must be known before its batch runs.
#[derive(Debug, Clone)]
pub struct TransactCommand {
    /// The request's API key, which is checked again inside the transaction.
    pub key: KeyId,
    /// Partner, mode, route and idempotency key.
    pub scope: Scope,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// The pool in the path.
    pub pool: PoolId,
    /// The quote to execute.
    pub quote: QuoteId,
    /// The id of the new trade, under which the engine was asked.
    pub trade: TradeId,
    /// The id of its ledger entry.
    pub entry: EntryId,
    /// The engine that holds the trade.
    pub engine: UpstreamName,
    /// The result of the hold, which is checked last; `None` if the engine did not respond or was not asked.
    pub hold: Option<Hold>,
}

impl TransactCommand {
    /// The mode of a batch; `None` if the batch is empty. A process runs in one mode, and the batch state names partners without a
    /// mode.
    ///
    /// # Errors
    ///
    /// If the batch has commands of both modes.
    pub fn mode_of(batch: &[Self]) -> StoreResult<Option<Mode>> {
        let modes: BTreeSet<Mode> = batch
            .iter()
            .map(|command| command.scope.tenant.mode)
            .collect();
        if modes.len() > 1 {
            return Err(StoreError::unexpected("a batch of commands of both modes"));
        }
        Ok(modes.first().copied())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactOutcome {
    /// The transact created this trade.
    Opened(Trade),
    /// The quote had this trade already.
    Existing(Trade),
}

/// The decision on one command.
pub type Decision = Result<TransactOutcome, Refusal>;

/// Why a transact created no trade, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key, the organization or the entitlement has changed since the request was admitted.
    #[error(transparent)]
    Denied(#[from] PoolsDenial),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// No such quote of this partner in this pool.
    #[error("no such quote")]
    QuoteUnknown,
    /// Selling is not enabled.
    #[error("the side is not enabled")]
    SideNotEnabled,
    /// The quote is rejected or expired.
    #[error(transparent)]
    QuoteClosed(#[from] QuoteClosed),
    /// The trade would pass the velocity cap.
    #[error("the velocity cap would be passed")]
    VelocityCapExceeded,
    /// The trade would exceed the velocity cap by a running total that has not caught up with the window. The use case lets
    /// the total catch up and submits the command again.
    #[error("the running total has not caught up with the velocity window")]
    VelocityBehind,
    /// The balance does not cover the reservation.
    #[error("the balance does not cover the reservation")]
    InsufficientBalance,
    /// A return of the sale could exceed the account's balance limit.
    #[error("the account has no room for what a return would credit")]
    NoRoomForReturn,
    /// The engine refused the reservation.
    #[error("the engine refused the reservation")]
    ReservationFailed,
    /// The engine did not respond within its timeout.
    #[error("the engine did not answer")]
    EngineUnavailable,
}

/// Everything a batch may touch, loaded under its locks.
#[derive(Debug, Default)]
pub struct BatchState {
    /// Keys with their partners and entitlements, read in this transaction.
    pub access: BTreeMap<KeyId, Arc<Access<PoolsProfile>>>,
    /// Idempotency records, expired ones included.
    pub answered: BTreeMap<Scope, IdempotencyRecord>,
    /// Quotes of the commands' own partners.
    pub quotes: BTreeMap<(PartnerId, QuoteId), Quote>,
    /// The quotes' trades.
    pub trades: BTreeMap<(PartnerId, QuoteId), Trade>,
    /// The partners' accounts in both currencies of the pools named.
    pub accounts: BTreeMap<(PartnerId, Asset), Account>,
    /// Upper bounds of the contingent credits, per fiat account that a sale of the batch could be returned to.
    ///
    /// A figure is what the account holds plus what trades may still credit to it, or more. Credits and sales add to
    /// it. A recount lowers it in slices, outside of transacts ([`crate::contingent_credit`]).
    pub commitments: BTreeMap<(PartnerId, Asset), i64>,
    /// The partners' running totals. Those of partners with a cap have moved towards the start of
    /// [`BatchState::window`] before `now`, by a bounded number of trades.
    pub velocity: BTreeMap<PartnerId, Velocity>,
    /// The velocity window.
    pub window: Duration,
    /// How long new idempotency records count.
    pub idempotency_ttl: Duration,
    /// The trades that the batch has opened, which the store must write.
    pub opened: Vec<NewTrade>,
}

/// The funds of a partner in a pool: its accounts in the pool's currencies and its velocity total.
///
/// They are read outside any transaction, so they are advisory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Funds {
    /// The accounts that exist.
    pub accounts: Vec<Account>,
    /// The running total as stored; `None` before the first trade.
    pub velocity: Option<Velocity>,
}

impl Funds {
    fn account(&self, asset: Asset) -> Option<Account> {
        let mut accounts = self.accounts.iter().copied();
        accounts.find(|account| account.asset() == asset)
    }

    /// The funds after one more trade; `None` if they do not cover it.
    #[must_use]
    pub fn after(&self, trade: &Trade) -> Option<Self> {
        let total = self.velocity.unwrap_or(Velocity::new(trade.created_at));
        let velocity = total.admit(trade.terms.notional, None, total.floor).ok()?;
        let mut accounts = self.accounts.clone();
        if let Some(transfer) = trade.reserve_transfer() {
            let asset = transfer.amount.asset();
            let account = accounts.iter_mut().find(|one| one.asset() == asset)?;
            *account = account.post(&transfer).ok()?.0;
        }
        Some(Self {
            accounts,
            velocity: Some(velocity),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The fingerprint of the recorded request.
    pub fingerprint: Fingerprint,
    /// When the record expires. It counts while `now < expires_at`.
    pub expires_at: Timestamp,
}

/// One trade that the batch has opened, with all its rows. [`BatchState`] has the accounts and totals after the batch.
#[derive(Debug, Clone)]
pub struct NewTrade {
    /// The trade; its quote is consumed at the trade's `created_at`.
    pub trade: Trade,
    /// The partner of the trade.
    pub partner: PartnerId,
    /// The ledger entry of its reserve; `None` if nothing was reserved.
    pub entry: Option<Entry>,
    /// The scope of its idempotency key.
    pub scope: Scope,
    /// Its idempotency record.
    pub answered: IdempotencyRecord,
}

/// The partners with a velocity cap. The totals of other partners are added to but never moved, because they refuse
/// nothing.
#[must_use]
pub fn capped(access: &BTreeMap<KeyId, Arc<Access<PoolsProfile>>>) -> BTreeSet<&PartnerId> {
    let with_cap = |access: &&Arc<Access<PoolsProfile>>| access.profile.velocity_cap.is_some();
    let capped = access.values().filter(with_cap);
    capped.map(|access| &access.partner.id).collect()
}

impl BatchState {
    /// The accounts that the batch changed, with their state after it.
    #[must_use]
    pub fn touched_accounts(&self) -> Vec<(&PartnerId, &Account)> {
        let touched: BTreeSet<(&PartnerId, Asset)> = self
            .opened
            .iter()
            .filter_map(|opened| {
                Some((
                    &opened.partner,
                    opened.entry.as_ref()?.transfer.amount.asset(),
                ))
            })
            .collect();
        self.accounts
            .iter()
            .filter(|((partner, asset), _)| touched.contains(&(partner, *asset)))
            .map(|((partner, _), account)| (partner, account))
            .collect()
    }

    /// The contingent credits that the batch changed, with their amounts after it.
    #[must_use]
    pub fn touched_commitments(&self) -> Vec<(&PartnerId, Asset, i64)> {
        let sold: BTreeSet<(&PartnerId, Asset)> = self
            .opened
            .iter()
            .filter(|opened| opened.trade.terms.side == Side::OffRamp)
            .map(|opened| (&opened.partner, opened.trade.terms.fiat.asset()))
            .collect();
        self.commitments
            .iter()
            .filter(|((partner, asset), _)| sold.contains(&(partner, *asset)))
            .map(|((partner, asset), total)| (partner, *asset, *total))
            .collect()
    }

    /// The running totals that the batch changed, with their state after it.
    #[must_use]
    pub fn touched_velocity(&self) -> Vec<(&PartnerId, &Velocity)> {
        let touched: BTreeSet<&PartnerId> =
            self.opened.iter().map(|opened| &opened.partner).collect();
        self.velocity
            .iter()
            .filter(|(partner, _)| touched.contains(partner))
            .collect()
    }
}

/// Decides a batch in order. Pure: `now` is the store's clock, read after the locks.
#[must_use]
pub fn decide_batch(
    state: &mut BatchState,
    batch: &[TransactCommand],
    now: Timestamp,
) -> Vec<Decision> {
    batch
        .iter()
        .map(|command| decide(state, command, now))
        .collect()
}

/// Decides one command, with the checks in the order of the contract. Changes nothing before the last check.
fn decide(state: &mut BatchState, command: &TransactCommand, now: Timestamp) -> Decision {
    let partner = command.scope.tenant.partner.clone();
    let at = (partner.clone(), command.quote);
    let existing = state.trades.get(&at);
    // Ids of trades are random: an earlier run of this command created the trade and was committed. Later changes do not
    // affect it.
    if let Some(own) = existing.filter(|trade| trade.id == command.trade) {
        return Ok(TransactOutcome::Existing(own.clone()));
    }
    let access = state
        .access
        .get(&command.key)
        .cloned()
        .ok_or(PoolsDenial::Access(Denial::KeyRevoked))?;
    may_transact_in(&access, &command.pool, now)?;
    let record = state.answered.get(&command.scope);
    key_is_free(record, &command.fingerprint, now)?;

    let quote = state
        .quotes
        .get(&at)
        .filter(|quote| quote.terms.pool == command.pool)
        .ok_or(Refusal::QuoteUnknown)?;
    if let Some(trade) = existing {
        return Ok(TransactOutcome::Existing(trade.clone()));
    }
    let cutoff = velocity::cutoff(now, state.window);
    let total = state.velocity.get(&partner).copied();
    let total = total.unwrap_or_else(|| Velocity::new(cutoff));
    let account = |asset| state.accounts.get(&(partner.clone(), asset)).copied();
    let velocity = (total, access.profile.velocity_cap, cutoff);
    let draft = draft(&access, command, quote, velocity, account, now)?;
    let committed = commit_return(state, &partner, &draft.trade)?;
    match command.hold {
        Some(Hold::Held) => {}
        Some(Hold::Refused) => return Err(Refusal::ReservationFailed),
        Some(Hold::Unsent) | None => return Err(Refusal::EngineUnavailable),
    }
    let Draft {
        consumed,
        total,
        trade,
        posted,
    } = draft;
    let (entry, account) = posted.unzip();
    if let Some(account) = account {
        state
            .accounts
            .insert((partner.clone(), account.asset()), account);
    }
    if let Some(committed) = committed {
        let place = (partner.clone(), trade.terms.fiat.asset());
        state.commitments.insert(place, committed);
    }
    state.velocity.insert(partner.clone(), total);
    state.quotes.insert(at.clone(), consumed);
    state.trades.insert(at, trade.clone());
    let answered = IdempotencyRecord {
        fingerprint: command.fingerprint,
        expires_at: now.plus(state.idempotency_ttl),
    };
    state.answered.insert(command.scope.clone(), answered);
    state.opened.push(NewTrade {
        trade: trade.clone(),
        partner,
        entry,
        scope: command.scope.clone(),
        answered,
    });
    Ok(TransactOutcome::Opened(trade))
}

/// The changes of a command.
struct Draft {
    consumed: Quote,
    total: Velocity,
    trade: Trade,
    /// The entry of its reserve and the account after it.
    posted: Option<(Entry, Account)>,
}

/// Checks side, quote, velocity and balance of a command, in this order.
fn draft(
    access: &Access<PoolsProfile>,
    command: &TransactCommand,
    quote: &Quote,
    (total, cap, cutoff): (Velocity, Option<i64>, Timestamp),
    account: impl Fn(Asset) -> Option<Account>,
    now: Timestamp,
) -> Result<Draft, Refusal> {
    side_is_enabled(access, quote)?;
    let consumed = quote.consume(now)?;
    let total = total
        .admit(quote.terms.notional, cap, cutoff)
        .map_err(|unfit| match unfit {
            DoesNotFit::Exceeded => Refusal::VelocityCapExceeded,
            DoesNotFit::Behind => Refusal::VelocityBehind,
        })?;
    let trade = new_trade(command, quote, access, now);
    let posted = post_reserve(account, command, &trade)?;
    Ok(Draft {
        consumed,
        total,
        trade,
        posted,
    })
}

/// Checks a command on figures that were read outside the transaction, without the engine's response. Advisory: the
/// transaction decides.
///
/// # Errors
/// The refusal of [`decide_batch`] on these figures.
pub fn forecast(
    access: &Access<PoolsProfile>,
    command: &TransactCommand,
    quote: &Quote,
    funds: &Funds,
    now: Timestamp,
) -> Result<(), Refusal> {
    may_transact_in(access, &command.pool, now)?;
    let total = funds.velocity.unwrap_or(Velocity::new(now));
    // The total was read outside any transaction and may lag. If it refuses the trade, the batch decides.
    let velocity = (total, access.profile.velocity_cap, total.floor);
    let account = |asset| funds.account(asset);
    draft(access, command, quote, velocity, account, now).map(drop)
}

/// Refuses a key that was used for another request and has not expired.
///
/// # Errors
/// [`Refusal::KeyReused`].
pub fn key_is_free(
    record: Option<&IdempotencyRecord>,
    fingerprint: &Fingerprint,
    now: Timestamp,
) -> Result<(), Refusal> {
    match record {
        Some(record) if record.fingerprint != *fingerprint && counts(record.expires_at, now) => {
            Err(Refusal::KeyReused)
        }
        _ => Ok(()),
    }
}

/// Refuses a sale unless it is enabled for the partner in the pool.
///
/// # Errors
/// [`Refusal::SideNotEnabled`].
pub fn side_is_enabled(access: &Access<PoolsProfile>, quote: &Quote) -> Result<(), Refusal> {
    match quote.terms.side {
        Side::OffRamp if !access.profile.terms_in(&quote.terms.pool).off_ramp => {
            Err(Refusal::SideNotEnabled)
        }
        Side::OnRamp | Side::OffRamp => Ok(()),
    }
}

/// A purchase reserves fiat under the balance gate; a sale always reserves crypto.
fn new_trade(
    command: &TransactCommand,
    quote: &Quote,
    access: &Access<PoolsProfile>,
    now: Timestamp,
) -> Trade {
    let reserved: Option<Amount> = match quote.terms.side {
        Side::OnRamp => access.profile.balance_gate.then_some(quote.terms.fiat),
        Side::OffRamp => Some(quote.terms.crypto),
    };
    Trade {
        id: command.trade,
        quote: quote.id,
        terms: quote.terms.clone(),
        engine: Some(command.engine.clone()),
        reserved,
        created_at: now,
        state: TradeState::Reserved,
        attempts: 0,
        lease: None,
    }
}

fn post_reserve(
    account: impl Fn(Asset) -> Option<Account>,
    command: &TransactCommand,
    trade: &Trade,
) -> Result<Option<(Entry, Account)>, Refusal> {
    let Some(transfer) = trade.reserve_transfer() else {
        return Ok(None);
    };
    let asset = transfer.amount.asset();
    let account = account(asset).unwrap_or(Account::empty(asset));
    let (account, mark) = account.post(&transfer).map_err(|error| match error {
        PostError::Insufficient
        | PostError::TooLarge
        | PostError::WrongAsset
        | PostError::SameAccount => Refusal::InsufficientBalance,
    })?;
    let entry = Entry {
        id: command.entry,
        transfer,
        mark,
        reference: trade.quote.to_string(),
        trade: Some((trade.id, TransferRole::Reserve)),
        created_at: trade.created_at,
    };
    Ok(Some((entry, account)))
}

/// The contingent credits with a sale. A return credits the fiat of the sale, so the account must have capacity for
/// it from now on. A purchase never returns more than it reserved.
fn commit_return(
    state: &BatchState,
    partner: &PartnerId,
    trade: &Trade,
) -> Result<Option<i64>, Refusal> {
    if trade.terms.side == Side::OnRamp {
        return Ok(None);
    }
    let fiat = trade.terms.fiat;
    let place = (partner.clone(), fiat.asset());
    let committed = state.commitments.get(&place).copied().unwrap_or_default();
    committed
        .checked_add(fiat.units())
        .filter(|total| *total <= BALANCE_LIMIT)
        .map(Some)
        .ok_or(Refusal::NoRoomForReturn)
}
