//! A private Postgres.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::servers::process::{Server, User, on_free_port, program, run};
use crate::servers::{Doing, Result};

const PACKAGE: &str = "PostgreSQL 15 or newer (Debian and Ubuntu: `apt install postgresql`)";

/// A private Postgres with a superuser of its own.
#[derive(Debug)]
pub struct Postgres {
    // Dropped before its folder.
    server: Option<Server>,
    settings: Vec<(String, String)>,
    postgres: PathBuf,
    is_ready: PathBuf,
    user: User,
    port: u16,
    password: String,
    folder: TempDir,
}

/// How a server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ends sessions and writes everything: `pg_ctl stop -m fast`.
    Fast,
    /// Stops as in a power cut, so that the next start recovers from the log: `pg_ctl stop -m immediate`.
    Immediate,
}

impl Postgres {
    /// Creates a cluster and starts it. Settings are lines of `postgresql.conf`.
    ///
    /// # Errors
    /// If a program is missing or does not start.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let initdb = program("initdb", PACKAGE)?;
        let user = User::unprivileged()?;
        let folder = user.folder()?;
        let password = password()?;
        let file = folder.path().join("password");
        fs::write(&file, &password).doing("writing the password")?;
        user.own(&file)?;
        run(user
            .command(&initdb, folder.path())
            .args(["--pgdata=data", "--username=postgres", "--encoding=UTF8"])
            .args(["--locale=C.UTF-8", "--pwfile=password", "--no-instructions"])
            // The password is sent in the clear, which is safe on the loopback: in debug builds a salted proof costs more than a test.
            .args(["--auth-host=password", "--auth-local=password"]))?;
        let mut postgres = Self {
            server: None,
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            postgres: program("postgres", PACKAGE)?,
            is_ready: program("pg_isready", PACKAGE)?,
            user,
            port: 0,
            password,
            folder,
        };
        let (port, server) = on_free_port(|port| postgres.launch(port))?;
        postgres.port = port;
        postgres.server = Some(server);
        Ok(postgres)
    }

    /// The superuser's URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let Self { port, password, .. } = self;
        format!("postgres://postgres:{password}@127.0.0.1:{port}/{database}")
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Writes a file into the folder of the data, where the server looks for its certificate and its other files. Only the server's user
    /// can read it. The server reads most of them when it starts.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, name: &str, contents: &str) -> Result<()> {
        let file = self.folder.path().join("data").join(name);
        fs::write(&file, contents).doing(format!("writing {}", file.display()))?;
        fs::set_permissions(&file, Permissions::from_mode(0o600))
            .doing(format!("protecting {}", file.display()))?;
        self.user.own(&file)
    }

    /// A command of a client program, such as `pgbench`, as the superuser on a database.
    ///
    /// # Errors
    /// If the program is missing.
    pub fn client(&self, name: &'static str, database: &str) -> Result<Command> {
        let program = program(name, PACKAGE)?;
        Ok(client(&program, self.port, &self.password, database))
    }

    /// Stops the server and keeps its data.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn stop(&mut self, how: Stop) -> Result<()> {
        let signal = match how {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        };
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        server.end(signal)
    }

    /// Starts the server again on the same port.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> Result<()> {
        self.server = None;
        self.server = Some(self.launch(self.port)?);
        Ok(())
    }

    fn launch(&self, port: u16) -> Result<Server> {
        let folder = self.folder.path();
        let mut command = self.user.command(&self.postgres, folder);
        command
            .args(["-D", "data", "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", &format!("port={port}")])
            .args([
                "-c",
                "unix_socket_directories=",
                "-c",
                "max_connections=200",
            ]);
        for (name, value) in &self.settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        let answers = || {
            let mut command = self.user.command(&self.is_ready, folder);
            command
                .args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let log = folder.join("log");
        Server::start("postgres", command, Signal::QUIT, log, answers)
    }
}

/// A command of a client program as the superuser.
pub(super) fn client(program: &Path, port: u16, password: &str, database: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string())
        .env("PGUSER", "postgres")
        .env("PGPASSWORD", password)
        .env("PGDATABASE", database)
        .stdin(Stdio::null());
    command
}

/// Makes a random password, because other users of the machine can reach the loopback too.
pub(crate) fn password() -> Result<String> {
    use std::fmt::Write;
    use std::io::Read;

    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .doing("making a password")?;
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
