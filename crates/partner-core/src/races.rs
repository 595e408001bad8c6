//! Retries of transactions that lost a race.

use std::future::Future;

use kernel::StoreError;

/// Maximum runs of a transaction that loses races.
const TRIES: u32 = 3;

/// Runs a transaction again if it lost a race, three times at most.
///
/// # Errors
/// The error of the last run.
pub async fn retry_lost_races<T, E, F>(mut once: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: LostRace,
{
    let mut left = TRIES;
    loop {
        left = left.saturating_sub(1);
        match once().await {
            Err(error) if left > 0 && error.lost_race() => {}
            outcome => return outcome,
        }
    }
}

/// An error that may be a lost race.
pub trait LostRace {
    /// Whether the transaction was rolled back because it lost a race.
    fn lost_race(&self) -> bool;
}

impl LostRace for StoreError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Retry)
    }
}
