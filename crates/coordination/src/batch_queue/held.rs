//! Partners whose commands a batch could not run: their rows are locked, or their commands failed.
//!
//! A held partner's commands keep their order and wait outside the queue. The queue's own batches retry them a few times,
//! after short backoffs. After that a separate run waits for the lock, so that a partner whose row is nearly always locked
//! makes progress too. If two separate runs fail, everything that waits for the partner is refused. A separate run that
//! finds the store busy does not count: the partner lines up again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use instruments::faults;
use kernel::{StoreError, causes};
use partner_core::Tenant;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{
    Batch, BatchQueueOptions, Executor, FAILED_BEFORE, Locks, MAX_UNAVAILABLE, Unanswered, Waiting,
    caught, refuse, send,
};

/// Retries of a locked partner in the queue's own batches.
const MAX_BATCH_RETRIES: u32 = 4;
/// Backoff before the first of these retries. Each further backoff is twice as long.
const FIRST_BACKOFF: Duration = Duration::from_millis(1);
/// Everything that waits for a partner is refused after this long without a success.
const LONGEST_HELD: Duration = Duration::from_secs(5);

/// The held partners of one queue.
pub(super) struct HeldPartners<C, R> {
    options: BatchQueueOptions,
    partners: HashMap<Tenant, Held<C, R>>,
    /// Partners that wait for a separate run, the longest waiting first.
    line: VecDeque<Tenant>,
    separate_runs: JoinSet<SeparateRun<C, R>>,
}

struct Held<C, R> {
    waiting: VecDeque<Waiting<C, R>>,
    stage: Stage,
    tries: u32,
    /// Separate runs that found the store unavailable and not busy, since the last success.
    failures: u32,
    /// The instant of the last success, or else of the hold.
    since: Instant,
}

/// The next step of a held partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The queue's next batch after this instant retries the partner.
    Backoff(Instant),
    /// Some of the partner's commands are in the queue's batch.
    InBatch,
    /// The partner waits for a separate run, or is in one.
    SeparateRun,
}

/// A separate run that has ended.
pub(super) struct SeparateRun<C, R> {
    partner: Tenant,
    unanswered: Unanswered<C, R>,
}

impl<C, R> HeldPartners<C, R>
where
    C: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    pub(super) fn new(options: BatchQueueOptions) -> Self {
        Self {
            options,
            partners: HashMap::new(),
            line: VecDeque::new(),
            separate_runs: JoinSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partners.is_empty()
    }

    /// The number of commands that wait here.
    pub(super) fn len(&self) -> usize {
        self.partners.values().map(|held| held.waiting.len()).sum()
    }

    /// Returns a command of a partner that is not held. Keeps a command of a held partner after the partner's other
    /// commands, or refuses it if too many wait.
    pub(super) fn admit(
        &mut self,
        one: Waiting<C, R>,
        executor: &Executor<C, R>,
    ) -> Option<Waiting<C, R>> {
        if self.partners.is_empty() {
            return Some(one);
        }
        let all = self.len();
        let Some(held) = self.partners.get_mut((executor.partner_of)(&one.command)) else {
            return Some(one);
        };
        if held.waiting.len() < self.options.max_held && all < self.options.queue {
            held.waiting.push_back(one);
        } else {
            executor.metrics.refused_held();
            send(one.ticket.reply, Err(StoreError::Overloaded));
        }
        None
    }

    /// The earliest instant at which a partner is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |held: &Held<C, R>| match held.stage {
            Stage::Backoff(due) => Some(due),
            Stage::InBatch | Stage::SeparateRun => None,
        };
        self.partners.values().filter_map(due).min()
    }

    /// Takes the commands that are due, at most `limit`.
    pub(super) fn take_due(&mut self, limit: usize) -> Batch<C, R> {
        let mut batch = Vec::new();
        if self.partners.is_empty() {
            return batch;
        }
        let now = Instant::now();
        for held in self.partners.values_mut() {
            let free = limit.saturating_sub(batch.len());
            if free > 0 && matches!(held.stage, Stage::Backoff(due) if due <= now) {
                let count = free.min(held.waiting.len());
                batch.extend(held.waiting.drain(..count));
                held.stage = Stage::InBatch;
            }
        }
        batch
    }

    /// Takes back the unanswered commands of a batch. The other held partners of the batch succeeded.
    pub(super) fn absorb_batch(&mut self, unanswered: Unanswered<C, R>, executor: &Executor<C, R>) {
        let Unanswered { locked, failed } = unanswered;
        for (partner, commands) in by_partner(locked, executor) {
            let held = self.put_back(&partner, commands);
            held.tries = held.tries.saturating_add(1);
            if held.tries <= MAX_BATCH_RETRIES {
                let backoff = FIRST_BACKOFF * 2_u32.saturating_pow(held.tries - 1);
                held.stage = Stage::Backoff(Instant::now() + backoff);
            } else {
                self.line_up(partner);
            }
        }
        let failed = failed.map(|(commands, _)| by_partner(commands, executor));
        for (partner, commands) in failed.into_iter().flatten() {
            self.put_back(&partner, commands);
            self.line_up(partner);
        }
        let in_batch = self.partners.iter();
        let in_batch = in_batch.filter(|(_, held)| held.stage == Stage::InBatch);
        let succeeded: Vec<Tenant> = in_batch.map(|(partner, _)| partner.clone()).collect();
        for partner in succeeded {
            self.succeeded(&partner);
        }
    }

    /// Starts separate runs, as many as the options allow.
    pub(super) fn start_separate_runs(&mut self, executor: &Arc<Executor<C, R>>) {
        while self.separate_runs.len() < self.options.separate_runs.max(1) {
            let Some(partner) = self.line.pop_front() else {
                return;
            };
            let Some(held) = self.partners.get_mut(&partner) else {
                continue;
            };
            if held.since.elapsed() > LONGEST_HELD {
                self.refuse(&partner);
                continue;
            }
            let count = held.waiting.len().min(self.options.max_batch.max(1));
            let batch: Batch<C, R> = held.waiting.drain(..count).collect();
            let executor = Arc::clone(executor);
            self.separate_runs.spawn(async move {
                let ran = caught(executor.run_batch(batch, Locks::Wait)).await;
                let unanswered = ran.unwrap_or_else(|_| Unanswered::locked(Vec::new()));
                SeparateRun {
                    partner,
                    unanswered,
                }
            });
        }
    }

    /// Waits for the next separate run to end, or forever without one.
    pub(super) async fn separate_run_ended(&mut self) -> SeparateRun<C, R> {
        match self.separate_runs.join_next().await {
            Some(Ok(run)) => run,
            // There is no separate run, or the tokio runtime is shutting down.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Takes back the unanswered commands of a separate run.
    pub(super) fn absorb(&mut self, run: SeparateRun<C, R>) {
        let SeparateRun {
            partner,
            unanswered,
        } = run;
        let Some((commands, error)) = unanswered.failed else {
            self.succeeded(&partner);
            return;
        };
        let name = self.options.name;
        let held = self.put_back(&partner, commands);
        let counts = !error.is_busy();
        held.failures = held.failures.saturating_add(u32::from(counts));
        if held.failures < MAX_UNAVAILABLE && held.since.elapsed() <= LONGEST_HELD {
            self.line_up(partner);
            return;
        }
        faults::of_store(&error);
        tracing::warn!(
            lane.name = name,
            partner.id = partner.partner.as_str(),
            lane.held = held.waiting.len(),
            error.chain = causes(&error),
            "Refusing the commands of one partner, because its row stays locked, its commands fail or the store stays busy"
        );
        self.refuse(&partner);
    }

    /// Puts commands before the partner's commands that already wait.
    fn put_back(&mut self, partner: &Tenant, commands: Batch<C, R>) -> &mut Held<C, R> {
        let held = self.partners.entry(partner.clone());
        let held = held.or_insert_with(|| Held {
            waiting: VecDeque::new(),
            stage: Stage::InBatch,
            tries: 0,
            failures: 0,
            since: Instant::now(),
        });
        for one in commands.into_iter().rev() {
            held.waiting.push_front(one);
        }
        held
    }

    fn line_up(&mut self, partner: Tenant) {
        if let Some(held) = self.partners.get_mut(&partner) {
            held.stage = Stage::SeparateRun;
            self.line.push_back(partner);
        }
    }

    /// Handles a success of the partner: the queue takes the remaining commands, or the hold ends.
    fn succeeded(&mut self, partner: &Tenant) {
        let Some(held) = self.partners.get_mut(partner) else {
            return;
        };
        if held.waiting.is_empty() {
            self.partners.remove(partner);
            return;
        }
        let now = Instant::now();
        held.stage = Stage::Backoff(now);
        (held.tries, held.failures, held.since) = (0, 0, now);
    }

    fn refuse(&mut self, partner: &Tenant) {
        if let Some(held) = self.partners.remove(partner) {
            refuse(held.waiting, FAILED_BEFORE);
        }
    }
}

/// Groups commands by partner, in their order.
fn by_partner<C, R>(
    commands: Batch<C, R>,
    executor: &Executor<C, R>,
) -> BTreeMap<Tenant, Batch<C, R>> {
    let mut partners: BTreeMap<Tenant, Batch<C, R>> = BTreeMap::new();
    for one in commands {
        let partner = (executor.partner_of)(&one.command).clone();
        partners.entry(partner).or_default().push(one);
    }
    partners
}
