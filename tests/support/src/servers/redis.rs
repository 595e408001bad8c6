//! A private Redis.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::servers::Result;
use crate::servers::process::{Server, User, on_free_port, program};

const PACKAGE: &str = "Redis 7 or newer (Debian and Ubuntu: `apt install redis-server`)";

/// A private Redis that keeps nothing on disk.
#[derive(Debug)]
pub struct Redis {
    // Dropped before its folder.
    server: Option<Server>,
    program: PathBuf,
    user: User,
    port: u16,
    folder: TempDir,
}

impl Redis {
    /// Starts a Redis.
    ///
    /// # Errors
    /// If the program is missing or does not start.
    pub fn start() -> Result<Self> {
        let program = program("redis-server", PACKAGE)?;
        let user = User::unprivileged()?;
        let mut redis = Self {
            server: None,
            program,
            user,
            port: 0,
            folder: user.folder()?,
        };
        let (port, server) = on_free_port(|port| redis.launch(port))?;
        redis.port = port;
        redis.server = Some(server);
        Ok(redis)
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server, which loses its data.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        server.end(Signal::KILL)
    }

    /// Starts the server again, empty, on the same port.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> Result<()> {
        self.server = None;
        self.server = Some(self.launch(self.port)?);
        Ok(())
    }

    /// Stops its responses without ending it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it respond again.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        self.server
            .as_mut()
            .map_or(Ok(()), |server| server.signal(signal))
    }

    fn launch(&self, port: u16) -> Result<Server> {
        let folder = self.folder.path();
        let mut command = self.user.command(&self.program, folder);
        command
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
        let answers = move || ping(port).unwrap_or(false);
        let log = folder.join("log");
        Server::start("redis-server", command, Signal::KILL, log, answers)
    }
}

fn ping(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    Ok(&answer == b"+PONG")
}
