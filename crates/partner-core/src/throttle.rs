//! Throttles: fixed windows, each opened by the first request in it.

use std::time::Duration;

/// One limit: so many requests in a window of this length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// The name in the headers: `short`, `medium`, `long`.
    pub name: &'static str,
    /// Requests admitted in one window.
    pub limit: u32,
    /// The window's length.
    pub per: Duration,
}

/// Whom a window counts: one credential or one address, on one route or group of routes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The route or group of routes, such as `pools`.
    pub group: &'static str,
    /// The credential's id or the client's address.
    pub who: String,
}

/// Where a bucket stands in one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The tier's name.
    pub tier: &'static str,
    /// Its limit.
    pub limit: u32,
    /// Requests still admitted in the present window.
    pub remaining: u32,
    /// Until the window closes; the whole window where none is open.
    pub reset: Duration,
    /// Did this tier refuse the request?
    pub exhausted: bool,
}

/// The answer of a throttle: where the bucket stands in each tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// One standing per tier, in the order asked.
    pub standings: Vec<Standing>,
}

impl Verdict {
    /// Was the request admitted by every tier?
    #[must_use]
    pub fn admitted(&self) -> bool {
        !self.standings.iter().any(|standing| standing.exhausted)
    }
}

/// Where requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// In this process, which shares with nobody.
    Alone,
    /// Together with the other replicas.
    Shared,
    /// In this process for now, because what the replicas share is away.
    Apart,
}
