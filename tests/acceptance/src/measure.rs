//! Spans, medians and percentiles.
#![expect(clippy::float_arithmetic, reason = "figures of a benchmark, not money")]

use std::time::{Duration, Instant};

/// Measures one duration.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark measures durations on the machine's clock"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// How much later this watch started than another.
    pub fn since(self, earlier: &Self) -> Duration {
        self.0.duration_since(earlier.0)
    }
}

/// The middle value, or the mean of the two middle values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let high = sorted.get(middle).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 {
        return high;
    }
    let low = middle
        .checked_sub(1)
        .and_then(|place| sorted.get(place).copied())
        .unwrap_or(f64::NAN);
    (low + high) / 2.0
}

/// The latency at this percentile.
pub fn percentile(latencies: &mut [Duration], share: usize) -> Duration {
    latencies.sort_unstable();
    let place = (latencies.len() * share / 100).min(latencies.len().saturating_sub(1));
    latencies.get(place).copied().unwrap_or_default()
}

/// Transactions per second from pgbench's line `tps = 1234.567 (without initial connection time)`.
#[must_use]
pub fn pgbench_rate(output: &str) -> Option<f64> {
    let rest = output
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{median, percentile, pgbench_rate};

    #[test]
    fn median_is_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn percentile_is_one_of_the_values() {
        let mut spans: Vec<Duration> = (0..100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut spans, 50), Duration::from_millis(50));
        assert_eq!(percentile(&mut spans, 99), Duration::from_millis(99));
        assert_eq!(percentile(&mut [], 50), Duration::ZERO);
    }

    #[test]
    fn pgbench_rate_reads_the_tps_line() {
        let output = "latency average = 2.1 ms\ntps = 1234.5 (without initial connection time)\n";
        assert_eq!(pgbench_rate(output), Some(1234.5));
        assert_eq!(pgbench_rate("no such line"), None);
    }
}
