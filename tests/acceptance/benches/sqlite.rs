//! The figures on the embedded database.

mod reference;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use runtime::Ports;
use store_sqlite::{Options, SqliteStore};

use crate::Result;
use crate::client::{drive, request};
use crate::programs::{Server, command};
use crate::provision::{Installation, key};
use crate::service::{
    CLIENTS, FRESH, HEAVY, HISTORY, HOT, PARTNERS, READERS, Service, deep_page, first_page,
    latency, many, quotes,
};
use crate::suites::Bench;
use crate::webhooks;
use acceptance::table::{Figure, Row, Turns, mebibytes, rate};
use reference::Reference;

/// Names of the figures, for `--only`.
pub(crate) const FIGURES: &[&str] = &[
    "sqlite/transact-many",
    "sqlite/transact-hot",
    "sqlite/discovery",
    "sqlite/quote",
    "sqlite/pages",
    "sqlite/window",
    "sqlite/webhooks",
];

const SQLITE: &str = "SQLite";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const MANY: Figure = Figure {
    on: SQLITE,
    what: "transact over HTTP, 1,000 partners, 64 clients; compared with one commit per command through sqlx",
    bar: "≥ 2",
    goal: "≥ 4",
};
const ONE: Figure = Figure {
    on: SQLITE,
    what: "transact over HTTP, one partner, 64 clients; compared with one commit per command through sqlx",
    bar: "≥ 2",
    goal: "≥ 4",
};
const DISCOVERY: Figure = Figure {
    on: SQLITE,
    what: "`GET /pools`, 64 clients; compared with a bare axum handler with the same bytes",
    bar: "≥ 0.8",
    goal: "≥ 0.95",
};
const QUOTE: Figure = Figure {
    on: SQLITE,
    what: "firm quote over HTTP, 64 clients; compared with its single insert through sqlx on 64 connections",
    bar: "≥ 0.5",
    goal: "≥ 1",
};
const QUOTE_ALONE: Figure = Figure {
    on: SQLITE,
    what: "the same; compared with its single insert through sqlx on one connection",
    bar: "",
    goal: "",
};
const PAGE: Figure = Figure {
    on: SQLITE,
    what: "page of 50 trades over HTTP, 16 clients; compared with the same select through sqlx on 16 connections",
    bar: "≥ 0.22",
    goal: "≥ 0.6",
};

/// The service on its own database, and the references.
struct Suite<'b> {
    bench: &'b mut Bench,
    service: Service,
    reference: Reference,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<()> {
    let url = format!("sqlite://{}", bench.folder.join("penstock.db").display());
    let installation = Installation::new(&bench.folder, &bench.programs, url);
    installation.provision(FRESH + bench.options.rounds())?;
    let reference = Reference::create(&bench.folder, HEAVY + 1).await?;
    let version = reference.sqlite().await?;
    bench.table.notes.push(format!("SQLite {version}"));
    let mut suite = Suite {
        bench,
        service: Service::start(&installation)?,
        reference,
    };
    suite.figures().await?;
    suite.end().await?;
    installation.verify()
}

impl Suite<'_> {
    async fn figures(&mut self) -> Result<()> {
        if self.wants("sqlite/transact-many") {
            self.transact_many().await?;
        }
        if self.wants("sqlite/transact-hot") {
            self.transact_hot().await?;
        }
        if self.wants("sqlite/discovery") {
            self.discovery().await?;
        }
        if self.wants("sqlite/quote") {
            self.quote().await?;
        }
        if self.wants("sqlite/pages") || self.wants("sqlite/window") {
            self.service.history().await?;
        }
        if self.wants("sqlite/pages") {
            self.pages().await?;
        }
        if self.wants("sqlite/window") {
            let row = self.service.window(self.bench, SQLITE).await?;
            self.row(row);
        }
        if self.wants("sqlite/webhooks") {
            self.webhooks().await?;
        }
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        self.bench.options.wants(name)
    }

    fn row(&mut self, row: Row) {
        self.bench.table.rows.push(row);
    }

    async fn transact_many(&mut self) -> Result<()> {
        let (turns, mut latencies) = self.transact(many, PARTNERS).await?;
        self.row(turns.row(&MANY, rate));
        self.row(latency(SQLITE, &mut latencies));
        Ok(())
    }

    async fn transact_hot(&mut self) -> Result<()> {
        let (turns, _) = self.transact(|_| HOT, 1).await?;
        self.row(turns.row(&ONE, rate));
        Ok(())
    }

    async fn transact(
        &mut self,
        whose: impl Fn(usize) -> usize,
        partners: usize,
    ) -> Result<(Turns, Vec<Duration>)> {
        let mut turns = Turns::default();
        let mut latencies = Vec::new();
        for _ in self.bench.turns("SQLite: transact") {
            let requests = self.service.transacts(self.bench.work(8000), &whose);
            let requests = requests.await?;
            let commands = self.reference.quotes(self.bench.work(3000), partners);
            let commands = commands.await?;
            let load = self.service.load(CLIENTS, requests).await?;
            let reference = self.reference.transact(&commands).await?;
            turns.push(load.per_second(), reference);
            latencies.extend(load.latencies);
        }
        Ok((turns, latencies))
    }

    async fn discovery(&mut self) -> Result<()> {
        let list = request("GET", "/pools", &key(0), "", None);
        let file = self.bench.folder.join("pools.json");
        fs::write(&file, self.service.answer(&list).await?)?;
        let mut bare = command(&std::env::current_exe()?);
        bare.arg("--bare").arg(file);
        let bare = Server::start(bare)?;
        let mut turns = Turns::default();
        for _ in self.bench.turns("discovery") {
            let requests = vec![list.clone(); self.bench.work(60_000)];
            let service = self.service.load(CLIENTS, requests.clone()).await?;
            let reference = drive(bare.address, CLIENTS, requests, None).await?;
            turns.push(service.per_second(), reference.per_second());
        }
        self.row(turns.row(&DISCOVERY, rate));
        Ok(())
    }

    async fn quote(&mut self) -> Result<()> {
        let (mut turns, mut alone) = (Turns::default(), Turns::default());
        for _ in self.bench.turns("SQLite: firm quote") {
            let asks = quotes(self.bench.work(12_000), many);
            let service = self.service.load(CLIENTS, asks).await?.per_second();
            let count = self.bench.work(3000);
            turns.push(service, self.reference.insert_quotes(count, CLIENTS).await?);
            alone.push(service, self.reference.insert_quotes(count, 1).await?);
        }
        self.row(turns.row(&QUOTE, rate));
        self.row(alone.row(&QUOTE_ALONE, rate));
        Ok(())
    }

    async fn pages(&mut self) -> Result<()> {
        let commands = self.reference.quotes(HISTORY, 1).await?;
        self.reference.transact(&commands).await?;
        let (first, deep) = (first_page(), self.service.deep_page().await?);
        let (mut turns, mut depth) = (Turns::default(), Turns::default());
        for _ in self.bench.turns("SQLite: pages of trades") {
            let count = self.bench.work(6000);
            let read = |page| self.service.load(READERS, vec![page; count]);
            let at_the_top = read(first.clone()).await?.per_second();
            turns.push(at_the_top, self.reference.pages(count, READERS, 0).await?);
            depth.push(read(deep.clone()).await?.per_second(), at_the_top);
        }
        self.row(turns.row(&PAGE, rate));
        self.row(depth.row(&deep_page(SQLITE), rate));
        Ok(())
    }

    async fn webhooks(&mut self) -> Result<()> {
        let options = Options {
            velocity_window: DAY,
            idempotency_ttl: DAY,
            turn_timeout: store_sqlite::TURN_TIMEOUT,
        };
        let file = self.bench.folder.join("webhooks.db");
        let store = SqliteStore::open(&file, Ports::of_machine().clock, options).await?;
        webhooks::measure(self.bench, Arc::new(store), SQLITE).await
    }

    async fn end(self) -> Result<()> {
        self.reference.close().await;
        let occupied = mebibytes(self.service.resident()? as f64);
        let note = format!("the service occupied {occupied} at the end on SQLite");
        self.bench.table.notes.push(note);
        Ok(())
    }
}
