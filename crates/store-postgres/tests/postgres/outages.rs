//! Outages that close no connection: a silent network, a read-only server, a commit that waits for a standby. Every call ends
//! within its deadline, and writes resume by themselves.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use kernel::{StoreError, StoreResult};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use store_postgres::{PostgresStore, Timeouts, Waits};
use test_support::contract::outages::Writer;
use test_support::servers::Postgres as Server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::{self, Database, Postgres, options, run};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(4),
    statement: Duration::from_secs(8),
};
/// The time that a call may take above its deadline on a busy machine.
const SLACK: Duration = Duration::from_secs(30);
/// The time within which writes resume.
const RECOVERY: Duration = Duration::from_secs(60);
/// The time within which readiness reports that writes are refused.
const READINESS_DEADLINE: Duration = Duration::from_secs(2);

/// A proxy that can go silent. A connection that was open during the silence stays silent afterwards, even if it was idle, like a
/// connection whose server is gone.
struct Proxy {
    url: String,
    silent: watch::Sender<bool>,
}

impl Proxy {
    async fn before(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let proxy = Self {
            url: url.replace(&server, &here),
            silent: watch::Sender::new(false),
        };
        let silent = proxy.silent.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, silent.clone()));
            }
        });
        proxy
    }

    fn go_silent(&self) {
        self.silent.send_replace(true);
    }

    fn answer_again(&self) {
        self.silent.send_replace(false);
    }
}

/// Waits until the proxy is silent.
async fn silence(silent: &mut watch::Receiver<bool>) {
    drop(silent.wait_for(|silent| *silent).await);
}

async fn pass(mut client: TcpStream, mut server: TcpStream, mut silent: watch::Receiver<bool>) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let (read, asks) = tokio::select! {
            biased;
            () = silence(&mut silent) => {
                // Both sockets stay open, but no data passes.
                return std::future::pending().await;
            }
            read = client.read(&mut asked) => (read, true),
            read = server.read(&mut answered) => (read, false),
        };
        let Ok(read @ 1..) = read else {
            return;
        };
        let passed = if asks {
            server.write_all(&asked[..read]).await
        } else {
            client.write_all(&answered[..read]).await
        };
        if passed.is_err() {
            return;
        }
    }
}

async fn opened(database: Database, url: &str) -> Postgres {
    let change = |options: &mut store_postgres::Options| {
        options.timeouts = TIMEOUTS;
        // The server gives up before the exchange's deadline.
        options.waits = Waits {
            lock: TIMEOUTS.statement / 2,
            statement: TIMEOUTS.statement * 3 / 4,
            ..options.waits
        };
    };
    fixture::open_with(database, url, change).await
}

fn is_unavailable<T>(found: &StoreResult<T>) -> bool {
    matches!(found, Err(StoreError::Unavailable(_)))
}

/// Runs a future and measures its duration.
async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    (future.await, began.elapsed())
}

/// Waits until readiness fails, and returns the duration.
async fn not_ready_after(writer: &Writer<Postgres>) -> Duration {
    let began = Instant::now();
    while writer.ready().await.is_ok() {
        assert!(began.elapsed() < READINESS_DEADLINE + SLACK, "still ready");
        sleep(Duration::from_millis(50)).await;
    }
    began.elapsed()
}

/// Waits until a quote is opened, and returns the duration.
async fn writes_again_after(writer: &Writer<Postgres>) -> Duration {
    let began = Instant::now();
    while let Err(fault) = writer.quote().await {
        assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
        assert!(began.elapsed() < RECOVERY, "{fault:?}");
        sleep(Duration::from_millis(50)).await;
    }
    began.elapsed()
}

// rule: base.database-deadline, base.database-readiness
#[tokio::test]
async fn silent_network_ends_every_call_within_its_deadline_and_writes_return() {
    let database = Database::make().await;
    let proxy = Proxy::before(&database.serving()).await;
    let writer = Writer::start(opened(database, &proxy.url).await).await;
    writer.soon_ready().await;
    let mut tries = 0;
    let command = loop {
        // The last call before the silence: a connection that was idle for a second would be tested first.
        let quote = writer.quote().await.unwrap();
        let command = writer.command(&quote);
        proxy.go_silent();
        let ((quoted, transacted), took) =
            timed(async { tokio::join!(writer.quote(), writer.transact(&command)) }).await;
        assert!(is_unavailable(&transacted), "{transacted:?}");
        assert!(took < TIMEOUTS.statement + SLACK, "{took:?}");
        // The statement was sent and commits by itself.
        if matches!(quoted, Err(StoreError::CommitUnknown(_))) {
            break command;
        }
        // A busy machine stood still for a second before the call.
        tries += 1;
        assert!(is_unavailable(&quoted) && tries < 5, "{quoted:?}");
        proxy.answer_again();
        writes_again_after(&writer).await;
    };
    assert!(not_ready_after(&writer).await < READINESS_DEADLINE + SLACK);
    // A write is refused at once while the database is known to be unavailable.
    let again = writer.quote().await.map(drop).unwrap_err();
    let why = kernel::causes(&again);
    assert!(matches!(again, StoreError::Unavailable(_)), "{why}");
    assert!(why.contains("writes are refused until it does"), "{why}");

    proxy.answer_again();
    writes_again_after(&writer).await;
    let before = writer.euros().await;
    writer.transact(&command).await.unwrap();
    writer.transact(&command).await.unwrap();
    assert_eq!(writer.euros().await, before - 1, "reserved once");
    writer.soon_ready().await;
}

/// Every call succeeds. A call on a dead connection would fail at its deadline.
// rule: base.database-deadline
#[tokio::test]
async fn pool_whose_connections_are_all_dead_recovers() {
    let database = Database::make().await;
    let proxy = Proxy::before(&database.serving()).await;
    let opened = fixture::open_at(database, &proxy.url, 8).await;
    let store = opened.store.clone();
    let writer = Writer::start(opened).await;
    // Open as many connections as the pool allows.
    futures_util::future::join_all((0..32).map(|_| writer.euros())).await;
    let (pool, in_use, idle) = store.connections()[0];
    assert!(in_use == 0 && idle > 1, "{pool}: {in_use}, {idle}");
    proxy.go_silent();
    // A connection that was idle for longer than a second is tested before it is lent.
    sleep(Duration::from_millis(1_200)).await;
    proxy.answer_again();
    // No exchange was in flight: all connections are idle, and all are dead.
    writer.euros().await;
    assert_eq!(store.connections()[0], (pool, 0, 1), "one new connection");
    writer.quote().await.unwrap();
}

// rule: base.database-deadline
#[tokio::test]
async fn closing_ends_while_the_network_is_silent() {
    let database = Database::make().await;
    let proxy = Proxy::before(&database.serving()).await;
    let opened = opened(database, &proxy.url).await;
    let store = opened.store.clone();
    let writer = Arc::new(Writer::start(opened).await);
    proxy.go_silent();
    let asking = Arc::clone(&writer);
    let asking = tokio::spawn(async move { asking.quote().await });
    sleep(Duration::from_millis(200)).await;
    let closed = timeout(TIMEOUTS.statement + SLACK, store.close()).await;
    assert!(closed.is_ok());
    assert!(asking.await.unwrap().is_err());
}

// rule: base.database-readiness, base.database-refuses-writes
#[tokio::test]
async fn read_only_database_is_not_ready_and_leaves_no_commit_unknown() {
    let database = Database::make().await;
    let url = database.serving();
    let opened = opened(database, &url).await;
    let database = Arc::clone(&opened.database);
    let writer = Writer::start(opened).await;
    let quote = writer.quote().await.unwrap();
    let command = writer.command(&quote);
    writer.soon_ready().await;

    let mut owner = database.owner().await;
    let name = database.owning();
    let name = name.rsplit_once('/').unwrap().1.to_owned();
    let read_only = |on| format!("ALTER DATABASE {name} SET default_transaction_read_only = {on}");
    run(&mut owner, &read_only("on")).await;
    assert!(not_ready_after(&writer).await < READINESS_DEADLINE + SLACK);
    for _ in 0..3 {
        let quoted = writer.quote().await;
        assert!(is_unavailable(&quoted), "{quoted:?}");
        let transacted = writer.transact(&command).await;
        assert!(is_unavailable(&transacted), "{transacted:?}");
    }
    run(&mut owner, "SET default_transaction_read_only = off").await;
    run(&mut owner, &read_only("off")).await;
    owner.close().await.unwrap();
    writes_again_after(&writer).await;
    writer.transact(&command).await.unwrap();
    writer.soon_ready().await;
}

/// Waits until a commit waits for the missing standby, and ends its session.
async fn until_commits_stall(database: &Database, watching: &mut PgConnection) {
    const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = 'SyncRep'";
    for _ in 0..200 {
        let mut session = database.owner().await;
        run(&mut session, "SET synchronous_commit = on").await;
        let commit = "SELECT pg_logical_emit_message(true, 'penstock', '')";
        let committed = timeout(Duration::from_millis(500), run(&mut session, commit)).await;
        if committed.is_err() {
            let ended: Vec<bool> = sqlx::query_scalar(END)
                .fetch_all(&mut *watching)
                .await
                .unwrap();
            if !ended.is_empty() {
                return;
            }
        }
    }
    panic!("no commit waits for the standby");
}

/// The server is the test's own, because a missing standby stalls the writes of every database. Its default would not wait for the
/// standby, but writes and probes raise it.
// rule: base.database-deadline, base.database-readiness, base.commit-durable
#[tokio::test]
async fn stalled_standby_is_refused_within_the_deadline_and_holds_no_connection() {
    let settings = [
        ("synchronous_commit", "off"),
        ("fsync", "off"),
        ("autovacuum", "off"),
    ];
    let server = Server::start(&settings).unwrap();
    let database = Database::make_on(&server.url("postgres")).await;
    let url = database.serving();
    let mut owner = database.owner().await;
    let opened = opened(database, &url).await;
    let database = Arc::clone(&opened.database);
    let writer = Writer::start(opened).await;
    let quote = writer.quote().await.unwrap();
    let command = writer.command(&quote);

    run(
        &mut owner,
        "ALTER SYSTEM SET synchronous_standby_names = 'missing'",
    )
    .await;
    run(&mut owner, "SELECT pg_reload_conf()").await;
    until_commits_stall(&database, &mut owner).await;
    let ((transacted, quoted), took) =
        timed(async { tokio::join!(writer.transact(&command), writer.quote()) }).await;
    assert!(
        matches!(transacted, Err(StoreError::CommitUnknown(_))),
        "{transacted:?}"
    );
    assert!(
        matches!(quoted, Err(StoreError::CommitUnknown(_))),
        "{quoted:?}"
    );
    assert!(took < TIMEOUTS.statement + SLACK, "{took:?}");
    assert!(not_ready_after(&writer).await < READINESS_DEADLINE + SLACK);
    // Repeated calls do not add waiting sessions on the server.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(6) {
        assert!(is_unavailable(&writer.quote().await));
        assert!(is_unavailable(&writer.ready().await));
        sleep(Duration::from_millis(100)).await;
    }
    let waiting: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = 'SyncRep'",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap();
    assert!(
        waiting <= 3,
        "{waiting} sessions wait: two writes, one probe"
    );

    run(&mut owner, "ALTER SYSTEM RESET synchronous_standby_names").await;
    run(&mut owner, "SELECT pg_reload_conf()").await;
    owner.close().await.unwrap();
    writes_again_after(&writer).await;
    let before = writer.euros().await;
    writer.transact(&command).await.unwrap();
    assert_eq!(
        writer.euros().await,
        before,
        "the unknown commit took effect once"
    );
    writer.soon_ready().await;
}

// rule: config.database-hosts
#[tokio::test]
async fn several_hosts_are_tried_in_order_until_one_takes_writes() {
    let database = Database::make().await;
    let url = database.serving();
    let proxy = Proxy::before(&url).await;
    proxy.go_silent();
    let refusing = test_support::http::nowhere();
    let host = |url: &str| {
        let rest = url.rsplit_once('@').unwrap().1.to_owned();
        rest.split_once('/').unwrap().0.to_owned()
    };
    let (here, silent) = (host(&url), host(&proxy.url));
    let several = url.replace(&here, &format!("{silent},{refusing},{here}"));
    let began = Instant::now();
    let writer = Writer::start(opened(database, &several).await).await;
    writer.quote().await.unwrap();
    assert!(
        began.elapsed() >= TIMEOUTS.connect,
        "the first host timed out"
    );
    for _ in 0..2 {
        writer.soon_ready().await;
        sleep(Duration::from_millis(600)).await;
    }

    let only = url.replace(&here, &format!("{silent},{refusing}"));
    let options = store_postgres::Options {
        timeouts: TIMEOUTS,
        ..options(Duration::from_secs(60), None)
    };
    let none = PostgresStore::open(&only, options).await.unwrap_err();
    let message = kernel::causes(&none).to_string();
    assert!(matches!(none, StoreError::Unavailable(_)), "{message}");
    for port in [silent, refusing.to_string()] {
        assert!(message.contains(&port), "{message}");
    }
}
