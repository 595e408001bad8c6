//! Runs tasks in parallel processes and prints each output when the task ends.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::Result;
use crate::suites::Outcome;
use crate::summary::Counts;

/// Tasks that run one after another.
pub(crate) struct Row {
    pub(crate) tasks: &'static [&'static str],
    /// Runs with a lower priority, so that it computes while the other rows wait.
    pub(crate) is_niced: bool,
}

/// Runs all rows at the same time. A task that fails does not stop the others.
pub(crate) fn run(rows: &[Row], folder: &Path) -> Result<Outcome> {
    fs::create_dir_all(folder)?;
    let outcomes: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = rows
            .iter()
            .map(|row| scope.spawn(move || run_row(row, folder)))
            .collect();
        running.into_iter().map(|row| row.join()).collect()
    });
    let mut all = Outcome::default();
    for row in outcomes {
        all += row.map_err(|_| "a task's thread panicked")??;
    }
    Ok(all)
}

fn run_row(row: &Row, folder: &Path) -> io::Result<Outcome> {
    let mut all = Outcome::default();
    let this = std::env::current_exe()?;
    for task in row.tasks {
        let name = task.split(' ').next().unwrap_or(task);
        let mut command = match row.is_niced {
            true => Command::new("nice"),
            false => Command::new(&this),
        };
        command.args(row.is_niced.then_some(&this));
        command.args(task.split_whitespace());
        all += run_task(task, &mut command, &folder.join(name))?;
    }
    Ok(all)
}

/// Runs a task of this program. The last line of a test run has the counts.
fn run_task(task: &str, command: &mut Command, log: &Path) -> io::Result<Outcome> {
    let (output, status) = run_logged(task, command, log)?;
    let counts = output.lines().last().and_then(Counts::of_plain);
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Outcome {
        counts: counts.unwrap_or_default(),
        code: code.unwrap_or(1),
    })
}

/// Runs a command, prints its output when it has ended, and returns the output.
pub(crate) fn run_logged(
    name: &str,
    command: &mut Command,
    log: &Path,
) -> io::Result<(String, ExitStatus)> {
    let file = File::create(log)?;
    let status = command
        .stdin(Stdio::null())
        .stderr(file.try_clone()?)
        .stdout(file)
        .status()?;
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    println!("-- {name}\n{output}");
    Ok((output, status))
}

#[cfg(test)]
mod tests {
    use super::{Row, run};

    /// A task is a call of the current program, which is the test binary here.
    #[test]
    fn failed_task_does_not_stop_others_and_all_outputs_are_logged() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            Row {
                tasks: &["--unknown", "--list"],
                is_niced: false,
            },
            Row {
                tasks: &["--help"],
                is_niced: true,
            },
        ];
        let outcome = run(&rows, folder.path()).unwrap();
        assert_ne!(outcome.code, 0);
        for (task, part) in [
            ("--unknown", "Unrecognized option"),
            ("--list", "failed_task_does_not_stop_others"),
            ("--help", "Usage"),
        ] {
            let output = std::fs::read_to_string(folder.path().join(task)).unwrap();
            assert!(output.contains(part), "{task}: {output}");
        }
    }
}
