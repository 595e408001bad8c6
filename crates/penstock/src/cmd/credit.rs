//! What `balance credit` and `crypto credit` share: one booking, once per reference.

use std::process::ExitCode;
use std::sync::Arc;

use kernel::{Amount, AmountFault, Asset};
use partner_core::PartnerId;
use partner_core::credential::masked;
use pools_core::usecases::credit::{Credit, CreditError, Credited, Crediting};
use serde::Serialize;

use crate::arguments::Given;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

#[derive(Serialize)]
struct Answer {
    applied: bool,
    balance: String,
}

/// Books a credit and says what came of it.
pub(super) async fn book(
    given: &Given,
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
            format!("nothing done: {reference} was credited before")
        };
        format!("{done}; the balance is {} {asset}", answer.balance)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Books a credit for a partner that must exist.
pub(crate) async fn credit_to(
    installation: &Installation,
    partner: PartnerId,
    credit: &Credit,
) -> Result<Credited, Failure> {
    let who = installation.tenant(partner).await?;
    let crediting = Crediting {
        store: installation.base.store.clone(),
        entropy: Arc::clone(&installation.base.entropy),
    };
    Ok(crediting.credit(&who, credit).await?)
}

/// Reads an amount. One past the largest an order or credit may be is refused, any other fault is
/// bad input.
pub(super) fn amount(text: &str, asset: Asset) -> Result<Amount, Failure> {
    Amount::parse(text, asset).map_err(|fault| {
        let line = format!("--amount: {fault}");
        match fault {
            AmountFault::OutOfRange => Failure::Failed(line),
            AmountFault::Malformed | AmountFault::Zero | AmountFault::TooPrecise(_) => {
                Failure::input(line)
            }
        }
    })
}

impl From<CreditError> for Failure {
    fn from(error: CreditError) -> Self {
        match error {
            CreditError::Reference => Self::input(format!("--ref: {error}")),
            CreditError::ReferenceReused(..) | CreditError::TooLarge => {
                Self::Failed(error.to_string())
            }
            CreditError::Store(fault) => fault.into(),
        }
    }
}
