//! Firm quotes and pages.

use super::reference::{Script, page, quote};
use super::{ON, Suite};
use crate::Result;
use crate::service::{CLIENTS, HISTORY, PARTNERS, READERS, deep_page, first_page, many, quotes};
use acceptance::table::{Figure, Turns, rate};

const R_QUOTE: Script = quote(CLIENTS, PARTNERS);
const R_PAGE: Script = page(READERS);

const QUOTE: Figure = Figure {
    on: ON,
    what: "firm quote over HTTP, 64 clients; compared with its single insert on 64 connections",
    bar: "≥ 0.5",
    goal: "≥ 1.0",
};
const PAGE: Figure = Figure {
    on: ON,
    what: "page of 50 trades over HTTP, 16 clients; compared with the same select on 16 connections",
    bar: "≥ 0.22",
    goal: "≥ 0.6",
};

impl Suite<'_> {
    pub(super) async fn quote(&mut self) -> Result<()> {
        let mut turns = Turns::default();
        for _ in self.bench.turns("PostgreSQL: firm quote") {
            let asks = quotes(self.bench.work(12_000), many);
            let service = self.service.load(CLIENTS, asks).await?.per_second();
            turns.push(service, self.repeat(R_QUOTE, 12_000)?);
        }
        self.row(turns.row(&QUOTE, rate));
        Ok(())
    }

    pub(super) async fn pages(&mut self) -> Result<()> {
        self.reference.history(HISTORY).await?;
        let (first, deep) = (first_page(), self.service.deep_page().await?);
        let (mut turns, mut depth) = (Turns::default(), Turns::default());
        for _ in self.bench.turns("PostgreSQL: pages of trades") {
            let count = self.bench.work(6000);
            let read = |page| self.service.load(READERS, vec![page; count]);
            let at_the_top = read(first.clone()).await?.per_second();
            depth.push(read(deep.clone()).await?.per_second(), at_the_top);
            turns.push(at_the_top, self.repeat(R_PAGE, 20_000)?);
        }
        self.row(turns.row(&PAGE, rate));
        self.row(depth.row(&deep_page(ON), rate));
        Ok(())
    }

    /// Rate of a reference script that runs about this often.
    fn repeat(&mut self, script: Script, count: usize) -> Result<f64> {
        let count = self.bench.work(count);
        self.reference.run(self.databases.server(), script, count)
    }
}
