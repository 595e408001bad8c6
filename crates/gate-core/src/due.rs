//! Shares of what is due: background tasks read it partner by partner, so that one partner never fills a read.

use partner_core::PartnerId;

/// The share of the due objects that one read returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueShare {
    /// Only partners whose ids are after this one.
    pub after: Option<PartnerId>,
    /// Maximum objects of one partner, those that have been due for the longest.
    pub of_each: u32,
    /// Maximum objects in all.
    pub limit: u32,
}

impl DueShare {
    /// At most this many objects of each partner.
    #[must_use]
    pub const fn of_each(of_each: u32) -> Self {
        Self {
            after: None,
            of_each,
            limit: u32::MAX,
        }
    }
}
