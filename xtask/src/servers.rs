//! The servers that tests and benchmarks need, for as long as a task runs.

use std::process::Command;

use throwaway::{Postgres, Redis, install};

use crate::Result;

/// Where the suites find the Postgres, as its superuser; each test makes a database of its own.
const POSTGRES: &str = "PENSTOCK_TEST_POSTGRES_URL";
/// Where the suites find the Redis.
const REDIS: &str = "PENSTOCK_TEST_REDIS_URL";

/// Private servers, gone with the value.
pub(crate) struct Servers {
    postgres: Postgres,
    redis: Redis,
}

impl Servers {
    /// Starts them, installing what is missing where that is allowed. Their data outlive no run, so nothing is flushed to
    /// the disk: suites that cut the power start a Postgres of their own.
    pub(crate) fn for_tests() -> Result<Self> {
        install::missing()?;
        let hasty = [("fsync", "off"), ("full_page_writes", "off")];
        let servers = Self {
            postgres: Postgres::start(&hasty)?,
            redis: Redis::start()?,
        };
        println!(
            "private servers: Postgres on port {}, Redis on port {}",
            servers.postgres.port(),
            servers.redis.port()
        );
        Ok(servers)
    }

    /// Tells a call where they are.
    pub(crate) fn tell(&self, command: &mut Command) {
        command
            .env(POSTGRES, self.postgres.url("postgres"))
            .env(REDIS, self.redis.url());
    }
}
