//! Tests which connections the pool keeps and lends. They change the recorded instants of connections instead of waiting.

use sqlx::PgConnection;
use test_support::contract::ManualClock;
use test_support::test_database::{Database, run};
use tokio::time::sleep;

use super::*;
use crate::waits::Waits;

const NAME: &str = "tested";

fn open(database: &Database, size: u32) -> Pool {
    let options = Options {
        velocity_window: Duration::ZERO,
        idempotency_ttl: Duration::ZERO,
        connections: size,
        timeouts: Timeouts {
            connect: Duration::from_secs(30),
            statement: Duration::from_secs(60),
        },
        waits: Waits::default(),
        process: Arc::new(ManualClock::default()),
        clock: None,
    };
    let hosts = Hosts::parse(&database.owning()).unwrap();
    Pool::new(NAME, size, &hosts, &options, &Alarm::new())
}

/// Lets the idle connections be idle for longer.
fn pass_idle_time(pool: &Pool, time: Duration) {
    pool.0.idle().iter_mut().for_each(|idle| idle.since -= time);
}

#[tokio::test]
async fn connection_of_the_maximum_age_is_not_lent() {
    let database = Database::bare().await;
    let pool = open(&database, 1);
    let mut lent = pool.acquire().await.unwrap();
    lent.made -= MAX_AGE / 2;
    drop(lent);
    let idle = pool.0.pop().expect("half as old");
    pool.0
        .put_back(idle.conn, idle.made - MAX_AGE / 2, idle.generation);
    assert_eq!(pool.usage(), (NAME, 0, 1));
    assert!(pool.0.pop().is_none());
    assert_eq!(pool.usage(), (NAME, 0, 0));
}

#[tokio::test]
async fn connection_of_the_maximum_idle_time_is_closed_when_another_is_returned() {
    let database = Database::bare().await;
    let pool = open(&database, 2);
    let first = pool.acquire().await.unwrap();
    let second = pool.acquire().await.unwrap();
    let made = second.made;
    drop(first);
    pass_idle_time(&pool, MAX_IDLE / 2);
    drop(second);
    assert_eq!(pool.usage(), (NAME, 0, 2));
    let second = pool.0.pop().unwrap();
    pass_idle_time(&pool, MAX_IDLE / 2);
    pool.0.put_back(second.conn, second.made, second.generation);
    assert_eq!(pool.usage(), (NAME, 0, 1));
    assert_eq!(pool.0.pop().unwrap().made, made);
}

#[tokio::test]
async fn usage_counts_connections_in_use_and_idle_ones() {
    let database = Database::bare().await;
    let pool = open(&database, 3);
    assert_eq!(pool.usage(), (NAME, 0, 0));
    let mut first = pool.acquire().await.unwrap();
    let second = pool.acquire().await.unwrap();
    assert_eq!(pool.usage(), (NAME, 2, 0));
    drop(second);
    assert_eq!(pool.usage(), (NAME, 1, 1));
    first.spoil();
    drop(first);
    assert_eq!(pool.usage(), (NAME, 0, 1));
}

#[tokio::test]
async fn distrusted_connection_in_use_is_closed_when_it_is_returned() {
    let database = Database::bare().await;
    let pool = open(&database, 2);
    let mut lent = pool.acquire().await.unwrap();
    drop(pool.acquire().await.unwrap());
    assert_eq!(pool.usage(), (NAME, 1, 1));
    pool.distrust();
    assert_eq!(pool.usage(), (NAME, 1, 0));
    lent.run("SELECT 1").await.unwrap();
    drop(lent);
    assert_eq!(pool.usage(), (NAME, 0, 0));
    drop(pool.acquire().await.unwrap());
    assert_eq!(pool.usage(), (NAME, 0, 1), "a new one is trusted");
}

/// A connection that is returned at the same time may become idle just after the idle ones were closed.
#[tokio::test]
async fn connection_returned_during_distrust_is_not_lent() {
    let database = Database::bare().await;
    let pool = open(&database, 1);
    drop(pool.acquire().await.unwrap());
    let returned = pool.0.pop().unwrap();
    pool.distrust();
    pool.0.idle().push(returned);
    assert!(pool.0.pop().is_none());
    assert_eq!(pool.usage(), (NAME, 0, 0));
}

/// Waits until another session of the database waits for an advisory lock.
async fn until_one_waits(owner: &mut PgConnection) {
    const WAITS: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = 'advisory')";
    loop {
        let waits: bool = sqlx::query_scalar(WAITS)
            .fetch_one(&mut *owner)
            .await
            .unwrap();
        if waits {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// The server has begun the transaction when the future is dropped: the opening's last statement waits for a lock.
#[tokio::test]
async fn dropped_begin_leaves_no_open_transaction() {
    const LOCK: &str = "SELECT pg_advisory_lock(1)";
    let database = Database::bare().await;
    let pool = open(&database, 1);
    let mut owner = database.owner().await;
    run(&mut owner, "SET statement_timeout = '30s'").await;
    run(&mut owner, LOCK).await;
    let opening = SqlStr::from_static("BEGIN; SELECT pg_advisory_xact_lock(1)");
    tokio::select! {
        begun = Tx::begin(&pool, opening) => panic!("begun without the lock: {begun:?}"),
        () = until_one_waits(&mut owner) => {}
    }
    assert_eq!(pool.usage(), (NAME, 0, 0), "closed, not lent again");
    run(&mut owner, "SELECT pg_advisory_unlock(1)").await;
    // The dropped transaction gets the lock first, and keeps it until it ends.
    run(&mut owner, LOCK).await;
}
