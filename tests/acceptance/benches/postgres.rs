//! The figures on PostgreSQL. Service and references are on one server, each in its own database.

mod databases;
mod long;
mod money;
mod reads;
mod reference;

use std::sync::Arc;
use std::time::Duration;

use store_postgres::{Options, PostgresStore};

use crate::provision::Installation;
use crate::service::Service;
use crate::suites::Bench;
use crate::{Result, webhooks};
use acceptance::table::{Row, mebibytes};
use databases::Databases;
use reference::Reference;

/// Names of the figures, for `--only`.
pub(crate) const FIGURES: &[&str] = &[
    "postgres/transact-many",
    "postgres/transact-hot",
    "postgres/transact-beside",
    "postgres/transact-one",
    "postgres/replicas",
    "postgres/quote",
    "postgres/pages",
    "postgres/window",
    "postgres/webhooks",
    "postgres/memory",
    "postgres/size",
    "postgres/history",
];

/// The label in the table.
const ON: &str = "PostgreSQL";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Connections of the delivery worker's store, as in a service.
const CONNECTIONS: u32 = 8;

/// The service on its own database, and the references.
struct Suite<'b> {
    bench: &'b mut Bench,
    service: Service,
    installation: Installation,
    reference: Reference,
    databases: Databases,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let mut databases = Databases::start(bench).await?;
    let described = databases.describe().await?;
    bench.table.notes.push(described);
    let installation = databases.copy(bench, databases::SERVICE).await?;
    databases.copy(bench, databases::REFERENCE).await?;
    let mut suite = Suite {
        service: Service::start(&installation)?,
        reference: Reference::create(databases.server()).await?,
        installation,
        databases,
        bench,
    };
    suite.figures().await?;
    let occupied = mebibytes(suite.service.resident()? as f64);
    let note = format!("the service occupied {occupied} at the end on {ON}");
    suite.bench.table.notes.push(note);
    drop(suite.service);
    suite.installation.verify()
}

impl Suite<'_> {
    async fn figures(&mut self) -> Result<()> {
        if self.wants("postgres/transact-many") {
            self.transact_many().await?;
        }
        if self.wants("postgres/transact-hot") {
            self.transact_hot().await?;
        }
        if self.wants("postgres/transact-beside") {
            self.transact_beside().await?;
        }
        if self.wants("postgres/transact-one") {
            self.transact_one().await?;
        }
        if self.wants("postgres/replicas") {
            self.replicas().await?;
        }
        if self.wants("postgres/quote") {
            self.quote().await?;
        }
        if self.wants("postgres/pages") || self.wants("postgres/window") {
            self.service.history().await?;
        }
        if self.wants("postgres/pages") {
            self.pages().await?;
        }
        if self.wants("postgres/window") {
            let row = self.service.window(self.bench, ON).await?;
            self.row(row);
        }
        if self.wants("postgres/webhooks") {
            self.webhooks().await?;
        }
        if self.bench.options.long && self.wants("postgres/memory") {
            self.memory().await?;
        }
        if self.bench.options.long && self.wants("postgres/size") {
            self.size().await?;
        }
        if self.bench.options.long && self.wants("postgres/history") {
            self.history().await?;
        }
        Ok(())
    }

    async fn webhooks(&mut self) -> Result<()> {
        self.databases.copy(self.bench, databases::WEBHOOKS).await?;
        let options = Options {
            velocity_window: DAY,
            idempotency_ttl: DAY,
            connections: CONNECTIONS,
            timeouts: store_postgres::Timeouts::default(),
            waits: store_postgres::Waits::default(),
            process: runtime::Ports::of_machine().clock,
            clock: None,
        };
        let url = self.databases.server().url(databases::WEBHOOKS);
        let store = PostgresStore::open(&url, options).await?;
        webhooks::measure(self.bench, Arc::new(store), ON).await
    }

    fn wants(&self, name: &str) -> bool {
        self.bench.options.wants(name)
    }

    fn row(&mut self, row: Row) {
        self.bench.table.rows.push(row);
    }
}
