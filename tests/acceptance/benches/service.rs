//! The service under load, and its requests.

use std::time::Duration;

use acceptance::measure::percentile;
use acceptance::table::{Figure, Row, Turns, rate};

use crate::Result;
use crate::client::{Connection, Load, Request, drive, field, request};
use crate::programs::Server;
use crate::provision::{Installation, key};
use crate::suites::Bench;

/// Default number of load connections.
pub(crate) const CLIENTS: usize = 64;
/// Connections that read pages, and connections of the reference's select.
pub(crate) const READERS: usize = 16;
pub(crate) const PARTNERS: usize = 1000;
/// Trades of the partner with a history.
pub(crate) const HISTORY: usize = 10_000;

/// Partners with a special role, after the thousand; from the last one on, one per repetition.
pub(crate) const HOT: usize = PARTNERS;
pub(crate) const HEAVY: usize = PARTNERS + 1;
pub(crate) const FRESH: usize = PARTNERS + 2;

const TRANSACT: &str = "/pools/EUR-USDT/transact";
const QUOTE: &str = "/pools/EUR-USDT/quote";
const ORDER: &str = r#"{"side":"on_ramp","fiatCurrency":"EUR","cryptoCurrency":"USDT","amount":"100.00","destAddress":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}"#;

/// The partner at this position, round robin over the thousand.
pub(crate) fn many(place: usize) -> usize {
    place % PARTNERS
}

/// A running service, stopped on drop.
pub(crate) struct Service(Server);

impl Service {
    pub(crate) fn start(installation: &Installation) -> Result<Self> {
        installation.serve().map(Self)
    }

    pub(crate) async fn load(&self, clients: usize, requests: Vec<Request>) -> Result<Load> {
        drive(self.0.address, clients, requests, None).await
    }

    /// The body of one response.
    pub(crate) async fn answer(&self, request: &Request) -> Result<Vec<u8>> {
        let mut connection = Connection::open(self.0.address).await?;
        Ok(connection.exchange(request).await?.body.to_vec())
    }

    /// Creates firm quotes; returns the requests that execute them.
    pub(crate) async fn transacts(
        &self,
        count: usize,
        whose: impl Fn(usize) -> usize,
    ) -> Result<Vec<Request>> {
        let quotes = self.quote_ids(count, &whose).await?;
        Ok(executing(&quotes, whose))
    }

    /// Creates trades; returns the requests that poll them.
    pub(crate) async fn polls(
        &self,
        count: usize,
        whose: impl Fn(usize) -> usize,
    ) -> Result<Vec<Request>> {
        let quotes = self.quote_ids(count, &whose).await?;
        self.load(CLIENTS, executing(&quotes, &whose)).await?;
        let poll = |(place, quote): (usize, String)| {
            let path = format!("/pools/transactions/{quote}");
            request("GET", &path, &key(whose(place)), "", None)
        };
        Ok(quotes.into_iter().enumerate().map(poll).collect())
    }

    async fn quote_ids(&self, count: usize, whose: impl Fn(usize) -> usize) -> Result<Vec<String>> {
        let asks = quotes(count, whose);
        let quotes = drive(self.0.address, CLIENTS, asks, Some("quoteId")).await?;
        if quotes.fields.len() != count {
            return Err("a quote without an id".into());
        }
        Ok(quotes.fields)
    }

    /// Gives a partner the trades whose pages are read and whose window is checked.
    pub(crate) async fn history(&self) -> Result<()> {
        eprintln!("creating a history of {HISTORY} trades");
        let requests = self.transacts(HISTORY, |_| HEAVY).await?;
        self.load(CLIENTS, requests).await?;
        Ok(())
    }

    /// The page of the history after 9,000 newer trades.
    pub(crate) async fn deep_page(&self) -> Result<Request> {
        let mut connection = Connection::open(self.0.address).await?;
        let mut path = "/pools/trades?limit=100".to_owned();
        let mut cursor = String::new();
        for _ in 0..HISTORY * 9 / 10 / 100 {
            let request = request("GET", &path, &key(HEAVY), "", None);
            let answer = connection.exchange(&request).await?;
            cursor = field(answer.body, "nextCursor").ok_or("the history is too short")?;
            path = format!("/pools/trades?limit=100&cursor={cursor}");
        }
        let deep = format!("/pools/trades?cursor={cursor}");
        Ok(request("GET", &deep, &key(HEAVY), "", None))
    }

    /// Transacts of the partner with a history, compared with partners without any.
    pub(crate) async fn window(&self, bench: &Bench, on: &'static str) -> Result<Row> {
        let figure = Figure {
            on,
            what: "transact of a partner with 10,000 trades in the velocity window; compared with a partner without any",
            bar: "≥ 0.9",
            goal: "≥ 0.98",
        };
        let mut turns = Turns::default();
        for turn in bench.turns("velocity window") {
            let count = bench.work(4000);
            let heavy = self.transacts(count, |_| HEAVY).await?;
            let fresh = self.transacts(count, |_| FRESH + turn).await?;
            let heavy = self.load(CLIENTS, heavy).await?;
            let fresh = self.load(CLIENTS, fresh).await?;
            turns.push(heavy.per_second(), fresh.per_second());
        }
        Ok(turns.row(&figure, rate))
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let resident = self.0.resident();
        Ok(resident.ok_or("the system does not report the service's memory")?)
    }
}

/// Requests that execute quotes.
fn executing(quotes: &[String], whose: impl Fn(usize) -> usize) -> Vec<Request> {
    let execute = |(place, quote): (usize, &String)| {
        let headers = format!("Idempotency-Key: {quote}\r\n");
        let body = format!("{{\"quoteId\":\"{quote}\"}}");
        request("POST", TRANSACT, &key(whose(place)), &headers, Some(&body))
    };
    quotes.iter().enumerate().map(execute).collect()
}

/// Requests for firm quotes.
pub(crate) fn quotes(count: usize, whose: impl Fn(usize) -> usize) -> Vec<Request> {
    (0..count)
        .map(|place| request("POST", QUOTE, &key(whose(place)), "", Some(ORDER)))
        .collect()
}

pub(crate) const fn deep_page(on: &'static str) -> Figure {
    Figure {
        on,
        what: "page of 50 trades after 9,000 newer ones; compared with the first page",
        bar: "≥ 0.9",
        goal: "≥ 0.98",
    }
}

/// The 99th percentile of the latencies, compared with the median.
pub(crate) fn latency(on: &'static str, latencies: &mut [Duration]) -> Row {
    let figure = Figure {
        on,
        what: "the same, latency: p99 compared with p50",
        bar: "≤ 4",
        goal: "≤ 2.5",
    };
    let late = percentile(latencies, 99);
    Row::spans(&figure, late, percentile(latencies, 50))
}

/// The newest page of the history.
pub(crate) fn first_page() -> Request {
    request("GET", "/pools/trades", &key(HEAVY), "", None)
}
