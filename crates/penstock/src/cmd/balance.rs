//! `penstock balance credit`: credits an incoming deposit.

use std::process::ExitCode;

use kernel::{Asset, AssetKind};
use pools_core::usecases::credit_account::Credit;

use super::credit;
use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::partner_id;
use crate::terminal::Terminal;

/// The commands for fiat balances.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BalanceArgs {
    /// Credits a deposit; the same reference again does nothing
    Credit {
        /// Partner that made the deposit
        #[arg(long)]
        partner: String,
        /// Currency, such as EUR
        #[arg(long)]
        currency: String,
        /// Amount, such as 1000.00
        #[arg(long, allow_hyphen_values = true)]
        amount: String,
        /// Reference of the deposit, such as the bank's; unique per partner
        #[arg(long = "ref", value_name = "REF")]
        reference: String,
    },
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: BalanceArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let BalanceArgs::Credit {
        partner,
        currency,
        amount,
        reference,
    } = command;
    let partner = partner_id(&partner)?;
    let asset = Asset::fiat(&currency)
        .ok_or_else(|| credit::no_asset("--currency", &currency, AssetKind::Fiat))?;
    let credit = Credit {
        amount: credit::amount(&amount, asset)?,
        network: None,
        reference,
    };
    credit::book(&given, partner, credit, terminal).await
}
