//! Firm quotes: executable once, for a short time.

use crate::profile::{Network, PoolId};
pub use kernel::rates::Side;
use kernel::{Amount, Id, Mid, Rate, Timestamp};

use crate::destination::Destination;

kernel::id_kind!(QuoteIdKind, "pq");

/// `pq_<mode>_<ULID>`.
pub type QuoteId = Id<QuoteIdKind>;

/// The terms that a quote locks. The trade of the quote has the same terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub pool: PoolId,
    pub side: Side,
    /// The chain the crypto leg moves on.
    pub network: Network,
    /// The fiat leg: paid on a purchase, received on a sale.
    pub fiat: Amount,
    /// The crypto leg: received on a purchase, sold on a sale.
    pub crypto: Amount,
    /// Output per unit of input, with spread and fee included.
    pub rate: Rate,
    /// The mid rate of the pricing, in units of the pool's crypto per unit of its fiat. `None` for quotes older than
    /// the column.
    pub mid: Option<Mid>,
    /// The spread in the rate, in basis points.
    pub spread_bps: u16,
    /// The draw fee in the rate, in basis points.
    pub fee_bps: u16,
    /// The order's value in units of 10^-8 USDT, rounded up. It counts for velocity.
    pub notional: i64,
    /// The delivery target of a purchase; `None` for a sale.
    pub destination: Option<Destination>,
}

impl Terms {
    /// The input leg: fiat on a purchase, crypto on a sale.
    #[must_use]
    pub const fn input(&self) -> Amount {
        match self.side {
            Side::OnRamp => self.fiat,
            Side::OffRamp => self.crypto,
        }
    }

    /// The output leg: crypto on a purchase, fiat on a sale.
    #[must_use]
    pub const fn output(&self) -> Amount {
        match self.side {
            Side::OnRamp => self.crypto,
            Side::OffRamp => self.fiat,
        }
    }
}

/// A firm quote: its terms, and the facts that determine its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The id. Trade and status refer to it.
    pub id: QuoteId,
    /// The locked terms.
    pub terms: Terms,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires. It is executable while `now < expires_at`.
    pub expires_at: Timestamp,
    /// The outcome.
    pub outcome: QuoteOutcome,
}

/// The stored outcome of a quote. Expiry is not stored: it follows from the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteOutcome {
    /// Neither executed nor rejected.
    Open,
    /// Executed at this instant. Exactly one trade exists.
    Consumed(Timestamp),
    /// Rejected by the partner at this instant.
    Rejected(Timestamp),
}

kernel::closed_list! {
    /// The status of a quote, as a partner reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum QuoteStatus {
        /// Executable.
        Active = "active",
        /// Executed.
        Consumed = "consumed",
        Expired = "expired",
        Rejected = "rejected",
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
    /// It has expired.
    #[error("the quote has expired")]
    Expired,
}

impl Quote {
    /// The status at an instant. Rejected and consumed have priority over expired, which starts at `expires_at`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> QuoteStatus {
        match self.outcome {
            QuoteOutcome::Rejected(_) => QuoteStatus::Rejected,
            QuoteOutcome::Consumed(_) => QuoteStatus::Consumed,
            QuoteOutcome::Open if now >= self.expires_at => QuoteStatus::Expired,
            QuoteOutcome::Open => QuoteStatus::Active,
        }
    }

    /// Checks that the quote is executable. `now` must be read after the quote's lock was taken.
    ///
    /// # Errors
    /// [`QuoteClosed`] names the quote's outcome or its expiry.
    pub fn must_be_active(&self, now: Timestamp) -> Result<(), QuoteClosed> {
        match self.status(now) {
            QuoteStatus::Active => Ok(()),
            QuoteStatus::Consumed => Err(QuoteClosed::Consumed),
            QuoteStatus::Rejected => Err(QuoteClosed::Rejected),
            QuoteStatus::Expired => Err(QuoteClosed::Expired),
        }
    }

    /// The quote after its rejection.
    ///
    /// # Errors
    /// [`QuoteClosed`] unless the quote is active.
    pub fn reject(&self, now: Timestamp) -> Result<Self, QuoteClosed> {
        self.must_be_active(now)?;
        Ok(Self {
            outcome: QuoteOutcome::Rejected(now),
            ..self.clone()
        })
    }

    /// The quote after its execution.
    ///
    /// # Errors
    /// [`QuoteClosed`] unless the quote is active.
    pub fn consume(&self, now: Timestamp) -> Result<Self, QuoteClosed> {
        self.must_be_active(now)?;
        Ok(Self {
            outcome: QuoteOutcome::Consumed(now),
            ..self.clone()
        })
    }
}
