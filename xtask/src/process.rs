//! Starts other programs. An error always names the call that failed.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use crate::Result;

/// Runs a program with the streams of this process. Every exit status except success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| not_started(command, &error))?;
    succeeded(command, status)
}

/// Returns the standard output of a call, which must succeed. Its standard error is printed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started(command, &error))?;
    succeeded(command, output.status)?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Prints standard output line by line and passes each line to `read`.
pub(crate) fn stream(command: &mut Command, mut read: impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(command, &error))?;
    if let Some(pipe) = child.stdout.take() {
        let mut reader = BufReader::new(pipe);
        let mut out = std::io::stdout().lock();
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            out.write_all(&line)?;
            out.flush()?;
            read(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    Ok(child.wait()?)
}

/// Finds the file of a program on `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Returns whether a program can be started. Every tool accepts `--version`.
pub(crate) fn installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` ended with {status}", shown(command)).into())
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("`{}` is not installed", command.get_program().display()),
        _ => format!("`{}` could not be started: {error}", shown(command)),
    }
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    words.join(" ")
}
