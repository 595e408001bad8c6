//! The money path: a batch of transacts decided on the books loaded for it.
//!
//! A store locks and loads [`Books`], reads its clock, calls [`decide_batch`] and writes what was
//! [`Opened`], all in one transaction. Each command sees what the earlier ones of the batch did,
//! so a batch equals its commands one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kernel::planted::{self, planted};
use kernel::{Amount, Asset, Timestamp};
use partner_core::idempotency::{Fingerprint, Scope, counts};
use partner_core::key::KeyId;
use partner_core::pools::PoolId;
use partner_core::{Access, Denial, PartnerId};

use crate::ledger::{Account, BALANCE_LIMIT, Entry, EntryId, Part, PostFault};
use crate::ports::Hold;
use crate::quote::{Quote, QuoteClosed, QuoteId, Side};
use crate::trade::{Trade, TradeId, TradeState};
use crate::velocity::{self, Velocity};

/// One transact, with everything that had to be known before its turn.
#[derive(Debug, Clone)]
pub struct Command {
    /// The key it came with; judged again inside the transaction.
    pub key: KeyId,
    /// Partner, mode, route and idempotency key.
    pub scope: Scope,
    /// What the request asks for.
    pub fingerprint: Fingerprint,
    /// The pool in the path.
    pub pool: PoolId,
    /// The quote to execute.
    pub quote: QuoteId,
    /// The id of the trade to be made, under which the engine was asked.
    pub trade: TradeId,
    /// The id of its ledger entry.
    pub entry: EntryId,
    /// The engine's answer, judged last; `None`: it did not answer, or was not asked.
    pub hold: Option<Hold>,
}

/// What a transact has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It made this trade.
    Opened(Trade),
    /// The quote had this trade already.
    Existing(Trade),
}

/// Why a transact made no trade. In the order they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key, the organization or the entitlement has changed since the door.
    #[error(transparent)]
    Denied(#[from] Denial),
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
    /// The balance does not cover the reservation.
    #[error("the balance does not cover the reservation")]
    InsufficientBalance,
    /// The account could not hold what a return of the sale would credit.
    #[error("the account has no room for what a return would credit")]
    NoRoomForReturn,
    /// The engine refused the reservation.
    #[error("the engine refused the reservation")]
    ReservationFailed,
    /// The engine did not answer.
    #[error("the engine did not answer")]
    EngineUnavailable,
}

/// Everything a batch may touch, loaded under its locks.
#[derive(Debug, Default)]
pub struct Books {
    /// Keys with their partners and entitlements, read in this transaction.
    pub access: BTreeMap<KeyId, Arc<Access>>,
    /// Idempotency records, expired ones included.
    pub answered: BTreeMap<Scope, Answered>,
    /// Quotes of the commands' own partners.
    pub quotes: BTreeMap<(PartnerId, QuoteId), Quote>,
    /// The quotes' trades.
    pub trades: BTreeMap<(PartnerId, QuoteId), Trade>,
    /// The partners' accounts in both currencies of the pools named.
    pub accounts: BTreeMap<(PartnerId, Asset), Account>,
    /// Of the fiat accounts that sales of the batch may be returned to: what the account holds
    /// with all that trades may still credit to it, or more. Credits and sales add to it; it is
    /// counted anew at a credit and now and then, so that no transact pays for that.
    pub commitments: BTreeMap<(PartnerId, Asset), i64>,
    /// The partners' running totals, slid to [`Books::window`] before `now`.
    pub velocity: BTreeMap<PartnerId, Velocity>,
    /// The velocity window.
    pub window: Duration,
    /// How long idempotency records count.
    pub idempotency_ttl: Duration,
    /// What the batch has opened: what the store has to write.
    pub opened: Vec<Opened>,
}

/// An idempotency record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// What the request asked for.
    pub fingerprint: Fingerprint,
    /// When it was answered.
    pub created_at: Timestamp,
}

/// One trade the batch has opened, with all rows that go with it. The accounts and totals after
/// the batch stand in [`Books`].
#[derive(Debug, Clone)]
pub struct Opened {
    /// The trade; its quote is consumed at the trade's `created_at`.
    pub trade: Trade,
    /// Whose it is.
    pub partner: PartnerId,
    /// The entry of its reserve, where something was reserved.
    pub entry: Option<Entry>,
    /// The idempotency record.
    pub scope: Scope,
    /// What the request asked for.
    pub fingerprint: Fingerprint,
}

impl Books {
    /// The accounts changed by the batch, as they are after it.
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

    /// The commitments changed by the batch, as they are after it.
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

    /// The running totals changed by the batch, as they are after it.
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
    books: &mut Books,
    batch: &[Command],
    now: Timestamp,
) -> Vec<Result<Outcome, Refusal>> {
    batch
        .iter()
        .map(|command| decide(books, command, now))
        .collect()
}

/// Judges one command in the order of the contract; nothing changes before the last refusal.
fn decide(books: &mut Books, command: &Command, now: Timestamp) -> Result<Outcome, Refusal> {
    let access = books
        .access
        .get(&command.key)
        .cloned()
        .ok_or(Denial::KeyRevoked)?;
    access.may_transact_in(&command.pool)?;
    let record = books.answered.get(&command.scope);
    key_is_free(record, &command.fingerprint, now, books.idempotency_ttl)?;

    let partner = access.partner.id.clone();
    let at = (partner.clone(), command.quote);
    let quote = books
        .quotes
        .get(&at)
        .filter(|quote| quote.terms.pool == command.pool)
        .ok_or(Refusal::QuoteUnknown)?;
    if let Some(trade) = books.trades.get(&at) {
        return Ok(Outcome::Existing(trade.clone()));
    }
    side_is_enabled(&access, quote)?;
    let consumed = quote.consume(now)?;

    let total = books.velocity.get(&partner).copied();
    let total = total.unwrap_or_else(|| Velocity::new(velocity::cutoff(now, books.window)));
    let mut cap = access.pools.velocity_cap;
    if planted(planted::CAP_WITHOUT_LOCK) {
        let batch = books
            .opened
            .iter()
            .map(|opened| opened.trade.terms.notional);
        cap = cap.map(|cap| cap.saturating_add(batch.sum()));
    }
    let total = total
        .admit(quote.terms.notional, cap)
        .ok_or(Refusal::VelocityCapExceeded)?;

    let trade = new_trade(command, quote, &access, now);
    let posted = post_reserve(books, &partner, command, &trade)?;
    let committed = commit_return(books, &partner, &trade)?;
    match command.hold {
        Some(Hold::Held) => {}
        Some(Hold::Refused) => return Err(Refusal::ReservationFailed),
        None => return Err(Refusal::EngineUnavailable),
    }
    let (entry, account) = posted.unzip();
    if let Some(account) = account {
        books
            .accounts
            .insert((partner.clone(), account.asset()), account);
    }
    if let Some(committed) = committed {
        let place = (partner.clone(), trade.terms.fiat.asset());
        books.commitments.insert(place, committed);
    }
    books.velocity.insert(partner.clone(), total);
    books.quotes.insert(at.clone(), consumed);
    books.trades.insert(at, trade.clone());
    books.answered.insert(
        command.scope.clone(),
        Answered {
            fingerprint: command.fingerprint,
            created_at: now,
        },
    );
    books.opened.push(Opened {
        trade: trade.clone(),
        partner,
        entry,
        scope: command.scope.clone(),
        fingerprint: command.fingerprint,
    });
    Ok(Outcome::Opened(trade))
}

/// Refuses a key that was used for another request and has not expired.
///
/// # Errors
/// [`Refusal::KeyReused`].
pub fn key_is_free(
    record: Option<&Answered>,
    fingerprint: &Fingerprint,
    now: Timestamp,
    ttl: Duration,
) -> Result<(), Refusal> {
    match record {
        Some(record)
            if record.fingerprint != *fingerprint && counts(record.created_at, now, ttl) =>
        {
            Err(Refusal::KeyReused)
        }
        _ => Ok(()),
    }
}

/// Refuses a sale unless it is enabled for the partner in the pool.
///
/// # Errors
/// [`Refusal::SideNotEnabled`].
pub fn side_is_enabled(access: &Access, quote: &Quote) -> Result<(), Refusal> {
    match quote.terms.side {
        Side::OffRamp if !access.pools.terms_in(&quote.terms.pool).off_ramp => {
            Err(Refusal::SideNotEnabled)
        }
        Side::OnRamp | Side::OffRamp => Ok(()),
    }
}

/// A purchase reserves fiat under the balance gate; a sale always reserves crypto.
fn new_trade(command: &Command, quote: &Quote, access: &Access, now: Timestamp) -> Trade {
    let reserved: Option<Amount> = match quote.terms.side {
        Side::OnRamp => access.pools.balance_gate.then_some(quote.terms.fiat),
        Side::OffRamp => Some(quote.terms.crypto),
    };
    Trade {
        id: command.trade,
        quote: quote.id,
        terms: quote.terms.clone(),
        reserved,
        created_at: now,
        state: TradeState::Reserved,
        attempts: 0,
        lease: None,
    }
}

fn post_reserve(
    books: &Books,
    partner: &PartnerId,
    command: &Command,
    trade: &Trade,
) -> Result<Option<(Entry, Account)>, Refusal> {
    let Some(transfer) = trade.reserve_transfer() else {
        return Ok(None);
    };
    let asset = transfer.amount.asset();
    let account = books
        .accounts
        .get(&(partner.clone(), asset))
        .copied()
        .unwrap_or(Account::empty(asset));
    let (account, mark) = account.post(&transfer).map_err(|fault| match fault {
        PostFault::Insufficient
        | PostFault::TooLarge
        | PostFault::WrongAsset
        | PostFault::SameAccount => Refusal::InsufficientBalance,
    })?;
    let entry = Entry {
        id: command.entry,
        transfer,
        mark,
        reference: trade.quote.to_string(),
        trade: Some((trade.id, Part::Reserve)),
        created_at: trade.created_at,
    };
    Ok(Some((entry, account)))
}

/// A returned sale is credited its fiat, so the account must have room for that from now on: its
/// commitment with the sale. A purchase gives back no more than it takes.
fn commit_return(
    books: &Books,
    partner: &PartnerId,
    trade: &Trade,
) -> Result<Option<i64>, Refusal> {
    if trade.terms.side == Side::OnRamp {
        return Ok(None);
    }
    let fiat = trade.terms.fiat;
    let place = (partner.clone(), fiat.asset());
    let committed = books.commitments.get(&place).copied().unwrap_or_default();
    committed
        .checked_add(fiat.units())
        .filter(|total| *total <= BALANCE_LIMIT)
        .map(Some)
        .ok_or(Refusal::NoRoomForReturn)
}
