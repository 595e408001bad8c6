//! Whole-service benchmarks. Every figure has a baseline from the same run, measured alternately with it, because
//! absolute figures differ by a factor of two between hours on one machine, while ratios are stable.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark's interface is its output"
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

/// An error ends the benchmark with a message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the whole service against its baselines and prints a Markdown table.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Rounds of service and baseline for each figure; the table shows medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Per cent of the usual amount of work in each round.
    #[arg(long, default_value_t = 100)]
    scale: usize,
    /// Two short rounds of everything: a smoke test whose figures are not meaningful.
    #[arg(long)]
    quick: bool,
    /// Also the slow figures: memory after a million requests, and a database of ten million trades.
    #[arg(long)]
    long: bool,
    /// Only figures whose name contains this text: `sqlite/`, `postgres/transact`, …
    #[arg(long, default_value = "")]
    only: String,
    /// Folder of the embedded databases; must be on the disk under measurement. Default: next to this program. A
    /// server's databases are in the temporary folder, which `TMPDIR` names.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Folder of `pools-service` and `penstock`. Default: where cargo puts programs of this profile.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Only serves the bytes of this file: the baseline of `GET /pools`.
    #[arg(long, hide = true)]
    bare: Option<PathBuf>,
    /// Passed by `cargo bench`; ignored.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 2 } else { self.rounds.max(1) }
    }

    /// The scaled amount of work.
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
        // As many threads as the service, since both use the runtime's default.
        return tokio::runtime::Runtime::new()?.block_on(bare::serve(body));
    }
    // One thread generates the load, to leave the processors to the service.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let bench = Bench::prepare(options)?;
    runtime.block_on(bench.run())
}
