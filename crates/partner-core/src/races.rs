//! Transactions that lose a race are run again.

use std::future::Future;

use kernel::StoreError;

/// How often a transaction is run in all while it loses races.
const TRIES: u32 = 3;

/// Runs a whole transaction again while it loses races.
///
/// # Errors
/// What the last run returns.
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
    /// Was the transaction rolled back because it lost a race?
    fn lost_race(&self) -> bool;
}

impl LostRace for StoreError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Retry)
    }
}
