//! Keys in flight over all replicas: detects the twin of a write that another replica works on before it reaches the
//! database. The database still decides.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::shared::Call;
use kernel::Entropy;
use partner_core::idempotency::Scope;
use partner_core::ports::{InFlight, Ticket};
use redis::Script;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Line, NoResponse, RedisConnection};
use crate::in_flight::MemoryInFlight;

/// A request that finds a claim retries after this delay, because the previous response may have reached the client before
/// its release reached Redis.
const RETRY_DELAY: Duration = Duration::from_millis(25);
/// Maximum number of releases that are kept while Redis is unavailable. The claims of further releases lapse.
const MAX_RELEASES: usize = 4_096;
/// Maximum number of claims that one call releases.
const MAX_PER_CALL: usize = 64;

pub(super) fn script() -> Script {
    Script::new(include_str!("release.lua"))
}

/// Claims keys in Redis after they were free in this process.
pub struct RedisInFlight {
    shared: Arc<RedisConnection>,
    alone: MemoryInFlight,
    releases: mpsc::Sender<Release>,
}

impl RedisInFlight {
    /// No key is in flight. Starts the task that releases claims; the task ends with the last ticket.
    #[must_use]
    pub fn start(shared: Arc<RedisConnection>) -> Self {
        let (releases, queue) = mpsc::channel(MAX_RELEASES);
        tokio::spawn(release_all(Arc::clone(&shared), queue));
        Self {
            shared,
            alone: MemoryInFlight::new(),
            releases,
        }
    }

    /// Whether the claim succeeded. Retries once after a delay, and then until `timeout` has passed.
    async fn claim(&self, claim: &Claim, timeout: Duration) -> Result<bool, NoResponse> {
        let until = Instant::now() + timeout;
        let mut tries = 0_u32;
        loop {
            if self.try_claim(claim).await? {
                return Ok(true);
            }
            tries = tries.saturating_add(1);
            if tries > 1 && Instant::now() >= until {
                return Ok(false);
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn try_claim(&self, claim: &Claim) -> Result<bool, NoResponse> {
        let mut question = redis::cmd("SET");
        question.arg(&claim.name).arg(&claim.token).arg("NX");
        question.arg("PX").arg(millis(claim.life));
        let asked = self.shared.ask(Call::Claim, |mut connection| async move {
            question
                .query_async::<Option<String>>(&mut connection)
                .await
        });
        Ok(asked.await?.is_some())
    }

    /// Claims in Redis a scope that this process already holds.
    async fn share(
        &self,
        scope: &Scope,
        alone: Ticket,
        life: Duration,
        timeout: Duration,
    ) -> Option<Ticket> {
        let claim = Claim::new(&self.shared, scope, life);
        match self.claim(&claim, timeout).await {
            Ok(false) => None,
            Err(NoResponse::NotSent) => Some(alone),
            // A claim whose response was lost may exist: it is released like any other claim.
            Ok(true) | Err(NoResponse::Lost) => Some(Ticket(Box::new(Held {
                claim: Some(claim),
                releases: self.releases.clone(),
                _alone: alone,
            }))),
        }
    }
}

#[async_trait]
impl InFlight for RedisInFlight {
    async fn enter(&self, scope: &Scope) -> Option<Ticket> {
        let alone = self.alone.enter(scope).await?;
        let life = self.shared.timeouts.claim;
        self.share(scope, alone, life, Duration::ZERO).await
    }

    /// Requests of this process enter in the order of their arrival. Among replicas, the first request after the release enters.
    async fn enter_within(&self, scope: &Scope, timeout: Duration) -> Option<Ticket> {
        let until = Instant::now() + timeout;
        let alone = self.alone.enter_within(scope, timeout).await?;
        let rest = until.saturating_duration_since(Instant::now());
        self.share(scope, alone, timeout, rest).await
    }
}

/// A claim in Redis. Only a caller with its token can release it.
struct Claim {
    name: String,
    token: String,
    /// Lifetime of the claim if it is never released.
    life: Duration,
}

impl Claim {
    fn new(shared: &RedisConnection, scope: &Scope, life: Duration) -> Self {
        let partner = scope.tenant.partner.as_str();
        Self {
            name: shared.name("in-flight", &[partner, &scope.route, scope.key.as_str()]),
            token: token(&*shared.entropy),
            life,
        }
    }
}

fn token(entropy: &dyn Entropy) -> String {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    hex::encode(random)
}

/// Releases its claim when it is dropped, whatever the request's result.
struct Held {
    claim: Option<Claim>,
    releases: mpsc::Sender<Release>,
    _alone: Ticket,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            let lapses = Instant::now() + claim.life;
            // If the queue of releases is full, the claim lapses.
            drop(self.releases.try_send(Release { claim, lapses }));
        }
    }
}

/// A claim to release, until its lifetime ends.
struct Release {
    claim: Claim,
    lapses: Instant,
}

/// Releases claims in order, several in one call. While Redis is unavailable they wait, so that none remains after it is back.
async fn release_all(shared: Arc<RedisConnection>, mut queue: mpsc::Receiver<Release>) {
    let mut batch = Vec::with_capacity(MAX_PER_CALL);
    while queue.recv_many(&mut batch, MAX_PER_CALL).await > 0 {
        while let Some(last) = batch.last() {
            let lapses = last.lapses;
            let up = timeout_at(lapses, shared.is_back()).await;
            if up.is_err() || release(&shared, &batch).await.is_ok() {
                batch.clear();
            }
        }
    }
}

async fn release(shared: &RedisConnection, batch: &[Release]) -> Result<(), NoResponse> {
    let mut question = shared.release.prepare_invoke();
    for release in batch {
        question.key(&release.claim.name).arg(&release.claim.token);
    }
    let asked = shared.ask(Call::Release, |mut connection| async move {
        question.invoke_async::<()>(&mut connection).await
    });
    asked.await
}

impl RedisConnection {
    /// Returns when Redis is available.
    async fn is_back(&self) {
        let mut line = self.line.subscribe();
        // The connection owns the sender, so the sender exists.
        drop(line.wait_for(|line| matches!(line, Line::Up(_))).await);
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
