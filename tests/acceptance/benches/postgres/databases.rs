//! The databases of a run, on one private server: one is provisioned, the others are copies.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use test_support::servers::Postgres;

use super::ON;
use crate::provision::Installation;
use crate::service::FRESH;
use crate::suites::Bench;
use crate::{Result, machine};

/// The template; no client connects to it after provisioning.
const PROVISIONED: &str = "provisioned";
pub(super) const SERVICE: &str = "penstock";
pub(super) const REFERENCE: &str = "reference";
pub(super) const WEBHOOKS: &str = "webhooks";
/// Without trades, and with ten million.
pub(super) const EMPTY: &str = "empty";
pub(super) const FILLED: &str = "filled";

/// Every commit is flushed to the disk. Changed from the defaults: memory, and rare checkpoints, so that none falls into
/// only one of two compared repetitions.
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "1GB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "30min"),
];

pub(super) struct Databases {
    admin: PgConnection,
    server: Postgres,
}

impl Databases {
    pub(super) async fn start(bench: &Bench) -> Result<Self> {
        let server = Postgres::start(SETTINGS)?;
        let admin = PgConnection::connect(&server.url("postgres")).await?;
        let mut databases = Self { admin, server };
        databases
            .run(format!("CREATE DATABASE {PROVISIONED}"))
            .await?;
        let installation = databases.installation(bench, PROVISIONED);
        installation.provision(FRESH + bench.options.rounds())?;
        Ok(databases)
    }

    pub(super) fn server(&self) -> &Postgres {
        &self.server
    }

    /// Copies the provisioned database.
    pub(super) async fn copy(&mut self, bench: &Bench, name: &str) -> Result<Installation> {
        let copying = format!("CREATE DATABASE {name} TEMPLATE {PROVISIONED}");
        self.run(copying).await?;
        Ok(self.installation(bench, name))
    }

    /// Deletes a copy after its services have ended.
    pub(super) async fn delete(&mut self, name: &str) -> Result<()> {
        self.run(format!("DROP DATABASE {name} WITH (FORCE)")).await
    }

    /// The server's version, its settings and the kind of disk.
    pub(super) async fn describe(&mut self) -> Result<String> {
        let (version, folder): (String, String) = sqlx::query_as(
            "SELECT current_setting('server_version'), current_setting('data_directory')",
        )
        .fetch_one(&mut self.admin)
        .await?;
        let settings: Vec<String> = SETTINGS
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let disk = machine::file_system(&folder);
        Ok(format!("{ON} {version} on {disk}: {}", settings.join(" ")))
    }

    fn installation(&self, bench: &Bench, name: &str) -> Installation {
        Installation::new(&bench.folder, &bench.programs, self.server.url(name))
    }

    /// Database names are constants of this file.
    async fn run(&mut self, statement: String) -> Result<()> {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut self.admin)
            .await?;
        Ok(())
    }
}
