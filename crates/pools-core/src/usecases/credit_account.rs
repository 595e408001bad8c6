//! Deposits and receipts: the operator credits each reference once.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{Amount, Asset, AssetKind, Entropy, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::text::RefusedCharacter;

use super::recount_contingent_credits::{Run, slice};
use crate::deposits::{ReferenceError, parse_reference};
use crate::ledger::{
    Account, AccountKind, BALANCE_LIMIT, Entry, EntryId, PostError, Reason, Transfer,
};
use crate::ports::{Deposit, PoolsStore};
use crate::profile::{Network, Pool};

/// Recounts before a credit is refused because the account might be full: the running one, and a new one.
const RECOUNTS: u32 = 2;

/// Deposits of earlier versions whose references one transaction makes comparable.
const COMPARED_AT_A_TIME: u32 = 100;

#[derive(Clone)]
pub struct CreditAccount {
    pub store: Arc<dyn PoolsStore>,
    /// Randomness for ids.
    pub entropy: Arc<dyn Entropy>,
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
    /// The reference is blank, longer than 255 characters, or has white space at either end.
    #[error(
        "expected 1 to 255 visible characters without white space at either end; remove what was pasted beside the reference"
    )]
    Reference,
    /// The reference has a character that readers do not see.
    #[error(
        "expected 1 to 255 visible characters, found {0}; remove what was pasted beside the reference"
    )]
    Character(RefusedCharacter),
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

impl From<ReferenceError> for CreditError {
    fn from(error: ReferenceError) -> Self {
        match error {
            ReferenceError::Form => Self::Reference,
            ReferenceError::Character(refused) => Self::Character(refused),
        }
    }
}

/// Why a partner could not use a credit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableCredit {
    /// No pool trades the asset. What the pools trade.
    #[error("no pool trades {0}, so it could not be used; expected {1}")]
    Asset(Asset, String),
    /// No pool of the asset has the network. What they have.
    #[error("no pool of {0} has the network {net}; expected {2}", net = .1.as_str())]
    Network(Asset, Network, String),
}

/// Checks that a pool trades what is credited, on the network of the receipt.
///
/// # Errors
/// [`UnusableCredit`], with what the pools have.
pub fn check_pools(pools: &[Pool], credit: &Credit) -> Result<(), UnusableCredit> {
    let asset = credit.amount.asset();
    let leg = |pool: &Pool| match asset.kind() {
        AssetKind::Fiat => pool.id.fiat(),
        AssetKind::Crypto => pool.id.crypto(),
    };
    if !pools.iter().any(|pool| leg(pool) == asset) {
        let legs = pools.iter().map(|pool| leg(pool).code().to_owned());
        return Err(UnusableCredit::Asset(asset, one_of(legs)));
    }
    let Some(network) = credit.network else {
        return Ok(());
    };
    let of_asset = pools.iter().filter(|pool| leg(pool) == asset);
    let networks: Vec<Network> = of_asset
        .flat_map(|pool| pool.networks.iter().copied())
        .collect();
    if networks.contains(&network) {
        return Ok(());
    }
    let names = networks.iter().map(|network| network.as_str().to_owned());
    Err(UnusableCredit::Network(asset, network, one_of(names)))
}

/// Lists what a flag accepts.
fn one_of(names: impl Iterator<Item = String>) -> String {
    let names: BTreeSet<String> = names.collect();
    if names.is_empty() {
        return "a pool first: `penstock apply` creates pools".to_owned();
    }
    let names: Vec<String> = names.into_iter().collect();
    format!("one of {}", names.join(", "))
}

/// The outcome of one transaction.
enum Attempt {
    /// The reference is credited, now or before.
    Credited(Credited),
    /// The account might be full.
    Full,
    /// References of earlier versions were made comparable. Others may be left.
    Compared,
}

impl CreditAccount {
    /// Credits a partner's account, once per reference. The caller must have checked that the partner exists.
    pub async fn credit(&self, who: &Tenant, credit: &Credit) -> Result<Credited, CreditError> {
        let credit = &Credit {
            reference: parse_reference(&credit.reference, credit.network)?,
            ..credit.clone()
        };
        if let Some(credited) = self.attempt(who, credit).await? {
            return Ok(credited);
        }
        // The stored figure is an upper bound. A recount that was already running may count trades that have ended
        // since, so a second one starts from the beginning.
        for _ in 0..RECOUNTS {
            self.recount(who, credit.amount.asset()).await?;
            if let Some(credited) = self.attempt(who, credit).await? {
                return Ok(credited);
            }
        }
        Err(CreditError::TooLarge)
    }

    /// Credits the account after all of its references are comparable; `None` if the account might be full.
    async fn attempt(
        &self,
        who: &Tenant,
        credit: &Credit,
    ) -> Result<Option<Credited>, CreditError> {
        loop {
            match retry_lost_races(|| self.credit_once(who, credit)).await? {
                Attempt::Credited(credited) => return Ok(Some(credited)),
                Attempt::Full => return Ok(None),
                Attempt::Compared => {}
            }
        }
    }

    /// Finishes the running recount of an account, or runs a new one.
    async fn recount(&self, who: &Tenant, asset: Asset) -> StoreResult<()> {
        while slice(&self.store, who, asset, |_, _| true).await? == Run::More {}
        Ok(())
    }

    async fn credit_once(&self, who: &Tenant, credit: &Credit) -> Result<Attempt, CreditError> {
        let mut tx = self.store.begin("credit").await?;
        let account = tx.account_lock(who, credit.amount.asset()).await?;
        let compared = tx.deposits_compare(who, COMPARED_AT_A_TIME).await?;
        if compared == COMPARED_AT_A_TIME {
            tx.commit().await?;
            return Ok(Attempt::Compared);
        }
        if let Some(earlier) = tx.deposit_find(who, &credit.reference).await? {
            if earlier.amount != credit.amount || earlier.network != credit.network {
                return Err(CreditError::ReferenceReused(
                    earlier.amount,
                    earlier.amount.asset(),
                    earlier.network,
                ));
            }
            return Ok(Attempt::Credited(Credited {
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
            return Ok(Attempt::Full);
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
        Ok(Attempt::Credited(Credited {
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

const fn reason_of(credit: &Credit) -> Reason {
    match credit.amount.asset().kind() {
        AssetKind::Fiat => Reason::PayinCredit,
        AssetKind::Crypto => Reason::CryptoReceipt,
    }
}
