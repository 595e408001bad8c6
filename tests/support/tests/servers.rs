//! The servers start, stop, restart and leave nothing on the machine.
//!
//! If a program is missing, these tests fail and name the package; `cargo xtask test` installs it if it may.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use test_support::servers::{Postgres, Redis, Stop};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[test]
fn postgres_keeps_commits_over_restart_and_is_removed_on_drop() -> Result<()> {
    let mut postgres = Postgres::start(&[("synchronous_commit", "on")])?;
    let data = PathBuf::from(psql(&postgres, "SHOW data_directory")?);
    assert!(data.exists());
    assert_eq!(psql(&postgres, "SHOW listen_addresses")?, "127.0.0.1");
    psql(&postgres, "CREATE TABLE kept AS SELECT 42 AS answer")?;
    postgres.stop(Stop::Immediate)?;
    assert!(connect(postgres.port()).is_err());
    postgres.start_again()?;
    assert_eq!(psql(&postgres, "SELECT answer FROM kept")?, "42");
    let port = postgres.port();
    drop(postgres);
    assert!(connect(port).is_err());
    assert!(!data.exists());
    Ok(())
}

#[test]
fn redis_restarts_empty() -> Result<()> {
    let mut redis = Redis::start()?;
    assert_eq!(say(&redis, "SET a 1")?, "+OK\r\n");
    redis.kill()?;
    assert!(connect(redis.port()).is_err());
    redis.start_again()?;
    assert_eq!(say(&redis, "GET a")?, "$-1\r\n");
    Ok(())
}

fn connect(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
}

fn psql(postgres: &Postgres, statement: &str) -> Result<String> {
    let url = postgres.url("postgres");
    let output = Command::new("psql")
        .args(["--no-psqlrc", "-At", &url, "-c", statement])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn say(redis: &Redis, line: &str) -> Result<String> {
    let mut stream = connect(redis.port())?;
    stream.write_all(format!("{line}\r\n").as_bytes())?;
    let mut answer = vec![0; 64];
    let read = stream.read(&mut answer)?;
    answer.truncate(read);
    Ok(String::from_utf8(answer)?)
}
