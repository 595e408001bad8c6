//! Background tasks that work on what is due of many partners: they expire sessions, and ask the rail and the verifier.
//!
//! One partner delays no other. Each read takes the longest due objects of every partner, the concurrent calls are divided evenly among
//! partners, and a partner whose rows another transaction has locked is left out for a while. An object that cannot be read or
//! changed is left out too.

mod schedule;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gate_core::due::DueShare;
use gate_core::error::GateError;
use gate_core::events::EventError;
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::context::GateContext;
use gate_core::usecases::watch_rails::WatchRails;
use instruments::faults;
use kernel::{Mode, Readable, StoreError, StoreResult, causes};
use partner_core::Tenant;
use partner_core::ports::Readiness;
use partner_core::sealing::SealRefused;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use schedule::{Limits, Outcome, Schedule};

/// Interval between two polls of an external system.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The limits of a poll.
const POLL_LIMITS: Limits = Limits {
    calls: 32,
    is_serial: false,
    read: 128,
    read_of_partner: 32,
};
/// Interval between two reads of what is watched. A notification makes a record due at once.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The limits of a watch.
const WATCH_LIMITS: Limits = Limits {
    calls: 8,
    is_serial: false,
    read: 128,
    read_of_partner: 32,
};
/// The limits of the sweep. A partner's sessions expire one after another, because each locks the partner.
const SWEEP_LIMITS: Limits = Limits {
    calls: 4,
    is_serial: true,
    read: 128,
    read_of_partner: 32,
};
/// Pause before a read that continues the previous one, because requests have priority.
const PAUSE: Duration = Duration::from_millis(10);
/// What a task logs if a read or a call fails.
const RAIL_FAILED: &str = "Failed to ask the rail about a record; it is asked again";
const VERIFIER_FAILED: &str =
    "Failed to ask the verifier about a pending verification; it is asked again";
const SESSION_FAILED: &str = "Failed to expire sessions";
/// How long an unreadable row is not logged again.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Asks the rail about its open records, until `stop`.
pub async fn settle_rails(
    settling: AdvanceRails,
    mode: Mode,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let due = |share: DueShare| {
        let settling = settling.clone();
        async move { settling.due(mode, &share).await }
    };
    let advance = |who: Tenant, id| {
        let settling = settling.clone();
        async move { settling.advance(&who, id).await }
    };
    let hangs = |who: &Tenant| settling.polls_hang(who);
    let task = Task::new(RAIL_FAILED, POLL_INTERVAL, POLL_LIMITS, readiness);
    task.run(due, advance, hangs, &stop).await;
}

/// Asks the rail about records that have ended, until `stop`.
pub async fn watch_rails(
    watching: WatchRails,
    mode: Mode,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let due = |share: DueShare| {
        let watching = watching.clone();
        async move { watching.due(mode, &share).await }
    };
    let advance = |who: Tenant, id| {
        let watching = watching.clone();
        async move { watching.watch(&who, id).await }
    };
    let hangs = |who: &Tenant| watching.polls_hang(who);
    let task = Task::new(RAIL_FAILED, WATCH_INTERVAL, WATCH_LIMITS, readiness);
    task.run(due, advance, hangs, &stop).await;
}

/// Asks the verifier about pending verifications, until `stop`.
pub async fn settle_verifications(
    settling: AdvanceVerifications,
    mode: Mode,
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let due = |share: DueShare| {
        let settling = settling.clone();
        async move { settling.due(mode, &share).await }
    };
    let advance = |who: Tenant, id| {
        let settling = settling.clone();
        async move { settling.advance(&who, id).await }
    };
    let hangs = |who: &Tenant| settling.polls_hang(who);
    let task = Task::new(VERIFIER_FAILED, POLL_INTERVAL, POLL_LIMITS, readiness);
    task.run(due, advance, hangs, &stop).await;
}

/// Expires overdue gate sessions that were not read since they were due, until `stop`.
pub async fn sweep_sessions(
    sessions: GateContext,
    (mode, interval): (Mode, Duration),
    readiness: Arc<dyn Readiness>,
    stop: CancellationToken,
) {
    let expired = Arc::new(AtomicU64::new(0));
    let due = |share: DueShare| {
        let count = expired.swap(0, Ordering::Relaxed);
        if count > 0 {
            tracing::debug!(sessions.expired = count, "Sessions expired");
        }
        let sessions = sessions.clone();
        async move { sessions.overdue(mode, &share).await }
    };
    let advance = |who: Tenant, id| {
        let (sessions, expired) = (sessions.clone(), Arc::clone(&expired));
        async move {
            let ended = sessions.expire_if_due(&who, id).await.map(drop);
            if ended.is_ok() {
                expired.fetch_add(1, Ordering::Relaxed);
            }
            ended
        }
    };
    let task = Task::new(SESSION_FAILED, interval, SWEEP_LIMITS, readiness);
    task.run(due, advance, |_| false, &stop).await;
}

/// Logs the failure of a read, or of a call about an object of a partner. The object is a rail record or a session.
fn log_failure(
    message: &str,
    who: Option<&Tenant>,
    id: Option<&dyn fmt::Display>,
    error: &GateError,
) {
    let (rail, session) = match message {
        RAIL_FAILED => (id, None),
        _ => (None, id),
    };
    tracing::warn!(
        partner.id = who.map(|who| who.partner.as_str()),
        rail.id = rail.map(tracing::field::display),
        session.id = session.map(tracing::field::display),
        error.chain = causes(error),
        "{message}"
    );
}

/// The end of a call.
struct Ended<I> {
    who: Tenant,
    id: I,
    result: Result<(), GateError>,
    outcome: Outcome,
}

/// A task that reads what is due and makes calls about it.
struct Task<I> {
    /// The message about a failure.
    failed: &'static str,
    /// Interval between two reads.
    interval: Duration,
    limits: Limits,
    readiness: Arc<dyn Readiness>,
    schedule: Schedule<I>,
    calls: JoinSet<Ended<I>>,
    next_read: Instant,
    logged: LoggedErrors,
}

impl<I: Copy + Ord + fmt::Display + Send + 'static> Task<I> {
    fn new(
        failed: &'static str,
        interval: Duration,
        limits: Limits,
        readiness: Arc<dyn Readiness>,
    ) -> Self {
        Self {
            failed,
            interval,
            limits,
            readiness,
            schedule: Schedule::new(limits),
            calls: JoinSet::new(),
            next_read: Instant::now(),
            logged: LoggedErrors::default(),
        }
    }

    /// Runs until `stop`, and then until the running calls have ended. `hangs` returns whether the last calls about a partner's objects
    /// all timed out.
    async fn run<D, A>(
        mut self,
        due: impl Fn(DueShare) -> D,
        advance: impl Fn(Tenant, I) -> A,
        hangs: impl Fn(&Tenant) -> bool,
        stop: &CancellationToken,
    ) where
        D: Future<Output = StoreResult<Readable<(Tenant, I)>>>,
        A: Future<Output = Result<(), GateError>> + Send + 'static,
    {
        while !stop.is_cancelled() {
            let now = Instant::now();
            while let Some((who, id)) = self.schedule.start_next(now, &hangs) {
                let advancing = advance(who.clone(), id);
                self.start(who, id, advancing);
            }
            if self.schedule.wants_read() {
                self.next_read = self.next_read.min(now + PAUSE);
            }
            let retry = self.schedule.next_retry(now);
            let wake = retry.map_or(self.next_read, |retry| retry.min(self.next_read));
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = self.calls.join_next() => self.ended(ended),
                () = sleep_until(wake), if self.calls.len() < self.limits.calls => {
                    if Instant::now() >= self.next_read {
                        self.read(&due).await;
                    }
                }
            }
        }
        while let Some(ended) = self.calls.join_next().await {
            self.ended(ended);
        }
    }

    fn start(
        &mut self,
        who: Tenant,
        id: I,
        advancing: impl Future<Output = Result<(), GateError>> + Send + 'static,
    ) {
        let readiness = Arc::clone(&self.readiness);
        self.calls.spawn(async move {
            let result = advancing.await;
            let outcome = match outcome(&result) {
                Some(outcome) => outcome,
                None => match readiness.ready().await {
                    Ok(()) => Outcome::PartnerLocked,
                    Err(_) => Outcome::StoreUnavailable,
                },
            };
            Ended {
                who,
                id,
                result,
                outcome,
            }
        });
    }

    async fn read<D>(&mut self, due: impl Fn(DueShare) -> D)
    where
        D: Future<Output = StoreResult<Readable<(Tenant, I)>>>,
    {
        let share = self.schedule.share();
        match due(share.clone()).await {
            Ok(Readable { rows, unreadable }) => {
                let now = Instant::now();
                for error in &unreadable {
                    self.logged.log(error, now);
                }
                self.schedule.absorb(&share, rows, unreadable.len(), now);
            }
            Err(error) => {
                faults::of_store(&error);
                log_failure(self.failed, None, None, &GateError::Store(error));
                self.schedule.forget_read();
            }
        }
        self.next_read = Instant::now() + self.interval;
    }

    fn ended(&mut self, ended: Result<Ended<I>, tokio::task::JoinError>) {
        let Ended {
            who,
            id,
            result,
            outcome,
        } = match ended {
            Ok(ended) => ended,
            Err(end) if end.is_panic() => std::panic::resume_unwind(end.into_panic()),
            // The tokio runtime is shutting down.
            Err(_) => return,
        };
        if let Err(GateError::Store(error)) = &result {
            faults::of_store(error);
        }
        let is_news = self.schedule.ended(&who, id, outcome, Instant::now());
        if let Err(error) = result
            && is_news
        {
            log_failure(self.failed, Some(&who), Some(&id), &error);
        }
    }
}

/// The outcome of a call. `None` if the store was unavailable for it: for one partner, or for every partner.
fn outcome(result: &Result<(), GateError>) -> Option<Outcome> {
    match result {
        Ok(()) => Some(Outcome::Done),
        // The store is ready, but had no room for the call.
        Err(GateError::Store(error)) if error.is_busy() => Some(Outcome::StoreUnavailable),
        Err(GateError::Store(error)) => match error {
            StoreError::Retry => Some(Outcome::LostRaces),
            StoreError::Unavailable(_) | StoreError::Overloaded | StoreError::CommitUnknown(_) => {
                None
            }
            StoreError::Inconsistent { .. } | StoreError::Guard(_) | StoreError::Unexpected(_) => {
                Some(Outcome::ObjectFailed)
            }
        },
        // Nothing is sealed for any partner.
        Err(GateError::Event(EventError::Unsealed(
            SealRefused::NotHeld | SealRefused::Unconfirmed,
        ))) => Some(Outcome::StoreUnavailable),
        Err(GateError::Response(_) | GateError::Event(_) | GateError::Unsigned(_)) => {
            Some(Outcome::ObjectFailed)
        }
    }
}

/// The errors of unreadable rows that were logged within the last [`LOG_INTERVAL`].
#[derive(Debug, Default)]
struct LoggedErrors(BTreeMap<String, Instant>);

impl LoggedErrors {
    /// Counts and logs an error, unless that was done a short time ago. Returns whether it was done.
    fn log(&mut self, error: &StoreError, now: Instant) -> bool {
        self.0.retain(|_, at| now < *at + LOG_INTERVAL);
        let chain = causes(error);
        if self.0.contains_key(&chain) {
            return false;
        }
        faults::of_store(error);
        tracing::error!(
            error.chain = chain,
            "A row cannot be read; it is left out. Run `penstock verify`"
        );
        self.0.insert(chain, now);
        true
    }
}

#[cfg(test)]
mod tests;
