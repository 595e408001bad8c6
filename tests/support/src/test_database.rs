//! The store of a test run, and a Postgres database for one test.
//!
//! The database is on the server that `cargo xtask test` started. It is copied from a migrated template and dropped at the end. A test
//! that changes settings of a whole server starts its own.
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::types::Uuid;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};
use store_postgres::{PostgresStore, Timeouts, Waits};
use ulid::Ulid;

/// URL of the private server that `cargo xtask test` has started.
const SERVER: &str = "PENSTOCK_TEST_POSTGRES_URL";
/// Port of a pooler for that server, if there is one.
const POOLER: &str = "PENSTOCK_TEST_POOLER_PORT";
/// The serving role and its password. A pooler accepts only roles that can log in.
const SERVING: &str = "penstock_serve";
/// The operating role.
const OPERATING: &str = "penstock_operate";
/// Locks the creation of the template.
const LOCK: &str = "SELECT pg_advisory_lock(7061)";

/// Timeouts of a test that loses no server: a busy machine may stand still for seconds.
pub const LONG_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(30),
    statement: Duration::from_secs(60),
};
/// Waits of a test in which requests wait only for requests that end. The server gives up before the exchange's deadline.
pub const LONG_WAITS: Waits = Waits {
    lock: Duration::from_secs(30),
    statement: Duration::from_secs(40),
    idle: Duration::from_secs(60),
    connection: Duration::from_secs(30),
    turn: Duration::from_secs(30),
};

/// Selects the store of a run: `sqlite` or `postgres`.
const STORE: &str = "PENSTOCK_TEST_STORE";

/// A store that suites run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    Sqlite,
    Postgres,
}

impl StoreKind {
    /// The store of this run: the value of `PENSTOCK_TEST_STORE`, or SQLite.
    #[must_use]
    pub fn of_run() -> Self {
        match std::env::var(STORE).as_deref() {
            Err(_) | Ok("" | "sqlite") => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok(other) => panic!("{STORE}: expected sqlite or postgres, got {other:?}"),
        }
    }
}

/// A database for one test.
#[derive(Debug)]
pub struct Database {
    name: String,
    /// The superuser's URL of the server.
    server: String,
}

impl Database {
    /// Creates an empty database with the schema.
    pub async fn make() -> Self {
        let template = template().await;
        let database = Self::named(server());
        let name = &database.name;
        // The template is small, and copying its files is faster than logging its pages.
        let making = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY");
        admin(&database.server, &making).await;
        database
    }

    /// Creates a database without a schema.
    pub async fn bare() -> Self {
        // The template also creates the server's roles, in whichever test is first.
        template().await;
        let database = Self::named(server());
        let making = format!("CREATE DATABASE {}", database.name);
        admin(&database.server, &making).await;
        database
    }

    /// Creates an empty database with the schema and the roles on a server that a test has started. It must be dropped before the
    /// server ends.
    ///
    /// # Panics
    /// If the superuser's URL is wrong.
    pub async fn make_on(server: &str) -> Self {
        let database = Self::named(server.to_owned());
        let making = format!("CREATE DATABASE {}", database.name);
        admin(server, &making).await;
        PostgresStore::migrate(&database.owning(), LONG_TIMEOUTS, None)
            .await
            .unwrap();
        database.grant().await;
        database
    }

    /// Runs [`Database::make`] for a test that is not async, or that has a runtime already.
    #[must_use]
    pub fn make_now() -> Self {
        now(Self::make())
    }

    /// Runs [`Database::bare`] in the same way.
    #[must_use]
    pub fn bare_now() -> Self {
        now(Self::bare())
    }

    fn named(server: String) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("penstock_scratch_{}_{number}", std::process::id());
        Self { name, server }
    }

    /// Its URL for the owner.
    #[must_use]
    pub fn owning(&self) -> String {
        url_of(&self.server, &self.name)
    }

    /// Its URL for the serving role.
    #[must_use]
    pub fn serving(&self) -> String {
        match std::env::var(POOLER) {
            Ok(port) if self.server == server() => {
                let name = &self.name;
                format!("postgres://{SERVING}:{SERVING}@127.0.0.1:{port}/{name}")
            }
            Ok(_) | Err(_) => format!("{}?options[role]={SERVING}", self.owning()),
        }
    }

    /// Its URL for the operating role, without a pooler.
    #[must_use]
    pub fn operating(&self) -> String {
        format!("{}?options[role]={OPERATING}", self.owning())
    }

    /// Connects as the owner.
    pub async fn owner(&self) -> PgConnection {
        connect(&self.owning()).await
    }

    /// Grants the serving role its rights, in a database that was created bare.
    pub async fn grant(&self) {
        let mut owner = self.owner().await;
        run(&mut owner, &roles()).await;
        owner.close().await.unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let dropping = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        let dropped = std::thread::spawn(move || block_on(admin(&server, &dropping))).join();
        assert!(std::thread::panicking() || dropped.is_ok(), "not dropped");
    }
}

/// Runs on a thread of its own, because the test's runtime may be running or ending.
fn now<T: Send + 'static>(making: impl Future<Output = T> + Send + 'static) -> T {
    let made = std::thread::spawn(move || block_on(making)).join();
    made.unwrap_or_else(|fault| std::panic::resume_unwind(fault))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

/// Runs statements without a result.
pub async fn run(conn: &mut PgConnection, sql: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    if let Err(fault) = statement.execute(conn).await {
        panic!("{sql}\n{fault:?}");
    }
}

/// Lets tests write ids as ULIDs, which Postgres stores as `uuid`.
#[must_use]
pub fn with_ids(sql: &str) -> String {
    let parts = sql.split('\'').map(|part| match Ulid::from_string(part) {
        Ok(ulid) if part.len() == ulid::ULID_LEN => Uuid::from_u128(ulid.0).to_string(),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("'")
}

/// Lets tests write bytes as in SQLite.
const BYTES: &str = "CREATE OR REPLACE FUNCTION zeroblob(length integer) RETURNS bytea LANGUAGE sql
     AS $$ SELECT decode(repeat('00', length), 'hex') $$;
     CREATE OR REPLACE FUNCTION unhex(digits text) RETURNS bytea LANGUAGE sql
     AS $$ SELECT decode(digits, 'hex') $$";

/// Drops and restores the `CHECK` constraints of the tables that a text names.
const CHECKS: &str = "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
            format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%s) NOT VALID', c.conrelid::regclass, c.conname,
                   pg_get_expr(c.conbin, c.conrelid))
     FROM pg_constraint AS c
     WHERE c.contype = 'c' AND c.connamespace = 'public'::regnamespace
       AND strpos($1, c.conrelid::regclass::text) > 0";

impl Database {
    /// Runs statements that the rules forbid, without foreign keys and `CHECK` constraints. The constraints hold again for later
    /// writes.
    pub async fn damage(&self, sql: &str) {
        let mut conn = self.owner().await;
        let mut tx = conn.begin().await.unwrap();
        run(&mut tx, BYTES).await;
        run(&mut tx, "SET LOCAL session_replication_role = replica").await;
        let checks: Vec<(String, String)> = sqlx::query_as(CHECKS)
            .bind(sql)
            .fetch_all(&mut *tx)
            .await
            .unwrap();
        for (dropping, _) in &checks {
            run(&mut tx, dropping).await;
        }
        run(&mut tx, &with_ids(sql)).await;
        for (_, adding) in &checks {
            run(&mut tx, adding).await;
        }
        tx.commit().await.unwrap();
        conn.close().await.unwrap();
    }
}

fn server() -> String {
    std::env::var(SERVER).unwrap_or_else(|_| {
        panic!("{SERVER} names no server: run `cargo xtask test`, which starts one")
    })
}

/// The server's URL for another of its databases.
fn url_of(server: &str, database: &str) -> String {
    let (rest, _) = server.rsplit_once('/').unwrap();
    format!("{rest}/{database}")
}

async fn connect(url: &str) -> PgConnection {
    let options = PgConnectOptions::from_str(url).unwrap();
    options.connect().await.unwrap()
}

async fn admin(server: &str, sql: &str) {
    let mut conn = connect(server).await;
    run(&mut conn, sql).await;
    conn.close().await.unwrap();
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn roles() -> String {
    std::fs::read_to_string(root().join("deploy/postgres/roles.sql")).unwrap()
}

/// Creates the migrated template in the first test that needs it. Its name is a digest of its sources.
async fn template() -> String {
    let mut hasher = DefaultHasher::new();
    roles().hash(&mut hasher);
    let migrations = std::fs::read_dir(root().join("migrations/postgres")).unwrap();
    let mut files: Vec<_> = migrations.map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        std::fs::read(file).unwrap().hash(&mut hasher);
    }
    let name = format!("penstock_scratch_{:x}", hasher.finish());
    let server = server();
    let mut conn = connect(&server).await;
    run(&mut conn, LOCK).await;
    let there: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
            .bind(&name)
            .fetch_one(&mut conn)
            .await
            .unwrap();
    if !there {
        let draft = format!("{name}_draft");
        run(&mut conn, &format!("DROP DATABASE IF EXISTS {draft}")).await;
        run(&mut conn, &format!("CREATE DATABASE {draft}")).await;
        let draft_url = url_of(&server, &draft);
        PostgresStore::migrate(&draft_url, LONG_TIMEOUTS, None)
            .await
            .unwrap();
        let mut owner = connect(&draft_url).await;
        run(&mut owner, &roles()).await;
        let letting_in = format!("ALTER ROLE {SERVING} LOGIN PASSWORD '{SERVING}'");
        run(&mut owner, &letting_in).await;
        owner.close().await.unwrap();
        let done = format!("ALTER DATABASE {draft} RENAME TO {name}");
        run(&mut conn, &done).await;
    }
    conn.close().await.unwrap();
    name
}
