//! Partners whose commands a batch could not run: their rows are locked, or their commands failed.
//!
//! A held partner's commands keep their order and wait apart from the queue. The lane's own batches try them again a few
//! times, after short waits. Then a run beside the lane waits for the lock, so that a partner whose row is nearly always
//! locked gets its turn too. A partner that fails there twice is refused everything that waits for it.

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

/// How often the lane's own batches try a locked partner again.
const TRIES_IN_LANE: u32 = 4;
/// The wait before the first of these tries; each further one waits twice as long.
const FIRST_BACKOFF: Duration = Duration::from_millis(1);
/// A partner that has had no success for so long is refused what waits for it.
const LONGEST_HELD: Duration = Duration::from_secs(5);

/// The held partners of one lane.
pub(super) struct HeldPartners<C, R> {
    options: BatchQueueOptions,
    partners: HashMap<Tenant, Held<C, R>>,
    /// Partners that wait for a run beside the lane, the longest waiting first.
    line: VecDeque<Tenant>,
    asides: JoinSet<Aside<C, R>>,
}

struct Held<C, R> {
    waiting: VecDeque<Waiting<C, R>>,
    stage: Stage,
    tries: u32,
    /// Runs beside the lane that found the store unavailable, since the last success.
    failures: u32,
    /// When the partner was held, or had its last success.
    since: Instant,
}

/// What happens to a held partner next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The lane tries it again at this instant.
    Backoff(Instant),
    /// Some of its commands are in the lane's batch.
    InBatch,
    /// It waits for a run beside the lane, or is in one.
    Aside,
}

/// A run beside the lane that has ended.
pub(super) struct Aside<C, R> {
    partner: Tenant,
    unanswered: Unanswered<C, R>,
}

impl<C, R> HeldPartners<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    pub(super) fn new(options: BatchQueueOptions) -> Self {
        Self {
            options,
            partners: HashMap::new(),
            line: VecDeque::new(),
            asides: JoinSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partners.is_empty()
    }

    /// How many commands wait here.
    pub(super) fn len(&self) -> usize {
        self.partners.values().map(|held| held.waiting.len()).sum()
    }

    /// Passes on a command of a partner that is not held. The command of a held partner is kept, behind the partner's
    /// others, or refused if too many wait.
    pub(super) fn admit(
        &mut self,
        one: Waiting<C, R>,
        executor: &Executor<C, R>,
    ) -> Option<Waiting<C, R>> {
        if self.partners.is_empty() {
            return Some(one);
        }
        let all = self.len();
        let Some(held) = self.partners.get_mut((executor.whose)(&one.command)) else {
            return Some(one);
        };
        if held.waiting.len() < self.options.held && all < self.options.queue {
            held.waiting.push_back(one);
        } else {
            executor.measured.refused_held();
            send(one.ticket.reply, Err(StoreError::Overloaded));
        }
        None
    }

    /// When the lane is to try a partner again.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |held: &Held<C, R>| match held.stage {
            Stage::Backoff(due) => Some(due),
            Stage::InBatch | Stage::Aside => None,
        };
        self.partners.values().filter_map(due).min()
    }

    /// The commands that the lane is to try again now, at most so many.
    pub(super) fn take_due(&mut self, most: usize) -> Batch<C, R> {
        let mut batch = Vec::new();
        if self.partners.is_empty() {
            return batch;
        }
        let now = Instant::now();
        for held in self.partners.values_mut() {
            let room = most.saturating_sub(batch.len());
            if room > 0 && matches!(held.stage, Stage::Backoff(due) if due <= now) {
                let count = room.min(held.waiting.len());
                batch.extend(held.waiting.drain(..count));
                held.stage = Stage::InBatch;
            }
        }
        batch
    }

    /// Takes in what a batch of the lane left unanswered. The other held partners of the batch had success.
    pub(super) fn settle(&mut self, unanswered: Unanswered<C, R>, executor: &Executor<C, R>) {
        let Unanswered { locked, failed } = unanswered;
        for (partner, commands) in by_partner(locked, executor) {
            let held = self.put_back(&partner, commands);
            held.tries = held.tries.saturating_add(1);
            if held.tries <= TRIES_IN_LANE {
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

    /// Starts runs beside the lane, as many as there may be.
    pub(super) fn start_asides(&mut self, executor: &Arc<Executor<C, R>>) {
        while self.asides.len() < self.options.aside.max(1) {
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
            self.asides.spawn(async move {
                let ran = caught(executor.run_batch(batch, Locks::Wait)).await;
                let unanswered = ran.unwrap_or_else(|_| Unanswered::locked(Vec::new()));
                Aside {
                    partner,
                    unanswered,
                }
            });
        }
    }

    /// The next run beside the lane that ends; never ends if there is none.
    pub(super) async fn aside_ended(&mut self) -> Aside<C, R> {
        match self.asides.join_next().await {
            Some(Ok(aside)) => aside,
            // None is running, or the runtime is going away.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Takes in a run beside the lane.
    pub(super) fn absorb(&mut self, aside: Aside<C, R>) {
        let Aside {
            partner,
            unanswered,
        } = aside;
        let Some((commands, fault)) = unanswered.failed else {
            self.succeeded(&partner);
            return;
        };
        let name = self.options.name;
        let held = self.put_back(&partner, commands);
        held.failures = held.failures.saturating_add(1);
        if held.failures < MAX_UNAVAILABLE && held.since.elapsed() <= LONGEST_HELD {
            self.line_up(partner);
            return;
        }
        faults::of_store(&fault);
        tracing::warn!(
            lane.name = name,
            partner.id = partner.partner.as_str(),
            lane.held = held.waiting.len(),
            error.chain = causes(&fault),
            "The commands of one partner are refused, because its row stays locked or its commands fail"
        );
        self.refuse(&partner);
    }

    /// Puts commands before those of the partner that wait already.
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
            held.stage = Stage::Aside;
            self.line.push_back(partner);
        }
    }

    /// Some commands of the partner were run: the lane takes the rest, or the partner is held no longer.
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

/// The commands of each partner, in their order.
fn by_partner<C, R>(
    commands: Batch<C, R>,
    executor: &Executor<C, R>,
) -> BTreeMap<Tenant, Batch<C, R>> {
    let mut partners: BTreeMap<Tenant, Batch<C, R>> = BTreeMap::new();
    for one in commands {
        let partner = (executor.whose)(&one.command).clone();
        partners.entry(partner).or_default().push(one);
    }
    partners
}
