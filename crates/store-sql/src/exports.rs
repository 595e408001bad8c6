//! Reads windows of a partner's trades, ledger entries and payments page by page, from one snapshot.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::rail::RailRecord;
use kernel::{StoreResult, Timestamp};
use partner_core::Tenant;
use partner_core::export::{Pages, Window};
use pools_core::export::ExportedEntry;
use pools_core::ledger::Account;
use pools_core::trade::Trade;
use ulid::Ulid;

use crate::deposits::network;
use crate::ledger::{account_of, entry_of, last_up_to};
use crate::trades::trade;
use crate::{Connection, Snapshot, Sql, Statement, rails, values};

/// The entries of a run that one statement reads.
const RUN_PAGE: u32 = 256;

#[must_use]
pub fn trades(snapshot: Box<dyn Snapshot>, who: &Tenant, window: Window) -> Box<dyn Pages<Trade>> {
    Box::new(Trades {
        snapshot,
        who: who.clone(),
        window,
        after: (window.from(), Ulid::nil()),
    })
}

pub async fn ledger(
    mut snapshot: Box<dyn Snapshot>,
    who: &Tenant,
    window: Window,
) -> StoreResult<Box<dyn Pages<ExportedEntry>>> {
    let connection = snapshot.connection();
    let mut runs = Vec::new();
    for account in accounts(connection, who).await? {
        runs.push(Run::numbered(connection, who, &account, window).await?);
        runs.push(Run::of(&account, Order::Unnumbered, window));
    }
    Ok(Box::new(Ledger {
        snapshot,
        who: who.clone(),
        window,
        runs,
    }))
}

struct Trades {
    snapshot: Box<dyn Snapshot>,
    who: Tenant,
    window: Window,
    /// The instant and the id of the last trade that was read; at the start, the window's instant and the lowest id.
    after: (Timestamp, Ulid),
}

#[async_trait]
impl Pages<Trade> for Trades {
    async fn next(&mut self, limit: u32) -> StoreResult<Vec<Trade>> {
        let (at, id) = self.after;
        let (mode, to) = (self.who.mode, self.window.to());
        let values = values![mode, &self.who.partner, at, id, to, limit];
        let rows = self.snapshot.connection().fetch_all(&TRADES, values);
        let page: Vec<Trade> = rows
            .await?
            .iter()
            .map(|row| trade(&**row, mode))
            .collect::<Result<_, _>>()?;
        if let Some(last) = page.last() {
            self.after = (last.created_at, last.id.ulid());
        }
        Ok(page)
    }
}

pub static TRADES: Statement = Statement::new(
    "trades",
    concat!(
        "SELECT ",
        crate::trade_columns!(""),
        " FROM trades
     WHERE mode = $1 AND partner_id = $2 AND (created_at, id) > ($3, $4) AND created_at < $5
     ORDER BY created_at, id LIMIT CAST($6 AS bigint)"
    ),
);

#[must_use]
pub fn payments(
    snapshot: Box<dyn Snapshot>,
    who: &Tenant,
    window: Window,
) -> Box<dyn Pages<RailRecord>> {
    Box::new(Payments {
        snapshot,
        who: who.clone(),
        window,
        after: first_id(window.from().minus(LONGEST_PREPARATION)),
    })
}

/// The longest time between the making of a record's id, which precedes the calls to its rail, and its creation.
const LONGEST_PREPARATION: Duration = Duration::from_secs(60);

/// The lowest id that is made at an instant.
fn first_id(at: Timestamp) -> Ulid {
    Ulid::from_parts(at.millis().unsigned_abs(), 0)
}

struct Payments {
    snapshot: Box<dyn Snapshot>,
    who: Tenant,
    window: Window,
    /// The id of the last record that was read; at the start, the lowest id of the window.
    after: Ulid,
}

#[async_trait]
impl Pages<RailRecord> for Payments {
    async fn next(&mut self, limit: u32) -> StoreResult<Vec<RailRecord>> {
        let mode = self.who.mode;
        let (from, to) = (self.window.from(), self.window.to());
        let values = values![
            mode,
            &self.who.partner,
            self.after,
            first_id(to),
            from,
            to,
            limit
        ];
        let rows = self.snapshot.connection().fetch_all(&PAYMENTS, values);
        let page: Vec<RailRecord> = rows
            .await?
            .iter()
            .map(|row| rails::record(&**row, mode))
            .collect::<Result<_, _>>()?;
        if let Some(last) = page.last() {
            self.after = last.id.id().ulid();
        }
        Ok(page)
    }
}

/// An id is made before its record is created, so the ids of a window end with it.
pub static PAYMENTS: Statement = Statement::new(
    "rail_records",
    concat!(
        "SELECT ",
        crate::rail_columns!(),
        " FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     WHERE r.mode = $1 AND r.partner_id = $2 AND r.id > $3 AND r.id < $4 AND r.created_at >= $5 AND r.created_at < $6
     ORDER BY r.id LIMIT CAST($7 AS bigint)"
    ),
);

/// The entries of all currencies, merged from sorted runs. No index has all entries by time, and sorting a window would hold the
/// whole window in memory.
struct Ledger {
    snapshot: Box<dyn Snapshot>,
    who: Tenant,
    window: Window,
    runs: Vec<Run>,
}

#[async_trait]
impl Pages<ExportedEntry> for Ledger {
    async fn next(&mut self, limit: u32) -> StoreResult<Vec<ExportedEntry>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut page = Vec::new();
        while page.len() < limit {
            for run in &mut self.runs {
                let connection = self.snapshot.connection();
                run.read_ahead(connection, &self.who, self.window).await?;
            }
            // The runs are ordered by currency, numbered before unnumbered. The first run with the earliest instant is taken.
            let ahead = self.runs.iter_mut().filter(|run| run.first().is_some());
            let Some(earliest) = ahead.min_by_key(|run| run.first()) else {
                break;
            };
            page.extend(earliest.ahead.pop_front());
        }
        Ok(page)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Entries of the partner's account, by sequence number.
    Numbered,
    /// Other entries, on SQLite by row number, on Postgres by instant and id.
    Unnumbered,
}

/// The entries of one currency that are in the partner's account, or those that are not.
struct Run {
    asset: String,
    order: Order,
    /// The number, or on SQLite the row, of the last entry that was read.
    place: i64,
    /// The number of the last entry of the window, if entries have numbers.
    last: i64,
    /// The instant and the id of the last entry that was read; at the start, the window's instant and the lowest id.
    after: (Timestamp, Ulid),
    ahead: VecDeque<ExportedEntry>,
    is_read: bool,
}

impl Run {
    /// Numbers follow the instants, so the window is a range of numbers.
    async fn numbered(
        connection: &mut dyn Connection,
        who: &Tenant,
        account: &Account,
        window: Window,
    ) -> StoreResult<Self> {
        let before = |at: Timestamp| at.minus(Duration::from_millis(1));
        let (from, to) = (before(window.from()), before(window.to()));
        Ok(Self {
            place: last_up_to(connection, who, account, from).await?,
            last: last_up_to(connection, who, account, to).await?,
            ..Self::of(account, Order::Numbered, window)
        })
    }

    fn of(account: &Account, order: Order, window: Window) -> Self {
        Self {
            asset: account.asset().code().to_owned(),
            order,
            place: 0,
            last: 0,
            after: (window.from(), Ulid::nil()),
            ahead: VecDeque::new(),
            is_read: false,
        }
    }

    /// The instant of the next entry, if one was read ahead.
    fn first(&self) -> Option<Timestamp> {
        self.ahead.front().map(|booked| booked.entry.created_at)
    }

    async fn read_ahead(
        &mut self,
        connection: &mut dyn Connection,
        who: &Tenant,
        window: Window,
    ) -> StoreResult<()> {
        if self.is_read || !self.ahead.is_empty() {
            return Ok(());
        }
        let (mode, partner) = (who.mode, &who.partner);
        let (from, to, (at, id)) = (window.from(), window.to(), self.after);
        let asset = &self.asset;
        let rows = match self.order {
            Order::Numbered => {
                let values = values![mode, partner, asset, self.place, self.last, RUN_PAGE];
                connection.fetch_all(&NUMBERED, values).await?
            }
            Order::Unnumbered => {
                let place = self.place;
                let values = values![mode, partner, asset, at, id, place, from, to, RUN_PAGE];
                connection.fetch_all(&UNNUMBERED, values).await?
            }
        };
        self.is_read = rows.is_empty();
        for row in &rows {
            let entry = entry_of(&**row, mode)?;
            self.place = row.integer("place")?;
            self.after = (entry.created_at, entry.id.ulid());
            let network = network(&**row)?;
            self.ahead.push_back(ExportedEntry { entry, network });
        }
        Ok(())
    }
}

pub static NUMBERED: Statement = Statement::new(
    "ledger_entries",
    "SELECT e.partner_id, e.id, e.asset, e.debit, e.credit, e.amount, e.reason, e.account_sequence, e.balance_after,
            e.reference, e.trade_id, e.part, e.created_at, e.account_sequence AS place, d.network
     FROM ledger_entries AS e
     LEFT JOIN deposits AS d ON d.mode = e.mode AND d.partner_id = e.partner_id AND d.product = 'pools'
       AND d.reference = e.reference AND d.entry_id = e.id
     WHERE e.mode = $1 AND e.partner_id = $2 AND e.asset = $3 AND e.account_sequence > $4 AND e.account_sequence <= $5
     ORDER BY e.account_sequence LIMIT CAST($6 AS bigint)",
);

macro_rules! unnumbered {
    ($place:literal) => {
        concat!(
            "SELECT e.partner_id, e.id, e.asset, e.debit, e.credit, e.amount, e.reason, e.account_sequence, e.balance_after,
            e.reference, e.trade_id, e.part, e.created_at, ",
            $place,
            " AS place, CAST(NULL AS text) AS network
     FROM ledger_entries AS e
     WHERE e.mode = $1 AND e.partner_id = $2 AND e.asset = $3 AND e.account_sequence IS NULL
       AND e.created_at >= $7 AND e.created_at < $8"
        )
    };
}
/// On SQLite, the order of row numbers is the order of instants, because rows are only appended.
pub static UNNUMBERED: Statement = Statement::per_engine(
    "ledger_entries",
    Sql {
        sqlite: concat!(
            unnumbered!("e.rowid"),
            " AND e.rowid > $6
     ORDER BY e.rowid LIMIT CAST($9 AS bigint)"
        ),
        postgres: concat!(
            unnumbered!("CAST($6 AS bigint)"),
            " AND (e.created_at, e.id) > ($4, $5)
     ORDER BY e.created_at, e.id LIMIT CAST($9 AS bigint)"
        ),
    },
);

async fn accounts(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<Vec<Account>> {
    let values = values![who.mode, &who.partner];
    let rows = connection.fetch_all(&ACCOUNTS, values).await?;
    rows.iter().map(|row| account_of(&**row)).collect()
}

pub static ACCOUNTS: Statement = Statement::new(
    "accounts",
    "SELECT partner_id, asset, available, sequence FROM accounts
     WHERE mode = $1 AND partner_id = $2 ORDER BY asset",
);
