//! `penstock sandbox`: runs both services with a demo partner in this process.

mod calls;
mod check;
mod client;
mod demo;
mod event;
mod event_log;
mod forward;
mod inbox;
mod listener;
mod receiver;
mod server;
mod shop;
mod tour;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use gate_service::{BoundService, PublicOrigins, StartError};
use kernel::Mode;
use runtime::config::Database;
use runtime::shutdown::serve_and_close;
use runtime::telemetry::Telemetry;
use runtime::{Config, Ports, Runtime};
use serde::Serialize;
use tempfile::TempDir;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;
use client::Client;
use demo::Demo;
use event_log::EventLog;
use forward::Forward;
use inbox::EVENTS_PORT;
use receiver::Receiver;
use shop::{BoundShop, Shop};

/// The folder of a sandbox without --dir.
const DEFAULT_FOLDER: &str = "penstock-data";

/// The public listeners of the sandbox: the two APIs and the widget.
const LISTENERS: usize = 3;
/// How long a payment in the widget is in progress, so that a person can look at its page meanwhile.
const SETTLES_AFTER: Duration = Duration::from_secs(30);

/// The sandbox's folder and ports.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Folder of the database, master key and demo credentials [default: penstock-data; --check: a temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Port of the pools API on 127.0.0.1 [default: 4010]
    #[arg(long, value_name = "PORT")]
    pools_port: Option<u16>,
    /// Port of the gate API on 127.0.0.1 [default: 4020]
    #[arg(long, value_name = "PORT")]
    gate_port: Option<u16>,
    /// Port of the hosted widget on 127.0.0.1 [default: 4030]
    #[arg(long, value_name = "PORT")]
    widget_port: Option<u16>,
    /// Port of the demo shop on 127.0.0.1 [default: 4050, or a free port; `demo.json` stores it]
    #[arg(long, value_name = "PORT")]
    demo_port: Option<u16>,
    /// Your own server, to which the demo partner's events are also sent, such as http://127.0.0.1:3000/webhooks
    #[arg(long, value_name = "URL", value_parser = Forward::parse, conflicts_with = "check")]
    events_to: Option<Forward>,
    #[arg(long, hide = true)]
    port: Option<String>,
    /// Performs the main job over HTTP, prints each step and exits with 0 or 1
    #[arg(long)]
    check: bool,
}

impl SandboxArgs {
    /// The folder to work in. A check without --dir gets a temporary folder, which dropping the second part removes.
    fn folder(&self) -> Result<(PathBuf, Option<TempDir>), Failure> {
        match (&self.dir, self.check) {
            (Some(dir), _) => Ok((dir.clone(), None)),
            (None, false) => Ok((PathBuf::from(DEFAULT_FOLDER), None)),
            (None, true) => {
                let made = tempfile::Builder::new().prefix("penstock-check-").tempdir();
                let made = made.map_err(|error| {
                    Failure::Failed(format!("cannot create a temporary folder: {error}"))
                })?;
                Ok((made.path().to_owned(), Some(made)))
            }
        }
    }
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: SandboxArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    if command.port.is_some() {
        return Err(Failure::input(
            "--port: the sandbox serves two APIs; use --pools-port and --gate-port",
        ));
    }
    let (folder, _temporary) = command.folder()?;
    let mut config = configuration(&given, &command, &folder, terminal)?;
    // The sandbox serves one developer, so fewer connections are no reason for a warning.
    runtime::descriptors::provide(&mut config, LISTENERS);
    let mut telemetry = Telemetry::default();
    if !command.check {
        let started = runtime::telemetry::start(config.log_format, config.traces.as_ref());
        telemetry = started.map_err(|error| vec![error])?;
    }
    let runtime = Runtime::open(config, Ports::of_machine()).await?;
    let serving = run_on(&runtime, &command, &folder, terminal);
    let ended = serve_and_close(&runtime.shutdown, serving, runtime.close()).await;
    telemetry.finish();
    ended
}

async fn run_on(
    runtime: &Runtime,
    command: &SandboxArgs,
    folder: &Path,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let base = &runtime.base;
    let installation = Installation::on(base.clone());
    let receiver = free_receiver(command).await?;
    let made = Demo::read_or_make(folder, receiver.port, &*base.clock, &*base.entropy)?;
    let (demo, fresh) = made;
    demo.settle(&installation, fresh).await?;
    let receiver = receiver_of(&demo, receiver, command, terminal).await?;
    let is_listening = receiver.is_some();
    let clock = Arc::clone(&base.clock);
    let log = Arc::new(EventLog::new());
    let heard = Arc::clone(&log);
    let _inbox = receiver
        .map(|receiver| inbox::start(receiver, &demo, clock, heard, command.check, terminal));
    let services = Listeners::start(runtime)
        .await
        .map_err(|error| match error {
            StartError::Open(error) => error.into(),
            error => Failure::Failed(start_failure(&error)),
        })?;
    if command.check {
        return checked(runtime, installation, &demo, services, terminal).await;
    }
    let shop = bind_shop(command.demo_port, demo.demo_port).await?;
    demo.admit_page(&installation, folder, shop.port()).await?;
    let origins = services.origins(runtime);
    let pages = tour::Pages {
        shop: &shop.origin(),
        widget: &origins.widget,
    };
    let _shop = shop.serve(Shop {
        origin: pages.shop.clone(),
        origins: origins.clone(),
        gate: Client {
            address: services.gate.address(),
        },
        demo: demo.clone(),
        log,
        is_listening,
        clock: Arc::clone(&base.clock),
        entropy: Arc::clone(&base.entropy),
    });
    serve(runtime, folder, &demo, &pages, services, terminal).await
}

async fn bind_shop(port: Option<u16>, stored: Option<u16>) -> Result<BoundShop, Failure> {
    BoundShop::bind(port, stored).await.map_err(|error| {
        Failure::Failed(format!(
            "cannot open the port of the demo shop ({error}); choose another port with --demo-port"
        ))
    })
}

/// The reason why a service did not start, with the flag that selects another port.
fn start_failure(error: &StartError) -> String {
    match error {
        StartError::Listen {
            setting,
            address,
            cause,
        } => {
            let flag = match *setting {
                "PENSTOCK_POOLS_LISTEN" => "--pools-port",
                "PENSTOCK_GATE_LISTEN" => "--gate-port",
                "PENSTOCK_WIDGET_LISTEN" => "--widget-port",
                setting => setting,
            };
            format!("cannot listen on {address} ({cause}); choose another port with {flag}")
        }
        StartError::Open(_) | StartError::Contract(_) => error.to_string(),
    }
}

/// Listens on the usual port, or on a free one if another program has it. A check leaves the usual port to the sandbox.
async fn free_receiver(command: &SandboxArgs) -> Result<Receiver, Failure> {
    let usual = if command.check { 0 } else { EVENTS_PORT };
    let receiver = match Receiver::listen_on(usual, command.events_to.clone()).await {
        Ok(receiver) => Ok(receiver),
        Err(_) => Receiver::listen_on(0, command.events_to.clone()).await,
    };
    receiver.map_err(|error| Failure::Failed(format!("cannot open a port for events: {error}")))
}

/// The receiver on the demo partner's port, which `demo.json` stores. Returns `None` if another program listens there, which is an
/// error if the sandbox has to send the events on.
async fn receiver_of(
    demo: &Demo,
    free: Receiver,
    command: &SandboxArgs,
    terminal: &Terminal,
) -> Result<Option<Receiver>, Failure> {
    let port = demo.events_port;
    if free.port == port {
        return Ok(Some(free));
    }
    let receiver = Receiver::listen_on(port, command.events_to.clone()).await;
    if receiver.is_err() && command.events_to.is_some() {
        return Err(Failure::Failed(format!(
            "--events-to: another program listens on port {port} and receives the events; stop it"
        )));
    }
    if receiver.is_err() {
        terminal.remark(&format!(
            "note: another program listens on port {port} and receives the events, so they are not shown here"
        ));
    }
    Ok(receiver.ok())
}

/// Both services, bound to their addresses.
struct Listeners {
    pools: BoundService,
    gate: BoundService,
}

impl Listeners {
    async fn start(runtime: &Runtime) -> Result<Self, StartError> {
        let pools = pools_service::start(runtime).await?;
        let gate = gate_service::start_beside(runtime).await?;
        Ok(Self { pools, gate })
    }

    /// The origins by which browsers reach the gate and its widget.
    fn origins(&self, runtime: &Runtime) -> PublicOrigins {
        let gate = self.gate.address();
        let widget = self.gate.beside().first();
        PublicOrigins::new(runtime, gate, widget.map_or(gate, |(_, address)| *address))
    }

    /// Serves until the runtime shuts down.
    async fn run(self) -> std::io::Result<()> {
        tokio::try_join!(self.pools.run(), self.gate.run()).map(|_| ())
    }
}

async fn serve(
    runtime: &Runtime,
    folder: &Path,
    demo: &Demo,
    pages: &tour::Pages<'_>,
    services: Listeners,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(error.to_string());
    runtime::shutdown::on_signal(&runtime.shutdown).map_err(failed)?;
    let (pools, gate) = (services.pools.address(), services.gate.address());
    let started = Started {
        base_url: format!("http://{pools}/v1"),
        gate_base_url: format!("http://{gate}/v1"),
        widget_origin: pages.widget.to_string(),
        demo_shop_url: format!("{}/demo", pages.shop),
        demo,
    };
    let folder = folder.display().to_string();
    let style = terminal.style();
    let greeting = || tour::text(demo, pages, pools, gate, &folder, style);
    let listening = vec![
        format!("gate-service listening on http://{gate}"),
        format!("pools-service listening on http://{pools}"),
    ];
    let printed = terminal.answer_in_background(&started, greeting, listening)?;
    tokio::select! {
        ended = services.run() => ended.map_err(failed)?,
        Ok(Err(failure)) = printed => return Err(failure),
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Started<'d> {
    base_url: String,
    gate_base_url: String,
    widget_origin: String,
    demo_shop_url: String,
    #[serde(flatten)]
    demo: &'d Demo,
}

async fn checked(
    runtime: &Runtime,
    installation: Installation,
    demo: &Demo,
    services: Listeners,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let client = |listening: &BoundService| Client {
        address: listening.address(),
    };
    let clients = (client(&services.pools), client(&services.gate));
    let serving = tokio::spawn(services.run());
    let outcome = check::check(installation, demo, clients, terminal).await;
    runtime.shutdown.cancel();
    // The outcome of the check does not depend on how the listener ended.
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

/// The configuration of the folder's own database. Refuses mode live.
fn configuration(
    given: &InstallationArgs,
    command: &SandboxArgs,
    folder: &Path,
    terminal: &Terminal,
) -> Result<Config, Failure> {
    let refused = || Failure::input("sandbox runs in mode test only, without real money");
    let mode = given
        .mode
        .clone()
        .or_else(|| std::env::var("PENSTOCK_MODE").ok());
    if mode.as_deref() == Some(Mode::Live.as_str()) {
        return Err(refused());
    }
    // Loads the given settings first, so that a database on a server is refused instead of ignored.
    let asked = given.load_as_set(terminal)?;
    match asked.database {
        Database::Sqlite(_) => {}
        Database::Postgres(_) => {
            return Err(Failure::input(
                "sandbox uses its own embedded database, but PENSTOCK_DATABASE_URL names a server; unset it",
            ));
        }
    }
    if asked.mode == Mode::Live {
        return Err(refused());
    }
    if given.database_url.is_some() {
        terminal.remark("warning: sandbox keeps its database in --dir; --database-url is not used");
    }
    let folder = folder.to_str().filter(|folder| !folder.is_empty());
    let folder = folder.ok_or_else(|| Failure::input("--dir: expected a folder name in UTF-8"))?;
    runtime::config::check_path(folder).map_err(|why| Failure::input(format!("--dir: {why}")))?;
    let mut added = vec![("DATABASE_URL", format!("sqlite://{folder}/penstock.db"))];
    let free = command.check.then_some(0);
    for (setting, port) in [
        ("POOLS_LISTEN", command.pools_port.or(free)),
        ("GATE_LISTEN", command.gate_port.or(free)),
        ("WIDGET_LISTEN", command.widget_port.or(free)),
    ] {
        added.extend(port.map(|port| (setting, format!("127.0.0.1:{port}"))));
    }
    if std::env::var_os("PENSTOCK_LOG_FORMAT").is_none() && given.config.is_none() {
        added.push(("LOG_FORMAT", "text".to_owned()));
    }
    let mut config = runtime::Config::load(&given.sources(added))?.config;
    config.sandbox_settles_after.get_or_insert(SETTLES_AFTER);
    Ok(config)
}
