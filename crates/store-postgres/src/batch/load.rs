//! Loads the state of a batch.

use std::collections::{BTreeMap, BTreeSet};

use crate::conn::Conn;
use kernel::{Asset, Mode, StoreResult, Timestamp};
use partner_core::PartnerId;
use pools_core::batch::{BatchState, TransactCommand, capped};
use pools_core::quote::{QuoteId, QuoteOutcome};
use pools_core::trade::Trade;
use pools_core::velocity::{self, TradesRead};
use sqlx::postgres::PgRow;
use sqlx::types::Uuid;
use store_sql::ledger::{CRYPTO, FIAT, opt_account};
use store_sql::velocity::opt_velocity;
use store_sql::{idempotency, trades};

use crate::open::Inner;
use crate::partner_lock::PartnerLock;
use crate::row::{Columns, column, key};
use crate::{errors, quotes};

/// The batch state, and the preconditions that the writes repeat.
pub(super) struct Loaded {
    pub(super) state: BatchState,
    /// The instant of the clock.
    pub(super) base: i64,
    /// The instant of the batch: the clock's, or the last stored instant if it is later.
    pub(super) now: Timestamp,
    /// The accounts' sequence numbers before the batch.
    pub(super) sequences: BTreeMap<(PartnerId, Asset), i64>,
    /// Partners whose running total has moved with the window.
    pub(super) slid: BTreeSet<PartnerId>,
}

impl Loaded {
    pub(super) fn writes_nothing(&self) -> bool {
        self.state.opened.is_empty() && self.slid.is_empty()
    }
}

/// The distinct partners of a batch.
pub(super) fn partners(batch: &[TransactCommand]) -> Vec<&str> {
    let partners: BTreeSet<&str> = batch
        .iter()
        .map(|command| command.scope.tenant.partner.as_str())
        .collect();
    partners.into_iter().collect()
}

pub(super) async fn load(
    inner: &Inner,
    conn: &mut Conn,
    mode: Mode,
    batch: &[TransactCommand],
    held: &BTreeMap<PartnerId, PartnerLock>,
) -> StoreResult<Loaded> {
    let keys = batch
        .iter()
        .map(|command| (command.key, command.scope.tenant.partner.clone()))
        .collect();
    let access = inner.access_of(conn, mode, &keys, held).await?;
    let rows = read(inner, conn, mode, batch, &capped(&access), held).await?;
    let Some(first) = rows.first() else {
        return Err(errors::rows("books", batch.len(), 0));
    };
    let moment = Columns::new("books", first);
    let base = moment.integer("base")?;
    let now = inner.clock.take(base, moment.integer("now")?)?;
    let mut loaded = Loaded {
        state: BatchState {
            access,
            window: inner.options.velocity_window,
            idempotency_ttl: inner.options.idempotency_ttl,
            ..BatchState::default()
        },
        base,
        now,
        sequences: BTreeMap::new(),
        slid: BTreeSet::new(),
    };
    for row in &rows {
        loaded.add(row, mode, batch)?;
    }
    loaded.state.trades = existing(conn, mode, &loaded.state).await?;
    Ok(loaded)
}

/// Reads one row for each command.
async fn read(
    inner: &Inner,
    conn: &mut Conn,
    mode: Mode,
    batch: &[TransactCommand],
    capped: &BTreeSet<&PartnerId>,
    held: &BTreeMap<PartnerId, PartnerLock>,
) -> StoreResult<Vec<PgRow>> {
    let latest = held.values().map(|held| held.at).max().unwrap_or_default();
    let window = inner.options.velocity_window.as_millis();
    let partners = column(batch, |command| &command.scope.tenant.partner);
    // Only a partner's first command reads the running total.
    let mut seen = BTreeSet::new();
    let firsts: Vec<bool> = partners
        .iter()
        .map(|partner| seen.insert(*partner))
        .collect();
    // The total of a partner with a cap drops trades that have left the window.
    let forget = partners.iter().zip(&firsts);
    let forget = forget.map(|(partner, first)| *first && capped.contains(*partner));
    let forget: Vec<bool> = forget.collect();
    sqlx::query(READ)
        .bind(mode.as_str())
        .bind(column(&partners, |partner| partner.as_str()))
        // No partner of this mode has an id of the other mode.
        .bind(column(batch, |command| {
            command.quote.in_mode(mode).map(key)
        }))
        .bind(column(batch, |command| command.scope.route.as_str()))
        .bind(column(batch, |command| command.scope.key.as_str()))
        .bind(column(batch, |command| {
            command.pool.fiat().code().to_owned()
        }))
        .bind(column(batch, |command| {
            command.pool.crypto().code().to_owned()
        }))
        .bind(firsts)
        .bind(inner.clock.given())
        .bind(inner.clock.last().max(latest))
        .bind(i64::try_from(window).unwrap_or(i64::MAX))
        .bind(forget)
        .bind(i64::from(velocity::BATCH_STEP.saturating_sub(1)))
        .fetch_all(conn)
        .await
        .map_err(errors::statement)
}

impl Loaded {
    /// Adds the rows of a command to the state.
    fn add(&mut self, row: &PgRow, mode: Mode, batch: &[TransactCommand]) -> StoreResult<()> {
        let columns = Columns::new("quotes", row);
        let place = usize::try_from(columns.integer("place")?).ok();
        let command = place.and_then(|place| batch.get(place.checked_sub(1)?));
        let command = command.ok_or_else(|| columns.bad("place"))?;
        let partner = &command.scope.tenant.partner;
        if let Some(quote) = quotes::opt_quote(&columns, mode)? {
            self.state.quotes.insert((partner.clone(), quote.id), quote);
        }
        let record = Columns::new("idempotency_keys", row);
        if let Some(record) = idempotency::opt_answered(&record, self.state.idempotency_ttl)? {
            self.state.answered.insert(command.scope.clone(), record);
        }
        self.add_account(row, partner, command.pool.fiat(), FIAT)?;
        self.add_account(row, partner, command.pool.crypto(), CRYPTO)?;
        let credit = Columns::new("commitments", row);
        if let Some(total) = credit.opt_integer("committed")? {
            let account = (partner.clone(), command.pool.fiat());
            self.state.commitments.insert(account, total);
        }
        if columns.flag("first")? {
            self.add_velocity(row, partner)?;
        }
        Ok(())
    }

    fn add_account(
        &mut self,
        row: &PgRow,
        partner: &PartnerId,
        asset: Asset,
        columns: (&'static str, &'static str),
    ) -> StoreResult<()> {
        let row = Columns::new("accounts", row);
        if let Some(account) = opt_account(&row, asset, columns)? {
            let key = (partner.clone(), asset);
            self.sequences.insert(key.clone(), account.sequence);
            self.state.accounts.insert(key, account);
        }
        Ok(())
    }

    /// Adds the running total. The total of a partner with a cap drops a bounded number of trades that have left the window.
    fn add_velocity(&mut self, row: &PgRow, partner: &PartnerId) -> StoreResult<()> {
        let row = Columns::new("velocity", row);
        let Some(total) = opt_velocity(&row)? else {
            return Ok(());
        };
        let total = if row.flag("forget")? {
            let crossed = TradesRead {
                notionals: row.get::<Option<Vec<i64>>>("crossed")?.unwrap_or_default(),
                reached: row.opt_instant("reached")?,
            };
            if crossed != TradesRead::default() {
                self.slid.insert(partner.clone());
            }
            let cutoff = velocity::cutoff(self.now, self.state.window);
            total.remove_oldest(cutoff, &crossed)
        } else {
            total
        };
        self.state.velocity.insert(partner.clone(), total);
        Ok(())
    }
}

/// The trades of the consumed quotes. Consumed quotes are rare in a batch, so only such a batch pays for this exchange.
async fn existing(
    conn: &mut Conn,
    mode: Mode,
    state: &BatchState,
) -> StoreResult<BTreeMap<(PartnerId, QuoteId), Trade>> {
    let (partners, ids): (Vec<&str>, Vec<Uuid>) = state
        .quotes
        .iter()
        .filter(|(_, quote)| matches!(quote.outcome, QuoteOutcome::Consumed(_)))
        .map(|((partner, id), _)| (partner.as_str(), key(*id)))
        .unzip();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = sqlx::query(TRADES)
        .bind(mode.as_str())
        .bind(partners)
        .bind(ids)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("trades", row);
            let trade = trades::trade(&row, mode)?;
            Ok(((row.partner()?, trade.quote), trade))
        })
        .collect()
}

/// Resolves the batch's instant after the locks are taken: the clock's instant, or the last stored instant if it is later.
///
/// The plan is made once, perhaps while the tables have no statistics. The mode in each command's row and `LIMIT 1` keep such a
/// plan from scanning whole tables.
pub(crate) const READ: &str = concat!(
    "WITH commands AS MATERIALIZED (
         SELECT $1::text AS mode, c.*
         FROM unnest($2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[],
                     $12::boolean[])
              WITH ORDINALITY AS c (partner, quote, route, key, fiat_asset, crypto_asset, first, forget, place)
     ), asked AS MATERIALIZED (
         SELECT c.mode, c.place, c.partner, c.route, c.key, c.fiat_asset, c.crypto_asset, c.first, c.forget,
                ",
    store_sql::quote_columns!("q."),
    "
         FROM commands AS c
         LEFT JOIN quotes AS q ON q.mode = c.mode AND q.partner_id = c.partner AND q.id = c.quote
     ), clock AS MATERIALIZED (
         SELECT coalesce($9::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS base,
                (SELECT max(created_at) FROM asked) AS newest
     ), moment AS MATERIALIZED (
         SELECT base, greatest(base, newest, $10::bigint) AS now FROM clock
     )
     SELECT m.base, m.now, a.*, i.fingerprint, i.key_created_at, i.key_expires_at,
            f.available AS fiat_available, f.sequence AS fiat_sequence,
            y.available AS crypto_available, y.sequence AS crypto_sequence,
            o.total AS committed, v.total, v.floor, r.reached, w.crossed
     FROM asked AS a
     CROSS JOIN moment AS m
     LEFT JOIN LATERAL (
         SELECT k.fingerprint, k.created_at AS key_created_at, k.expires_at AS key_expires_at
         FROM idempotency_keys AS k
         WHERE k.mode = a.mode AND k.partner_id = a.partner AND k.route = a.route AND k.key = a.key
         LIMIT 1
     ) AS i ON true
     LEFT JOIN accounts AS f ON f.mode = a.mode AND f.partner_id = a.partner AND f.asset = a.fiat_asset
     LEFT JOIN accounts AS y ON y.mode = a.mode AND y.partner_id = a.partner AND y.asset = a.crypto_asset
     LEFT JOIN LATERAL (
         SELECT k.total FROM commitments AS k
         WHERE k.mode = a.mode AND k.partner_id = a.partner AND k.asset = a.fiat_asset
         LIMIT 1
     ) AS o ON true
     LEFT JOIN velocity AS v ON a.first AND v.mode = a.mode AND v.partner_id = a.partner
     LEFT JOIN LATERAL (
         SELECT t.created_at AS reached FROM trades AS t
         WHERE a.forget AND t.mode = a.mode AND t.partner_id = a.partner
           AND t.created_at > v.floor AND t.created_at <= m.now - $11
         ORDER BY t.created_at LIMIT 1 OFFSET $13
     ) AS r ON true
     LEFT JOIN LATERAL (
         SELECT array_agg(t.notional) AS crossed FROM trades AS t
         WHERE a.forget AND t.mode = a.mode AND t.partner_id = a.partner
           AND t.created_at > v.floor AND t.created_at <= coalesce(r.reached, m.now - $11)
           AND t.status NOT IN ('released', 'failed')
     ) AS w ON true"
);

pub(crate) const TRADES: &str = concat!(
    "WITH asked AS MATERIALIZED (
         SELECT $1::text AS mode, j.* FROM unnest($2::text[], $3::uuid[]) AS j (partner_id, quote_id)
     )
     SELECT ",
    store_sql::trade_columns!("t."),
    " FROM asked AS j
     JOIN trades AS t ON t.mode = j.mode AND t.partner_id = j.partner_id AND t.quote_id = j.quote_id"
);
