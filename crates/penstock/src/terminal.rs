//! Prints the output of commands, for people or for programs.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Once, OnceLock};
use std::thread;

use clap::ValueEnum;
use kernel::Mode;
use partner_core::credential::masked;
use runtime::config::Database;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::failure::Failure;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text for people
    Text,
    /// One JSON value for programs
    Json,
}

impl Output {
    /// The format that the arguments request, even if they cannot be parsed as a whole.
    pub(crate) fn wanted(arguments: impl Iterator<Item = OsString>) -> Self {
        let arguments: Vec<OsString> = arguments.collect();
        let apart = arguments
            .windows(2)
            .any(|pair| matches!(pair, [flag, value] if flag == "--output" && value == "json"));
        if apart || arguments.iter().any(|it| it == "--output=json") {
            Self::Json
        } else {
            Self::Text
        }
    }
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Terminal {
    output: Output,
    /// What the command works on, after it was named.
    installation: OnceLock<NamedInstallation>,
}

#[derive(Debug, Serialize)]
struct NamedInstallation {
    mode: &'static str,
    database: String,
    #[serde(skip)]
    announced: Once,
}

/// A result with the installation that it is about.
#[derive(Serialize)]
struct NamedResult<'r, T> {
    #[serde(flatten)]
    result: &'r T,
    #[serde(flatten)]
    installation: &'r NamedInstallation,
}

impl Terminal {
    pub(crate) const fn new(output: Output) -> Self {
        Self {
            output,
            installation: OnceLock::new(),
        }
    }

    /// Names the installation that the command works on, for the line on stderr before the result, and for the JSON of every result.
    pub(crate) fn name_installation(&self, mode: Mode, database: &Database) {
        self.installation.get_or_init(|| NamedInstallation {
            mode: mode.as_str(),
            database: database.to_string(),
            announced: Once::new(),
        });
    }

    /// Prints the installation on stderr, once. Results do so themselves. A failure names what it is about, without this line.
    pub(crate) fn announce(&self) {
        if let Some(named) = self.installation.get() {
            named
                .announced
                .call_once(|| self.remark(&format!("{}, {}", named.mode, named.database)));
        }
    }

    pub(crate) const fn output(&self) -> Output {
        self.output
    }

    pub(crate) fn is_for_people(&self) -> bool {
        self.output == Output::Text
    }

    /// The style of text on stdout. It is plain unless stdout is a terminal with colours.
    pub(crate) fn style(&self) -> Style {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Style(self.is_for_people() && !is_plain && io::stdout().is_terminal())
    }

    /// Prints the result: JSON on one line for programs, or `text` for people.
    ///
    /// A closed pipe, such as that of `head`, is not an error.
    pub(crate) fn answer<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        write_answer(&self.line(value, text)?)
    }

    /// Prints the result, then `lines`, on a separate thread. Neither a service nor its shutdown waits for a reader of stdout that has
    /// stalled. The receiver gets the outcome when everything is printed.
    pub(crate) fn answer_in_background<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
        lines: Vec<String>,
    ) -> Result<oneshot::Receiver<Result<(), Failure>>, Failure> {
        let answer = self.line(value, text)?;
        let (done, printed) = oneshot::channel();
        let print = move || {
            let outcome = write_answer(&answer);
            if outcome.is_ok() {
                lines.iter().for_each(|line| say(line));
            }
            // The caller may have stopped waiting.
            let _ = done.send(outcome);
        };
        match thread::Builder::new().spawn(print) {
            Ok(_) => Ok(printed),
            Err(error) => Err(Failure::Failed(format!("cannot start a thread ({error})"))),
        }
    }

    /// Prints a result that cannot be printed again. If printing fails, the failure contains `remedy`.
    pub(crate) fn answer_once<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
        remedy: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let written = self.line(value, text).map(|line| write(&line))?;
        written.map_err(|error| {
            let remedy = remedy();
            Failure::Failed(format!("cannot write to stdout ({error}); {remedy}"))
        })
    }

    fn line<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<String, Failure> {
        self.announce();
        let line = match self.output {
            Output::Text => Ok(text()),
            Output::Json => match self.installation.get() {
                Some(installation) => serde_json::to_string(&NamedResult {
                    result: value,
                    installation,
                }),
                None => serde_json::to_string(value),
            },
        };
        let line = line.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(line.trim_end().to_owned())
    }

    /// Prints a progress line for people. Programs get only the result.
    pub(crate) fn progress(&self, line: &str) {
        if self.output == Output::Text {
            say(line);
        }
    }

    /// Prints a remark for people on stderr. Programs get no remarks.
    pub(crate) fn remark(&self, line: &str) {
        if self.output == Output::Text {
            say_error(&masked(line));
        }
    }

    /// Prints why the command failed. The message may repeat an argument, so keys and secrets are masked here for all commands.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        let text = masked(&failure.lines().join("\n"));
        match self.output {
            Output::Text => say_error(&text),
            Output::Json => say_error(&serde_json::json!({ "error": text }).to_string()),
        }
        ExitCode::from(failure.exit_code())
    }
}

/// Emphasis by ANSI codes, if enabled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style(bool);

impl Style {
    /// Emphasises the most important text.
    pub(crate) fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Dims the label of a value.
    pub(crate) fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Lines that wait for the reader of stdout.
const MAX_WAITING_LINES: usize = 256;

/// Prints lines on a separate thread, so that no async task waits for the reader of stdout.
#[derive(Debug)]
pub(crate) struct BackgroundPrinter(SyncSender<String>);

impl BackgroundPrinter {
    /// Starts the thread, which calls `print` with each line.
    pub(crate) fn start(print: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let (sender, lines) = mpsc::sync_channel::<String>(MAX_WAITING_LINES);
        thread::Builder::new().spawn(move || lines.iter().for_each(|line| print(&line)))?;
        Ok(Self(sender))
    }

    /// Prints a line, or drops it if too many lines wait for the reader.
    pub(crate) fn say(&self, line: String) {
        let _ = self.0.try_send(line);
    }
}

/// Prints a line on stdout. A failed write is ignored, because the reader may have closed the pipe.
pub(crate) fn say(line: &str) {
    let _ = write(line);
}

/// Prints a result.
fn write_answer(line: &str) -> Result<(), Failure> {
    written(write(line))
}

/// The failure of a write to stdout. A closed pipe is not a failure.
pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to stdout ({error})")))
        }
        _ => Ok(()),
    }
}

fn write(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn say_error(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_printer_drops_lines_instead_of_waiting_for_its_reader() {
        let (sender, printed) = mpsc::channel();
        let (reader, reads) = mpsc::channel::<()>();
        let print = move |line: &str| {
            // Fails after the test has dropped its end: from then on the reader reads everything.
            let _ = reads.recv();
            sender.send(line.to_owned()).unwrap();
        };
        let printer = BackgroundPrinter::start(print).unwrap();
        for number in 0..2 * MAX_WAITING_LINES {
            printer.say(number.to_string());
        }
        drop((reader, printer));
        let printed: Vec<String> = printed.iter().collect();
        assert_eq!(printed[0], "0");
        assert!(printed.len() <= MAX_WAITING_LINES + 1, "{}", printed.len());
    }

    #[test]
    fn output_format_is_found_in_invalid_arguments() {
        let wanted = |line: &str| Output::wanted(line.split(' ').map(OsString::from));
        assert_eq!(wanted("penstock nonsense --output json"), Output::Json);
        assert_eq!(wanted("penstock --output=json"), Output::Json);
        assert_eq!(wanted("penstock --output text verify"), Output::Text);
        assert_eq!(wanted("penstock json --output"), Output::Text);
    }
}
