//! `penstock balance credit` and `penstock crypto credit`: credit an incoming deposit or receipt, once per reference.

use std::process::ExitCode;
use std::sync::Arc;

use kernel::{Amount, AmountError, Asset, AssetKind};
use partner_core::PartnerId;
use partner_core::credential::masked;
use partner_core::ports::Directory;
use pools_core::profile::{Network, PoolsProfile};
use pools_core::usecases::credit_account::{
    Credit, CreditAccount, CreditError, Credited, UnusableCredit, check_pools,
};
use serde::Serialize;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::{Installation, partner_id};
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

pub(crate) async fn run_balance(
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
    let asset =
        Asset::fiat(&currency).ok_or_else(|| no_asset("--currency", &currency, AssetKind::Fiat))?;
    let credit = Credit {
        amount: parse_amount(&amount, asset)?,
        network: None,
        reference,
    };
    book(&given, partner, credit, terminal).await
}

pub(crate) async fn run_crypto(
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
    let asset =
        Asset::crypto(&asset).ok_or_else(|| no_asset("--asset", &asset, AssetKind::Crypto))?;
    let network = Network::parse(&network).ok_or_else(|| {
        let known: Vec<&str> = Network::ALL.iter().map(|it| it.as_str()).collect();
        Failure::input(format!("--network: expected one of {}", known.join(", ")))
    })?;
    let credit = Credit {
        amount: parse_amount(&amount, asset)?,
        network: Some(network),
        reference,
    };
    book(&given, partner, credit, terminal).await
}

#[derive(Serialize)]
struct Answer {
    applied: bool,
    balance: String,
}

/// Credits a partner, and prints the new balance.
async fn book(
    given: &InstallationArgs,
    partner: PartnerId,
    credit: Credit,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let installation = Installation::open_to_write(given, terminal).await?;
    installation.tenant(partner.clone()).await?;
    let pools: Arc<dyn Directory<PoolsProfile>> = installation.base.store.clone();
    check_pools(&pools.listing(installation.mode).await?, &credit)?;
    let credited = credit_to(&installation, partner, &credit).await?;
    installation.close().await;
    let asset = credit.amount.asset();
    let answer = Answer {
        applied: credited.applied,
        balance: credited.balance.to_string(),
    };
    terminal.answer(&answer, || {
        let done = if answer.applied {
            format!("credited {} {asset}", credit.amount)
        } else {
            let reference = masked(&credit.reference);
            format!("nothing done: {reference} was already credited")
        };
        format!("{done}; the balance is {} {asset}", answer.balance)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Credits an existing partner.
pub(crate) async fn credit_to(
    installation: &Installation,
    partner: PartnerId,
    credit: &Credit,
) -> Result<Credited, Failure> {
    let who = installation.tenant(partner).await?;
    let crediting = CreditAccount {
        store: installation.base.store.clone(),
        entropy: Arc::clone(&installation.base.entropy),
    };
    Ok(crediting.credit(&who, credit).await?)
}

fn parse_amount(text: &str, asset: Asset) -> Result<Amount, Failure> {
    let is_negative = |digits: &str| {
        matches!(
            Amount::parse(digits, asset),
            Ok(_) | Err(AmountError::TooPrecise(_) | AmountError::OutOfRange | AmountError::Zero)
        )
    };
    Amount::parse(text, asset).map_err(|error| {
        let error = match text.strip_prefix('-') {
            Some(digits) if is_negative(digits) => AmountError::Zero,
            _ => error,
        };
        Failure::input(format!("--amount: {error}"))
    })
}

/// The failure for an unknown code. If the code is of the other kind, the message names the command for it.
fn no_asset(flag: &str, code: &str, expected: AssetKind) -> Failure {
    let (known, other) = match expected {
        AssetKind::Fiat => ("an active ISO 4217 code such as EUR", Asset::crypto(code)),
        AssetKind::Crypto => ("USDT, USDC, BTC or ETH", Asset::fiat(code)),
    };
    let remedy = other.map(|asset| match asset.kind() {
        AssetKind::Fiat => format!("; `penstock balance credit` credits {asset}"),
        AssetKind::Crypto => format!("; `penstock crypto credit` credits {asset}"),
    });
    Failure::input(format!(
        "{flag}: expected {known}{}",
        remedy.unwrap_or_default()
    ))
}

impl From<UnusableCredit> for Failure {
    fn from(error: UnusableCredit) -> Self {
        let flag = match &error {
            UnusableCredit::Asset(asset, _) if asset.kind() == AssetKind::Fiat => "--currency",
            UnusableCredit::Asset(..) => "--asset",
            UnusableCredit::Network(..) => "--network",
        };
        Self::input(format!("{flag}: {error}"))
    }
}

impl From<CreditError> for Failure {
    fn from(error: CreditError) -> Self {
        match error {
            CreditError::Reference | CreditError::Character(_) => {
                Self::input(format!("--ref: {error}"))
            }
            CreditError::ReferenceReused(..) => Self::Failed(format!("--ref: {error}")),
            CreditError::TooLarge => Self::Failed(format!("--amount: {error}")),
            CreditError::Store(error) => error.into(),
        }
    }
}
