//! Runs the real programs as an operator does: starts, calls and kills them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::Result;
use crate::servers::{OPERATING, SERVING};

/// Names the mutation of a build that has them. The programs inherit no other variable of the driver's environment.
const PLANTED: &str = "PENSTOCK_PLANTED_BUG";

/// Paths of the programs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// Built without crash points.
    pub(crate) plain: PathBuf,
    /// Built with crash points.
    pub(crate) armed: PathBuf,
}

/// The service under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Served {
    #[default]
    Pools,
    Gate,
}

impl Served {
    const fn program(self) -> &'static str {
        match self {
            Self::Pools => "pools-service",
            Self::Gate => "gate-service",
        }
    }

    /// The setting of the address.
    pub(crate) const fn listen(self) -> &'static str {
        match self {
            Self::Pools => "PENSTOCK_POOLS_LISTEN",
            Self::Gate => "PENSTOCK_GATE_LISTEN",
        }
    }
}

/// A folder, the programs that work in it, and their settings: an embedded database, unless the settings name another.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) folder: PathBuf,
    pub(crate) served: Served,
    programs: Programs,
    settings: Vec<(String, String)>,
    /// Settings that change between starts, shared by all clones.
    changing: Arc<Mutex<Vec<(String, String)>>>,
}

impl Installation {
    pub(crate) fn new(folder: &Path, programs: &Programs, settings: &[(&str, &str)]) -> Self {
        let database = format!("sqlite://{}", folder.join("penstock.db").display());
        let fixed = [
            ("PENSTOCK_DATABASE_URL", database.as_str()),
            (Served::Pools.listen(), "127.0.0.1:0"),
            (Served::Gate.listen(), "127.0.0.1:0"),
            ("PENSTOCK_WIDGET_LISTEN", "127.0.0.1:0"),
            ("PENSTOCK_THROTTLE", "off"),
            ("RUST_LOG", "warn"),
        ];
        let given = fixed.iter().chain(settings);
        Self {
            folder: folder.to_owned(),
            served: Served::Pools,
            programs: programs.clone(),
            settings: given
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            changing: Arc::default(),
        }
    }

    /// Replaces the settings that change between starts.
    pub(crate) fn change(&self, settings: Vec<(String, String)>) {
        *self.changing.lock() = settings;
    }

    /// The value of a setting.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let mut given = self.settings.iter().rev();
        let found = given.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same installation with more settings.
    pub(crate) fn with(mut self, settings: &[(&str, &str)]) -> Self {
        let told = settings.iter();
        self.settings
            .extend(told.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    /// The same installation with another service.
    pub(crate) fn of(self, served: Served) -> Self {
        Self { served, ..self }
    }

    /// The service's program.
    pub(crate) fn service(&self, points: Option<&str>) -> Command {
        self.command(self.served.program(), points)
    }

    /// A command with a clean environment, armed if points are given.
    pub(crate) fn command(&self, program: &str, points: Option<&str>) -> Command {
        let folder = match points {
            Some(_) => &self.programs.armed,
            None => &self.programs.plain,
        };
        let mut command = Command::new(folder.join(program));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PENSTOCK_") && name != PLANTED {
                command.env_remove(name);
            }
        }
        command
            .current_dir(&self.folder)
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .envs(self.changing.lock().iter().cloned())
            .env("FAILPOINTS", points.unwrap_or_default())
            .stdin(Stdio::null());
        if program == "penstock" {
            let urls = self
                .settings
                .iter()
                .filter(|(name, _)| *name == "PENSTOCK_DATABASE_URL");
            command.envs(urls.map(|(name, url)| (name, url.replace(SERVING, OPERATING))));
        }
        command
    }

    /// Migrates the schema.
    pub(crate) fn migrate(&self) -> Result<()> {
        let done = self.service(None).arg("migrate").output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(format!("migrate: {}: {said}", done.status).into());
        }
        Ok(())
    }

    /// Runs `penstock` with JSON output; an error if it fails.
    pub(crate) fn penstock(&self, words: &[&str]) -> Result<Value> {
        let mut command = self.command("penstock", None);
        let done = command.args(words).args(["--output", "json"]).output()?;
        if !done.status.success() {
            let said = [done.stdout, done.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            return Err(format!("penstock {}: {}: {said}", words.join(" "), done.status).into());
        }
        Ok(serde_json::from_slice(&done.stdout)?)
    }

    /// Checks all invariants of the whole database; an error names each breach.
    pub(crate) fn verify(&self) -> Result<()> {
        let report = self.penstock(&["verify"])?;
        if report.get("ok") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        Err(format!("verify: {report}").into())
    }

    /// Starts the service; an error if it ends before it listens.
    pub(crate) fn serve(&self, points: Option<&str>, more: &[(&str, &str)]) -> Result<Service> {
        self.serve_as("service", points, more)
    }

    /// Starts the service with a log of this name.
    pub(crate) fn serve_as(
        &self,
        name: &str,
        points: Option<&str>,
        more: &[(&str, &str)],
    ) -> Result<Service> {
        let mut command = self.service(points);
        command.envs(more.iter().copied());
        Service::start(command, &self.folder.join(format!("{name}.log")))
    }
}

/// Settings of a service whose metrics are read: see [`Service::metrics`].
pub(crate) const WITH_METRICS: &[(&str, &str)] = &[
    ("PENSTOCK_METRICS_LISTEN", "127.0.0.1:0"),
    ("RUST_LOG", "warn,runtime::service=info"),
];

/// A process that is killed on drop.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running service, which is killed on drop.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    child: Arc<Mutex<Running>>,
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
    log: PathBuf,
}

impl Service {
    /// Starts a command and waits for the line that names its address.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .spawn()?;
        let out = child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line
            .trim()
            .rsplit_once("http://")
            .and_then(|(_, address)| address.parse().ok());
        let Some(address) = address else {
            let status = child.wait()?;
            let said = std::fs::read_to_string(log)?;
            return Err(format!("the service did not start: {status}: {line}{said}").into());
        };
        let pid = child.id();
        Ok(Self {
            child: Arc::new(Mutex::new(Running(child))),
            address,
            pid,
            log: log.to_owned(),
        })
    }

    /// Kills the process, as a power cut would.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock();
        // The process may have ended already.
        let _ = child.0.kill();
        let _ = child.0.wait();
    }

    /// Returns the exit status if the process has ended.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().0.try_wait().ok()?
    }

    /// Waits for the end of the process, up to a time limit.
    pub(crate) fn ends_within(&self, span: Duration) -> bool {
        let step = Duration::from_millis(5);
        let steps = span.as_millis() / step.as_millis();
        for _ in 0..steps {
            if self.ended().is_some() {
                return true;
            }
            thread::sleep(step);
        }
        self.ended().is_some()
    }

    /// Returns the address of the metrics, which the log of a service with [`WITH_METRICS`] names.
    pub(crate) fn metrics(&self) -> Result<SocketAddr> {
        let said = self.said()?;
        let mut lines = said.lines().map(serde_json::from_str::<Value>);
        let address =
            lines.find_map(|line| line.ok()?.get("metrics.address")?.as_str()?.parse().ok());
        address.ok_or_else(|| format!("the log names no address of the metrics: {said}").into())
    }

    /// Returns what the process has written to standard error.
    pub(crate) fn said(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned())
    }
}
