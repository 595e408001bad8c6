//! Several batch queues, with a fixed queue for each partner.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use instruments::batch_queues::BatchQueueMetrics;
use kernel::{Entropy, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::ports::{Readiness, Submit};

use crate::batch_queue::{BatchQueue, BatchQueueOptions, Executor, Locks};

/// Batch queues that divide the partners among them.
///
/// A partner's commands keep their order because they share a queue. Queues rarely wait for each other's locks because
/// they share no partner.
pub struct PartnerQueues<C, R> {
    queues: Vec<BatchQueue<C, R>>,
    partner_of: fn(&C) -> &Tenant,
}

impl<C, R> PartnerQueues<C, R>
where
    C: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    /// Starts `count` queues, at least one. Must be called within a tokio runtime.
    ///
    /// `run` runs a batch in one transaction and returns one result for each command, in order. It returns `None` only
    /// under [`Locks::Skip`], for a command of a locked partner, and has then written nothing for that command. After an
    /// error no write of the batch remains, unless the error is [`StoreError::CommitUnknown`]. `readiness` distinguishes
    /// an unavailable store from one partner whose commands fail. `partner_of` names the partner of a command.
    pub fn start<F>(
        count: usize,
        options: BatchQueueOptions,
        partner_of: fn(&C) -> &Tenant,
        run: impl Fn(Arc<Vec<C>>, Locks) -> F + Send + Sync + 'static,
        readiness: Arc<dyn Readiness>,
        entropy: Arc<dyn Entropy>,
    ) -> Self
    where
        F: Future<Output = StoreResult<Vec<Option<R>>>> + Send + 'static,
    {
        let executor = Arc::new(Executor {
            options,
            partner_of,
            run: Box::new(move |batch, locks| Box::pin(run(batch, locks))),
            readiness,
            entropy,
            metrics: Arc::new(BatchQueueMetrics::named(options.name)),
        });
        let queue = || BatchQueue::start(Arc::clone(&executor));
        Self {
            queues: std::iter::repeat_with(queue).take(count.max(1)).collect(),
            partner_of,
        }
    }

    /// Refuses new commands, runs the queued ones, and returns after every queue has ended.
    pub async fn shut_down(&self) {
        for queue in &self.queues {
            queue.shut_down().await;
        }
    }
}

#[async_trait]
impl<C, R> Submit<C, R> for PartnerQueues<C, R>
where
    C: Clone + Send + Sync + 'static,
    R: Send + 'static,
{
    async fn submit(&self, command: C) -> StoreResult<R> {
        let mut hasher = DefaultHasher::new();
        (self.partner_of)(&command).hash(&mut hasher);
        let hash = usize::try_from(hasher.finish() >> 32).unwrap_or_default();
        let index = hash.checked_rem(self.queues.len());
        match index.and_then(|index| self.queues.get(index)) {
            Some(queue) => queue.submit(command).await,
            None => Err(StoreError::Overloaded),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use kernel::Mode;
    use parking_lot::Mutex;
    use partner_core::PartnerId;

    use super::*;

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    struct Ready;
    #[async_trait]
    impl Readiness for Ready {
        async fn ready(&self) -> StoreResult<()> {
            Ok(())
        }
    }

    #[derive(Clone)]
    struct Numbered(Tenant, u32);

    /// Each partner's commands, with the task that ran them.
    type Journal = BTreeMap<Tenant, Vec<(tokio::task::Id, u32)>>;

    fn tenant(number: u32) -> Tenant {
        Tenant {
            partner: PartnerId::parse(&format!("p{number}")).unwrap(),
            mode: Mode::Test,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn partner_keeps_its_queue_and_order() {
        let journal = Arc::new(Mutex::new(Journal::new()));
        let written = Arc::clone(&journal);
        let run = move |batch: Arc<Vec<Numbered>>, _| {
            let written = Arc::clone(&written);
            async move {
                for Numbered(tenant, number) in batch.iter() {
                    let entry = (tokio::task::id(), *number);
                    written
                        .lock()
                        .entry(tenant.clone())
                        .or_default()
                        .push(entry);
                }
                Ok(batch.iter().map(|command| Some(command.1)).collect())
            }
        };
        let options = BatchQueueOptions::new("test");
        let (ready, entropy) = (Arc::new(Ready), Arc::new(Ones));
        let queues = PartnerQueues::start(3, options, |one| &one.0, run, ready, entropy);
        for number in 0..40 {
            for partner in 0..20 {
                let result = queues.submit(Numbered(tenant(partner), number)).await;
                assert_eq!(result.unwrap(), number);
            }
        }
        queues.shut_down().await;
        let mut tasks = BTreeSet::new();
        for entries in journal.lock().values() {
            let numbers: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
            assert_eq!(numbers, (0..40).collect::<Vec<_>>());
            let task = entries[0].0;
            assert!(entries.iter().all(|entry| entry.0 == task));
            tasks.insert(task.to_string());
        }
        assert_eq!(
            tasks.len(),
            3,
            "every queue has some of the twenty partners"
        );
    }
}
