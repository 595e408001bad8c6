//! Accounts and entries: rows in and out.

use crate::conn::Conn;
use async_trait::async_trait;
use instruments::failpoint::{Step, around};
use kernel::{Asset, Cas, StoreError, Timestamp};
use partner_core::Tenant;
use pools_core::contingent_credit::{Amounts, Range, Recount};
use pools_core::ledger::{Account, Entry, Posting};
use pools_core::ports::{Deposit, LedgerFilter, LedgerPage, LedgerTx};

use crate::row::{Columns, key};
use crate::tx::PgTx;
use crate::{contingent_credits, deposits, errors};

pub(crate) use store_sql::ledger::{account_of, entry_of};

pub(crate) async fn account(
    conn: &mut Conn,
    who: &Tenant,
    asset: Asset,
) -> Result<Option<Account>, StoreError> {
    let row = sqlx::query(
        "SELECT partner_id, asset, available, sequence FROM accounts
         WHERE mode = $1 AND partner_id = $2 AND asset = $3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(asset.code())
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| account_of(&Columns::new("accounts", &row)))
        .transpose()
}

/// An account and a page of its entries. To be called within one snapshot.
pub(crate) async fn page(
    conn: &mut Conn,
    who: &Tenant,
    asset: Asset,
    filter: &LedgerFilter,
    limit: u32,
) -> Result<Option<LedgerPage>, StoreError> {
    let Some(account) = account(conn, who, asset).await? else {
        return Ok(None);
    };
    let newest = match filter.created_before {
        None => account.sequence,
        Some(before) => last_up_to(conn, who, &account, before).await?,
    };
    let oldest = match filter.created_after {
        None => 0,
        Some(after) => {
            last_up_to(
                conn,
                who,
                &account,
                after.minus(std::time::Duration::from_millis(1)),
            )
            .await?
        }
    };
    let below = newest
        .saturating_add(1)
        .min(filter.before_sequence.unwrap_or(i64::MAX));
    let rows = sqlx::query(PAGE)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(asset.code())
        .bind(below)
        .bind(oldest)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    let entries = rows
        .iter()
        .map(|row| entry_of(&Columns::new("ledger_entries", row), who.mode))
        .collect::<Result<_, _>>()?;
    Ok(Some(LedgerPage { account, entries }))
}

pub(crate) const PAGE: &str =
    "SELECT partner_id, id, asset, debit, credit, amount, reason, account_sequence, balance_after, reference,
            trade_id, part, created_at
     FROM ledger_entries
     WHERE mode = $1 AND partner_id = $2 AND asset = $3 AND account_sequence < $4 AND account_sequence > $5
     ORDER BY account_sequence DESC LIMIT $6";

/// The last entry made at an instant or earlier; zero where there is none. Instants never
/// decrease along the sequence, which has no gaps, so it is found by halving.
pub(crate) async fn last_up_to(
    conn: &mut Conn,
    who: &Tenant,
    account: &Account,
    at: Timestamp,
) -> Result<i64, StoreError> {
    sqlx::query_scalar(LAST_UP_TO)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(account.asset().code())
        .bind(account.sequence)
        .bind(at.millis())
        .fetch_one(conn)
        .await
        .map_err(errors::statement)
}

pub(crate) const LAST_UP_TO: &str = "WITH RECURSIVE halves (low, high) AS (
         SELECT 0::bigint, $4::bigint
         UNION ALL
         SELECT CASE WHEN created_at <= $5 THEN (low + high + 1) / 2 ELSE low END,
                CASE WHEN created_at <= $5 THEN high ELSE (low + high + 1) / 2 - 1 END
         FROM halves JOIN ledger_entries
           ON mode = $1 AND partner_id = $2 AND asset = $3 AND account_sequence = (low + high + 1) / 2
         WHERE low < high
     )
     SELECT low FROM halves WHERE low >= high";

#[async_trait]
impl LedgerTx for PgTx {
    async fn account_lock(&mut self, who: &Tenant, asset: Asset) -> Result<Account, StoreError> {
        Ok(account(self.locked_connection(who).await?, who, asset)
            .await?
            .unwrap_or(Account::empty(asset)))
    }

    async fn entry_post(
        &mut self,
        who: &Tenant,
        before: &Account,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        if let Some(mark) = &entry.mark {
            let moved = put_account(self.locked_connection(who).await?, who, before, mark).await?;
            self.record_race(moved).won()?;
        }
        around(
            Step::EntryPost,
            insert(self.locked_connection(who).await?, who, entry),
        )
        .await
    }

    async fn refundable(
        &mut self,
        who: &Tenant,
        asset: Asset,
        range: Range,
        limit: u32,
    ) -> Result<Amounts, StoreError> {
        contingent_credits::refundable(self.locked_connection(who).await?, who, asset, range, limit)
            .await
    }

    async fn recount_get(
        &mut self,
        who: &Tenant,
        asset: Asset,
    ) -> Result<Option<Recount>, StoreError> {
        contingent_credits::recount(self.locked_connection(who).await?, who, asset).await
    }

    async fn recount_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        recount: &Recount,
    ) -> Result<(), StoreError> {
        contingent_credits::put_recount(self.locked_connection(who).await?, who, asset, recount)
            .await
    }

    async fn commitment_get(
        &mut self,
        who: &Tenant,
        asset: Asset,
    ) -> Result<Option<i64>, StoreError> {
        contingent_credits::get(self.locked_connection(who).await?, who, asset).await
    }

    async fn commitment_put(
        &mut self,
        who: &Tenant,
        asset: Asset,
        total: i64,
    ) -> Result<(), StoreError> {
        contingent_credits::put(self.locked_connection(who).await?, who, asset, total).await
    }

    async fn deposit_find(
        &mut self,
        who: &Tenant,
        reference: &str,
    ) -> Result<Option<Deposit>, StoreError> {
        deposits::find(self.locked_connection(who).await?, who, reference).await
    }

    async fn deposit_insert(&mut self, who: &Tenant, deposit: &Deposit) -> Result<(), StoreError> {
        let recording = deposits::insert(self.locked_connection(who).await?, who, deposit);
        around(Step::DepositInsert, recording).await
    }
}

/// Moves an account on from where the rules saw it, or makes it with its first entry.
async fn put_account(
    conn: &mut Conn,
    who: &Tenant,
    before: &Account,
    mark: &Posting,
) -> Result<Cas, StoreError> {
    let statement = if before.sequence == 0 {
        FIRST_ENTRY
    } else {
        NEXT_ENTRY
    };
    let rows = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(before.asset().code())
        .bind(mark.balance_after.units())
        .bind(mark.sequence)
        .bind(before.sequence)
        .execute(conn)
        .await
        .map_err(errors::statement)?
        .rows_affected();
    Cas::from_rows(rows)
}

const FIRST_ENTRY: &str =
    "INSERT INTO accounts (mode, partner_id, asset, available, sequence) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (mode, partner_id, asset) DO NOTHING";

const NEXT_ENTRY: &str = "UPDATE accounts SET available = $4, sequence = $5
     WHERE mode = $1 AND partner_id = $2 AND asset = $3 AND sequence = $6";

async fn insert(conn: &mut Conn, who: &Tenant, entry: &Entry) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
                                     balance_after, reference, trade_id, part, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(entry.id))
    .bind(entry.transfer.amount.asset().code())
    .bind(entry.transfer.debit.as_str())
    .bind(entry.transfer.credit.as_str())
    .bind(entry.transfer.amount.units())
    .bind(entry.transfer.reason.as_str())
    .bind(entry.mark.map(|mark| mark.sequence))
    .bind(entry.mark.map(|mark| mark.balance_after.units()))
    .bind(&entry.reference)
    .bind(entry.trade.map(|(trade, _)| key(trade)))
    .bind(entry.trade.map(|(_, part)| part.as_str()))
    .bind(entry.created_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
