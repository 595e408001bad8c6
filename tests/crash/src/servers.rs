//! Private servers that replicas share and faults may break.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::servers::{Postgres, Redis, Stop};

use crate::Result;
use crate::programs::Installation;
use crate::proxy::Proxy;

const DATABASE: &str = "penstock";
/// Rights of the serving role, as shipped.
pub(crate) const ROLES: &str = include_str!("../../../deploy/postgres/roles.sql");
/// URL options of a serving program, with that role's rights.
pub(crate) const SERVING: &str = "?options[role]=penstock_serve";
/// URL options of the operator's command line.
pub(crate) const OPERATING: &str = "?options[role]=penstock_operate";
/// A master key of 32 bytes. All programs share it, so each can decrypt the others' sealed values.
pub(crate) const MASTER_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const END_SESSIONS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()";

const THROTTLES: [&str; 7] = [
    "PENSTOCK_THROTTLE_POOLS",
    "PENSTOCK_THROTTLE_GLOBAL",
    "PENSTOCK_THROTTLE_CREATE_SESSION",
    "PENSTOCK_THROTTLE_CANCEL_SESSION",
    "PENSTOCK_THROTTLE_LIST_SESSIONS",
    "PENSTOCK_THROTTLE_LIST_TRANSACTIONS",
    "PENSTOCK_THROTTLE_BOOTSTRAP",
];

/// A Postgres that flushes to disk, a Redis, and a proxy before the Postgres.
#[derive(Debug)]
pub(crate) struct Servers {
    postgres: Mutex<Postgres>,
    redis: Mutex<Redis>,
    pub(crate) proxy: Proxy,
}

impl Servers {
    pub(crate) fn start() -> Result<Self> {
        let postgres = Postgres::start(&[("fsync", "on"), ("synchronous_commit", "on")])?;
        let before = SocketAddr::from((Ipv4Addr::LOCALHOST, postgres.port()));
        let servers = Self {
            postgres: Mutex::new(postgres),
            redis: Mutex::new(Redis::start()?),
            proxy: Proxy::before(before)?,
        };
        let making = format!("CREATE DATABASE {DATABASE}");
        ask(&servers.postgres.lock(), "postgres", &making)?;
        Ok(servers)
    }

    /// Settings of every program on these servers.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let url = self.postgres.lock().url(DATABASE);
        let mut settings = vec![
            ("PENSTOCK_DATABASE_URL", format!("{url}{SERVING}")),
            ("PENSTOCK_MIGRATE_DATABASE_URL", url),
            ("PENSTOCK_REDIS_URL", self.redis.lock().url()),
            ("PENSTOCK_MASTER_KEY", MASTER_KEY.to_owned()),
        ];
        // Throttles count in Redis, with limits that no client reaches.
        settings.extend(THROTTLES.map(|name| (name, "1000000/1s".to_owned())));
        settings
    }

    /// The database's URL for a replica, through the proxy.
    pub(crate) fn through_the_proxy(&self) -> String {
        let postgres = self.postgres.lock();
        let (here, there) = (postgres.port(), self.proxy.address.port());
        let url = postgres.url(DATABASE);
        let url = url.replacen(&format!(":{here}/"), &format!(":{there}/"), 1);
        format!("{url}{SERVING}")
    }

    /// Migrates the schema and grants the serving role its rights.
    pub(crate) fn migrate(&self, installation: &Installation) -> Result<()> {
        installation.migrate()?;
        ask(&self.postgres.lock(), DATABASE, ROLES)
    }

    /// Stops Postgres as a power cut would, and starts it again.
    pub(crate) fn cut_the_power(&self, dark: Duration) -> Result<()> {
        let mut postgres = self.postgres.lock();
        postgres.stop(Stop::Immediate)?;
        thread::sleep(dark);
        Ok(postgres.start_again()?)
    }

    /// Ends every session of the database.
    pub(crate) fn end_sessions(&self) -> Result<()> {
        // The lock keeps Postgres from restarting meanwhile.
        ask(&self.postgres.lock(), DATABASE, END_SESSIONS)
    }

    pub(crate) fn flush_redis(&self) -> Result<()> {
        let port = self.redis.lock().port();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(b"FLUSHALL\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        if &answer != b"+OK\r\n" {
            return Err("the Redis was not emptied".into());
        }
        Ok(())
    }

    pub(crate) fn kill_redis(&self, gone: Duration) -> Result<()> {
        let mut redis = self.redis.lock();
        redis.kill()?;
        thread::sleep(gone);
        Ok(redis.start_again()?)
    }

    pub(crate) fn pause_redis(&self, silent: Duration) -> Result<()> {
        let mut redis = self.redis.lock();
        redis.pause()?;
        thread::sleep(silent);
        Ok(redis.resume()?)
    }

    /// Dumps the whole database as text, as evidence of a breach.
    pub(crate) fn dump(&self) -> Result<String> {
        let mut command = self.postgres.lock().client("pg_dump", DATABASE)?;
        let done = command.arg("--inserts").output()?;
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

/// Runs statements as the superuser.
fn ask(postgres: &Postgres, database: &str, sql: &str) -> Result<()> {
    psql(postgres.client("psql", database)?, sql)
}

/// Runs statements with a client.
pub(crate) fn psql(mut client: Command, sql: &str) -> Result<()> {
    client.args(["--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    let done = client.output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(format!("psql: {said}").into());
    }
    Ok(())
}
