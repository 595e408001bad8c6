//! Partners, and the tenant that every port requires.

use std::fmt;
use std::sync::Arc;

use kernel::Mode;

/// The operator's id of a partner: 1 to 64 of `a-z`, `0-9`, `_` and `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartnerId(Arc<str>);

impl PartnerId {
    /// Parses a partner's id; `None` if it does not match `[a-z0-9_-]{1,64}`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let letter = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        };
        ((1..=64).contains(&text.len()) && text.bytes().all(letter)).then(|| Self(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PartnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

kernel::debug_as_display!(PartnerId);

/// A partner in a mode, which determines the visible rows.
///
/// Every port that serves a partner takes a tenant, so another partner's object is absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant {
    pub partner: PartnerId,
    pub mode: Mode,
}

/// A partner as the operator has provisioned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partner {
    /// The operator's id.
    pub id: PartnerId,
    /// The name that people see.
    pub name: String,
    /// The organization's state.
    pub status: PartnerStatus,
}

kernel::closed_list! {
    /// The state of an organization. A suspended one is refused on every route.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PartnerStatus {
        /// The organization may use its products.
        Active = "active",
        /// Refused everywhere with `organization_suspended`.
        Suspended = "suspended",
    }
}
