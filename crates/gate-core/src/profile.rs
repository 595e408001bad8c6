//! What the operator provisions for the gate product.

use std::collections::BTreeSet;

use partner_core::Profile;
use partner_core::origin::AllowedDomain;
use partner_core::throttle::Tier;

use crate::merchant::Merchant;

/// The name of a limit of one tier in the headers.
const TIER: &str = "short";

/// Reads how often sessions may be created, such as `100/60s`.
#[must_use]
pub fn create_session_limit(text: &str) -> Option<Tier> {
    Tier::parse(TIER, text)
}

/// A partner's access to the gate product.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateProfile {
    /// Is the product on for this partner?
    pub enabled: bool,
    /// Where its pages live: what may bootstrap, and where sessions may lead back to.
    pub allowed_domains: BTreeSet<AllowedDomain>,
    /// May it lock a session to one flow?
    pub flow_sessions: bool,
    /// Is the verification it has done of its users taken over?
    pub kyc_trusted: bool,
    /// Is it entitled to signed quotes and rails?
    pub rails: bool,
    /// Are its quote previews locked for a session to use?
    pub preview_locks: bool,
    /// The most live sessions it may create in a calendar month; `None`: unlimited.
    pub live_session_quota: Option<u64>,
    /// How often each of its keys may create sessions; `None`: the service's limit.
    pub create_session_limit: Option<Tier>,
    /// Who takes the money of its sessions.
    pub merchant: Merchant,
}

impl Profile for GateProfile {
    /// Every domain that an active partner allows.
    type Listing = BTreeSet<AllowedDomain>;
    const LISTING: &'static str = "origins";
}
