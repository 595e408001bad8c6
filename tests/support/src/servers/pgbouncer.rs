//! A private PgBouncer before a private Postgres.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::servers::process::{Server, User, on_free_port, program};
use crate::servers::{Doing, Error, Postgres, Result};

const NAME: &str = "pgbouncer";
/// The first version that keeps prepared statements with transaction pooling.
const MIN_VERSION: (u32, u32) = (1, 21);
const PACKAGE: &str =
    "PgBouncer 1.21 or newer (Debian 13 and Ubuntu 24.04: `apt install pgbouncer`)";

/// A private PgBouncer with transaction pooling and fewer connections than its clients.
#[derive(Debug)]
pub struct Pgbouncer {
    // Dropped before its folder.
    _server: Server,
    port: u16,
    version: String,
    _folder: TempDir,
}

impl Pgbouncer {
    /// Starts a PgBouncer that accepts one user and opens at most this many connections per database.
    ///
    /// # Errors
    /// If the program is missing, too old, or does not start.
    pub fn before(
        postgres: &Postgres,
        user: &str,
        password: &str,
        connections: u32,
    ) -> Result<Self> {
        let program = program(NAME, PACKAGE)?;
        let version = recent_enough(&program)?;
        let owner = User::unprivileged()?;
        let folder = owner.folder()?;
        let write = |name: &str, text: String| {
            let file = folder.path().join(name);
            fs::write(&file, text).doing("writing the pooler's settings")?;
            owner.own(&file)
        };
        write("users", format!("\"{user}\" \"{password}\"\n"))?;
        let (port, server) = on_free_port(|port| {
            write("settings", settings(postgres.port(), port, connections))?;
            let mut command = owner.command(&program, folder.path());
            command.arg("settings");
            let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            let log = folder.path().join("log");
            Server::start(NAME, command, Signal::KILL, log, answers)
        })?;
        Ok(Self {
            _server: server,
            port,
            version,
            _folder: folder,
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The program's name and version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

fn settings(postgres: u16, port: u16, connections: u32) -> String {
    format!(
        "[databases]
* = host=127.0.0.1 port={postgres}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = users
pool_mode = transaction
max_prepared_statements = 256
default_pool_size = {connections}
max_client_conn = 1000
"
    )
}

fn recent_enough(program: &PathBuf) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .doing("asking for the pooler's version")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let first = said.lines().next().unwrap_or_default().to_owned();
    let numbers = first.rsplit(' ').next().unwrap_or_default();
    let mut numbers = numbers
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= MIN_VERSION => Ok(first),
        _ => Err(Error::Failed {
            program: NAME.to_owned(),
            what: format!("is too old: {PACKAGE} is needed"),
            output: first,
        }),
    }
}
