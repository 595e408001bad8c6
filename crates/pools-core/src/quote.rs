//! Firm quotes: executable once, for a short time.

use crate::profile::{Network, PoolId};
pub use kernel::rates::Side;
use kernel::{Amount, Id, IdKind, Mid, Rate, Timestamp};

use crate::destination::Destination;

/// Names a firm quote.
#[derive(Debug)]
pub enum QuoteIdKind {}

impl IdKind for QuoteIdKind {
    const PREFIX: &'static str = "pq";
}

/// `pq_<mode>_<ULID>`.
pub type QuoteId = Id<QuoteIdKind>;

/// What a quote and the trade made from it agree on, locked when the quote is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The pool.
    pub pool: PoolId,
    /// The side.
    pub side: Side,
    /// The chain the crypto leg moves on.
    pub network: Network,
    /// The fiat leg: paid on a purchase, received on a sale.
    pub fiat: Amount,
    /// The crypto leg: received on a purchase, sold on a sale.
    pub crypto: Amount,
    /// Output per unit of input, all-in.
    pub rate: Rate,
    /// The mid rate that the order was priced with, in units of the pool's crypto per unit of its fiat;
    /// `None` on quotes from before it was kept.
    pub mid: Option<Mid>,
    /// The spread in the rate, in basis points.
    pub spread_bps: u16,
    /// The draw fee in the rate, in basis points.
    pub fee_bps: u16,
    /// The order's value in units of 10^-8 USDT, rounded up: what counts for velocity.
    pub notional: i64,
    /// Where a purchase is delivered; `None` on a sale.
    pub destination: Option<Destination>,
}

impl Terms {
    /// The leg the partner gives: fiat on a purchase, crypto on a sale.
    #[must_use]
    pub const fn input(&self) -> Amount {
        match self.side {
            Side::OnRamp => self.fiat,
            Side::OffRamp => self.crypto,
        }
    }

    /// The leg the partner gets: crypto on a purchase, fiat on a sale.
    #[must_use]
    pub const fn output(&self) -> Amount {
        match self.side {
            Side::OnRamp => self.crypto,
            Side::OffRamp => self.fiat,
        }
    }
}

/// A firm quote: its terms and the facts its status is derived from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// Its id: the join key between quote, trade and status.
    pub id: QuoteId,
    /// What it locks.
    pub terms: Terms,
    /// When it was given.
    pub created_at: Timestamp,
    /// From this instant on it is expired.
    pub expires_at: Timestamp,
    /// What has become of it.
    pub fate: QuoteOutcome,
}

/// What has been done with a quote. Expiry is not a fate: it is derived from the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteOutcome {
    /// Nothing yet.
    Open,
    /// Executed: exactly one trade exists.
    Consumed(Timestamp),
    /// Rejected by the partner.
    Rejected(Timestamp),
}

/// A quote's status as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteStatus {
    /// Executable.
    Active,
    /// Executed.
    Consumed,
    /// Too old.
    Expired,
    /// Rejected.
    Rejected,
}

impl QuoteStatus {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Consumed => "consumed",
            Self::Expired => "expired",
            Self::Rejected => "rejected",
        }
    }
}

/// Why a quote can be neither executed nor rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuoteClosed {
    /// It was executed.
    #[error("the quote has been executed")]
    Consumed,
    /// It was rejected.
    #[error("the quote has been rejected")]
    Rejected,
    /// Its time is over.
    #[error("the quote has expired")]
    Expired,
}

impl Quote {
    /// The status at an instant: rejected and consumed win over expired, which holds from
    /// `expires_at` on.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> QuoteStatus {
        match self.fate {
            QuoteOutcome::Rejected(_) => QuoteStatus::Rejected,
            QuoteOutcome::Consumed(_) => QuoteStatus::Consumed,
            QuoteOutcome::Open if now >= self.expires_at => QuoteStatus::Expired,
            QuoteOutcome::Open => QuoteStatus::Active,
        }
    }

    /// Is the quote still executable at an instant read after its lock was taken?
    ///
    /// # Errors
    /// [`QuoteClosed`] names what has become of it.
    pub fn must_be_active(&self, now: Timestamp) -> Result<(), QuoteClosed> {
        match self.status(now) {
            QuoteStatus::Active => Ok(()),
            QuoteStatus::Consumed => Err(QuoteClosed::Consumed),
            QuoteStatus::Rejected => Err(QuoteClosed::Rejected),
            QuoteStatus::Expired => Err(QuoteClosed::Expired),
        }
    }

    /// The quote after the partner has rejected it.
    ///
    /// # Errors
    /// [`QuoteClosed`] unless it is active.
    pub fn reject(&self, now: Timestamp) -> Result<Self, QuoteClosed> {
        self.must_be_active(now)?;
        Ok(Self {
            fate: QuoteOutcome::Rejected(now),
            ..self.clone()
        })
    }

    /// The quote after it has been executed.
    ///
    /// # Errors
    /// [`QuoteClosed`] unless it is active.
    pub fn consume(&self, now: Timestamp) -> Result<Self, QuoteClosed> {
        self.must_be_active(now)?;
        Ok(Self {
            fate: QuoteOutcome::Consumed(now),
            ..self.clone()
        })
    }
}
