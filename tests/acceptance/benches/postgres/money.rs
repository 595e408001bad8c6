//! Transacts.

use std::time::Duration;

use super::reference::{Script, money, naive, same_rows};
use super::{ON, Suite};
use crate::Result;
use crate::client::Request;
use crate::service::{CLIENTS, HOT, PARTNERS, Service, latency, many};
use acceptance::table::{Figure, Turns, bytes, rate};

/// Connections of the references.
const CONNECTIONS: usize = 16;
const R_MANY: Script = money(CONNECTIONS, PARTNERS);
const R_HOT: Script = money(CONNECTIONS, 1);
const R_ONE: Script = money(1, PARTNERS);
const SAME_ROWS: Script = same_rows(CONNECTIONS, PARTNERS);
const NAIVE: Script = naive(CONNECTIONS, PARTNERS);

const MANY: Figure = Figure {
    on: ON,
    what: "transact over HTTP, 1,000 partners, 64 clients; compared with R",
    bar: "≥ 1.3",
    goal: "≥ 2.0",
};
const MANY_NAIVE: Figure = Figure {
    on: ON,
    what: "the same; compared with the naive round trips",
    bar: "≥ 3.5",
    goal: "≥ 5",
};
const LOGGED: Figure = Figure {
    on: ON,
    what: "the same, WAL for a transact; compared with the same rows by R",
    bar: "≤ 1.3",
    goal: "≤ 1.0",
};
const ONE_PARTNER: Figure = Figure {
    on: ON,
    what: "transact over HTTP, one partner, 64 clients; compared with R with one partner",
    bar: "≥ 4.5",
    goal: "≥ 7",
};
const BESIDE: Figure = Figure {
    on: ON,
    what: "transact of 1,000 partners, 32 clients, while 32 others serve one partner; compared with the same while the 32 others serve all",
    bar: "≥ 0.8",
    goal: "≥ 0.95",
};
const ONE_CLIENT: Figure = Figure {
    on: ON,
    what: "transact over HTTP, 1,000 partners, one client; compared with R with one connection",
    bar: "≥ 0.6",
    goal: "≥ 0.8",
};
const REPLICAS: Figure = Figure {
    on: ON,
    what: "transact, 1,000 partners, 64 clients, two replicas on one database; compared with one replica",
    bar: "≥ 0.95",
    goal: "≥ 1.0",
};

impl Suite<'_> {
    pub(super) async fn transact_many(&mut self) -> Result<()> {
        let (mut turns, mut round_trips) = (Turns::default(), Turns::default());
        let mut logged = Turns::default();
        let mut latencies: Vec<Duration> = Vec::new();
        for _ in self.bench.turns("PostgreSQL: transact, many partners") {
            let requests = self.service.transacts(self.bench.work(8000), many).await?;
            let (count, before) = (requests.len(), self.reference.logged().await?);
            let load = self.service.load(CLIENTS, requests).await?;
            let each = (self.reference.logged().await? - before) / count as f64;
            turns.push(load.per_second(), self.execute(R_MANY, 6000).await?);
            round_trips.push(load.per_second(), self.execute(NAIVE, 3000).await?);
            let count = self.bench.work(3000);
            let server = self.databases.server();
            let rows = self.reference.execute(server, SAME_ROWS, count).await?;
            logged.push(each, rows.logged);
            latencies.extend(load.latencies);
        }
        self.row(turns.row(&MANY, rate));
        self.row(round_trips.row(&MANY_NAIVE, rate));
        self.row(latency(ON, &mut latencies));
        self.row(logged.row(&LOGGED, bytes));
        Ok(())
    }

    pub(super) async fn transact_hot(&mut self) -> Result<()> {
        let mut turns = Turns::default();
        for _ in self.bench.turns("PostgreSQL: transact, one partner") {
            let requests = self.service.transacts(self.bench.work(8000), |_| HOT);
            let load = self.service.load(CLIENTS, requests.await?).await?;
            turns.push(load.per_second(), self.execute(R_HOT, 3000).await?);
        }
        self.row(turns.row(&ONE_PARTNER, rate));
        Ok(())
    }

    /// The machine is equally busy in both cases; only the partners of the other load differ.
    pub(super) async fn transact_beside(&mut self) -> Result<()> {
        let mut turns = Turns::default();
        for _ in self
            .bench
            .turns("PostgreSQL: transact, one partner against many")
        {
            let count = self.bench.work(6000);
            let others = self.service.transacts(count, many).await?;
            let hot = self.service.transacts(count, |_| HOT).await?;
            let beside_one = self.first_of_two(others, hot).await?;
            let others = self.service.transacts(count, many).await?;
            let spread = self.service.transacts(count, many).await?;
            turns.push(beside_one, self.first_of_two(others, spread).await?);
        }
        self.row(turns.row(&BESIDE, rate));
        Ok(())
    }

    /// Two concurrent loads, each on half the connections: rate of the first while both run.
    async fn first_of_two(&self, first: Vec<Request>, second: Vec<Request>) -> Result<f64> {
        let (first, second) = tokio::try_join!(
            self.service.load(CLIENTS / 2, first),
            self.service.load(CLIENTS / 2, second)
        )?;
        Ok(first.per_second_until(first.took.min(second.took)))
    }

    pub(super) async fn transact_one(&mut self) -> Result<()> {
        let mut turns = Turns::default();
        for _ in self.bench.turns("PostgreSQL: transact, one client") {
            let requests = self.service.transacts(self.bench.work(1500), many).await?;
            let load = self.service.load(1, requests).await?;
            turns.push(load.per_second(), self.execute(R_ONE, 1500).await?);
        }
        self.row(turns.row(&ONE_CLIENT, rate));
        Ok(())
    }

    pub(super) async fn replicas(&mut self) -> Result<()> {
        let second = Service::start(&self.installation)?;
        let mut turns = Turns::default();
        for _ in self.bench.turns("PostgreSQL: two replicas") {
            let count = self.bench.work(8000);
            let alone = self.service.transacts(count, many).await?;
            let left = self.service.transacts(count / 2, many).await?;
            let right = self.service.transacts(count / 2, many).await?;
            let alone = self.service.load(CLIENTS, alone).await?.per_second();
            let (left, right) = tokio::try_join!(
                self.service.load(CLIENTS / 2, left),
                second.load(CLIENTS / 2, right)
            )?;
            let answered = (left.latencies.len() + right.latencies.len()) as f64;
            let took = left.took.max(right.took);
            turns.push(answered / took.as_secs_f64(), alone);
        }
        self.row(turns.row(&REPLICAS, rate));
        Ok(())
    }

    /// Rate of a reference script that executes about this many transactions.
    async fn execute(&mut self, script: Script, count: usize) -> Result<f64> {
        let server = self.databases.server();
        let count = self.bench.work(count);
        let executed = self.reference.execute(server, script, count).await?;
        Ok(executed.per_second)
    }
}
