//! The servers that tests and benchmarks need, for as long as a task runs.

use std::process::Command;

use throwaway::{Pgbouncer, Postgres, Redis, install};

use crate::Result;

/// Where the suites find the Postgres, as its superuser; each test makes a database of its own.
const POSTGRES: &str = "PENSTOCK_TEST_POSTGRES_URL";
/// Where the suites find the Redis.
const REDIS: &str = "PENSTOCK_TEST_REDIS_URL";
/// Where the store's suite finds a pooler before that Postgres: it then serves through it.
const POOLER: &str = "PENSTOCK_TEST_POOLER_PORT";
/// The role that serves, with the password the store's suite gives it.
const SERVING: &str = "penstock_serve";
/// Half as many sessions as a store keeps open, so that its connections take turns on them.
const SHARED: u32 = 4;

/// Nothing is flushed to the disk, and no table lives long enough to be vacuumed.
const HASTY: [(&str, &str); 4] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
];

/// Private servers, gone with the value.
pub(crate) struct Servers {
    postgres: Postgres,
    redis: Redis,
    pooler: Option<Pgbouncer>,
}

impl Servers {
    /// Starts them, installing what is missing where that is allowed. Their data outlive no run: suites that cut the power
    /// start a Postgres of their own.
    pub(crate) fn for_tests() -> Result<Self> {
        install::missing()?;
        let servers = Self {
            postgres: Postgres::start(&HASTY)?,
            redis: Redis::start()?,
            pooler: None,
        };
        println!(
            "private servers: Postgres on port {}, Redis on port {}",
            servers.postgres.port(),
            servers.redis.port()
        );
        Ok(servers)
    }

    /// The same, with a pooler before the Postgres.
    pub(crate) fn with_pooler() -> Result<Self> {
        let mut servers = Self::for_tests()?;
        let pooler = Pgbouncer::before(&servers.postgres, SERVING, SERVING, SHARED)?;
        println!("{} on port {}", pooler.version(), pooler.port());
        servers.pooler = Some(pooler);
        Ok(servers)
    }

    /// Tells a call where they are.
    pub(crate) fn tell(&self, command: &mut Command) {
        command
            .env(POSTGRES, self.postgres.url("postgres"))
            .env(REDIS, self.redis.url());
        if let Some(pooler) = &self.pooler {
            command.env(POOLER, pooler.port().to_string());
        }
    }
}
