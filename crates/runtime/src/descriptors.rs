//! The limit of open file descriptors, of which each connection takes one.

use http_kit::Bounds;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Descriptors for everything but the public listeners and the database pool: up to 512 deliveries in flight and 256 calls of an
/// upstream, files, and the listener of the metrics. If the limit is low, half of it suffices.
const OTHER_DESCRIPTORS: usize = 1024;
/// The highest limit that macOS accepts for a process, also if the hard limit is higher.
const MACOS_MAX: u64 = 10_240;

/// The limit is too low for the configured connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    limit: usize,
    needed: usize,
    connections: usize,
}

impl Shortage {
    /// Logs the limit, what the configuration needs, and how many connections each listener serves.
    pub fn warn(&self) {
        tracing::warn!(
            descriptors.limit = self.limit,
            descriptors.needed = self.needed,
            http.connections = self.connections,
            "The limit of open files is too low for PENSTOCK_CONNECTIONS, so each public listener serves fewer connections. \
             Raise the hard limit (LimitNOFILE, ulimit -Hn), or lower PENSTOCK_CONNECTIONS"
        );
    }
}

/// Raises the soft limit to the hard limit. If the hard limit is too low for the connections of this many public listeners, lowers
/// `config.connections`, so that a descriptor remains for each health check.
pub fn provide(config: &mut Config, listeners: usize) -> Option<Shortage> {
    let limit = usize::try_from(raise_limit()?).unwrap_or(usize::MAX);
    let pool = usize::try_from(config.database_pool).unwrap_or(usize::MAX);
    let shortage = shortage(limit, config.connections, listeners, pool)?;
    config.connections = shortage.connections;
    Some(shortage)
}

/// Raises the soft limit as far as the system permits, and returns the limit. `None` if there is no limit.
fn raise_limit() -> Option<u64> {
    let limits = getrlimit(Resource::Nofile);
    let soft = limits.current?;
    let hard = limits.maximum.unwrap_or(u64::MAX);
    let raised = [limits.maximum, Some(hard.min(MACOS_MAX))]
        .into_iter()
        .filter(|wanted| wanted.is_none_or(|wanted| wanted > soft))
        .find(|wanted| {
            let current = *wanted;
            setrlimit(Resource::Nofile, Rlimit { current, ..limits }).is_ok()
        });
    raised.unwrap_or(Some(soft))
}

/// How many connections each listener can serve; `None` if it can serve the configured number.
fn shortage(limit: usize, connections: usize, listeners: usize, pool: usize) -> Option<Shortage> {
    let spare = Bounds::default().spare_descriptors();
    let others = OTHER_DESCRIPTORS.saturating_add(pool);
    let share = (limit - others.min(limit / 2)) / listeners.max(1);
    // With a very low limit, health checks have less than their share.
    let possible = share.saturating_sub(spare).max(share / 4).max(1);
    (possible < connections).then(|| Shortage {
        limit,
        needed: connections
            .saturating_add(spare)
            .saturating_mul(listeners)
            .saturating_add(others),
        connections: possible,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: base.descriptors
    #[test]
    fn connections_are_lowered_to_what_the_limit_allows() {
        let possible = |limit, connections, listeners| {
            let shortage = shortage(limit, connections, listeners, 8)?;
            Some((shortage.needed, shortage.connections))
        };
        for (limit, connections, listeners, expected) in [
            (65_536, 8192, 2, None),
            (20_000, 8192, 2, None),
            (9_416, 8192, 1, None),
            (9_415, 8192, 1, Some((9_416, 8191))),
            (4_096, 8192, 1, Some((9_416, 2_872))),
            (4_096, 8192, 2, Some((17_800, 1_340))),
            (1_024, 8192, 1, Some((9_416, 320))),
            (1_024, 320, 1, None),
            (256, 8192, 1, Some((9_416, 32))),
            (0, 8192, 1, Some((9_416, 1))),
        ] {
            assert_eq!(possible(limit, connections, listeners), expected, "{limit}");
        }
    }

    // rule: base.descriptors
    #[test]
    fn soft_limit_is_the_hard_limit_afterwards() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_limit(), hard);
        assert_eq!(getrlimit(Resource::Nofile).current, hard);
        assert_eq!(raise_limit(), hard, "a second call changes nothing");
    }
}
