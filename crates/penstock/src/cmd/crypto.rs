//! `penstock crypto credit`: credits an incoming crypto receipt.

use std::process::ExitCode;

use kernel::{Asset, AssetKind};
use pools_core::profile::Network;
use pools_core::usecases::credit_account::Credit;

use super::credit;
use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::partner_id;
use crate::terminal::Terminal;

/// The commands for crypto balances.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CryptoArgs {
    /// Credits a receipt; the same reference again does nothing
    Credit {
        /// Partner that sent the crypto
        #[arg(long)]
        partner: String,
        /// Asset, such as USDT
        #[arg(long)]
        asset: String,
        /// Network on which the crypto arrived
        #[arg(long)]
        network: String,
        /// Amount, such as 500
        #[arg(long, allow_hyphen_values = true)]
        amount: String,
        /// Reference of the receipt, such as the transaction's hash; unique per partner
        #[arg(long = "ref", value_name = "REF")]
        reference: String,
    },
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: CryptoArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let CryptoArgs::Credit {
        partner,
        asset,
        network,
        amount,
        reference,
    } = command;
    let partner = partner_id(&partner)?;
    let asset = Asset::crypto(&asset)
        .ok_or_else(|| credit::no_asset("--asset", &asset, AssetKind::Crypto))?;
    let network = Network::parse(&network).ok_or_else(|| {
        let known: Vec<&str> = Network::ALL.iter().map(|it| it.as_str()).collect();
        Failure::input(format!("--network: expected one of {}", known.join(", ")))
    })?;
    let credit = Credit {
        amount: credit::amount(&amount, asset)?,
        network: Some(network),
        reference,
    };
    credit::book(&given, partner, credit, terminal).await
}
