//! The command line's arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cmd::{
    apply, clock, completions, credit, export, key, master_key, sandbox, verify, webhook,
};
use crate::terminal::Output;

/// Operates and tries out a Penstock installation.
///
/// Settings come from flags, PENSTOCK_* variables, or the file given with --config, in this order.
/// Exit codes: 0 done, 1 refused or failed, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "penstock", version)]
pub(crate) struct Arguments {
    #[command(flatten, next_help_heading = "Global options")]
    pub(crate) given: InstallationArgs,
    /// Output format; with `json`, errors on stderr are JSON too
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, help_heading = "Global options")]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The installation to work on.
#[derive(Debug, Clone, Args)]
pub(crate) struct InstallationArgs {
    /// Database, sqlite:// or postgres:// [default: sqlite://penstock-data/penstock.db]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// `test` or `live` [default: the mode of the database; test for a new one]
    #[arg(long, global = true, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// TOML file of settings; variables take precedence
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs both services with a demo partner, or checks that everything works
    Sandbox(sandbox::SandboxArgs),
    /// Applies a declarative file of partners, pools and terms
    Apply(apply::ApplyArgs),
    /// Creates an embedded database, or migrates a database to this version
    Migrate,
    /// Creates, lists and revokes API keys
    #[command(subcommand)]
    Key(key::KeyArgs),
    /// Rotates the key that encrypts everything at rest
    #[command(subcommand)]
    MasterKey(master_key::MasterKeyArgs),
    /// Shows and accepts a jump of the clock
    #[command(subcommand)]
    Clock(clock::ClockArgs),
    /// Credits fiat deposits to partners
    #[command(subcommand)]
    Balance(credit::BalanceArgs),
    /// Credits crypto receipts to partners
    #[command(subcommand)]
    Crypto(credit::CryptoArgs),
    /// Rotates the secrets that sign events
    #[command(subcommand)]
    Webhook(webhook::WebhookArgs),
    /// Checks every invariant over the whole database
    Verify(verify::VerifyArgs),
    /// Exports a partner's trades or ledger as CSV
    #[command(subcommand)]
    Export(export::ExportArgs),
    /// Prints a completion script for a shell
    Completions(completions::CompletionsArgs),
}
