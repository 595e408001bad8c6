//! Several lanes side by side, a partner always in the same one.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kernel::{Entropy, StoreError};
use partner_core::Tenant;

use crate::batch_queue::{BatchQueue, BatchQueueOptions, BatchRunner};

/// Lanes side by side. A partner's commands keep their order because they share a lane, and lanes
/// rarely wait for each other's locks because they share no partner.
pub struct PartnerQueues<C, R> {
    lanes: Vec<BatchQueue<C, R>>,
    whose: fn(&C) -> &Tenant,
}

impl<C, R> PartnerQueues<C, R>
where
    C: Send + Sync + 'static,
    R: Send + 'static,
{
    /// Starts `count` lanes, at least one. `whose` tells the partner of a command. Must be called
    /// within a tokio runtime.
    pub fn start(
        count: usize,
        options: BatchQueueOptions,
        whose: fn(&C) -> &Tenant,
        runner: &Arc<dyn BatchRunner<C, R>>,
        entropy: &Arc<dyn Entropy>,
    ) -> Self {
        let lane = || BatchQueue::start(options, whose, Arc::clone(runner), Arc::clone(entropy));
        Self {
            lanes: std::iter::repeat_with(lane).take(count.max(1)).collect(),
            whose,
        }
    }

    /// Queues a command in its partner's lane and waits for its answer.
    ///
    /// # Errors
    /// As [`BatchQueue::submit`].
    pub async fn submit(&self, command: C) -> Result<R, StoreError> {
        let mut hasher = DefaultHasher::new();
        (self.whose)(&command).hash(&mut hasher);
        let hash = usize::try_from(hasher.finish() >> 32).unwrap_or_default();
        match hash
            .checked_rem(self.lanes.len())
            .and_then(|at| self.lanes.get(at))
        {
            Some(lane) => lane.submit(command).await,
            None => Err(StoreError::Overloaded),
        }
    }

    /// Refuses new commands, runs what has queued, and returns when every lane has ended.
    pub async fn shut_down(&self) {
        for lane in &self.lanes {
            lane.shut_down().await;
        }
    }
}

impl<C, R> fmt::Debug for PartnerQueues<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lanes({})", self.lanes.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use async_trait::async_trait;
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

    #[derive(Clone)]
    struct Numbered(Tenant, u32);

    /// Notes which task ran which partner.
    #[derive(Default)]
    struct Notes(Mutex<BTreeMap<Tenant, Vec<(tokio::task::Id, u32)>>>);

    #[async_trait]
    impl BatchRunner<Numbered, u32> for Notes {
        async fn run(&self, batch: &[Numbered]) -> Result<Vec<u32>, StoreError> {
            let mut notes = self.0.lock();
            for Numbered(tenant, number) in batch {
                let note = (tokio::task::id(), *number);
                notes.entry(tenant.clone()).or_default().push(note);
            }
            Ok(batch.iter().map(|command| command.1).collect())
        }

        async fn run_unlocked(&self, batch: &[Numbered]) -> Result<Vec<Option<u32>>, StoreError> {
            Ok(self.run(batch).await?.into_iter().map(Some).collect())
        }
    }

    fn tenant(number: u32) -> Tenant {
        Tenant {
            partner: PartnerId::parse(&format!("p{number}")).unwrap(),
            mode: Mode::Test,
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_partner_stays_in_its_lane_and_in_order() {
        let notes = Arc::new(Notes::default());
        let runner: Arc<dyn BatchRunner<Numbered, u32>> = notes.clone();
        let entropy: Arc<dyn Entropy> = Arc::new(Ones);
        let options = BatchQueueOptions::new("test");
        let lanes = PartnerQueues::start(3, options, |command| &command.0, &runner, &entropy);
        for number in 0..40 {
            for partner in 0..20 {
                let answer = lanes.submit(Numbered(tenant(partner), number)).await;
                assert_eq!(answer.unwrap(), number);
            }
        }
        lanes.shut_down().await;
        let notes = notes.0.lock();
        let mut used = std::collections::BTreeSet::new();
        for of_partner in notes.values() {
            let numbers: Vec<u32> = of_partner.iter().map(|note| note.1).collect();
            assert_eq!(numbers, (0..40).collect::<Vec<_>>());
            let lane = of_partner[0].0;
            assert!(of_partner.iter().all(|note| note.0 == lane));
            used.insert(lane.to_string());
        }
        assert_eq!(used.len(), 3, "twenty partners spread over every lane");
    }
}
