//! Steps of deliveries: which rows change, and how.

use std::fmt;

use kernel::{Mode, StoreError, StoreResult, Timestamp};
use partner_core::ports::ConcludedDelivery;
use partner_core::webhooks::delivery::{AttemptOutcome, DeliveryInput, Progress};

use super::{Facts, QueueTx, progress};
use crate::Row;

/// The state of a stored delivery, with the key of its row.
#[derive(Debug)]
pub struct Stored<K> {
    pub key: K,
    pub progress: Progress,
}

impl<K> Stored<K> {
    /// The instant of the next attempt, in milliseconds, if the delivery waits for one.
    #[must_use]
    pub fn due(&self) -> Option<i64> {
        Facts::of(self.progress.state).due
    }
}

pub(super) fn stored<T: QueueTx>(row: &dyn Row) -> StoreResult<Stored<T::Key>> {
    Ok(Stored {
        key: T::key_of(row)?,
        progress: progress(row)?,
    })
}

/// A step of a delivery.
#[derive(Debug)]
pub struct Step<'c, K> {
    pub mode: Mode,
    pub key: K,
    pub change: Change<'c>,
}

/// The change of a row: the expected state, and the columns after the step. Many deliveries of a claim or a batch change in the same
/// way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change<'c> {
    pub was: &'static str,
    pub had: Option<i64>,
    pub status: &'static str,
    pub attempts: u32,
    pub due: Option<i64>,
    pub former: Option<i64>,
    pub token: Option<i64>,
    pub until: Option<i64>,
    pub delivered: Option<i64>,
    /// The status and error of a concluded attempt. They replace those of the previous attempt.
    pub report: Option<(Option<u16>, Option<&'c str>)>,
}

impl<'c, K: Clone + fmt::Display> Step<'c, K> {
    pub(super) fn new(mode: Mode, stored: &Stored<K>, next: Progress) -> Self {
        let facts = Facts::of(next.state);
        let change = Change {
            was: stored.progress.state.as_str(),
            had: Facts::of(stored.progress.state).token,
            status: next.state.as_str(),
            attempts: next.attempts,
            due: facts.due,
            former: next.former.map(Timestamp::millis),
            token: facts.token,
            until: facts.until,
            delivered: facts.delivered,
            report: None,
        };
        let key = stored.key.clone();
        Self { mode, key, change }
    }

    /// A step whose preconditions the statement that found the row has checked.
    pub(super) fn decided(
        mode: Mode,
        stored: &Stored<K>,
        input: DeliveryInput,
        now: Timestamp,
    ) -> StoreResult<Self> {
        let next = stored.progress.advance(input, now);
        next.map(|next| Self::new(mode, stored, next))
            .ok_or_else(|| {
                let key = &stored.key;
                StoreError::Guard(format!("deliveries: row {key} cannot take this step"))
            })
    }

    pub(super) fn with_report(mut self, concluded: &'c ConcludedDelivery) -> Self {
        if concluded.outcome != AttemptOutcome::Released {
            let error = concluded.error.as_deref();
            self.change.report = Some((concluded.response_status, error));
        }
        self
    }
}
