//! Deposits and receipts: the operator credits what has come in, once per reference.

use std::sync::Arc;

use kernel::{Amount, AssetKind, Entropy, StoreError};
use partner_core::Tenant;
use partner_core::pools::Network;
use partner_core::races::{LostRace, retry_lost_races};

use super::commitment;
use crate::ledger::{AccountKind, BALANCE_LIMIT, Entry, EntryId, PostFault, Reason, Transfer};
use crate::ports::{Deposit, PoolsStore};

/// Credits accounts.
#[derive(Clone)]
pub struct Crediting {
    /// The store.
    pub store: Arc<dyn PoolsStore>,
    /// For ids.
    pub entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for Crediting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Crediting")
    }
}

/// What has come in.
#[derive(Debug, Clone)]
pub struct Credit {
    /// How much.
    pub amount: Amount,
    /// The chain a crypto receipt came in on; `None` for fiat.
    pub network: Option<Network>,
    /// The operator's reference: the same one again does nothing.
    pub reference: String,
}

/// The outcome of a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credited {
    /// Was it credited now? `false`: the same reference had been credited before.
    pub applied: bool,
    /// The balance now.
    pub balance: Amount,
}

/// Why nothing was credited.
#[derive(Debug, thiserror::Error)]
pub enum CreditError {
    /// The reference is empty, longer than 255 characters, or has control characters.
    #[error("a reference is 1 to 255 printable characters")]
    Reference,
    /// The reference was used for another amount, currency or network.
    #[error("the reference was used before, for {0} {1}")]
    ReferenceReused(Amount, kernel::Asset),
    /// The balance, with what trades may still give back, would pass 9 × 10^10.
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

impl Crediting {
    /// Credits a partner's account. The caller has seen that the partner exists.
    ///
    /// # Errors
    /// [`CreditError`].
    pub async fn credit(&self, who: &Tenant, credit: &Credit) -> Result<Credited, CreditError> {
        let length = credit.reference.chars().count();
        if !(1..=255).contains(&length) || credit.reference.chars().any(char::is_control) {
            return Err(CreditError::Reference);
        }
        retry_lost_races(|| self.credit_once(who, credit)).await
    }

    async fn credit_once(&self, who: &Tenant, credit: &Credit) -> Result<Credited, CreditError> {
        let mut tx = self.store.begin("credit").await?;
        let account = tx.account_lock(who, credit.amount.asset()).await?;
        if let Some(earlier) = tx.deposit_find(who, &credit.reference).await? {
            if earlier.amount != credit.amount || earlier.network != credit.network {
                return Err(CreditError::ReferenceReused(
                    earlier.amount,
                    earlier.amount.asset(),
                ));
            }
            return Ok(Credited {
                applied: false,
                balance: account.available,
            });
        }
        let now = tx.now().await?;
        let transfer = Transfer {
            debit: AccountKind::Outside,
            credit: AccountKind::Partner,
            amount: credit.amount,
            reason: reason_of(credit),
        };
        let (after, mark) = account.post(&transfer).map_err(|fault| match fault {
            PostFault::Insufficient
            | PostFault::TooLarge
            | PostFault::WrongAsset
            | PostFault::SameAccount => CreditError::TooLarge,
        })?;
        let committed = commitment::count(tx.as_mut(), who, &after, now).await?;
        if committed > BALANCE_LIMIT.into() {
            return Err(CreditError::TooLarge);
        }
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
        tx.commitment_put(who, credit.amount.asset(), commitment::stored(committed))
            .await?;
        tx.commit().await?;
        Ok(Credited {
            applied: true,
            balance: after.available,
        })
    }
}

const fn reason_of(credit: &Credit) -> Reason {
    match credit.amount.asset().kind() {
        AssetKind::Fiat => Reason::PayinCredit,
        AssetKind::Crypto => Reason::CryptoReceipt,
    }
}
