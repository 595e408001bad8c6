//! Deposits and receipts: the operator credits each reference once.

use std::sync::Arc;

use crate::profile::Network;
use kernel::{Amount, Asset, AssetKind, Entropy, StoreError};
use partner_core::Tenant;
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::tables::is_label;

use super::recount_contingent_credits::{Run, slice};
use crate::ledger::{
    Account, AccountKind, BALANCE_LIMIT, Entry, EntryId, PostError, Reason, Transfer,
};
use crate::ports::{Deposit, PoolsStore};

/// Recounts before a credit is refused because the account might be full: the running one, and a new one.
const RECOUNTS: u32 = 2;

/// Maximum characters of a reference.
const REFERENCE_LENGTH: usize = 255;

/// Invisible characters, with which two different references look equal.
const INVISIBLE: [char; 8] = [
    '\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{2060}', '\u{feff}',
];

#[derive(Clone)]
pub struct CreditAccount {
    pub store: Arc<dyn PoolsStore>,
    /// Randomness for ids.
    pub entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for CreditAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Crediting")
    }
}

/// A deposit or receipt to be credited.
#[derive(Debug, Clone)]
pub struct Credit {
    pub amount: Amount,
    /// The chain of a crypto receipt; `None` for fiat.
    pub network: Option<Network>,
    /// The operator's reference. A repeated reference has no effect.
    pub reference: String,
}

/// The outcome of a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credited {
    /// Whether this call credited the amount; `false` if the reference was credited before.
    pub applied: bool,
    /// The balance after the call.
    pub balance: Amount,
}

/// Why nothing was credited.
#[derive(Debug, thiserror::Error)]
pub enum CreditError {
    /// The reference is blank, longer than 255 characters, has white space at either end, or has control or invisible
    /// characters.
    #[error(
        "expected 1 to 255 visible characters without white space at either end; remove what was pasted beside the reference"
    )]
    Reference,
    /// The reference was used for another amount, currency or network.
    #[error(
        "the reference was used before, for {0} {1}{net}; give this deposit a reference of its own",
        net = .2.map(|network| format!(" on {}", network.as_str())).unwrap_or_default()
    )]
    ReferenceReused(Amount, Asset, Option<Network>),
    /// Balance and contingent credits would exceed 9 × 10^10.
    #[error(
        "the balance would pass 90000000000, with what open and returnable trades may give back"
    )]
    TooLarge,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for CreditError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl CreditAccount {
    /// Credits a partner's account, once per reference. The caller must have checked that the partner exists.
    ///
    /// # Errors
    /// [`CreditError`].
    pub async fn credit(&self, who: &Tenant, credit: &Credit) -> Result<Credited, CreditError> {
        if !is_reference(&credit.reference) {
            return Err(CreditError::Reference);
        }
        if let Some(credited) = retry_lost_races(|| self.credit_once(who, credit)).await? {
            return Ok(credited);
        }
        // The stored figure is an upper bound. A recount that was already running may count trades that have ended
        // since, so a second one starts from the beginning.
        for _ in 0..RECOUNTS {
            self.recount(who, credit.amount.asset()).await?;
            if let Some(credited) = retry_lost_races(|| self.credit_once(who, credit)).await? {
                return Ok(credited);
            }
        }
        Err(CreditError::TooLarge)
    }

    /// Finishes the running recount of an account, or runs a new one.
    async fn recount(&self, who: &Tenant, asset: Asset) -> Result<(), StoreError> {
        while slice(&self.store, who, asset, |_, _| true).await? == Run::More {}
        Ok(())
    }

    /// Credits the account; `None` if the account might be full.
    async fn credit_once(
        &self,
        who: &Tenant,
        credit: &Credit,
    ) -> Result<Option<Credited>, CreditError> {
        let mut tx = self.store.begin("credit").await?;
        let account = tx.account_lock(who, credit.amount.asset()).await?;
        if let Some(earlier) = tx.deposit_find(who, &credit.reference).await? {
            if earlier.amount != credit.amount || earlier.network != credit.network {
                return Err(CreditError::ReferenceReused(
                    earlier.amount,
                    earlier.amount.asset(),
                    earlier.network,
                ));
            }
            return Ok(Some(Credited {
                applied: false,
                balance: account.available,
            }));
        }
        let now = tx.now().await?;
        let transfer = Transfer {
            debit: AccountKind::Outside,
            credit: AccountKind::Partner,
            amount: credit.amount,
            reason: reason_of(credit),
        };
        let (after, mark) = account.post(&transfer).map_err(|error| match error {
            PostError::Insufficient
            | PostError::TooLarge
            | PostError::WrongAsset
            | PostError::SameAccount => CreditError::TooLarge,
        })?;
        let before = tx.commitment_get(who, credit.amount.asset()).await?;
        let Some(committed) = commitment_with(before, &account, credit.amount) else {
            return Ok(None);
        };
        let id = EntryId::new(who.mode, now, self.entropy.as_ref());
        let entry = Entry {
            id,
            transfer,
            mark,
            reference: credit.reference.clone(),
            trade: None,
            created_at: now,
        };
        tx.entry_post(who, &account, &entry).await?;
        let deposit = Deposit {
            reference: credit.reference.clone(),
            amount: credit.amount,
            network: credit.network,
            entry: id,
            created_at: now,
        };
        tx.deposit_insert(who, &deposit).await?;
        tx.commitment_put(who, credit.amount.asset(), committed)
            .await?;
        tx.commit().await?;
        Ok(Some(Credited {
            applied: true,
            balance: after.available,
        }))
    }
}

/// The contingent credits of an account with an amount; `None` if they might exceed the limit. An account without
/// entries and without a stored figure starts at zero. A missing figure of any other account must be counted first.
fn commitment_with(before: Option<i64>, account: &Account, amount: Amount) -> Option<i64> {
    let before = before.or((account.sequence == 0).then_some(0))?;
    let total = before.checked_add(amount.units())?;
    (total <= BALANCE_LIMIT).then_some(total)
}

/// Whether a reference is acceptable. It refuses white space at the ends and invisible characters, so that two
/// references that look equal are equal.
fn is_reference(text: &str) -> bool {
    is_label(text, REFERENCE_LENGTH) && !text.contains(INVISIBLE)
}

const fn reason_of(credit: &Credit) -> Reason {
    match credit.amount.asset().kind() {
        AssetKind::Fiat => Reason::PayinCredit,
        AssetKind::Crypto => Reason::CryptoReceipt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: cli.credit.once
    #[test]
    fn reference_is_refused_when_it_looks_like_another_one() {
        for good in ["wire-77", "wire 77", "Überweisung 7", &"x".repeat(255)] {
            assert!(is_reference(good), "{good:?}");
        }
        for bad in [
            "",
            " ",
            "\u{a0}",
            " wire-77",
            "wire-77 ",
            "wire-77\t",
            "wire-77\u{a0}",
            "\u{3000}wire-77",
            "wire-77\u{200b}",
            "\u{feff}wire-77",
            "wire\u{ad}-77",
            &"x".repeat(256),
        ] {
            assert!(!is_reference(bad), "{bad:?}");
        }
    }
}
