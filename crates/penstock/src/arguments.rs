//! What can be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cmd::{apply, balance, completions, crypto, export, key, sandbox, webhook};
use crate::terminal::Output;

/// Operates and tries out a Penstock installation.
///
/// Settings come from flags, PENSTOCK_* variables, or the file given with --config, in this order.
/// Exit codes: 0 done, 1 refused or failed, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "penstock", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) given: Given,
    /// For people, or one JSON value for programs; errors are then JSON on stderr.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which installation is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Given {
    /// Where the data is kept, such as sqlite://penstock-data/penstock.db.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// `test` or `live`.
    #[arg(long, global = true, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// A TOML file of settings; variables win over it.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the service with a demo partner, ready to call; or checks that everything works.
    Sandbox(sandbox::Command),
    /// Makes the database agree with a declarative file.
    Apply(apply::Command),
    /// Makes, lists and revokes API keys.
    #[command(subcommand)]
    Key(key::Command),
    /// Books what partners have paid in.
    #[command(subcommand)]
    Balance(balance::Command),
    /// Books crypto that partners have sent.
    #[command(subcommand)]
    Crypto(crypto::Command),
    /// Rotates the secrets that events are signed with.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Checks every invariant over the whole database.
    Verify,
    /// Prints a window of a partner's books as CSV.
    #[command(subcommand)]
    Export(export::Command),
    /// Prints what a shell needs to complete commands and flags.
    Completions(completions::Command),
}
