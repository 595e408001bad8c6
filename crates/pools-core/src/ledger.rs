//! The ledger. Value moves only by transfers between accounts, so all accounts always sum to zero.
//!
//! Per partner and currency there are four kinds of account: the partner's own, the value reserved by open trades,
//! the operator's side, and the outside world that deposits come from. Only the partner's own account has a stored
//! balance, which is never negative. Entries are never changed.

use kernel::{Amount, Asset, Id, Timestamp};

use crate::trade::TradeId;

kernel::id_kind!(EntryIdKind, "le");

/// `le_<mode>_<ULID>`.
pub type EntryId = Id<EntryIdKind>;

/// Maximum balance of an account: 9 × 10^10, in units of 10^-8.
///
/// A credit or a sale is refused if balance and contingent credits would exceed it, so a refund never is.
pub const BALANCE_LIMIT: i64 = 9_000_000_000_000_000_000;

kernel::closed_list! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum AccountKind {
        /// The partner's own account, the only kind with a stored balance.
        Partner = "partner",
        /// The value reserved by the partner's open trades.
        Reserved = "reserved",
        /// The operator's side of settled trades.
        Operator = "operator",
        /// The origin of deposits and receipts.
        Outside = "outside",
    }
}

kernel::closed_list! {
    /// The reason of a transfer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Reason {
        /// An incoming fiat deposit.
        PayinCredit = "payin_credit",
        /// A purchase reserved fiat.
        BuyDebit = "buy_debit",
        /// Returned fiat: of a purchase that did not settle or was returned, or of a returned sale.
        BuyRefund = "buy_refund",
        /// An incoming crypto receipt.
        CryptoReceipt = "crypto_receipt",
        /// A sale reserved crypto.
        SellDebit = "sell_debit",
        /// Returned crypto: of a sale that did not settle.
        SellRefund = "sell_refund",
        /// A correction by the operator.
        Adjustment = "adjustment",
        /// At settlement, the reserve moves to the operator. It never touches a partner's own account.
        Settlement = "settlement",
    }
}

kernel::closed_list! {
    /// The role of a transfer in the life of a trade. A trade has at most one transfer per role; a unique constraint in
    /// the stores guards this.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TransferRole {
        /// Partner to reserved, at transact.
        Reserve = "reserve",
        /// The end of the reserve: to the operator, or back to the partner.
        Close = "close",
        /// Operator to partner, when a settled trade returns.
        Return = "return",
    }
}

/// A transfer from one account to another of the same partner and currency. The amount is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The account that the amount leaves.
    pub debit: AccountKind,
    /// The account that the amount enters.
    pub credit: AccountKind,
    pub amount: Amount,
    pub reason: Reason,
}

/// A partner's account of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The available balance.
    pub available: Amount,
    /// The sequence number of its latest entry; zero before the first.
    pub sequence: i64,
}

/// The position of an entry in the partner's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The sequence number of the entry, without gaps.
    pub sequence: i64,
    /// The balance after the entry.
    pub balance_after: Amount,
}

/// Why a transfer cannot be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The balance is smaller than the debit.
    #[error("the account holds less than the transfer takes")]
    Insufficient,
    /// The balance would exceed [`BALANCE_LIMIT`].
    #[error("the balance would grow past 90000000000")]
    TooLarge,
    /// The currency differs from the account's. This is a bug.
    #[error("the transfer is of another currency than the account")]
    WrongAsset,
    /// Debit and credit are the same account. This is a bug.
    #[error("the transfer names one account twice")]
    SameAccount,
}

impl Account {
    /// An account before its first entry.
    #[must_use]
    pub const fn empty(asset: Asset) -> Self {
        Self {
            available: Amount::zero(asset),
            sequence: 0,
        }
    }

    /// Its currency.
    #[must_use]
    pub const fn asset(&self) -> Asset {
        self.available.asset()
    }

    /// Posts a transfer to this account. Returns the account after it, with the position of the entry.
    ///
    /// A transfer between other kinds of account returns the account unchanged and `None`.
    ///
    /// # Errors
    /// [`PostError`] if the balance does not cover the debit, would exceed the limit, or if the transfer is
    /// malformed.
    pub fn post(&self, transfer: &Transfer) -> Result<(Self, Option<Posting>), PostError> {
        if transfer.amount.asset() != self.asset() {
            return Err(PostError::WrongAsset);
        }
        if transfer.debit == transfer.credit {
            return Err(PostError::SameAccount);
        }
        let available = match (transfer.debit, transfer.credit) {
            (AccountKind::Partner, _) => self
                .available
                .checked_sub(&transfer.amount)
                .ok_or(PostError::Insufficient)?,
            (_, AccountKind::Partner) => self
                .available
                .checked_add(&transfer.amount)
                .ok_or(PostError::TooLarge)?,
            _ => return Ok((*self, None)),
        };
        let sequence = self.sequence.checked_add(1).ok_or(PostError::TooLarge)?;
        Ok((
            Self {
                available,
                sequence,
            },
            Some(Posting {
                sequence,
                balance_after: available,
            }),
        ))
    }
}

/// A ledger entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: EntryId,
    pub transfer: Transfer,
    /// Its position in the partner's own account; `None` if that account is neither debited nor credited.
    pub mark: Option<Posting>,
    /// The quote id of a trade, or the operator's reference of a deposit.
    pub reference: String,
    /// The trade that it belongs to, with its role.
    pub trade: Option<(TradeId, TransferRole)>,
    /// The instant of the entry. It never decreases along the account's sequence.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eur(text: &str) -> Amount {
        let asset = Asset::fiat("EUR").unwrap();
        if text == "0" {
            Amount::zero(asset)
        } else {
            Amount::parse(text, asset).unwrap()
        }
    }

    fn transfer(debit: AccountKind, credit: AccountKind, amount: &str) -> Transfer {
        Transfer {
            debit,
            credit,
            amount: eur(amount),
            reason: Reason::Adjustment,
        }
    }

    // rule: pools.ledger.chain
    #[test]
    fn posting_chains_balance_and_sequence() {
        let account = Account::empty(Asset::fiat("EUR").unwrap());
        let (account, mark) = account
            .post(&transfer(AccountKind::Outside, AccountKind::Partner, "10"))
            .unwrap();
        assert_eq!(
            mark,
            Some(Posting {
                sequence: 1,
                balance_after: eur("10")
            })
        );
        let (account, mark) = account
            .post(&transfer(AccountKind::Partner, AccountKind::Reserved, "10"))
            .unwrap();
        assert_eq!(
            mark,
            Some(Posting {
                sequence: 2,
                balance_after: eur("0")
            })
        );
        let (same, mark) = account
            .post(&transfer(
                AccountKind::Reserved,
                AccountKind::Operator,
                "10",
            ))
            .unwrap();
        assert_eq!((same, mark), (account, None));
    }

    // rule: money.never-negative
    #[test]
    fn account_is_never_negative() {
        let account = Account {
            available: eur("9.99"),
            sequence: 4,
        };
        let refused = account.post(&transfer(AccountKind::Partner, AccountKind::Reserved, "10"));
        assert_eq!(refused, Err(PostError::Insufficient));
    }
}
