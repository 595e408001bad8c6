//! The measured programs, built and started as an operator would.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::UNIX_EPOCH;

use kernel::Timestamp;

use crate::Result;

/// The programs that the benchmarks start.
const PROGRAMS: [&str; 2] = ["pools-service", "penstock"];

/// The folder of the programs. Unless one is given, it is the folder that cargo puts programs of this profile in.
pub(crate) fn locate(given: Option<&Path>) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    // A bench target is in the folder `deps` beside the programs.
    let beside = own.ancestors().nth(2);
    let folder = given
        .or(beside)
        .ok_or("this program's folder is unknown")?
        .to_owned();
    for program in PROGRAMS {
        let file = folder.join(program);
        if !file.is_file() {
            let file = file.display();
            return Err(format!("there is no {file}; `cargo xtask bench` builds it").into());
        }
    }
    Ok(folder)
}

/// The file of each program and when it was built. Only `cargo xtask bench` builds the programs; `cargo bench` measures what it finds.
pub(crate) fn describe(folder: &Path) -> Result<Vec<String>> {
    let programs = PROGRAMS.iter().map(|program| {
        let file = folder.join(program);
        let age = file.metadata()?.modified()?.duration_since(UNIX_EPOCH)?;
        let built = Timestamp::from_millis(i64::try_from(age.as_millis())?);
        let built = built.ok_or("a program's modification time is out of range")?;
        Ok(format!("measures {}, built at {built}", file.display()))
    });
    programs.collect()
}

/// A listening program, stopped on drop.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts the program and waits for the line with its address.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let out = child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line
            .trim()
            .rsplit_once("http://")
            .and_then(|(_, address)| address.parse().ok())
            .ok_or_else(|| format!("not a listening line: {line:?}"))?;
        Ok(Self { child, address })
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program and expects success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let done = command.stdin(Stdio::null()).output()?;
    if !done.status.success() {
        let err = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{command:?}: {err}").into());
    }
    Ok(())
}

/// A command without the environment's Penstock variables.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PENSTOCK_") {
            command.env_remove(name);
        }
    }
    command
}
