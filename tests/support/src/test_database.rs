//! Which store a run of the suites stands on, and a Postgres database for one test: on the server that
//! `cargo xtask test` has started, copied from one that is migrated, dropped at the end.
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::types::Uuid;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};
use store_postgres::PostgresStore;
use ulid::Ulid;

/// Where `cargo xtask test` has started a private server.
const SERVER: &str = "PENSTOCK_TEST_POSTGRES_URL";
/// Where a pooler stands before that server, if one does.
const POOLER: &str = "PENSTOCK_TEST_POOLER_PORT";
/// The role that serves, and its password: a pooler lets in only who can log in.
const SERVING: &str = "penstock_serve";
/// The role that operates.
const OPERATING: &str = "penstock_operate";
/// Makes the template while nobody else does.
const LOCK: &str = "SELECT pg_advisory_lock(7061)";

/// Says which store a run stands on: `sqlite`, or `postgres`.
const STORE: &str = "PENSTOCK_TEST_STORE";

/// A store that suites run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The embedded one.
    Sqlite,
    /// The one on a server.
    Postgres,
}

impl StoreKind {
    /// The store of this run: what `PENSTOCK_TEST_STORE` says, or the embedded one.
    #[must_use]
    pub fn of_run() -> Self {
        match std::env::var(STORE).as_deref() {
            Err(_) | Ok("" | "sqlite") => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok(other) => panic!("{STORE}: expected sqlite or postgres, got {other:?}"),
        }
    }
}

/// A database of the test's own.
#[derive(Debug)]
pub struct Database {
    name: String,
}

impl Database {
    /// A migrated one, with nothing in it.
    pub async fn make() -> Self {
        let template = template().await;
        let database = Self::named();
        let making = format!("CREATE DATABASE {} TEMPLATE {template}", database.name);
        admin(&making).await;
        database
    }

    /// One with nothing in it, not even a schema.
    pub async fn bare() -> Self {
        // The server's roles come with it, whichever test is first.
        template().await;
        let database = Self::named();
        admin(&format!("CREATE DATABASE {}", database.name)).await;
        database
    }

    /// [`Database::make`] for a test that does not wait, or that has a runtime already.
    #[must_use]
    pub fn make_now() -> Self {
        now(Self::make())
    }

    /// [`Database::bare`] likewise.
    #[must_use]
    pub fn bare_now() -> Self {
        now(Self::bare())
    }

    fn named() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("penstock_scratch_{}_{number}", std::process::id());
        Self { name }
    }

    /// Its URL, as its owner.
    #[must_use]
    pub fn owning(&self) -> String {
        url_of(&self.name)
    }

    /// Its URL, as the role that serves.
    #[must_use]
    pub fn serving(&self) -> String {
        match std::env::var(POOLER) {
            Ok(port) => {
                let name = &self.name;
                format!("postgres://{SERVING}:{SERVING}@127.0.0.1:{port}/{name}")
            }
            Err(_) => format!("{}?options[role]={SERVING}", self.owning()),
        }
    }

    /// Its URL, as the role that operates; past any pooler.
    #[must_use]
    pub fn operating(&self) -> String {
        format!("{}?options[role]={OPERATING}", self.owning())
    }

    /// A connection, as its owner.
    pub async fn owner(&self) -> PgConnection {
        connect(&self.owning()).await
    }

    /// Says to everybody what the role that serves may do here: for a database that was bare.
    pub async fn grant(&self) {
        let mut owner = self.owner().await;
        run(&mut owner, &roles()).await;
        owner.close().await.unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let dropping = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = std::thread::spawn(move || block_on(admin(&dropping))).join();
        assert!(std::thread::panicking() || dropped.is_ok(), "not dropped");
    }
}

/// On a thread of its own: the test's runtime may be running, or ending.
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

/// Runs statements that need no answer.
pub async fn run(conn: &mut PgConnection, sql: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    if let Err(fault) = statement.execute(conn).await {
        panic!("{sql}\n{fault:?}");
    }
}

/// Tests name rows by their ULIDs as everybody writes them; the server keeps them as numbers.
#[must_use]
pub fn with_ids(sql: &str) -> String {
    let parts = sql.split('\'').map(|part| match Ulid::from_string(part) {
        Ok(ulid) if part.len() == ulid::ULID_LEN => Uuid::from_u128(ulid.0).to_string(),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("'")
}

/// Tests write bytes as SQLite does.
const ZEROBLOB: &str =
    "CREATE OR REPLACE FUNCTION zeroblob(length integer) RETURNS bytea LANGUAGE sql
     AS $$ SELECT decode(repeat('00', length), 'hex') $$";

/// The `CHECK` constraints of the tables that a text names, dropped and added again.
const CHECKS: &str = "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
            format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%s) NOT VALID', c.conrelid::regclass, c.conname,
                   pg_get_expr(c.conbin, c.conrelid))
     FROM pg_constraint AS c
     WHERE c.contype = 'c' AND c.connamespace = 'public'::regnamespace
       AND strpos($1, c.conrelid::regclass::text) > 0";

impl Database {
    /// Runs what no rule would, past the keys and `CHECK` constraints of the schema. They hold again for
    /// whatever is written afterwards.
    pub async fn damage(&self, sql: &str) {
        let mut conn = self.owner().await;
        let mut tx = conn.begin().await.unwrap();
        run(&mut tx, ZEROBLOB).await;
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

/// The server's URL, for another of its databases.
fn url_of(database: &str) -> String {
    let server = server();
    let (rest, _) = server.rsplit_once('/').unwrap();
    format!("{rest}/{database}")
}

async fn connect(url: &str) -> PgConnection {
    let options = PgConnectOptions::from_str(url).unwrap();
    options.connect().await.unwrap()
}

async fn admin(sql: &str) {
    let mut conn = connect(&server()).await;
    run(&mut conn, sql).await;
    conn.close().await.unwrap();
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn roles() -> String {
    std::fs::read_to_string(root().join("deploy/postgres/roles.sql")).unwrap()
}

/// The migrated database, made by whoever comes first. Its name tells what it was made from.
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
    let mut conn = connect(&server()).await;
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
        PostgresStore::migrate(&url_of(&draft)).await.unwrap();
        let mut owner = connect(&url_of(&draft)).await;
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
