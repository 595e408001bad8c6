//! Checks the sums and chains of the ledger, entry by entry. Sums have 128 bits.

use std::collections::BTreeMap;

use kernel::StoreResult;
use partner_core::audit::Breaches;
use pools_core::audit::{AccountKey, AccountTail, Sums, shown};

use super::{Work, walked};
use crate::Row;

impl Work<'_> {
    pub(super) async fn ledger(&mut self) -> StoreResult<()> {
        let ends = self.chains().await?;
        self.balances(ends).await?;
        let reserved = self.sums().await?;
        self.reserved(reserved).await
    }

    /// An account's entries are numbered from one without gaps and in the order of their instants. Each balance is the previous
    /// balance plus the entry's amount, and never negative.
    async fn chains(&mut self) -> StoreResult<BTreeMap<AccountKey, AccountTail>> {
        let name = "ledger-chains";
        let mut ends: BTreeMap<AccountKey, AccountTail> = BTreeMap::new();
        self.check(name, &walked::CHAINS, |row, breaches| {
            let place = place(row)?;
            let end = ends.get(&place).copied().unwrap_or(AccountTail::NOWHERE);
            let amount = i128::from(row.integer("amount")?);
            let credited = row.text("credit")? == "partner";
            let next = AccountTail {
                sequence: row.integer("account_sequence")?,
                balance: i128::from(row.integer("balance_after")?),
                at: row.integer("created_at")?,
            };
            if !end.leads_to(&next, if credited { amount } else { -amount }) {
                let id = row.written("id")?;
                let place = shown(&place);
                breaches.add(|| format!("{place} entry {id} does not follow the one before it"));
            }
            ends.insert(place, next);
            Ok(())
        })
        .await?;
        Ok(ends)
    }

    /// Each account has the balance and the sequence number of its last entry.
    async fn balances(&mut self, mut ends: BTreeMap<AccountKey, AccountTail>) -> StoreResult<()> {
        let name = "balance-is-sum-of-entries";
        let mut breaches = Breaches::default();
        self.each(name, &walked::ACCOUNTS, |row| {
            let place = place(row)?;
            let (available, sequence) = (row.integer("available")?, row.integer("sequence")?);
            let end = ends.remove(&place).unwrap_or(AccountTail::NOWHERE);
            let (entries, led) = (end.sequence, end.balance);
            if i128::from(available) != led || sequence != entries || available < 0 {
                let place = shown(&place);
                breaches.add(|| {
                    format!("{place} holds {available}, its {entries} entries lead to {led}")
                });
            }
            Ok(())
        })
        .await?;
        for place in ends.keys() {
            breaches.add(|| format!("{} has entries and no account", shown(place)));
        }
        self.found(name, breaches);
        Ok(())
    }

    /// All accounts of an asset sum to zero. Returns the reserved amounts.
    async fn sums(&mut self) -> StoreResult<BTreeMap<AccountKey, i128>> {
        let name = "accounts-sum-to-zero";
        let mut sums = Sums::default();
        let mut reserved: BTreeMap<AccountKey, i128> = BTreeMap::new();
        self.each(name, &walked::ENTRIES, |row| {
            let place = place(row)?;
            let amount = i128::from(row.integer("amount")?);
            for (side, moved) in [("debit", -amount), ("credit", amount)] {
                let kind = row.text(side)?;
                if kind == "reserved" {
                    *reserved.entry(place.clone()).or_default() += moved;
                }
                if kind != "partner" {
                    sums.add(&place, kind.to_owned(), moved);
                }
            }
            Ok(())
        })
        .await?;
        self.each(name, &walked::ACCOUNTS, |row| {
            let available = i128::from(row.integer("available")?);
            sums.add(&place(row)?, "partner".to_owned(), available);
            Ok(())
        })
        .await?;
        self.found(name, sums.beside_zero());
        Ok(reserved)
    }

    /// Each partner's reserved amount is the sum of its open trades' reserves.
    async fn reserved(&mut self, mut reserved: BTreeMap<AccountKey, i128>) -> StoreResult<()> {
        let name = "reserved-is-open-reserves";
        self.each(name, &walked::RESERVES, |row| {
            let amount = i128::from(row.integer("reserved")?);
            *reserved.entry(place_of_reserve(row)?).or_default() -= amount;
            Ok(())
        })
        .await?;
        let mut breaches = Breaches::default();
        for (place, left) in reserved.iter().filter(|(_, left)| **left != 0) {
            let place = shown(place);
            breaches.add(|| format!("{place} has {left} reserved beyond its open trades"));
        }
        self.found(name, breaches);
        Ok(())
    }
}

fn place(row: &dyn Row) -> StoreResult<AccountKey> {
    place_in(row, row.text("asset")?)
}

/// The account of a row's partner in an asset.
fn place_in(row: &dyn Row, asset: &str) -> StoreResult<AccountKey> {
    let (mode, partner) = (row.text("mode")?, row.text("partner_id")?);
    Ok((mode.to_owned(), partner.to_owned(), asset.to_owned()))
}

/// The account of a trade's reserve: the pool's currency for a purchase, its crypto asset for a sale.
fn place_of_reserve(row: &dyn Row) -> StoreResult<AccountKey> {
    let pool = row.text("pool")?;
    let (fiat, crypto) = pool.split_once('-').unwrap_or(("", pool));
    let asset = if row.text("side")? == "on_ramp" {
        fiat
    } else {
        crypto
    };
    place_in(row, asset)
}
