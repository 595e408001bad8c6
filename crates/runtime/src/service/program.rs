//! The commands and the exit of a service program.

use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{Config, ConfigError, Loaded, OpenError, Ports, Runtime, Sources, descriptors};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use gate_core::catalogue::Catalogue;
use http_kit::Document;
use http_kit::openapi::to_yaml;

use super::listening::{BoundService, StartError};
use crate::shutdown::serve_and_close;

/// Timeout for the lines that a service prints. Their reader may have stalled.
const PRINT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    /// A sentence about the program.
    pub about: &'static str,
    /// The published documents, the contract first.
    pub documents: fn() -> Result<Vec<Document>, StartError>,
    /// Checks the settings that only this service requires.
    pub check: fn(&Config) -> Result<(), Vec<ConfigError>>,
    /// Warnings that concern only this service, one line each.
    pub warnings: fn(&Config, &Catalogue) -> Vec<&'static str>,
    /// The number of public listeners that the service opens.
    pub listeners: fn(&Config) -> usize,
    /// Binds the service and starts its background tasks.
    pub start: for<'r> fn(&'r Runtime) -> Starting<'r>,
}

/// A service that is being bound.
pub type Starting<'r> = Pin<Box<dyn Future<Output = Result<BoundService, StartError>> + Send + 'r>>;

#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// TOML file of settings; environment variables take precedence
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Serves the API; the default command
    Serve,
    /// Migrates the database's schema to this version
    Migrate,
    /// Prints the published contract as YAML.
    Openapi {
        /// Another published document
        name: Option<String>,
    },
    /// Prints the effective configuration, secrets masked, and checks the files that it names.
    Config,
}

/// Why the program fails.
enum Failure {
    /// Bad configuration: exit 2.
    Config(Vec<ConfigError>),
    /// An unknown argument: exit 2.
    Arguments(String),
    /// Any other error: exit 1.
    Other(String),
}

/// Runs the command of the command line after the whole line was parsed.
#[must_use]
pub fn run(program: &Program) -> ExitCode {
    let named = Arguments::command().name(program.name).about(program.about);
    let parsed = named.try_get_matches();
    let arguments = match parsed.and_then(|found| Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(unread) => return print_unread(&unread),
    };
    let command = arguments.command.unwrap_or(Command::Serve);
    let serves = matches!(command, Command::Serve);
    let ended = match command {
        Command::Openapi { name } => openapi(program, name.as_deref()),
        Command::Serve | Command::Migrate | Command::Config => {
            let loaded = Config::load(&Sources::of_process(arguments.config));
            loaded
                .map_err(Failure::Config)
                .and_then(|loaded| configured(program, command, loaded))
        }
    };
    let (lines, code) = match ended {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Config(faults)) => {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            (lines.join("\n"), ExitCode::from(2))
        }
        Err(Failure::Arguments(line)) => (line, ExitCode::from(2)),
        Err(Failure::Other(line)) => (line, ExitCode::FAILURE),
    };
    if serves {
        print_within_timeout(move || say_error(&lines));
    } else {
        say_error(&lines);
    }
    code
}

/// Prints help or the version on stdout, or an error of the arguments on stderr.
fn print_unread(unread: &clap::Error) -> ExitCode {
    match unread.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say_error(&not_written(&error));
            ExitCode::FAILURE
        }
        _ if unread.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// The errors of the settings that only serving requires, and of what the libraries read.
fn check(program: &Program, config: &Config) -> Result<(), Failure> {
    let checks = [
        config.check_serving(),
        (program.check)(config),
        crate::surroundings::check(),
    ];
    let faults: Vec<ConfigError> = checks
        .into_iter()
        .filter_map(Result::err)
        .flatten()
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Failure::Config(faults))
    }
}

fn configured(program: &Program, command: Command, loaded: Loaded) -> Result<(), Failure> {
    let config = &loaded.config;
    if let Command::Config = command {
        say(&loaded.effective)?;
        let warnings = loaded.warnings.iter().chain(&loaded.serving_warnings);
        warnings.for_each(|line| say_error(line));
        check(program, config)?;
        let catalogue = crate::check_files(config).map_err(Failure::Config)?;
        let warnings = (program.warnings)(config, &catalogue).into_iter();
        warnings.for_each(say_error);
        return Ok(());
    }
    if let Command::Serve = command {
        check(program, config)?;
    }
    let telemetry = crate::telemetry::start(config.log_format, config.traces.as_ref())
        .map_err(|error| Failure::Config(vec![error]))?;
    let serves = !matches!(command, Command::Migrate);
    let serving = loaded.serving_warnings.iter().filter(|_| serves);
    for line in loaded.warnings.iter().chain(serving) {
        tracing::warn!("{line}");
    }
    let tokio =
        tokio::runtime::Runtime::new().map_err(|error| Failure::Other(error.to_string()))?;
    let ended = run_on(tokio, async {
        match command {
            Command::Migrate => migrate(loaded.config).await,
            Command::Serve | Command::Openapi { .. } | Command::Config => {
                serve(program, loaded.config).await
            }
        }
    });
    telemetry.finish();
    ended
}

/// Runs a future to its end without waiting for other tasks. A DNS lookup of the system cannot be cancelled, and takes long if
/// the name servers do not respond.
fn run_on<T>(tokio: tokio::runtime::Runtime, work: impl Future<Output = T>) -> T {
    let ended = tokio.block_on(work);
    tokio.shutdown_background();
    ended
}

async fn serve(program: &Program, mut config: Config) -> Result<(), Failure> {
    let listeners = (program.listeners)(&config);
    let shortage = descriptors::provide(&mut config, listeners);
    let runtime = Runtime::open(config, Ports::of_machine()).await?;
    for line in (program.warnings)(&runtime.base.config, &runtime.catalogue) {
        tracing::warn!("{line}");
    }
    if let Some(shortage) = shortage {
        shortage.warn();
    }
    let serving = serve_on(program, &runtime);
    serve_and_close(&runtime.shutdown, serving, runtime.close()).await
}

async fn serve_on(program: &Program, runtime: &Runtime) -> Result<(), Failure> {
    let failed = |error: &dyn std::error::Error| Failure::Other(error.to_string());
    let listening = (program.start)(runtime).await;
    let listening = listening.map_err(|error| match error {
        StartError::Open(error) => error.into(),
        error => failed(&error),
    })?;
    crate::shutdown::on_signal(&runtime.shutdown).map_err(|error| failed(&error))?;
    let name = program.name;
    let mut lines = format!("{name} listening on http://{}\n", listening.address());
    for (what, address) in listening.beside() {
        lines += &format!("{name} {what} on http://{address}\n");
    }
    print_within_timeout(move || {
        // The service serves without a reader of this line.
        if let Err(Failure::Other(why)) = say(&lines) {
            tracing::warn!("{why}");
        }
    });
    listening.run().await.map_err(|error| failed(&error))
}

async fn migrate(config: Config) -> Result<(), Failure> {
    let migrated = crate::store::migrate(&config).await?;
    say(&format!("{migrated}\n"))
}

/// The document of a name, or the contract without a name.
fn openapi(program: &Program, name: Option<&str>) -> Result<(), Failure> {
    let failed = |error: StartError| Failure::Other(error.to_string());
    let documents = (program.documents)().map_err(failed)?;
    let wanted = |document: &&Document| name.is_none_or(|name| name == document.name);
    let Some(document) = documents.iter().find(wanted) else {
        let names: Vec<&str> = documents.iter().map(|it| it.name).collect();
        return Err(Failure::Arguments(format!(
            "openapi: expected one of {}",
            names.join(", ")
        )));
    };
    let yaml = to_yaml(&document.api).map_err(|error| failed(error.into()))?;
    say(&yaml)
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(faults) => Self::Config(faults),
            OpenError::Store(_) => Self::Other(error.to_string()),
        }
    }
}

/// Prints on a separate thread. A reader that has stalled keeps a service neither from serving nor from exiting.
fn print_within_timeout(print: impl FnOnce() + Send + 'static) {
    let (done, printed) = mpsc::channel();
    let printing = thread::Builder::new().spawn(move || {
        print();
        // The caller may have stopped waiting.
        let _ = done.send(());
    });
    if printing.is_ok() {
        let _ = printed.recv_timeout(PRINT_TIMEOUT);
    }
}

/// Prints a text on stdout. A closed pipe is not an error.
fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Other(not_written(&error)))
        }
        _ => Ok(()),
    }
}

fn not_written(error: &io::Error) -> String {
    format!("cannot write to stdout ({error})")
}

fn say_error(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shutdown_does_not_wait_for_name_look_up() {
        let (response, responses) = mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let look_up = async {
            tokio::task::spawn_blocking(move || {
                let _ = begin.send(());
                // The lookup gets no response before the end of the test.
                let _ = responses.recv_timeout(Duration::from_secs(10));
            });
            begun.await
        };
        let tokio = tokio::runtime::Runtime::new().unwrap();
        assert_eq!(run_on(tokio, look_up), Ok(()));
        assert!(
            response.send(()).is_ok(),
            "the shutdown waited for the lookup"
        );
    }
}
