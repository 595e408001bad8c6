//! Whole-service benchmarks. Every figure stands beside a reference from the same run, measured in turns with it, because
//! absolute figures move by a factor of two between hours on one machine while ratios hold.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark's whole interface is what it prints"
)]
#![expect(
    clippy::float_arithmetic,
    reason = "rates and ratios of measurements, never money"
)]

mod bare;
mod client;
mod machine;
mod postgres;
mod programs;
mod provision;
mod service;
mod sqlite;
mod suites;
mod webhooks;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::suites::Bench;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A failure of a benchmark ends it with a message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the whole service beside its references and prints a Markdown table.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Turns of service and reference for each figure; the table shows medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Per cent of the usual amount of work in each turn.
    #[arg(long, default_value_t = 100)]
    scale: usize,
    /// Two short turns of everything: to see that it runs, not to quote.
    #[arg(long)]
    quick: bool,
    /// Also the figures that take long: memory after a million requests, and a database of ten million trades.
    #[arg(long)]
    long: bool,
    /// Only figures whose name contains this: `sqlite/`, `postgres/transact`, …
    #[arg(long, default_value = "")]
    only: String,
    /// Where the embedded databases are made; must be on the disk that is to be measured. Default: beside this program. A
    /// server's lie in the temporary folder, which `TMPDIR` names.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where `pools-service` and `penstock` are. Default: built now, in this program's own profile.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Serves the bytes of this file and nothing else: the reference of `GET /pools`.
    #[arg(long, hide = true)]
    bare: Option<PathBuf>,
    /// What `cargo bench` adds; it changes nothing.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 2 } else { self.rounds.max(1) }
    }

    /// That much work, scaled.
    pub(crate) fn work(&self, usual: usize) -> usize {
        let scale = if self.quick { 10 } else { self.scale };
        (usual * scale / 100).max(64)
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    pub(crate) fn wants_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.wants(name))
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    if let Some(body) = &options.bare {
        // As many threads as the service has, since both take the runtime's default.
        return tokio::runtime::Runtime::new()?.block_on(bare::serve(body));
    }
    // The load comes from one thread, so that it takes as little as it can from whatever it measures.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let bench = Bench::prepare(options)?;
    runtime.block_on(bench.run())
}
