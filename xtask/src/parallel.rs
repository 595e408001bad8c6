//! Tasks at the same time, each a process of its own, whose words are shown when it has ended.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::Result;
use crate::suites::Outcome;
use crate::summary::Counts;

/// Tasks that run one after the other.
pub(crate) struct Row {
    pub(crate) tasks: &'static [&'static str],
    /// Computes while the others wait.
    pub(crate) gives_way: bool,
}

/// Runs every row to its end, even where a task has failed.
pub(crate) fn run(rows: &[Row], folder: &Path) -> Result<Outcome> {
    fs::create_dir_all(folder)?;
    let outcomes: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = rows
            .iter()
            .map(|row| scope.spawn(move || one_after_the_other(row, folder)))
            .collect();
        running.into_iter().map(|row| row.join()).collect()
    });
    let mut all = Outcome::default();
    for row in outcomes {
        all += row.map_err(|_| "a task's thread panicked")??;
    }
    Ok(all)
}

fn one_after_the_other(row: &Row, folder: &Path) -> io::Result<Outcome> {
    let mut all = Outcome::default();
    let this = std::env::current_exe()?;
    for task in row.tasks {
        let name = task.split(' ').next().unwrap_or(task);
        let mut command = match row.gives_way {
            true => Command::new("nice"),
            false => Command::new(&this),
        };
        command.args(row.gives_way.then_some(&this));
        command.args(task.split_whitespace());
        all += ended(task, &mut command, &folder.join(name))?;
    }
    Ok(all)
}

/// Runs a task of this program. A run of tests says its counts in its last line.
fn ended(task: &str, command: &mut Command, log: &Path) -> io::Result<Outcome> {
    let (said, status) = heard(task, command, log)?;
    let counts = said.lines().last().and_then(Counts::of_plain);
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(Outcome {
        counts: counts.unwrap_or_default(),
        code: code.unwrap_or(1),
    })
}

/// Runs a command, shows its words when it has ended, and returns them.
pub(crate) fn heard(
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
    let said = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    println!("-- {name}\n{said}");
    Ok((said, status))
}

#[cfg(test)]
mod tests {
    use super::{Row, run};

    /// A task is a call of this program, which here is the tests'.
    #[test]
    fn one_that_fails_ends_no_other_and_all_are_heard() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            Row {
                tasks: &["--unheard-of", "--list"],
                gives_way: false,
            },
            Row {
                tasks: &["--help"],
                gives_way: true,
            },
        ];
        let outcome = run(&rows, folder.path()).unwrap();
        assert_ne!(outcome.code, 0);
        for (task, words) in [
            ("--unheard-of", "Unrecognized option"),
            ("--list", "one_that_fails_ends_no_other"),
            ("--help", "Usage"),
        ] {
            let said = std::fs::read_to_string(folder.path().join(task)).unwrap();
            assert!(said.contains(words), "{task}: {said}");
        }
    }
}
