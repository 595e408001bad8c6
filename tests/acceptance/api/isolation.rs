//! One partner's trouble delays no other partner. On a server only: an embedded database has one lock for all partners.

use std::time::Duration;

use acceptance::{ACME, Answer, Client, Setup, World};
use kernel::Mode;
use partner_core::PartnerStatus;
use runtime::background::delete_old_quotes;
use sqlx::Connection as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// More partners than batch queues: several share a queue with the locked partner.
const OTHERS: u32 = 8;

/// A background task of a service.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start<F>(begin: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let task = tokio::spawn(begin(stop.clone()));
        Self { stop, task }
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Waits until something has happened.
pub(crate) async fn until(what: &str, has_happened: impl AsyncFn() -> bool) {
    for _ in 0..6_000 {
        if has_happened().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} has not happened");
}

/// A world whose partners all have money; returns a client for each partner that is not locked.
async fn crowded(change: impl FnOnce(&mut Setup)) -> (World, Vec<Client>) {
    let world = World::with(change).await;
    world.operator().credit(ACME, "10000.00", "EUR").await;
    let mut clients = Vec::new();
    for number in 0..OTHERS {
        let (partner, key) = (format!("other-{number}"), format!("sk_test_{number:032}"));
        let operator = world.operator();
        operator.put_partner(&partner, PartnerStatus::Active).await;
        let reference = format!("OTHER-{number}");
        let profile = acceptance::profile(&reference);
        operator.put_profile(&partner, &profile).await;
        operator.put_key(&partner, &key).await;
        operator.credit(&partner, "10000.00", "EUR").await;
        clients.push(world.client(&key));
    }
    (world, clients)
}

fn transacting(client: &Client, quote: &str) -> JoinHandle<Answer> {
    let (client, quote) = (client.clone(), quote.to_owned());
    tokio::spawn(async move { client.transact("EUR-USDT", &quote, &quote).await })
}

/// Every other partner trades once.
async fn each_trades(others: &[Client]) {
    let mut trades = Vec::new();
    for other in others {
        trades.push(transacting(other, &other.buy("EUR-USDT", "10").await));
    }
    for trade in trades {
        trade.await.unwrap().ok();
    }
}

/// The lock is held until every other partner has its trades, so none of them waits for it.
// rule: pools.transact.isolated
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_partners_trade_while_one_partners_row_is_locked() {
    let (world, others) = crowded(|_| {}).await;
    let acme = world.acme();
    let mut quotes = Vec::new();
    for _ in 0..3 {
        quotes.push(acme.buy("EUR-USDT", "10").await);
    }
    let Some(lock) = world.lock_partner(ACME).await else {
        return world.finish().await;
    };
    let mut held: Vec<_> = quotes
        .iter()
        .map(|quote| transacting(&acme, quote))
        .collect();
    let mut undelayed = 0;
    // On a busy machine the wait for the lock may time out within a round. If the others waited for it, it would in each.
    for _round in 0..20 {
        each_trades(&others).await;
        undelayed += usize::from(held.iter().all(|one| !one.is_finished()));
        if undelayed == 3 {
            break;
        }
        for (one, quote) in held.iter_mut().zip(&quotes) {
            if one.is_finished() {
                let ended = std::mem::replace(one, transacting(&acme, quote));
                ended.await.unwrap().refused(503, "service_unavailable");
            }
        }
    }
    assert_eq!(undelayed, 3, "no other partner waits for the lock");
    lock.close().await.unwrap();
    for (one, quote) in held.into_iter().zip(&quotes) {
        let answer = one.await.unwrap();
        if answer.status == 503 {
            acme.transact("EUR-USDT", quote, quote).await.ok();
        } else {
            answer.ok();
        }
    }
    world.finish().await;
}

/// A partner whose row stays locked is refused; it trades again after the lock is released.
// rule: pools.transact.isolated
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partner_whose_row_stays_locked_is_refused_alone() {
    let (world, others) = crowded(Setup::give_up_locked_rows).await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "10").await;
    let Some(lock) = world.lock_partner(ACME).await else {
        return world.finish().await;
    };
    let held = transacting(&acme, &quote);
    let beside = others[0].clone();
    let trading = tokio::spawn(async move {
        loop {
            beside.trade("EUR-USDT", "10").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    held.await.unwrap().refused(503, "service_unavailable");
    assert!(!trading.is_finished(), "no other partner was refused");
    trading.abort();
    lock.close().await.unwrap();
    acme.transact("EUR-USDT", &quote, &quote).await.ok();
    drop(trading.await);
    world.finish().await;
}

/// Clients that poll a locked partner's trade continuously, more of them than connections, leave enough
/// connections to other partners.
// rule: pools.transact.isolated
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polls_of_a_locked_partner_leave_connections_to_others() {
    const POLLERS: usize = 32;
    let (world, others) = crowded(|_| {}).await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "10").await;
    acme.transact("EUR-USDT", &quote, &quote).await.ok();
    let Some(lock) = world.lock_partner(ACME).await else {
        return world.finish().await;
    };
    let polling: Vec<_> = (0..POLLERS)
        .map(|_| {
            let (acme, quote) = (acme.clone(), quote.clone());
            tokio::spawn(async move {
                loop {
                    acme.poll(&quote).await;
                }
            })
        })
        .collect();
    for _round in 0..5 {
        for other in &others {
            let quote = other.buy("EUR-USDT", "10").await;
            other.transact("EUR-USDT", &quote, &quote).await.ok();
            other.poll(&quote).await.ok();
        }
    }
    for one in polling {
        one.abort();
    }
    lock.close().await.unwrap();
    acme.poll(&quote).await.ok();
    world.notice_all().await;
    world.finish().await;
}

// rule: background.isolated, pools.quote.retention
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_quotes_of_other_partners_are_deleted_while_one_partner_is_locked() {
    let (world, others) = crowded(Setup::give_up_locked_rows).await;
    world.acme().buy("EUR-USDT", "10").await;
    for other in &others {
        other.buy("EUR-USDT", "10").await;
    }
    let retention = Duration::from_secs(3600);
    world.after(2 * 3_600_000);
    let mut locks = Vec::new();
    for table in ["books", "quotes"] {
        locks.extend(world.lock_rows(table, ACME).await);
    }
    let (store, of) = (world.store(), (Mode::Test, retention));
    let task = Running::start(|stop| delete_old_quotes(store.clone(), store, of, stop));
    let stored = async |condition: &str| {
        let count = format!("SELECT count(*) FROM quotes WHERE partner_id {condition}");
        world.database().number(&count).await
    };
    let are_deleted = async || stored("<> 'acme'").await == 0;
    until("the deletion of the others' quotes", are_deleted).await;
    if !locks.is_empty() {
        assert_eq!(stored("= 'acme'").await, 1);
    }
    for lock in locks {
        lock.close().await.unwrap();
    }
    task.end().await;
    world.finish().await;
}
