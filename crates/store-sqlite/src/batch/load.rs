//! Loads the state of a batch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::{Asset, StoreResult, Timestamp};
use partner_core::PartnerId;
use partner_core::idempotency::Scope;
use pools_core::batch::{BatchState, IdempotencyRecord, TransactCommand, capped};
use pools_core::ledger::Account;
use pools_core::quote::{Quote, QuoteId, QuoteOutcome, Side};
use pools_core::trade::Trade;
use pools_core::velocity::{self, TradesRead, Velocity};
use serde::Serialize;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use store_sql::velocity::velocity_of;
use store_sql::{idempotency, ledger, trades};

use super::BatchContext;
use crate::access::names;
use crate::open::Inner;
use crate::row::{Columns, json, key};
use crate::{errors, quotes};

/// The batch state, and the preconditions that the writes repeat.
pub(super) struct Loaded {
    pub(super) state: BatchState,
    /// The accounts' sequence numbers before the batch.
    pub(super) sequences: BTreeMap<(PartnerId, Asset), i64>,
    /// Partners whose running total has moved with the window.
    pub(super) slid: BTreeSet<PartnerId>,
}

impl BatchContext {
    pub(super) async fn load(
        self,
        inner: &Inner,
        conn: &mut SqliteConnection,
        batch: &[TransactCommand],
    ) -> StoreResult<Loaded> {
        let keys = batch.iter().map(|command| command.key).collect();
        let quotes = self.quotes(conn, batch).await?;
        let access = inner.access_of(conn, self.mode, &keys).await?;
        let cutoff = velocity::cutoff(self.now, inner.options.velocity_window);
        let capped = capped(&access);
        let (velocity, slid) = self.velocity(conn, batch, cutoff, &capped).await?;
        let state = BatchState {
            access,
            answered: self
                .idempotency_records(conn, batch, inner.options.idempotency_ttl)
                .await?,
            trades: self.trades(conn, &quotes).await?,
            accounts: self.accounts(conn, batch).await?,
            commitments: self.contingent_credits(conn, &quotes).await?,
            quotes,
            velocity,
            window: inner.options.velocity_window,
            idempotency_ttl: inner.options.idempotency_ttl,
            opened: Vec::new(),
        };
        let sequences = state
            .accounts
            .iter()
            .map(|(key, account)| (key.clone(), account.sequence))
            .collect();
        Ok(Loaded {
            state,
            sequences,
            slid,
        })
    }

    /// The rows of a statement that takes the mode and a set of keys.
    async fn rows(
        self,
        conn: &mut SqliteConnection,
        statement: &'static str,
        keys: &impl Serialize,
    ) -> StoreResult<Vec<SqliteRow>> {
        sqlx::query(statement)
            .bind(self.mode.as_str())
            .bind(json(keys)?)
            .fetch_all(conn)
            .await
            .map_err(errors::statement)
    }

    async fn idempotency_records(
        self,
        conn: &mut SqliteConnection,
        batch: &[TransactCommand],
        ttl: Duration,
    ) -> StoreResult<BTreeMap<Scope, IdempotencyRecord>> {
        let scopes: Vec<_> = batch
            .iter()
            .map(|TransactCommand { scope, .. }| {
                (
                    scope.tenant.partner.as_str(),
                    &scope.route,
                    scope.key.as_str(),
                )
            })
            .collect();
        let rows = self.rows(conn, IDEMPOTENCY, &scopes).await?;
        let mut records = BTreeMap::new();
        for row in &rows {
            let row = Columns::new("idempotency_keys", row);
            let place = usize::try_from(row.integer("place")?).map_err(|_| row.bad("place"))?;
            let command = batch.get(place).ok_or_else(|| row.bad("place"))?;
            records.insert(command.scope.clone(), idempotency::answered(&row, ttl)?);
        }
        Ok(records)
    }

    /// The quotes that the commands name. An id of the other mode is left out: no partner of this mode has it.
    async fn quotes(
        self,
        conn: &mut SqliteConnection,
        batch: &[TransactCommand],
    ) -> StoreResult<BTreeMap<(PartnerId, QuoteId), Quote>> {
        let keys: BTreeSet<(&str, String)> = batch
            .iter()
            .filter(|command| command.quote.mode() == self.mode)
            .map(|command| (command.scope.tenant.partner.as_str(), key(command.quote)))
            .collect();
        let rows = self.rows(conn, QUOTES, &keys).await?;
        rows.iter()
            .map(|row| {
                let row = Columns::new("quotes", row);
                let quote = quotes::quote(&row, self.mode)?;
                Ok(((row.partner()?, quote.id), quote))
            })
            .collect()
    }

    /// The trades of the consumed quotes.
    async fn trades(
        self,
        conn: &mut SqliteConnection,
        quotes: &BTreeMap<(PartnerId, QuoteId), Quote>,
    ) -> StoreResult<BTreeMap<(PartnerId, QuoteId), Trade>> {
        let keys: Vec<(&str, String)> = quotes
            .iter()
            .filter(|(_, quote)| matches!(quote.outcome, QuoteOutcome::Consumed(_)))
            .map(|((partner, id), _)| (partner.as_str(), key(*id)))
            .collect();
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = self.rows(conn, TRADES, &keys).await?;
        rows.iter()
            .map(|row| {
                let row = Columns::new("trades", row);
                let trade = trades::trade(&row, self.mode)?;
                Ok(((row.partner()?, trade.quote), trade))
            })
            .collect()
    }

    async fn accounts(
        self,
        conn: &mut SqliteConnection,
        batch: &[TransactCommand],
    ) -> StoreResult<BTreeMap<(PartnerId, Asset), Account>> {
        let keys: BTreeSet<(&str, String)> = batch
            .iter()
            .flat_map(|command| {
                let partner = command.scope.tenant.partner.as_str();
                [command.pool.fiat(), command.pool.crypto()]
                    .map(|asset| (partner, asset.code().to_owned()))
            })
            .collect();
        let rows = self.rows(conn, ACCOUNTS, &keys).await?;
        rows.iter()
            .map(|row| {
                let row = Columns::new("accounts", row);
                let account = ledger::account_of(&row)?;
                Ok(((row.partner()?, account.asset()), account))
            })
            .collect()
    }

    /// The contingent credits (table `commitments`) of the accounts that returned sales credit.
    async fn contingent_credits(
        self,
        conn: &mut SqliteConnection,
        quotes: &BTreeMap<(PartnerId, QuoteId), Quote>,
    ) -> StoreResult<BTreeMap<(PartnerId, Asset), i64>> {
        let keys: BTreeSet<(&str, String)> = quotes
            .iter()
            .filter(|(_, quote)| quote.terms.side == Side::OffRamp)
            .map(|((partner, _), quote)| (partner.as_str(), quote.terms.pool.fiat()))
            .map(|(partner, asset)| (partner, asset.code().to_owned()))
            .collect();
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = self.rows(conn, CONTINGENT_CREDITS, &keys).await?;
        rows.iter()
            .map(|row| {
                let row = Columns::new("commitments", row);
                let account = (row.partner()?, row.asset("asset")?);
                Ok((account, row.integer("total")?))
            })
            .collect()
    }

    /// The running totals. The total of a partner with a cap drops trades that have left the window, a bounded number at a time.
    async fn velocity(
        self,
        conn: &mut SqliteConnection,
        batch: &[TransactCommand],
        cutoff: Timestamp,
        capped: &BTreeSet<&PartnerId>,
    ) -> StoreResult<(BTreeMap<PartnerId, Velocity>, BTreeSet<PartnerId>)> {
        let partners = names(batch.iter().map(|command| &command.scope.tenant.partner));
        let rows = self.rows(conn, VELOCITY, &partners).await?;
        let mut crossed = self.crossed(conn, capped, cutoff).await?;
        let slid = crossed.keys().cloned().collect();
        let mut totals = BTreeMap::new();
        for row in &rows {
            let row = Columns::new("velocity", row);
            let (partner, total) = (row.partner()?, velocity_of(&row)?);
            let total = match crossed.remove(&partner) {
                Some(crossed) => total.remove_oldest(cutoff, &crossed),
                None if capped.contains(&partner) => {
                    total.remove_oldest(cutoff, &TradesRead::default())
                }
                None => total,
            };
            totals.insert(partner, total);
        }
        Ok((totals, slid))
    }

    /// The trades that capped partners' totals drop in this batch.
    async fn crossed(
        self,
        conn: &mut SqliteConnection,
        capped: &BTreeSet<&PartnerId>,
        cutoff: Timestamp,
    ) -> StoreResult<BTreeMap<PartnerId, TradesRead>> {
        if capped.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = sqlx::query(CROSSED)
            .bind(self.mode.as_str())
            .bind(json(&names(capped.iter().copied()))?)
            .bind(cutoff.millis())
            .bind(velocity::BATCH_STEP.saturating_sub(1))
            .fetch_all(conn)
            .await
            .map_err(errors::statement)?;
        let mut crossed: BTreeMap<PartnerId, TradesRead> = BTreeMap::new();
        for row in &rows {
            let row = Columns::new("trades", row);
            let (reached, notional) = (row.opt_instant("reached")?, row.opt_integer("notional")?);
            if reached.is_some() || notional.is_some() {
                let one = crossed.entry(row.partner()?).or_default();
                one.reached = reached;
                one.notionals.extend(notional);
            }
        }
        Ok(crossed)
    }
}

pub(crate) const IDEMPOTENCY: &str =
    "SELECT j.key AS place, i.partner_id, i.key, i.fingerprint, i.created_at AS key_created_at,
            i.expires_at AS key_expires_at
     FROM json_each(?2) AS j
     CROSS JOIN idempotency_keys AS i ON i.mode = ?1 AND i.partner_id = j.value ->> 0
          AND i.route = j.value ->> 1 AND i.key = j.value ->> 2";

pub(crate) const QUOTES: &str = concat!(
    "SELECT ",
    store_sql::quote_columns!("q."),
    " FROM json_each(?2) AS j
     CROSS JOIN quotes AS q ON q.mode = ?1 AND q.partner_id = j.value ->> 0 AND q.id = j.value ->> 1"
);

pub(crate) const TRADES: &str = concat!(
    "SELECT ",
    store_sql::trade_columns!("t."),
    " FROM json_each(?2) AS j
     CROSS JOIN trades AS t
          ON t.mode = ?1 AND t.partner_id = j.value ->> 0 AND t.quote_id = j.value ->> 1"
);

pub(crate) const ACCOUNTS: &str =
    "SELECT a.partner_id, a.asset, a.available, a.sequence
     FROM json_each(?2) AS j
     CROSS JOIN accounts AS a ON a.mode = ?1 AND a.partner_id = j.value ->> 0 AND a.asset = j.value ->> 1";

pub(crate) const CONTINGENT_CREDITS: &str =
    "SELECT c.partner_id, c.asset, c.total
     FROM json_each(?2) AS j
     CROSS JOIN commitments AS c ON c.mode = ?1 AND c.partner_id = j.value ->> 0 AND c.asset = j.value ->> 1";

pub(crate) const VELOCITY: &str = "SELECT v.partner_id, v.total, v.floor
     FROM json_each(?2) AS j
     CROSS JOIN velocity AS v ON v.mode = ?1 AND v.partner_id = j.value";

/// Each partner's counted trades after its floor and up to the cutoff, but no later than the instant of the trade after the
/// first ?4. `MATERIALIZED` makes SQLite find that instant once for each partner.
pub(crate) const CROSSED: &str = "WITH bounds AS MATERIALIZED (
         SELECT v.partner_id, v.floor,
                (SELECT t.created_at FROM trades AS t
                 WHERE t.mode = ?1 AND t.partner_id = v.partner_id AND t.created_at > v.floor AND t.created_at <= ?3
                 ORDER BY t.created_at LIMIT 1 OFFSET +?4) AS reached
         FROM json_each(?2) AS j
         CROSS JOIN velocity AS v ON v.mode = ?1 AND v.partner_id = j.value
     )
     SELECT b.partner_id, b.reached, t.notional FROM bounds AS b
     LEFT JOIN trades AS t ON t.mode = ?1 AND t.partner_id = b.partner_id AND t.created_at > b.floor
          AND t.created_at <= coalesce(b.reached, ?3) AND t.status NOT IN ('released', 'failed')";
