//! Runs a command with a private Postgres and Redis, whose URLs are in its environment and which end with it.
//!
//! ```text
//! test-servers run [--pooler] COMMAND [ARGUMENTS]
//! test-servers install PROGRAM...
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for tests, whose interface is its output"
)]

use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use tempfile::TempDir;
use test_support::servers::{Pgbouncer, Postgres, Redis, install};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str =
    "usage: test-servers run [--pooler] COMMAND [ARGUMENTS], or test-servers install PROGRAM...";

/// Superuser's URL of the Postgres. Each test creates a database of its own.
const POSTGRES_URL: &str = "PENSTOCK_TEST_POSTGRES_URL";
/// URL of the Redis.
const REDIS_URL: &str = "PENSTOCK_TEST_REDIS_URL";
/// Port of a pooler for that Postgres, through which the Postgres store's suite serves.
const POOLER_PORT: &str = "PENSTOCK_TEST_POOLER_PORT";
/// The serving role, with the password that the Postgres store's suite gives it.
const SERVING_ROLE: &str = "penstock_serve";
/// Connections of the pooler: half of a store's pool, so that clients share them.
const POOLER_CONNECTIONS: u32 = 4;

/// Settings that flush nothing to disk and vacuum no table, because tables live briefly, and that make a password cheap to check:
/// a hash for SCRAM takes 4,096 rounds for each of thousands of connections. Suites that cut the power start a Postgres of their own.
const FOR_SPEED: [(&str, &str); 5] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
    ("password_encryption", "md5"),
];

/// Where the environment names the folder of temporary files.
const TEMPORARY: &str = "TMPDIR";
/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// Bytes that the file system must have free, and the machine available: more than the suites use at any time.
const MIN_FREE_MEMORY: u64 = 4 << 30;
/// The name of a folder in memory starts with this text. The process id of its owner and a dash follow.
const PREFIX: &str = "penstock-test-servers-";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["install", programs @ ..] if !programs.is_empty() => {
            install::by_name(programs).map_err(Into::into).map(|()| 0)
        }
        ["run", "--pooler", command, rest @ ..] => run(true, command, rest),
        ["run", command, rest @ ..] if !command.starts_with('-') => run(false, command, rest),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("test-servers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the servers, runs the command and returns its exit code. A command that a signal ended counts as failed.
fn run(with_pooler: bool, program: &str, arguments: &[&str]) -> Result<u8> {
    install::servers()?;
    remove_abandoned(Path::new(MEMORY));
    let memory = memory();
    let postgres = Postgres::start(&FOR_SPEED)?;
    let redis = Redis::start()?;
    println!(
        "private servers: Postgres on port {}, Redis on port {}",
        postgres.port(),
        redis.port()
    );
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(POSTGRES_URL, postgres.url("postgres"))
        .env(REDIS_URL, redis.url());
    if let Some(folder) = &memory {
        command.env(TEMPORARY, folder.path());
    }
    let mut pooler = None;
    if with_pooler {
        let started = Pgbouncer::before(&postgres, SERVING_ROLE, SERVING_ROLE, POOLER_CONNECTIONS)?;
        println!("{} on port {}", started.version(), started.port());
        command.env(POOLER_PORT, started.port().to_string());
        pooler = Some(started);
    }
    let status = command
        .status()
        .map_err(|error| format!("`{program}` did not start: {error}"))?;
    drop((pooler, redis, postgres, memory));
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(1))
}

/// A folder for the temporary files of this program and of the command: creating databases there takes half as long as on a disk.
/// `None` if the machine has too little memory, or if the caller has chosen a folder.
fn memory() -> Option<TempDir> {
    let space = rustix::fs::statvfs(MEMORY).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    // The file system may promise more memory than programs have left.
    let available = available_memory(&fs::read_to_string("/proc/meminfo").ok()?)?;
    if free.min(available) < MIN_FREE_MEMORY || std::env::var_os(TEMPORARY).is_some() {
        return None;
    }
    let folder = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .tempdir_in(MEMORY)
        .ok()?;
    // The servers' user must be able to reach its own folder within, whatever the umask.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).ok()?;
    tempfile::env::override_temp_dir(folder.path()).ok()?;
    Some(folder)
}

/// Bytes that programs can still use, from the text of `/proc/meminfo`.
fn available_memory(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Removes the folders of earlier runs that a signal ended.
fn remove_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for folder in entries.filter(is_abandoned) {
        let path = folder.path();
        if let Err(error) = fs::remove_dir_all(&path) {
            let path = path.display();
            eprintln!("test-servers: cannot remove {path} of an earlier run: {error}");
        }
    }
}

/// Whether a folder was made by an earlier run of the same user whose process has ended.
fn is_abandoned(folder: &DirEntry) -> bool {
    let is_own = |found: fs::Metadata| found.is_dir() && found.uid() == geteuid().as_raw();
    let has_ended = |owner| test_kill_process(owner) == Err(Errno::SRCH);
    owner(&folder.file_name()).is_some_and(has_ended) && folder.metadata().is_ok_and(is_own)
}

/// The process that a folder's name contains.
fn owner(name: &OsStr) -> Option<Pid> {
    let (owner, _) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let number: u32 = owner.parse().ok()?;
    Pid::from_raw(i32::try_from(number).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger than any process id of Linux.
    const ENDED: i32 = i32::MAX;

    #[test]
    fn folders_of_ended_runs_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let running = std::process::id();
        let removed = format!("{PREFIX}{ENDED}-a");
        let kept = [
            format!("{PREFIX}{running}-a"),
            format!("{PREFIX}{ENDED}"),
            format!("{PREFIX}0-a"),
            format!("{PREFIX}-1-a"),
            format!("other-{PREFIX}{ENDED}-a"),
        ];
        for name in kept.iter().chain([&removed]) {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        fs::write(parent.path().join(&removed).join("data"), "").unwrap();
        let file = parent.path().join(format!("{PREFIX}{ENDED}-b"));
        fs::write(&file, "").unwrap();
        remove_abandoned(parent.path());
        assert!(!parent.path().join(&removed).exists());
        for name in &kept {
            assert!(parent.path().join(name).exists(), "{name}");
        }
        assert!(file.exists());
    }

    #[test]
    fn available_memory_is_read_in_bytes() {
        let text =
            "MemTotal:       24684096 kB\nMemFree:  20055360 kB\nMemAvailable:   23569336 kB\n";
        assert_eq!(available_memory(text), Some(23_569_336 * 1024));
        assert_eq!(available_memory("MemTotal:       24684096 kB\n"), None);
    }
}
