//! What an answer of a rail does to a record, and what it leaves for an operator.

use std::cmp::Ordering;
use std::time::Duration;

use kernel::Timestamp;

use super::report::{RETURNED, RailAnswer, RailReport, Received, Reported};
use super::{FailureReason, RailRecord, RailState, RailStep};

/// How long the rail is asked about a payment after its end.
pub const WATCHED_FOR: Duration = Duration::from_hours(30 * 24);
/// How often it is asked then.
pub const WATCH_INTERVAL: Duration = Duration::from_hours(24);
/// When it is asked again if it does not answer.
pub const WATCH_AGAIN: Duration = Duration::from_hours(1);

kernel::closed_list! {
    /// What an operator must look at: the rail has other money than the payment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Finding {
        /// Less than the payment's amount has arrived.
        Underpaid = "underpaid",
        /// More than the payment's amount has arrived.
        Overpaid = "overpaid",
        /// The rail has money of a payment that had failed or was cancelled.
        Late = "late",
        /// The money of a settled payment came back.
        Returned = "returned",
        /// The rail reports as failed or cancelled a payment that had settled.
        Retracted = "retracted",
    }
}

/// A note on a record for the operator. It changes no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenItem {
    pub finding: Finding,
    /// When the first report with this finding was applied.
    pub at: Timestamp,
}

/// An answer that cannot be true of its payment. It changes no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error("the rail reports a cancelled pay-out; a sent payment cannot be recalled")]
    CancelledPayOut,
    #[error(
        "the rail no longer knows a payment that it had acknowledged; it is asked again, and the payment never begins again"
    )]
    Forgotten,
    #[error("the rail reports a settled payment of which another amount has arrived")]
    OtherAmount,
    #[error("the rail reports an arrival in another currency, asset or network than the payment's")]
    OtherAsset,
    #[error("the rail's instructions differ from what the customer confirmed")]
    OtherTerms,
}

/// What an answer does to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The record after the answer. Its poll lease is unchanged.
    pub record: RailRecord,
    /// The finding, if the record did not have it before.
    pub found: Option<Finding>,
    pub contradiction: Option<Contradiction>,
}

impl RailRecord {
    /// Applies an answer to the record. The first answer that knows the payment is remembered: from then on the payment never begins
    /// again. A record that has ended keeps its state.
    #[must_use]
    pub fn progress(&self, answer: &RailAnswer, now: Timestamp) -> Progress {
        let mut after = self.clone();
        let contradiction = match answer {
            RailAnswer::Silent => None,
            RailAnswer::Accepted => {
                after.acknowledged_at.get_or_insert(now);
                None
            }
            RailAnswer::Unknown => {
                let has_begun =
                    self.acknowledged_at.is_some() && self.state == RailState::Processing;
                has_begun.then_some(Contradiction::Forgotten)
            }
            RailAnswer::Reported(reported) => {
                after.acknowledged_at.get_or_insert(now);
                after.take(reported, now).err()
            }
        };
        if after.state != self.state {
            after.watch_at = Some(now.plus(WATCH_INTERVAL));
        }
        let finding = |record: &Self| record.open_item.map(|item| item.finding);
        let found = finding(&after).filter(|_| finding(&after) != finding(self));
        Progress {
            record: after,
            found,
            contradiction,
        }
    }

    /// When the rail is asked next about a record that has ended, after an answer at this instant; `None` after the last time.
    #[must_use]
    pub fn next_watch(&self, now: Timestamp, pause: Duration) -> Option<Timestamp> {
        let next = now.plus(pause);
        let until = self.state.ended_at()?.plus(WATCHED_FOR);
        (next <= until).then_some(next)
    }

    fn take(&mut self, reported: &Reported, now: Timestamp) -> Result<(), Contradiction> {
        let receipt = reported.receipt.as_ref();
        let receipt = receipt.map(|receipt| receipt.of(&self.terms, now));
        if self.state != RailState::Processing {
            // Money that is not the payment's own says nothing about how much has arrived.
            let received = receipt
                .and_then(Result::ok)
                .filter(|it| !it.amount.is_zero());
            self.receive(received);
            let finding = self.after_end(&reported.report, received);
            self.note(finding, now);
            return Ok(());
        }
        let step = self.advance(&reported.report, now)?;
        let received = receipt.transpose()?;
        if let Some(received) = received {
            self.received = self.received.filter(|_| !received.amount.is_zero());
            self.receive(Some(received).filter(|it| !it.amount.is_zero()));
            self.note(self.difference(), now);
        }
        let differs = received.is_some_and(|received| received.against(&self.terms).is_ne());
        if differs && matches!(reported.report, RailReport::Settled { .. }) {
            return Err(Contradiction::OtherAmount);
        }
        if let Some(RailStep(state)) = step {
            self.state = state;
            self.note(self.at_end(), now);
            let is_short = self.difference() == Some(Finding::Underpaid);
            if is_short && self.state.settled_at().is_some() {
                // The rail says that the rest has arrived too.
                self.received = None;
            }
        }
        Ok(())
    }

    /// Stores what has arrived. The instant stays while the amount does.
    fn receive(&mut self, received: Option<Received>) {
        let is_news =
            received.is_some_and(|it| Some(it.amount) != self.received.map(|it| it.amount));
        if is_news {
            self.received = received;
        }
    }

    /// How what has arrived differs from what the customer pays.
    fn difference(&self) -> Option<Finding> {
        match self.received?.against(&self.terms) {
            Ordering::Less => Some(Finding::Underpaid),
            Ordering::Equal => None,
            Ordering::Greater => Some(Finding::Overpaid),
        }
    }

    /// What an operator must look at when a payment ends. A rail that settles has the whole amount, and perhaps more. One that reports a
    /// failure returns what has arrived. One that cancels says that nothing has arrived.
    fn at_end(&self) -> Option<Finding> {
        match self.state {
            RailState::Settled { .. } => self.difference().filter(|it| *it == Finding::Overpaid),
            RailState::Cancelled { .. } => self.received.map(|_| Finding::Late),
            RailState::Processing | RailState::Failed { .. } => None,
        }
    }

    /// What an operator must look at after a report about a record that has ended, and of what it says has arrived.
    fn after_end(&self, report: &RailReport, received: Option<Received>) -> Option<Finding> {
        use {RailReport as R, RailState as S};
        let before = self.open_item.map(|item| item.finding);
        let overpaid = self.difference().filter(|it| *it == Finding::Overpaid);
        let returned = before.filter(|it| *it == Finding::Returned);
        match (&self.state, report) {
            (S::Failed { .. } | S::Cancelled { .. }, R::Settled { .. }) => Some(Finding::Late),
            (S::Failed { .. } | S::Cancelled { .. }, R::InProgress) => {
                received.map(|_| Finding::Late).or(before)
            }
            // A cancellation does not return what the rail said has arrived.
            (S::Failed { .. } | S::Cancelled { .. }, R::Cancelled) => self.received.and(before),
            // The rail has returned late money.
            (S::Failed { .. } | S::Cancelled { .. }, R::Failed { .. } | R::Returned) => None,
            (S::Settled { .. }, R::Returned) => Some(Finding::Returned),
            (S::Settled { .. }, R::Failed { .. } | R::Cancelled) => {
                returned.or(Some(Finding::Retracted))
            }
            (S::Settled { .. }, R::Settled { .. }) => returned.or(overpaid),
            (S::Settled { .. }, R::InProgress) => before.or(overpaid),
            (S::Processing, _) => before,
        }
    }

    /// Replaces the note of the record, which keeps its instant while the finding stays.
    fn note(&mut self, finding: Option<Finding>, now: Timestamp) {
        let before = self.open_item.filter(|item| Some(item.finding) == finding);
        self.open_item = before.or_else(|| finding.map(|finding| OpenItem { finding, at: now }));
    }
}

/// The state of a payment that came back before its settlement was seen.
pub(super) fn came_back(at: Timestamp) -> RailState {
    RailState::Failed {
        at,
        code: RETURNED.to_owned(),
        reason: Some(FailureReason::Returned),
    }
}
