//! The operator's and developer's command line.
//!
//! A command is a short file in `cmd/`: it parses its arguments, runs one use case of a core, and prints the result. Only
//! `terminal` prints.

mod arguments;
mod cmd;
mod examples;
mod failure;
mod installation;
mod progress;
mod table_writer;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use arguments::{Arguments, Command};
use failure::Failure;
use partner_core::credential::masked;
use terminal::{Output, Terminal};

/// Runs the command line of this process. The exit code is 0, 1 (refused or failed) or 2 (bad input).
#[must_use]
pub fn run() -> ExitCode {
    let arguments = match parse(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(unread) => return unread_arguments(&unread),
    };
    let terminal = Terminal::new(arguments.output);
    let ended = match tokio::runtime::Runtime::new() {
        Ok(tokio) => tokio.block_on(dispatch(arguments, &terminal)),
        Err(error) => Err(Failure::Failed(error.to_string())),
    };
    match ended {
        Ok(code) => code,
        Err(failure) => terminal.fail(&failure),
    }
}

fn parse(mut words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    // clap would read the second word of `help --help` as the name of a command.
    if let [_, first, second, ..] = words.as_slice()
        && first == "help"
        && (second == "--help" || second == "-h")
    {
        words.remove(1);
    }
    let mut command = examples::add_to(Arguments::command());
    let is_apply = words.iter().any(|word| word == "apply");
    let matches = command.try_get_matches_from_mut(words).map_err(|unread| {
        if is_apply {
            name_file_flag(unread)
        } else {
            unread
        }
    })?;
    Arguments::from_arg_matches(&matches).map_err(|unread| unread.format(&mut command))
}

/// Adds the right command to the error about a file without `-f`, the usual mistake with `apply`.
fn name_file_flag(mut unread: clap::Error) -> clap::Error {
    if unread.kind() != ErrorKind::UnknownArgument {
        return unread;
    }
    let file = match unread.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(file)) if !file.starts_with('-') => file.clone(),
        _ => return unread,
    };
    let remedy = StyledStr::from(format!("name the file after -f: penstock apply -f {file}"));
    unread.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![remedy]),
    );
    unread
}

async fn dispatch(arguments: Arguments, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let given = arguments.given;
    match arguments.command {
        Command::Sandbox(command) => cmd::sandbox::run(given, command, terminal).await,
        Command::Apply(command) => cmd::apply::run(given, command, terminal).await,
        Command::Migrate => cmd::migrate::run(given, terminal).await,
        Command::Key(command) => cmd::key::run(given, command, terminal).await,
        Command::MasterKey(command) => cmd::master_key::run(given, command, terminal).await,
        Command::Clock(command) => cmd::clock::run(given, command, terminal).await,
        Command::Balance(command) => cmd::credit::run_balance(given, command, terminal).await,
        Command::Crypto(command) => cmd::credit::run_crypto(given, command, terminal).await,
        Command::Webhook(command) => cmd::webhook::run(given, command, terminal).await,
        Command::Export(command) => cmd::export::run(given, command, terminal).await,
        Command::Completions(command) => cmd::completions::run(&command),
        Command::Verify(command) => cmd::verify::run(given, command, terminal).await,
    }
}

/// Prints help and version to stdout. Other errors of the arguments are bad input, printed in the requested format if the
/// arguments contain it.
fn unread_arguments(unread: &clap::Error) -> ExitCode {
    let output = Output::wanted(std::env::args_os());
    if !unread.use_stderr() {
        return match terminal::written(unread.print()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => Terminal::new(output).fail(&failure),
        };
    }
    let text = unread.render().to_string();
    if output == Output::Text && masked(&text) == text {
        // Prints with colours if the terminal supports them.
        let _ = unread.print();
        return ExitCode::from(2);
    }
    let message = match output {
        Output::Text => text.trim_end(),
        Output::Json => text.trim().trim_start_matches("error: "),
    };
    Terminal::new(output).fail(&Failure::input(message))
}
