//! `penstock sandbox`: both services with a demo partner, in this process.

mod buyer;
mod check;
mod client;
mod demo;
mod event;
mod listener;
mod receiver;
mod seller;
mod tour;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use gate_service::{Listening, StartFault};
use kernel::Mode;
use runtime::config::Database;
use runtime::telemetry::Telemetry;
use runtime::{Config, Ports, Runtime};
use serde::Serialize;

use crate::arguments::Given;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::{Terminal, say};
use check::Services;
use client::Client;
use demo::Demo;

/// What is left of 25 seconds for the store, once nothing is in flight any more.
const CLOSE: Duration = Duration::from_secs(4);

/// Where the sandbox lives, and what it is for.
#[derive(Debug, clap::Args)]
pub(crate) struct Command {
    /// The folder of its database, master key and demo credentials.
    #[arg(long, value_name = "DIR", default_value = "penstock-data")]
    dir: PathBuf,
    /// Performs the main job over HTTP, prints each step, and ends.
    #[arg(long)]
    check: bool,
}

pub(crate) async fn run(
    given: Given,
    command: Command,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let config = configuration(&given, &command, terminal)?;
    let mut telemetry = Telemetry::default();
    if !command.check {
        let started = runtime::telemetry::start(config.log_format, config.traces.as_ref());
        telemetry = started.map_err(|fault| vec![fault])?;
    }
    let runtime = Runtime::open(config, Ports::of_machine()).await?;
    let ended = run_on(&runtime, &command, terminal).await;
    runtime.shutdown.cancel();
    if tokio::time::timeout(CLOSE, runtime.close()).await.is_err() {
        tracing::warn!("Stopped before the store had closed");
    }
    telemetry.finish();
    ended
}

async fn run_on(
    runtime: &Runtime,
    command: &Command,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let base = &runtime.base;
    let installation = Installation::on(base.clone());
    let made = Demo::read_or_make(&command.dir, &*base.clock, &*base.entropy)?;
    let (demo, fresh) = made;
    demo.settle(&installation, fresh).await?;
    let services = Listeners::start(runtime)
        .await
        .map_err(|fault| Failure::Failed(fault.to_string()))?;
    if command.check {
        return checked(runtime, &installation, &demo, services, terminal).await;
    }
    serve(runtime, command, &demo, services, terminal).await
}

/// Both services, bound to their addresses.
struct Listeners {
    pools: Listening,
    gate: Listening,
}

impl Listeners {
    async fn start(runtime: &Runtime) -> Result<Self, StartFault> {
        let pools = pools_service::start(runtime).await?;
        let gate = gate_service::start_beside(runtime).await?;
        Ok(Self { pools, gate })
    }

    /// Serves until the runtime is told to stop.
    async fn run(self) -> std::io::Result<()> {
        tokio::try_join!(self.pools.run(), self.gate.run()).map(|_| ())
    }
}

async fn serve(
    runtime: &Runtime,
    command: &Command,
    demo: &Demo,
    services: Listeners,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let failed = |fault: std::io::Error| Failure::Failed(fault.to_string());
    runtime::shutdown::on_signal(&runtime.shutdown).map_err(failed)?;
    let (pools, gate) = (services.pools.address(), services.gate.address());
    let started = Started {
        base_url: format!("http://{pools}/v1"),
        gate_base_url: format!("http://{gate}/v1"),
        demo,
    };
    let folder = command.dir.display().to_string();
    terminal.answer(&started, || tour::text(demo, pools, gate, &folder))?;
    say(&format!("gate-service listening on http://{gate}"));
    say(&format!("pools-service listening on http://{pools}"));
    services.run().await.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Started<'d> {
    base_url: String,
    gate_base_url: String,
    #[serde(flatten)]
    demo: &'d Demo,
}

async fn checked(
    runtime: &Runtime,
    installation: &Installation,
    demo: &Demo,
    services: Listeners,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let client = |listening: &Listening| Client {
        address: listening.address(),
    };
    let addresses = Services {
        pools: client(&services.pools),
        gate: client(&services.gate),
    };
    let serving = tokio::spawn(services.run());
    let outcome = check::check(installation, demo, addresses, terminal).await;
    runtime.shutdown.cancel();
    // The outcome is known; how the listener ended changes nothing about it.
    let _ = serving.await;
    let outcome = outcome?;
    terminal.answer(&outcome, || {
        if outcome.ok {
            "everything works; next: penstock sandbox".to_owned()
        } else {
            "the step marked ✗ failed".to_owned()
        }
    })?;
    Ok(if outcome.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The configuration of the folder's own database, in mode test and nothing else.
fn configuration(given: &Given, command: &Command, terminal: &Terminal) -> Result<Config, Failure> {
    let refused = || Failure::input("sandbox runs in mode test only: nothing in it is real");
    let mode = given
        .mode
        .clone()
        .or_else(|| std::env::var("PENSTOCK_MODE").ok());
    if mode.as_deref() == Some(Mode::Live.as_str()) {
        return Err(refused());
    }
    // Read as given first, so that a server's database is refused rather than passed over.
    let asked = given.load(Vec::new(), terminal)?;
    if let Database::Postgres(_) = asked.database {
        return Err(Failure::input(
            "sandbox keeps an embedded database of its own: PENSTOCK_DATABASE_URL names a server",
        ));
    }
    if asked.mode == Mode::Live {
        return Err(refused());
    }
    if given.database_url.is_some() {
        terminal.remark("warning: sandbox keeps its database in --dir; --database-url is not used");
    }
    let folder = command.dir.to_str().filter(|folder| !folder.is_empty());
    let folder =
        folder.ok_or_else(|| Failure::input("--dir: expected a folder's name in UTF-8"))?;
    let mut added = vec![("DATABASE_URL", format!("sqlite://{folder}/penstock.db"))];
    if command.check {
        added.push(("POOLS_LISTEN", "127.0.0.1:0".to_owned()));
        added.push(("GATE_LISTEN", "127.0.0.1:0".to_owned()));
    }
    if std::env::var_os("PENSTOCK_LOG_FORMAT").is_none() && given.config.is_none() {
        added.push(("LOG_FORMAT", "text".to_owned()));
    }
    Ok(runtime::Config::load(&given.sources(added))?.config)
}
