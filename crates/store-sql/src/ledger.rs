//! Accounts and entries: their rows, and the steps of one account.

use std::time::Duration;

use async_trait::async_trait;
use kernel::{Asset, Cas, Mode, StoreResult, Timestamp};
use partner_core::Tenant;
use pools_core::batch::Funds;
use pools_core::contingent_credit::{Amounts, Range, Recount};
use pools_core::deposits::compared_reference;
use pools_core::ledger::{Account, AccountKind, Entry, Posting, Reason, Transfer, TransferRole};
use pools_core::ports::{Deposit, LedgerFilter, LedgerPage, LedgerTx};
use pools_core::profile::{Network, PoolId};

use crate::contingent_credits::{FIND_RECOUNT, PUT_RECOUNT, recount};
use crate::deposits::PRODUCT;
use crate::velocity::opt_velocity;
use crate::{Connection, Row, Statement, StoreTx, contingent_credits, deposits, values};

#[async_trait]
impl LedgerTx for StoreTx {
    async fn account_lock(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Account> {
        let found = account(self.locked(who).await?, who, asset).await?;
        Ok(found.unwrap_or(Account::empty(asset)))
    }

    async fn entry_post(
        &mut self,
        who: &Tenant,
        before: &Account,
        entry: &Entry,
    ) -> StoreResult<()> {
        if let Some(posting) = &entry.mark {
            let moved = put_account(self.locked(who).await?, who, before, posting).await?;
            self.record_race(moved).won()?;
        }
        let transfer = &entry.transfer;
        let asset = transfer.amount.asset();
        let values = values![
            who.mode,
            &who.partner,
            entry.id,
            asset.code(),
            transfer.debit.as_str(),
            transfer.credit.as_str(),
            transfer.amount.units(),
            transfer.reason.as_str(),
            entry.mark.map(|posting| posting.sequence),
            entry.mark.map(|posting| posting.balance_after.units()),
            &entry.reference,
            entry.trade.map(|(trade, _)| trade),
            entry.trade.map(|(_, role)| role.as_str()),
            entry.created_at,
        ];
        self.insert_around("entry.post", who, &INSERT, values).await
    }

    async fn refundable(
        &mut self,
        who: &Tenant,
        asset: Asset,
        range: Range,
        limit: u32,
    ) -> StoreResult<Amounts> {
        contingent_credits::refundable(self.locked(who).await?, who, asset, range, limit).await
    }

    async fn recount_get(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Option<Recount>> {
        let values = values![who.mode, &who.partner, asset.code()];
        let connection = self.locked(who).await?;
        let row = connection.fetch_optional(&FIND_RECOUNT, values).await?;
        row.map(|row| recount(&*row)).transpose()
    }

    async fn recount_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        recount: &Recount,
    ) -> StoreResult<()> {
        let values = values![
            who.mode,
            &who.partner,
            asset.code(),
            recount.begun_at,
            recount.ended_at,
            recount.settled,
            recount.reserved,
            recount.total,
        ];
        let connection = self.locked(who).await?;
        connection.execute(&PUT_RECOUNT, values).await.map(drop)
    }

    async fn commitment_get(&mut self, who: &Tenant, asset: Asset) -> StoreResult<Option<i64>> {
        let values = values![who.mode, &who.partner, asset.code()];
        let connection = self.locked(who).await?;
        let row = connection
            .fetch_optional(&contingent_credits::FIND, values)
            .await?;
        row.map(|row| row.integer("total")).transpose()
    }

    async fn commitment_put(&mut self, who: &Tenant, asset: Asset, total: i64) -> StoreResult<()> {
        let values = values![who.mode, &who.partner, asset.code(), total];
        let connection = self.locked(who).await?;
        connection
            .execute(&contingent_credits::PUT, values)
            .await
            .map(drop)
    }

    async fn deposits_compare(&mut self, who: &Tenant, limit: u32) -> StoreResult<u32> {
        let connection = self.locked(who).await?;
        let values = values![who.mode, &who.partner, PRODUCT, limit];
        let rows = connection.fetch_all(&deposits::UNCOMPARED, values).await?;
        let mut compared = 0_u32;
        for row in rows {
            let reference = row.text("reference")?;
            let form = compared_reference(reference);
            let values = values![who.mode, &who.partner, PRODUCT, reference, &form];
            connection.execute(&deposits::COMPARE, values).await?;
            compared = compared.saturating_add(1);
        }
        Ok(compared)
    }

    async fn deposit_find(
        &mut self,
        who: &Tenant,
        reference: &str,
    ) -> StoreResult<Option<Deposit>> {
        let form = compared_reference(reference);
        let values = values![who.mode, &who.partner, PRODUCT, &form, reference];
        let connection = self.locked(who).await?;
        let row = connection.fetch_optional(&deposits::FIND, values).await?;
        row.map(|row| deposits::deposit(&*row, who.mode))
            .transpose()
    }

    async fn deposit_insert(&mut self, who: &Tenant, deposit: &Deposit) -> StoreResult<()> {
        let asset = deposit.amount.asset();
        let form = compared_reference(&deposit.reference);
        let values = values![
            who.mode,
            &who.partner,
            PRODUCT,
            &deposit.reference,
            asset.code(),
            deposit.amount.units(),
            deposit.network.map(Network::as_str),
            deposit.entry,
            deposit.created_at,
            &form,
        ];
        self.insert_around("deposit.insert", who, &deposits::INSERT, values)
            .await
    }
}

pub async fn account(
    connection: &mut dyn Connection,
    who: &Tenant,
    asset: Asset,
) -> StoreResult<Option<Account>> {
    let values = values![who.mode, &who.partner, asset.code()];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| account_of(&*row)).transpose()
}

static FIND: Statement = Statement::new(
    "accounts",
    "SELECT partner_id, asset, available, sequence FROM accounts
     WHERE mode = $1 AND partner_id = $2 AND asset = $3",
);

/// An account and a page of its entries. The caller reads them from one snapshot.
pub async fn page(
    connection: &mut dyn Connection,
    who: &Tenant,
    asset: Asset,
    filter: &LedgerFilter,
    limit: u32,
) -> StoreResult<Option<LedgerPage>> {
    let Some(account) = account(connection, who, asset).await? else {
        return Ok(None);
    };
    let newest = match filter.created_before {
        None => account.sequence,
        Some(before) => last_up_to(connection, who, &account, before).await?,
    };
    let oldest = match filter.created_after {
        None => 0,
        Some(after) => {
            let before = after.minus(Duration::from_millis(1));
            last_up_to(connection, who, &account, before).await?
        }
    };
    let below = newest
        .saturating_add(1)
        .min(filter.before_sequence.unwrap_or(i64::MAX));
    let values = values![who.mode, &who.partner, asset.code(), below, oldest, limit];
    let rows = connection.fetch_all(&PAGE, values).await?;
    let entries: Result<_, _> = rows.iter().map(|row| entry_of(&**row, who.mode)).collect();
    let entries = entries?;
    Ok(Some(LedgerPage { account, entries }))
}

pub static PAGE: Statement = Statement::new(
    "ledger_entries",
    "SELECT partner_id, id, asset, debit, credit, amount, reason, account_sequence, balance_after, reference,
            trade_id, part, created_at
     FROM ledger_entries
     WHERE mode = $1 AND partner_id = $2 AND asset = $3 AND account_sequence < $4 AND account_sequence > $5
     ORDER BY account_sequence DESC LIMIT CAST($6 AS bigint)",
);

/// The sequence number of an account's last entry made at an instant or earlier, or zero. Instants never decrease along the sequence,
/// which has no gaps, so the statement halves the range.
pub async fn last_up_to(
    connection: &mut dyn Connection,
    who: &Tenant,
    account: &Account,
    at: Timestamp,
) -> StoreResult<i64> {
    let asset = account.asset();
    let values = values![who.mode, &who.partner, asset.code(), account.sequence, at];
    let row = connection.fetch_one(&LAST_UP_TO, values).await?;
    row.integer("low")
}

/// `CROSS JOIN` makes SQLite look up one entry for each half; its planner would read the whole account.
pub static LAST_UP_TO: Statement = Statement::new(
    "ledger_entries",
    "WITH RECURSIVE halves (low, high) AS (
         SELECT CAST(0 AS bigint), CAST($4 AS bigint)
         UNION ALL
         SELECT CASE WHEN created_at <= $5 THEN (low + high + 1) / 2 ELSE low END,
                CASE WHEN created_at <= $5 THEN high ELSE (low + high + 1) / 2 - 1 END
         FROM halves CROSS JOIN ledger_entries
         WHERE mode = $1 AND partner_id = $2 AND asset = $3 AND account_sequence = (low + high + 1) / 2
           AND low < high
     )
     SELECT low FROM halves WHERE low >= high",
);

pub fn account_of(row: &dyn Row) -> StoreResult<Account> {
    let asset = row.asset("asset")?;
    Ok(Account {
        available: row.amount("available", asset)?,
        sequence: row.integer("sequence")?,
    })
}

/// The columns of a pool's account in a row that has both accounts: balance and sequence number.
pub const FIAT: (&str, &str) = ("fiat_available", "fiat_sequence");
pub const CRYPTO: (&str, &str) = ("crypto_available", "crypto_sequence");

/// An account from the named columns, or `None` if the outer join found none.
pub fn opt_account(
    row: &dyn Row,
    asset: Asset,
    (available, sequence): (&'static str, &'static str),
) -> StoreResult<Option<Account>> {
    let Some(available) = row.opt_amount(available, asset)? else {
        return Ok(None);
    };
    let sequence = row.integer(sequence)?;
    Ok(Some(Account {
        available,
        sequence,
    }))
}

/// The partner's funds in a pool, from a row that has both accounts and the velocity total.
pub fn funds(row: &dyn Row, pool: &PoolId) -> StoreResult<Funds> {
    let fiat = opt_account(row, pool.fiat(), FIAT)?;
    let crypto = opt_account(row, pool.crypto(), CRYPTO)?;
    Ok(Funds {
        accounts: fiat.into_iter().chain(crypto).collect(),
        velocity: opt_velocity(row)?,
    })
}

pub fn entry_of(row: &dyn Row, mode: Mode) -> StoreResult<Entry> {
    let asset = row.asset("asset")?;
    let sequence = row.opt_integer("account_sequence")?;
    let balance_after = row.opt_amount("balance_after", asset)?;
    let mark = row.pair("balance_after", sequence, balance_after)?;
    let trade = row.opt_id("trade_id", mode)?;
    let trade = row.pair("part", trade, row.opt_parsed("part", TransferRole::parse)?)?;
    Ok(Entry {
        id: row.id("id", mode)?,
        transfer: Transfer {
            debit: row.parsed("debit", AccountKind::parse)?,
            credit: row.parsed("credit", AccountKind::parse)?,
            amount: row.amount("amount", asset)?,
            reason: row.parsed("reason", Reason::parse)?,
        },
        mark: mark.map(|(sequence, balance_after)| Posting {
            sequence,
            balance_after,
        }),
        reference: row.text("reference")?.to_owned(),
        trade,
        created_at: row.instant("created_at")?,
    })
}

/// Updates an account that still has the sequence number of `before`, or inserts it with its first entry.
async fn put_account(
    connection: &mut dyn Connection,
    who: &Tenant,
    before: &Account,
    posting: &Posting,
) -> StoreResult<Cas> {
    let (asset, balance) = (before.asset(), posting.balance_after.units());
    let (code, sequence) = (asset.code(), posting.sequence);
    let written = if before.sequence == 0 {
        let values = values![who.mode, &who.partner, code, balance, sequence];
        connection.execute(&FIRST_ENTRY, values).await?
    } else {
        let values = values![
            who.mode,
            &who.partner,
            code,
            balance,
            sequence,
            before.sequence
        ];
        connection.execute(&NEXT_ENTRY, values).await?
    };
    Cas::from_rows(written)
}

static FIRST_ENTRY: Statement = Statement::new(
    "accounts",
    "INSERT INTO accounts (mode, partner_id, asset, available, sequence) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (mode, partner_id, asset) DO NOTHING",
);

static NEXT_ENTRY: Statement = Statement::new(
    "accounts",
    "UPDATE accounts SET available = $4, sequence = $5
     WHERE mode = $1 AND partner_id = $2 AND asset = $3 AND sequence = $6",
);

static INSERT: Statement = Statement::new(
    "ledger_entries",
    "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                 balance_after, reference, trade_id, part, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
);
