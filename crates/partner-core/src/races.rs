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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use kernel::StoreResult;

    use super::*;

    /// Runs a transaction with these outcomes. Returns the last one and how often it ran.
    fn run(outcomes: Vec<StoreResult<()>>) -> (StoreResult<()>, usize) {
        let mut outcomes = outcomes.into_iter();
        let mut runs = 0;
        let retrying = retry_lost_races(|| {
            runs += 1;
            std::future::ready(outcomes.next().unwrap())
        });
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(last) = pin!(retrying).poll(&mut context) else {
            panic!("the transaction waits");
        };
        (last, runs)
    }

    #[test]
    fn lost_race_is_run_again_three_times_at_most() {
        let lost = || Err(StoreError::Retry);
        assert!(matches!(run(vec![Ok(())]), (Ok(()), 1)));
        assert!(matches!(run(vec![lost(), lost(), Ok(())]), (Ok(()), 3)));
        let all = run(vec![lost(), lost(), lost(), Ok(())]);
        assert!(matches!(all, (Err(StoreError::Retry), 3)), "{all:?}");
    }

    #[test]
    fn other_error_is_not_run_again() {
        let failed = run(vec![Err(StoreError::Overloaded), Ok(())]);
        assert!(
            matches!(failed, (Err(StoreError::Overloaded), 1)),
            "{failed:?}"
        );
    }
}
