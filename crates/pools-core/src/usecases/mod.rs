//! Use cases: what a partner or the operator can do with pools.

pub mod credit;
pub mod poll;
pub mod quoting;
pub mod reading;
pub mod reject;
pub mod transact;

use std::future::Future;

use kernel::StoreError;

/// Runs a whole transaction again, at most `tries` times in all, while it loses races.
async fn retry_lost_races<T, E, F>(tries: u32, mut once: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: LostRace,
{
    let mut left = tries;
    loop {
        left = left.saturating_sub(1);
        match once().await {
            Err(error) if left > 0 && error.lost_race() => {}
            outcome => return outcome,
        }
    }
}

/// An error that may be a lost race.
trait LostRace {
    /// Was the transaction rolled back because it lost a race?
    fn lost_race(&self) -> bool;
}

impl LostRace for StoreError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Retry)
    }
}
