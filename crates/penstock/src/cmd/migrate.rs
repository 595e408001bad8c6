//! `penstock migrate`: creates an embedded database, or migrates a database to this version.

use std::process::ExitCode;

use serde::Serialize;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::terminal::Terminal;

#[derive(Serialize)]
struct Answer {
    /// The version before; null if there was no schema.
    from: Option<i64>,
    to: i64,
}

pub(crate) async fn run(given: InstallationArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let config = given.load(terminal).await?;
    let migrated = runtime::store::migrate(&config).await?;
    terminal.name_installation(config.mode, &config.migrate_database);
    let answer = Answer {
        from: migrated.from,
        to: migrated.to,
    };
    terminal.answer(&answer, || migrated.to_string())?;
    Ok(ExitCode::SUCCESS)
}
