//! Windows of a partner's books, read page by page from one snapshot.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{StoreError, Timestamp};
use partner_core::Tenant;
use pools_core::export::{ExportedEntry, Window};
use pools_core::ledger::Account;
use pools_core::ports::{Exports, Pages};
use pools_core::trade::Trade;
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;

use store_sql::deposits::network;
use store_sql::{ledger, trades};

use crate::conn::Conn;
use crate::pool::Tx;
use crate::row::{Columns, key};
use crate::{PostgresStore, errors};

/// Entries of one run that are read at once.
const AHEAD: i64 = 256;

#[async_trait]
impl Exports for PostgresStore {
    async fn trades_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> Result<Box<dyn Pages<Trade>>, StoreError> {
        Ok(Box::new(Trades {
            snapshot: self.inner.long_snapshot().await?,
            who: who.clone(),
            window,
            after: (window.from().millis(), Uuid::nil()),
        }))
    }

    async fn ledger_export(
        &self,
        who: &Tenant,
        window: Window,
    ) -> Result<Box<dyn Pages<ExportedEntry>>, StoreError> {
        let mut snapshot = self.inner.long_snapshot().await?;
        let mut runs = Vec::new();
        for account in accounts(&mut snapshot, who).await? {
            runs.push(Run::numbered(&mut snapshot, who, &account, window).await?);
            runs.push(Run::unnumbered(&account, window));
        }
        Ok(Box::new(Ledger {
            snapshot,
            who: who.clone(),
            window,
            runs,
        }))
    }
}

struct Trades {
    snapshot: Tx,
    who: Tenant,
    window: Window,
    /// The instant and the id of the last one read; before the first, of none.
    after: (i64, Uuid),
}

#[async_trait]
impl Pages<Trade> for Trades {
    async fn next(&mut self, limit: u32) -> Result<Vec<Trade>, StoreError> {
        let rows = sqlx::query(TRADES)
            .bind(self.who.mode.as_str())
            .bind(self.who.partner.as_str())
            .bind(self.after.0)
            .bind(self.after.1)
            .bind(self.window.to().millis())
            .bind(i64::from(limit))
            .fetch_all(&mut *self.snapshot)
            .await
            .map_err(errors::statement)?;
        let page: Vec<Trade> = rows
            .iter()
            .map(|row| trades::trade(&Columns::new("trades", row), self.who.mode))
            .collect::<Result<_, _>>()?;
        if let Some(last) = page.last() {
            self.after = (last.created_at.millis(), key(last.id));
        }
        Ok(page)
    }
}

pub(crate) const TRADES: &str =
    "SELECT partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until, engine, mid, fill_rate
     FROM trades
     WHERE mode = $1 AND partner_id = $2 AND (created_at, id) > ($3, $4) AND created_at < $5
     ORDER BY created_at, id LIMIT $6";

/// The entries of all currencies, merged from runs that are each in their order: no index has all
/// of them by time, and sorting a whole window would hold it in memory.
struct Ledger {
    snapshot: Tx,
    who: Tenant,
    window: Window,
    runs: Vec<Run>,
}

#[async_trait]
impl Pages<ExportedEntry> for Ledger {
    async fn next(&mut self, limit: u32) -> Result<Vec<ExportedEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut page = Vec::new();
        while page.len() < limit {
            for run in &mut self.runs {
                run.read_ahead(&mut self.snapshot, &self.who, self.window)
                    .await?;
            }
            // Runs are in the order of their currencies, numbered before unnumbered, and of equal
            // ones the first is taken.
            let ahead = self.runs.iter_mut().filter(|run| run.first().is_some());
            let Some(earliest) = ahead.min_by_key(|run| run.first()) else {
                break;
            };
            page.extend(earliest.ahead.pop_front());
        }
        Ok(page)
    }
}

/// The entries of one currency that are in the partner's account, or those that are not.
struct Run {
    asset: String,
    place: Place,
    ahead: VecDeque<ExportedEntry>,
    /// Is there no more to read?
    over: bool,
}

/// Where a run is.
enum Place {
    /// The number in the account of the last one read, and of the last one that counts.
    Numbered { after: i64, last: i64 },
    /// The instant and the id of the last one read; before the first, of none.
    Unnumbered { after: (i64, Uuid) },
}

impl Run {
    /// Numbers follow the instants, so the window is a range of them.
    async fn numbered(
        conn: &mut Conn,
        who: &Tenant,
        account: &Account,
        window: Window,
    ) -> Result<Self, StoreError> {
        let before = |at: Timestamp| at.minus(Duration::from_millis(1));
        let (from, to) = (before(window.from()), before(window.to()));
        let after = ledger::last_up_to(conn, who, account, from).await?;
        let last = ledger::last_up_to(conn, who, account, to).await?;
        Ok(Self::of(account, Place::Numbered { after, last }))
    }

    fn unnumbered(account: &Account, window: Window) -> Self {
        let after = (window.from().millis(), Uuid::nil());
        Self::of(account, Place::Unnumbered { after })
    }

    fn of(account: &Account, place: Place) -> Self {
        Self {
            asset: account.asset().code().to_owned(),
            place,
            ahead: VecDeque::new(),
            over: false,
        }
    }

    /// The instant of the next entry, where one was read ahead.
    fn first(&self) -> Option<Timestamp> {
        self.ahead.front().map(|booked| booked.entry.created_at)
    }

    async fn read_ahead(
        &mut self,
        conn: &mut Conn,
        who: &Tenant,
        window: Window,
    ) -> Result<(), StoreError> {
        if self.over || !self.ahead.is_empty() {
            return Ok(());
        }
        let statement = match self.place {
            Place::Numbered { .. } => NUMBERED,
            Place::Unnumbered { .. } => UNNUMBERED,
        };
        let query = sqlx::query(statement)
            .bind(who.mode.as_str())
            .bind(who.partner.as_str())
            .bind(&self.asset)
            .bind(AHEAD);
        let query = match &self.place {
            Place::Numbered { after, last } => query.bind(*after).bind(*last),
            Place::Unnumbered { after } => {
                let to = window.to().millis();
                query.bind(after.0).bind(after.1).bind(to)
            }
        };
        let rows = query.fetch_all(conn).await.map_err(errors::statement)?;
        self.over = rows.is_empty();
        for row in &rows {
            self.ahead.push_back(booked(row, who)?);
        }
        if let Some(last) = self.ahead.back() {
            self.place.move_to(last);
        }
        Ok(())
    }
}

impl Place {
    fn move_to(&mut self, booked: &ExportedEntry) {
        let entry = &booked.entry;
        match self {
            Self::Numbered { after, .. } => {
                *after = entry.mark.map_or(*after, |mark| mark.sequence);
            }
            Self::Unnumbered { after } => {
                *after = (entry.created_at.millis(), key(entry.id));
            }
        }
    }
}

pub(crate) const NUMBERED: &str =
    "SELECT e.partner_id, e.id, e.asset, e.debit, e.credit, e.amount, e.reason, e.account_sequence, e.balance_after,
            e.reference, e.trade_id, e.part, e.created_at, d.network
     FROM ledger_entries AS e
     LEFT JOIN deposits AS d ON d.mode = e.mode AND d.partner_id = e.partner_id AND d.product = 'pools'
       AND d.reference = e.reference AND d.entry_id = e.id
     WHERE e.mode = $1 AND e.partner_id = $2 AND e.asset = $3 AND e.account_sequence > $5 AND e.account_sequence <= $6
     ORDER BY e.account_sequence LIMIT $4";

pub(crate) const UNNUMBERED: &str =
    "SELECT e.partner_id, e.id, e.asset, e.debit, e.credit, e.amount, e.reason, e.account_sequence, e.balance_after,
            e.reference, e.trade_id, e.part, e.created_at, NULL::text AS network
     FROM ledger_entries AS e
     WHERE e.mode = $1 AND e.partner_id = $2 AND e.asset = $3 AND e.account_sequence IS NULL
       AND (e.created_at, e.id) > ($5, $6) AND e.created_at < $7
     ORDER BY e.created_at, e.id LIMIT $4";

fn booked(row: &PgRow, who: &Tenant) -> Result<ExportedEntry, StoreError> {
    Ok(ExportedEntry {
        entry: ledger::entry_of(&Columns::new("ledger_entries", row), who.mode)?,
        network: network(&Columns::new("deposits", row))?,
    })
}

async fn accounts(conn: &mut Conn, who: &Tenant) -> Result<Vec<Account>, StoreError> {
    let rows = sqlx::query(ACCOUNTS)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    let account = |row| ledger::account_of(&Columns::new("accounts", row));
    rows.iter().map(account).collect()
}

pub(crate) const ACCOUNTS: &str = "SELECT partner_id, asset, available, sequence FROM accounts
     WHERE mode = $1 AND partner_id = $2 ORDER BY asset";
