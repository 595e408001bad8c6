//! A private Postgres.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::servers::process::{Server, User, find, on_free_port, run};
use crate::servers::{Doing, Error, Result};

const PACKAGE: &str = "PostgreSQL 15 or newer (Debian and Ubuntu: `apt install postgresql`)";

/// A private Postgres with a superuser of its own.
#[derive(Debug)]
pub struct Postgres {
    // Ends before its folder goes.
    server: Option<Server>,
    settings: Vec<(String, String)>,
    postgres: PathBuf,
    is_ready: PathBuf,
    user: User,
    port: u16,
    password: String,
    folder: TempDir,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are ended, everything is written: `pg_ctl stop -m fast`.
    Fast,
    /// As after a power cut; the next start recovers from the log: `pg_ctl stop -m immediate`.
    Immediate,
}

impl Postgres {
    /// Makes a cluster and starts it. Settings are lines of `postgresql.conf`.
    ///
    /// # Errors
    /// Where the programs are missing or refuse.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let initdb = program("initdb")?;
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
            // In the clear, for it stays on this machine: unoptimized programs compute longer for a salted proof than for
            // what they came for.
            .args(["--auth-host=password", "--auth-local=password"]))?;
        let mut postgres = Self {
            server: None,
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            postgres: program("postgres")?,
            is_ready: program("pg_isready")?,
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

    /// Where a database of this server is, as its superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let Self { port, password, .. } = self;
        format!("postgres://postgres:{password}@127.0.0.1:{port}/{database}")
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A call of one of its client programs, such as `pgbench`, as its superuser on one of its databases.
    ///
    /// # Errors
    /// Where the program is missing.
    pub fn client(&self, name: &'static str, database: &str) -> Result<Command> {
        let mut command = Command::new(program(name)?);
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGPASSWORD", &self.password)
            .env("PGDATABASE", database)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Stops it; its data stay.
    ///
    /// # Errors
    /// Where the machine refuses.
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

    /// Starts it again on the port it had.
    ///
    /// # Errors
    /// Where it does not come up.
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
        Server::start(
            "postgres",
            command,
            Signal::QUIT,
            folder.join("log"),
            answers,
        )
    }
}

fn program(name: &'static str) -> Result<PathBuf> {
    find(name).ok_or(Error::Missing {
        program: name,
        package: PACKAGE,
    })
}

/// Other users of this machine can reach the loopback too.
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
