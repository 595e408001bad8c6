//! Parts that all servers share: programs, user, folder, port, and process.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::servers::{Doing, Error, Result};

/// Number of checks whether a server responds, and the pause between them: half a minute in total.
const MAX_CHECKS: u32 = 600;
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Number of ports that are tried.
const MAX_PORTS: u32 = 5;

/// The user of the servers if the caller is root.
const UNPRIVILEGED: &str = "nobody";

/// Finds a program in PATH or in Debian's Postgres folders, the newest version first.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    versions.sort_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        std::cmp::Reverse(name.and_then(|name| name.parse::<u32>().ok()))
    });
    std::env::split_paths(&path)
        .chain(versions.into_iter().map(|version| version.join("bin")))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Finds a program; an error that names its package if it is missing.
pub(super) fn program(program: &'static str, package: &'static str) -> Result<PathBuf> {
    find(program).ok_or(Error::Missing { program, package })
}

/// The user of the servers: the caller, or `nobody` if the caller is root, which Postgres refuses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User(Option<(u32, u32)>);

impl User {
    pub(crate) fn unprivileged() -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self(None));
        }
        Ok(Self(Some((id("-u")?, id("-g")?))))
    }

    /// Creates a folder that only this user can read and that is deleted on drop.
    pub(crate) fn folder(self) -> Result<TempDir> {
        let folder = tempfile::Builder::new()
            .prefix("penstock-throwaway-")
            .tempdir()
            .doing("making a temporary folder")?;
        self.own(folder.path())?;
        Ok(folder)
    }

    /// Gives a file or folder to this user.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        let Some((user, group)) = self.0 else {
            return Ok(());
        };
        chown(path, Some(user), Some(group)).doing(format!("giving {} away", path.display()))
    }

    /// A command that runs as this user in a folder and inherits no setting of the caller.
    pub(crate) fn command(self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

fn id(which: &str) -> Result<u32> {
    let output = Command::new("id")
        .args([which, UNPRIVILEGED])
        .output()
        .doing("asking for the unprivileged user's id")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    said.parse().map_err(|_| Error::Failed {
        program: format!("id {which} {UNPRIVILEGED}"),
        what: "did not print a number".to_owned(),
        output: said,
    })
}

/// Starts a server on a free port. Another process may take a port after it was chosen, so several ports are tried.
pub(crate) fn on_free_port<T>(start: impl Fn(u16) -> Result<T>) -> Result<(u16, T)> {
    let mut tries = 0;
    loop {
        tries += 1;
        let port = free_port();
        match start(port) {
            Ok(started) => return Ok((port, started)),
            Err(Error::Failed { output, .. })
                if tries < MAX_PORTS && output.contains("Address already in use") => {}
            Err(error) => return Err(error),
        }
    }
}

/// A port that no other program gets until this process ends, also while its server is stopped.
fn free_port() -> u16 {
    crate::http::nowhere().port()
}

/// Runs a command to its end. Any failure is an error with the command's output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().doing(format!("starting `{program}`"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(Error::Failed {
        program,
        what: format!("ended with {}", output.status),
        output: String::from_utf8_lossy(&said).into_owned(),
    })
}

/// A running server with its log file.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    parting: Signal,
    log: PathBuf,
}

impl Server {
    /// Starts a server and waits until it responds. On drop the server receives the `parting` signal: one that it handles, or SIGKILL,
    /// because a caller in the background may ignore the others and pass that on.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        parting: Signal,
        log: PathBuf,
        answers: impl Fn() -> bool,
    ) -> Result<Self> {
        let file = File::options().create(true).append(true).open(&log);
        let file = file.doing("opening the server's log")?;
        let errors = file.try_clone().doing("opening the server's log")?;
        let child = command
            .stdout(file)
            .stderr(errors)
            .spawn()
            .doing(format!("starting `{name}`"))?;
        let mut server = Self {
            name,
            child,
            parting,
            log,
        };
        for _ in 0..MAX_CHECKS {
            if let Some(status) = server.ended()? {
                return Err(Error::Failed {
                    program: name.to_owned(),
                    what: format!("ended with {status}"),
                    output: server.said(),
                });
            }
            if answers() {
                return Ok(server);
            }
            thread::sleep(CHECK_INTERVAL);
        }
        Err(Error::Silent {
            program: name.to_owned(),
            output: server.said(),
        })
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn end(&mut self, signal: Signal) -> Result<()> {
        self.signal(signal)?;
        self.child
            .wait()
            .map(drop)
            .doing(format!("waiting for `{}`", self.name))
    }

    /// Sends a signal if the server is still running.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let sent = pid.map_or(Err(rustix::io::Errno::SRCH), |pid| {
            kill_process(pid, signal)
        });
        sent.map_err(io::Error::from)
            .doing(format!("signalling `{}`", self.name))
    }

    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>> {
        self.child
            .try_wait()
            .doing(format!("asking after `{}`", self.name))
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_else(|error| format!("(no log: {error})"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failure cannot be reported here, and the folder is deleted anyway.
        let _ = self.end(self.parting);
    }
}
