//! The shared part of `balance credit` and `crypto credit`: one credit per reference.

use std::process::ExitCode;
use std::sync::Arc;

use kernel::{Amount, AmountError, Asset, AssetKind};
use partner_core::PartnerId;
use partner_core::credential::masked;
use pools_core::usecases::credit_account::{Credit, CreditAccount, CreditError, Credited};
use serde::Serialize;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

#[derive(Serialize)]
struct Answer {
    applied: bool,
    balance: String,
}

/// Credits a partner, and prints the new balance.
pub(super) async fn book(
    given: &InstallationArgs,
    partner: PartnerId,
    credit: Credit,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let installation = Installation::open(given, terminal).await?;
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

/// Parses an amount.
pub(super) fn amount(text: &str, asset: Asset) -> Result<Amount, Failure> {
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
pub(super) fn no_asset(flag: &str, code: &str, expected: AssetKind) -> Failure {
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
