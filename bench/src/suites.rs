//! The figures: what is done to the service, what stands beside it, and what ratio is wanted.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::client::{Connection, Load, Request, drive, field, request};
use crate::measure::{median, percentile};
use crate::programs::{Server, command, locate};
use crate::provision::{Installation, key};
use crate::reference::Reference;
use crate::table::{Row, Table, rate};
use crate::webhooks::Deliveries;
use crate::{Options, Result, machine};

/// Connections of the load, unless a figure says otherwise.
const CLIENTS: usize = 64;
/// Connections that read pages, and connections of the select beside them.
const READERS: usize = 16;
const PARTNERS: usize = 1000;
const HISTORY: usize = 10_000;

/// Partners with a part of their own, beside the thousand.
const HOT: usize = PARTNERS;
const HEAVY: usize = PARTNERS + 1;
const FRESH: usize = PARTNERS + 2;

const TRANSACT: &str = "/pools/EUR-USDT/transact";
const QUOTE: &str = "/pools/EUR-USDT/quote";
const ORDER: &str = r#"{"side":"on_ramp","fiatCurrency":"EUR","cryptoCurrency":"USDT","amount":"100.00","destAddress":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}"#;

/// Everything that is running, and the rows so far.
pub(crate) struct Bench {
    options: Options,
    folder: PathBuf,
    installation: Installation,
    server: Server,
    table: Table,
}

/// The turns of one comparison.
#[derive(Default)]
struct Turns {
    service: Vec<f64>,
    reference: Vec<f64>,
}

impl Turns {
    fn row(&self, what: &str, bar: &'static str, goal: &'static str) -> Row {
        let ratios: Vec<f64> = self
            .service
            .iter()
            .zip(&self.reference)
            .map(|(service, reference)| service / reference)
            .collect();
        Row {
            what: what.to_owned(),
            measured: rate(median(&self.service)),
            reference: rate(median(&self.reference)),
            ratio: median(&ratios),
            bar,
            goal,
        }
    }
}

impl Bench {
    /// Builds, provisions and starts.
    pub(crate) fn prepare(options: Options) -> Result<Self> {
        let programs = locate(options.programs.as_deref())?;
        let beside = match &options.data {
            Some(folder) => folder.clone(),
            None => std::env::current_exe()?
                .parent()
                .ok_or("this program stands nowhere")?
                .to_owned(),
        };
        let folder = beside.join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        eprintln!("provisioning {PARTNERS} partners in {}", folder.display());
        let installation = Installation::new(&folder, programs);
        let partners = FRESH + options.rounds();
        installation.provision(partners)?;
        let server = installation.serve()?;
        let mut table = Table::default();
        table.notes.push(format!(
            "medians of {} turns of service and reference; the ratio is the median of the turns' ratios",
            options.rounds()
        ));
        Ok(Self {
            options,
            folder,
            installation,
            server,
            table,
        })
    }

    /// All figures, one after another. They are printed whatever comes of the books, which must be clean at the end.
    pub(crate) async fn run(mut self) -> Result<()> {
        let mut reference = Reference::create(&self.folder, HEAVY + 1).await?;
        let sqlite = reference.sqlite().await?;
        self.table.notes.push(machine::describe(&sqlite));
        if self.options.wants("transact-many") {
            self.transact_many(&mut reference).await?;
        }
        if self.options.wants("transact-hot") {
            self.transact_hot(&mut reference).await?;
        }
        if self.options.wants("discovery") {
            self.discovery().await?;
        }
        if self.options.wants("quote") {
            self.quote(&mut reference).await?;
        }
        if self.options.wants("pages") || self.options.wants("window") {
            eprintln!("making a history of {HISTORY} trades");
            let requests = self.transacts(HISTORY, |_| HEAVY).await?;
            self.load(requests).await?;
        }
        if self.options.wants("pages") {
            self.pages(&mut reference).await?;
        }
        if self.options.wants("window") {
            self.window().await?;
        }
        if self.options.wants("webhooks") {
            self.webhooks().await?;
        }
        reference.close().await;
        if let Some(bytes) = self.server.resident() {
            let note = format!(
                "the service occupied {} MiB at the end",
                bytes / 1024 / 1024
            );
            self.table.notes.push(note);
        }
        println!("{}", self.table);
        drop(self.server);
        self.installation.verify()?;
        fs::remove_dir_all(&self.folder)?;
        Ok(())
    }

    async fn load(&self, requests: Vec<Request>) -> Result<Load> {
        drive(self.server.address, CLIENTS, requests, None).await
    }

    /// Firm quotes, made now, and the requests that execute them later.
    async fn transacts(
        &self,
        count: usize,
        whose: impl Fn(usize) -> usize,
    ) -> Result<Vec<Request>> {
        let asks = (0..count)
            .map(|place| request("POST", QUOTE, &key(whose(place)), "", Some(ORDER)))
            .collect();
        let quotes = drive(self.server.address, CLIENTS, asks, Some("quoteId")).await?;
        if quotes.fields.len() != count {
            return Err("a quote without an id".into());
        }
        let execute = |(place, quote): (usize, String)| {
            let headers = format!("Idempotency-Key: {quote}\r\n");
            let body = format!("{{\"quoteId\":\"{quote}\"}}");
            request("POST", TRANSACT, &key(whose(place)), &headers, Some(&body))
        };
        Ok(quotes.fields.into_iter().enumerate().map(execute).collect())
    }

    async fn transact_many(&mut self, reference: &mut Reference) -> Result<()> {
        let (turns, mut latencies) = self
            .transact(reference, |place| place % PARTNERS, PARTNERS)
            .await?;
        let what = "transact over HTTP, 1,000 partners, 64 clients; beside one commit per command through sqlx";
        self.table.rows.push(turns.row(what, "≥ 2", "≥ 4"));
        let (middle, late) = (
            percentile(&mut latencies, 50),
            percentile(&mut latencies, 99),
        );
        self.table.rows.push(Row {
            what: "the same, latency: p99 beside p50".to_owned(),
            measured: millis(late),
            reference: millis(middle),
            ratio: late.as_secs_f64() / middle.as_secs_f64(),
            bar: "≤ 4",
            goal: "≤ 2.5",
        });
        Ok(())
    }

    async fn transact_hot(&mut self, reference: &mut Reference) -> Result<()> {
        let (turns, _) = self.transact(reference, |_| HOT, 1).await?;
        let what = "transact over HTTP, one partner, 64 clients; beside one commit per command through sqlx";
        self.table.rows.push(turns.row(what, "≥ 2", "≥ 4"));
        Ok(())
    }

    async fn transact(
        &self,
        reference: &mut Reference,
        whose: impl Fn(usize) -> usize,
        partners: usize,
    ) -> Result<(Turns, Vec<Duration>)> {
        let mut turns = Turns::default();
        let mut latencies = Vec::new();
        for turn in 0..self.options.rounds() {
            eprintln!("transact, {partners} partners, turn {}", turn + 1);
            let requests = self.transacts(self.options.work(8000), &whose).await?;
            let commands = reference.quotes(self.options.work(3000), partners).await?;
            let load = self.load(requests).await?;
            turns.service.push(load.per_second());
            latencies.extend(load.latencies);
            turns.reference.push(reference.transact(&commands).await?);
        }
        Ok((turns, latencies))
    }

    async fn discovery(&mut self) -> Result<()> {
        let list = request("GET", "/pools", &key(0), "", None);
        let mut connection = Connection::open(self.server.address).await?;
        let body = connection.exchange(&list).await?.body.to_vec();
        let file = self.folder.join("pools.json");
        fs::write(&file, body)?;
        let mut bare = command(&std::env::current_exe()?);
        bare.arg("--bare").arg(file);
        let bare = Server::start(bare)?;
        let mut turns = Turns::default();
        for turn in 0..self.options.rounds() {
            eprintln!("discovery, turn {}", turn + 1);
            let requests = vec![list.clone(); self.options.work(60_000)];
            turns
                .service
                .push(self.load(requests.clone()).await?.per_second());
            let load = drive(bare.address, CLIENTS, requests, None).await?;
            turns.reference.push(load.per_second());
        }
        let what = "`GET /pools`, 64 clients; beside a bare axum handler with the same bytes";
        self.table.rows.push(turns.row(what, "≥ 0.8", "≥ 0.95"));
        Ok(())
    }

    async fn quote(&mut self, reference: &mut Reference) -> Result<()> {
        let mut turns = Turns::default();
        let mut alone = Turns::default();
        for turn in 0..self.options.rounds() {
            eprintln!("firm quote, turn {}", turn + 1);
            let asks = (0..self.options.work(12_000))
                .map(|place| request("POST", QUOTE, &key(place % PARTNERS), "", Some(ORDER)))
                .collect();
            let service = self.load(asks).await?.per_second();
            turns.service.push(service);
            alone.service.push(service);
            let count = self.options.work(3000);
            turns
                .reference
                .push(reference.insert_quotes(count, CLIENTS).await?);
            alone
                .reference
                .push(reference.insert_quotes(count, 1).await?);
        }
        let what = "firm quote over HTTP, 64 clients; beside its single insert through sqlx on 64 connections";
        self.table.rows.push(turns.row(what, "≥ 0.5", "≥ 1"));
        let what = "the same; beside its single insert through sqlx on one connection";
        self.table.rows.push(alone.row(what, "", ""));
        Ok(())
    }

    async fn pages(&mut self, reference: &mut Reference) -> Result<()> {
        let commands = reference.quotes(HISTORY, 1).await?;
        reference.transact(&commands).await?;
        let first = request("GET", "/pools/trades", &key(HEAVY), "", None);
        let deep = format!("/pools/trades?cursor={}", self.deep_cursor().await?);
        let deep = request("GET", &deep, &key(HEAVY), "", None);
        let (mut turns, mut depth) = (Turns::default(), Turns::default());
        for turn in 0..self.options.rounds() {
            eprintln!("pages of trades, turn {}", turn + 1);
            let count = self.options.work(6000);
            let read = |request: &Request| {
                drive(
                    self.server.address,
                    READERS,
                    vec![request.clone(); count],
                    None,
                )
            };
            let at_the_top = read(&first).await?.per_second();
            turns.service.push(at_the_top);
            turns
                .reference
                .push(reference.pages(count, READERS, 0).await?);
            depth.service.push(read(&deep).await?.per_second());
            depth.reference.push(at_the_top);
        }
        let what = "page of 50 trades over HTTP, 16 clients; beside the same select through sqlx on 16 connections";
        self.table.rows.push(turns.row(what, "≥ 0.22", "≥ 0.6"));
        let what = "page of 50 trades after 9,000 newer ones; beside the first page";
        self.table.rows.push(depth.row(what, "≥ 0.9", "≥ 0.98"));
        Ok(())
    }

    /// The cursor behind which 9,000 trades lie.
    async fn deep_cursor(&self) -> Result<String> {
        let mut connection = Connection::open(self.server.address).await?;
        let mut path = "/pools/trades?limit=100".to_owned();
        let mut cursor = String::new();
        for _ in 0..HISTORY * 9 / 10 / 100 {
            let request = request("GET", &path, &key(HEAVY), "", None);
            let answer = connection.exchange(&request).await?;
            cursor = field(answer.body, "nextCursor").ok_or("the history is too short")?;
            path = format!("/pools/trades?limit=100&cursor={cursor}");
        }
        Ok(cursor)
    }

    async fn window(&mut self) -> Result<()> {
        let mut turns = Turns::default();
        for turn in 0..self.options.rounds() {
            eprintln!("velocity window, turn {}", turn + 1);
            let count = self.options.work(4000);
            let heavy = self.transacts(count, |_| HEAVY).await?;
            let fresh = self.transacts(count, |_| FRESH + turn).await?;
            turns.service.push(self.load(heavy).await?.per_second());
            turns.reference.push(self.load(fresh).await?.per_second());
        }
        let what = "transact of a partner with 10,000 trades in the velocity window; beside a partner without any";
        self.table.rows.push(turns.row(what, "≥ 0.9", "≥ 0.98"));
        Ok(())
    }
}

impl Bench {
    async fn webhooks(&mut self) -> Result<()> {
        let mut deliveries = Deliveries::open(&self.folder).await?;
        let mut turns = Turns::default();
        let (mut spans, mut bare) = (Vec::new(), Vec::new());
        for turn in 0..self.options.rounds() {
            eprintln!("webhooks, turn {}", turn + 1);
            let count = self.options.work(2000);
            turns.service.push(deliveries.burst(count).await?);
            turns.reference.push(deliveries.bare_burst(count).await?);
            let count = self.options.work(100);
            spans.extend(deliveries.paced(count).await?);
            bare.extend(deliveries.bare_paced(count).await?);
        }
        deliveries.close().await;
        let what = "webhooks, a burst of 2,000 to one endpoint; beside a loop that signs and posts on 32 connections";
        self.table.rows.push(turns.row(what, "≥ 0.4", "≥ 0.7"));
        let (service, reference) = (percentile(&mut spans, 50), percentile(&mut bare, 50));
        self.table.rows.push(Row {
            what:
                "webhooks at a pace, from commit to arrival, p50; beside signing and posting alone"
                    .to_owned(),
            measured: millis(service),
            reference: millis(reference),
            ratio: service.as_secs_f64() / reference.as_secs_f64(),
            bar: "5 ms",
            goal: "2 ms",
        });
        Ok(())
    }
}

fn millis(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1000.0)
}
