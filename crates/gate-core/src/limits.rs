//! The limits of the gate's operations.

use std::collections::BTreeMap;

use partner_core::throttle::Tier;
use strum::VariantArray;

/// Operations that share a limit. Their requests count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum Group {
    /// `POST /gate_sessions`, per key.
    CreateSession,
    /// `POST /gate_sessions/{id}/cancel`, per key.
    CancelSession,
    /// `GET /gate_sessions`, per key.
    ListSessions,
    /// `GET /transactions`, per key.
    ListTransactions,
    /// `POST /quotes/preview`, per key.
    Preview,
    /// `GET /capabilities/*`, per key.
    Capabilities,
    /// `POST /embed/bootstrap` and `POST /embed/outcome`, per key and client network.
    Bootstrap,
    /// The same two, per key from all client networks together.
    BootstrapCeiling,
    /// Every call of a widget without its own limit, per token and client network, and per session and client network.
    Embed,
    /// `POST /embed/quotes`, counted in the same way.
    EmbedQuotes,
    /// `POST /embed/payments`, counted in the same way.
    EmbedPayments,
    /// Every other operation, and every response with 401 to a key, per client network.
    Global,
}

impl Group {
    /// The name of the group's buckets and the label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateSession => "create_session",
            Self::CancelSession => "cancel_session",
            Self::ListSessions => "list_sessions",
            Self::ListTransactions => "list_transactions",
            Self::Preview => "preview",
            Self::Capabilities => "capabilities",
            Self::Bootstrap | Self::BootstrapCeiling => "bootstrap",
            Self::Embed => "embed",
            Self::EmbedQuotes => "embed_quotes",
            Self::EmbedPayments => "embed_payments",
            Self::Global => "gate",
        }
    }
}

/// How many times the limit of one token all tokens of its session have together.
const SESSION_FACTOR: u32 = 3;
/// The tier that counts all tokens of a session.
const SESSION_TIER: &str = "medium";

/// The tiers of every group.
#[derive(Debug, Clone)]
pub struct Limits(BTreeMap<Group, Vec<Tier>>);

impl Limits {
    /// Asks for the tiers of each group.
    ///
    /// # Errors
    /// The first error of `tiers_of`.
    pub fn new<E>(tiers_of: impl Fn(Group) -> Result<Vec<Tier>, E>) -> Result<Self, E> {
        let groups = Group::VARIANTS.iter();
        let tiers: Result<_, E> = groups
            .map(|group| Ok((*group, tiers_of(*group)?)))
            .collect();
        tiers.map(Self)
    }

    /// The tiers of a group.
    #[must_use]
    pub fn of(&self, group: Group) -> &[Tier] {
        self.0.get(&group).map_or(&[], Vec::as_slice)
    }

    /// The tiers of all tokens of a session together, for a group whose own tiers count one token.
    #[must_use]
    pub fn of_session(&self, group: Group) -> Vec<Tier> {
        let of_token = self.of(group).iter();
        let tiers = of_token.map(|tier| Tier {
            name: SESSION_TIER,
            limit: tier.limit.saturating_mul(SESSION_FACTOR),
            per: tier.per,
        });
        tiers.collect()
    }

    /// Replaces the tiers of a group.
    pub fn set(&mut self, group: Group, tiers: Vec<Tier>) {
        self.0.insert(group, tiers);
    }
}
