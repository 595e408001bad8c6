//! Logs: one line an event on stderr, for machines or for people.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::config::{ConfigFault, LogFormat};

/// The variable that chooses levels, as everywhere in Rust.
const LEVELS: &str = "RUST_LOG";

/// Starts logging. Panics are logged too, in the same form. Where something logs already, as in
/// tests, nothing changes.
///
/// # Errors
/// A fault that names `RUST_LOG` where it cannot be read.
pub fn start(format: LogFormat) -> Result<(), ConfigFault> {
    let levels = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .with_env_var(LEVELS)
        .try_from_env();
    let levels = levels.or_else(|unread| match std::env::var(LEVELS) {
        Err(std::env::VarError::NotPresent) => Ok(EnvFilter::new("info")),
        _ => Err(ConfigFault {
            setting: LEVELS.to_owned(),
            expected: format!("expected levels such as info or warn,pools_http=debug ({unread})"),
        }),
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(levels)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
    if started.is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(())
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(ToString::to_string);
    tracing::error!(
        panic.message = message,
        panic.location = location.as_deref(),
        "A task panicked"
    );
}
