//! Transactions: payments that a partner reconciles by a reference that it can quote to support.

use std::fmt;

use kernel::{Entropy, Id, Mode, Timestamp};

use crate::amount::SessionAmount;
use crate::session::{Flow, Session, SessionId};

kernel::id_kind!(TransactionIdKind, "tx");

/// `<mode>_tx_<ULID>`: the transaction's reference, also the list cursor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefId(Id<TransactionIdKind>);

impl RefId {
    /// Makes a new reference at an instant.
    #[must_use]
    pub fn new(mode: Mode, at: Timestamp, entropy: &dyn Entropy) -> Self {
        Self(Id::new(mode, at, entropy))
    }

    /// Parses the canonical form. `None` for any other text; in a path, that is 404.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mode, ulid) = text.split_once("_tx_")?;
        Id::parse(&format!("tx_{mode}_{ulid}")).map(Self)
    }

    /// The reference if it belongs to this mode.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Option<Self> {
        self.0.in_mode(mode).map(Self)
    }

    /// The inner id, which a store keeps.
    #[must_use]
    pub const fn id(&self) -> Id<TransactionIdKind> {
        self.0
    }
}

impl From<Id<TransactionIdKind>> for RefId {
    fn from(id: Id<TransactionIdKind>) -> Self {
        Self(id)
    }
}

impl fmt::Display for RefId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_tx_{}", self.0.mode(), self.0.ulid())
    }
}

kernel::debug_as_display!(RefId);

kernel::closed_list! {
    /// The status of a transaction, as a partner reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TransactionStatus {
        /// The payment is in progress.
        Processing = "processing",
        /// Paid and delivered.
        Completed = "completed",
        /// The payment failed.
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

/// The state of a transaction, with its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// The payment is in progress.
    Processing,
    /// Paid and delivered.
    Completed {
        /// When.
        at: Timestamp,
    },
    /// The payment failed.
    Failed,
    Cancelled,
}

impl TransactionState {
    /// The state for a stored status and its instant. `None` if they do not match.
    #[must_use]
    pub const fn stored(status: TransactionStatus, completed: Option<Timestamp>) -> Option<Self> {
        match (status, completed) {
            (TransactionStatus::Processing, None) => Some(Self::Processing),
            (TransactionStatus::Completed, Some(at)) => Some(Self::Completed { at }),
            (TransactionStatus::Failed, None) => Some(Self::Failed),
            (TransactionStatus::Cancelled, None) => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// The status a partner reads.
    #[must_use]
    pub const fn status(&self) -> TransactionStatus {
        match self {
            Self::Processing => TransactionStatus::Processing,
            Self::Completed { .. } => TransactionStatus::Completed,
            Self::Failed => TransactionStatus::Failed,
            Self::Cancelled => TransactionStatus::Cancelled,
        }
    }

    /// When it was completed, if it was.
    #[must_use]
    pub const fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Completed { at } => Some(*at),
            Self::Processing | Self::Failed | Self::Cancelled => None,
        }
    }
}

/// A transaction: a payment of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its reference.
    pub refid: RefId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The flow.
    pub action: Flow,
    pub state: TransactionState,
    /// The asset.
    pub token: Option<String>,
    /// The chain it moves on.
    pub network: Option<String>,
    /// The fiat currency.
    pub currency: String,
    /// The payment or payout method.
    pub payment_method: Option<String>,
    /// The fiat leg.
    pub fiat_amount: Option<String>,
    /// The crypto leg.
    pub token_amount: Option<String>,
    /// Output per unit of input, before fees.
    pub exchange_rate: Option<String>,
    /// The total of the fees, in the fiat currency.
    pub total_fees: Option<String>,
    /// The id of the rail record.
    pub local_rail_transaction_id: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Transaction {
    /// The transaction of a session that was completed or failed without a rail. It has the terms of the session; the
    /// fields of a payment are empty.
    #[must_use]
    pub fn of_session(
        session: &Session,
        refid: RefId,
        state: TransactionState,
        at: Timestamp,
    ) -> Self {
        let terms = &session.terms;
        Self {
            refid,
            session: session.id,
            action: terms.flow.unwrap_or(Flow::OnRamp),
            state,
            token: terms.target_token.clone(),
            network: terms.target_network.clone(),
            currency: terms.currency.code().to_owned(),
            payment_method: None,
            fiat_amount: Some(SessionAmount::as_str(&terms.amount).to_owned()),
            token_amount: None,
            exchange_rate: None,
            total_fees: None,
            local_rail_transaction_id: None,
            created_at: at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    // rule: gate.transaction.refid
    #[test]
    fn reference_starts_with_its_mode() {
        let at = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let refid = RefId::new(Mode::Live, at, &Ones);
        let text = refid.to_string();
        assert!(text.starts_with("live_tx_01HF7YAT00"), "{text}");
        assert_eq!(RefId::parse(&text), Some(refid));
        assert_eq!(refid.in_mode(Mode::Test), None);
        for bad in [
            "",
            "tx_live_01HF7YAT00408104G208104081",
            "prod_tx_01HF7YAT00408104G208104081",
            "live_tx_01hf7yat00408104g208104081",
            "live_tx_",
            "live_tx_live_tx_01HF7YAT00408104G208104081",
        ] {
            assert_eq!(RefId::parse(bad), None, "{bad}");
        }
    }

    // rule: gate.transaction.completed-at
    #[test]
    fn only_completed_transaction_has_instant() {
        let at = Timestamp::from_millis(5).unwrap();
        assert_eq!(TransactionState::Completed { at }.completed_at(), Some(at));
        for other in [
            TransactionState::Processing,
            TransactionState::Failed,
            TransactionState::Cancelled,
        ] {
            assert_eq!(other.completed_at(), None);
        }
        for status in TransactionStatus::ALL {
            assert_eq!(TransactionStatus::parse(status.as_str()), Some(status));
        }
    }
}
