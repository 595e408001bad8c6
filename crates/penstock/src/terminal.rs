//! What is printed, and for whom.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::ValueEnum;
use partner_core::credential::masked;
use serde::Serialize;

use crate::failure::Failure;

/// For whom a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text for people
    Text,
    /// One JSON value for programs
    Json,
}

impl Output {
    /// What the arguments ask for, where they could not be read as a whole.
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

/// Where a command answers.
#[derive(Debug)]
pub(crate) struct Terminal {
    output: Output,
}

impl Terminal {
    pub(crate) const fn new(output: Output) -> Self {
        Self { output }
    }

    /// For whom the command answers.
    pub(crate) const fn output(&self) -> Output {
        self.output
    }

    /// Whether a person reads the output.
    pub(crate) fn is_for_people(&self) -> bool {
        self.output == Output::Text
    }

    /// How text is emphasised on stdout: not at all unless it is a terminal that takes colours.
    pub(crate) fn style(&self) -> Style {
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Style(self.is_for_people() && !is_plain && io::stdout().is_terminal())
    }

    /// Answers: a value on one line for programs, or text for people. The text is made only where it is shown.
    ///
    /// A reader that has stopped reading, such as `head`, is no failure.
    pub(crate) fn answer<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match write(&self.line(value, text)?) {
            Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Failed(format!("stdout: not written ({fault})")))
            }
            _ => Ok(()),
        }
    }

    /// Answers with something that is printed this once. Output that fails loses it, so the failure says what to do then.
    pub(crate) fn answer_once<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
        remedy: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let written = self.line(value, text).map(|line| write(&line))?;
        written.map_err(|fault| {
            let remedy = remedy();
            Failure::Failed(format!("stdout: not written ({fault}); {remedy}"))
        })
    }

    fn line<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> Result<String, Failure> {
        let line = match self.output {
            Output::Text => Ok(text()),
            Output::Json => serde_json::to_string(value),
        };
        let line = line.map_err(|fault| Failure::Failed(fault.to_string()))?;
        Ok(line.trim_end().to_owned())
    }

    /// Tells people how far it is; programs get the whole at the end.
    pub(crate) fn progress(&self, line: &str) {
        if self.output == Output::Text {
            say(line);
        }
    }

    /// Says something to people; programs are not told.
    pub(crate) fn remark(&self, line: &str) {
        if self.output == Output::Text {
            say_error(&masked(line));
        }
    }

    /// Says why the command did not do what was asked. Whatever was given may be repeated in it,
    /// so keys and secrets are masked here, once for all.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        let text = masked(&failure.lines().join("\n"));
        match self.output {
            Output::Text => say_error(&text),
            Output::Json => say_error(&serde_json::json!({ "error": text }).to_string()),
        }
        ExitCode::from(failure.exit_code())
    }
}

/// Emphasis by ANSI codes, if it is on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style(bool);

impl Style {
    /// What a reader should see first.
    pub(crate) fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Labels beside values.
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

/// Prints a line on stdout. Whoever started the program may have stopped reading; that is no
/// reason to stop.
pub(crate) fn say(line: &str) {
    let _ = write(line);
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
    fn the_form_of_errors_is_found_even_in_broken_arguments() {
        let wanted = |line: &str| Output::wanted(line.split(' ').map(OsString::from));
        assert_eq!(wanted("penstock nonsense --output json"), Output::Json);
        assert_eq!(wanted("penstock --output=json"), Output::Json);
        assert_eq!(wanted("penstock --output text verify"), Output::Text);
        assert_eq!(wanted("penstock json --output"), Output::Text);
    }
}
