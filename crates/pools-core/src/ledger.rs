//! The ledger: value moves only by transfers between accounts, so all accounts together
//! always sum to zero.
//!
//! A partner has one account per currency. Beside it stand the value reserved by its open
//! trades, the operator's side, and the outside world that deposits come from. Only the
//! partner's account keeps a balance; it never goes below zero. Entries are never changed.

use kernel::{Amount, Asset, Id, IdKind, Timestamp};

use crate::trade::TradeId;

/// Names a ledger entry.
#[derive(Debug)]
pub enum EntryIdKind {}

impl IdKind for EntryIdKind {
    const PREFIX: &'static str = "le";
}

/// `le_<mode>_<ULID>`.
pub type EntryId = Id<EntryIdKind>;

/// The largest balance an account may come to: 9 × 10^10, in units of 10^-8. Credits and sales are
/// refused past it, with all that trades may still give back counted in, so that a refund never is.
pub const BALANCE_LIMIT: i64 = 9_000_000_000_000_000_000;

/// Whose account of a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountKind {
    /// The partner's own: the only one with a stored balance.
    Partner,
    /// Value reserved by the partner's open trades.
    Reserved,
    /// The operator's side of settled trades.
    Operator,
    /// Where deposits and receipts come from.
    Outside,
}

impl AccountKind {
    /// The word in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Partner => "partner",
            Self::Reserved => "reserved",
            Self::Operator => "operator",
            Self::Outside => "outside",
        }
    }

    /// Reads the word written by [`AccountKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "partner" => Some(Self::Partner),
            "reserved" => Some(Self::Reserved),
            "operator" => Some(Self::Operator),
            "outside" => Some(Self::Outside),
            _ => None,
        }
    }
}

/// Why value moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// An incoming fiat deposit.
    PayinCredit,
    /// A purchase reserved fiat.
    BuyDebit,
    /// Fiat given back: a purchase that did not settle or was returned, or a returned sale.
    BuyRefund,
    /// An incoming crypto receipt.
    CryptoReceipt,
    /// A sale reserved crypto.
    SellDebit,
    /// Crypto given back: a sale that did not settle.
    SellRefund,
    /// A correction by the operator.
    Adjustment,
    /// A reserve handed to the operator at settlement. Never on a partner's account.
    Settlement,
}

impl Reason {
    /// The word on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PayinCredit => "payin_credit",
            Self::BuyDebit => "buy_debit",
            Self::BuyRefund => "buy_refund",
            Self::CryptoReceipt => "crypto_receipt",
            Self::SellDebit => "sell_debit",
            Self::SellRefund => "sell_refund",
            Self::Adjustment => "adjustment",
            Self::Settlement => "settlement",
        }
    }

    /// Reads the word written by [`Reason::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::PayinCredit,
            Self::BuyDebit,
            Self::BuyRefund,
            Self::CryptoReceipt,
            Self::SellDebit,
            Self::SellRefund,
            Self::Adjustment,
            Self::Settlement,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == text)
    }
}

/// The part a transfer plays in a trade's life. A trade has at most one of each, which the
/// stores guard with a unique constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferRole {
    /// Partner to reserved, at transact.
    Reserve,
    /// The reserve's one fate: to the operator, or back to the partner.
    Close,
    /// Operator to partner, when a settled trade is returned.
    Return,
}

impl TransferRole {
    /// The word in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Close => "close",
            Self::Return => "return",
        }
    }

    /// Reads the word written by [`TransferRole::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "reserve" => Some(Self::Reserve),
            "close" => Some(Self::Close),
            "return" => Some(Self::Return),
            _ => None,
        }
    }
}

/// Value moving from one account to another of the same partner and currency. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The account that gives.
    pub debit: AccountKind,
    /// The account that receives.
    pub credit: AccountKind,
    /// How much.
    pub amount: Amount,
    /// Why.
    pub reason: Reason,
}

/// A partner's account of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// What it may still spend.
    pub available: Amount,
    /// The sequence number of its latest entry; zero before the first.
    pub sequence: i64,
}

/// Where a transfer left the partner's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The entry's number in the account, without gaps.
    pub sequence: i64,
    /// The balance after it.
    pub balance_after: Amount,
}

/// Why a transfer cannot be posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The account holds less than the transfer takes.
    #[error("the account holds less than the transfer takes")]
    Insufficient,
    /// The balance would grow past what an account may hold.
    #[error("the balance would grow past 90000000000")]
    TooLarge,
    /// Another currency than the account's. A fault of ours.
    #[error("the transfer is of another currency than the account")]
    WrongAsset,
    /// From an account to itself, which moves nothing. A fault of ours.
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

    /// Posts a transfer: the account after it, and the entry's mark where the account is one of
    /// its legs. A transfer between other accounts leaves it as it was.
    ///
    /// # Errors
    /// [`PostError`].
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

/// An entry to be written, or as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// What moved.
    pub transfer: Transfer,
    /// Its place in the partner's account; `None` where that account is no leg of it.
    pub mark: Option<Posting>,
    /// The quote of a trade, or the operator's reference of a deposit.
    pub reference: String,
    /// The trade it belongs to, and the part it plays there.
    pub trade: Option<(TradeId, TransferRole)>,
    /// When. Never decreases along the account's sequence.
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
    fn an_account_never_goes_below_zero() {
        let account = Account {
            available: eur("9.99"),
            sequence: 4,
        };
        let refused = account.post(&transfer(AccountKind::Partner, AccountKind::Reserved, "10"));
        assert_eq!(refused, Err(PostError::Insufficient));
    }
}
