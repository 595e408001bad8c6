//! Invariants of quotes, trades, the ledger and events.

use super::{Invariant, and_by_id, objects, per_engine, starts_with, ulid};
use crate::{Sql, Statement};

macro_rules! figure {
    ($name:literal) => {
        figure!($name, $name, "")
    };
    ($name:literal, $table:literal, $condition:literal) => {
        (
            $name,
            Statement::new(
                $table,
                concat!("SELECT count(*) AS figure FROM ", $table, $condition),
            ),
        )
    };
}

/// The number of rows of each table.
pub(in crate::verify) static FIGURES: [(&str, Statement); 19] = [
    figure!("partners"),
    figure!("api_keys"),
    figure!("pools"),
    figure!("quotes"),
    figure!("trades"),
    figure!("trades_reserved", "trades", " WHERE status = 'reserved'"),
    figure!("accounts"),
    figure!("ledger_entries"),
    figure!("deposits"),
    figure!("idempotency_keys"),
    figure!("events"),
    figure!("deliveries"),
    figure!("sessions"),
    figure!("sessions_open", "sessions", " WHERE status = 'open'"),
    figure!("transactions"),
    figure!("signed_quotes"),
    figure!("rail_records"),
    figure!("customers"),
    figure!("answers"),
];

pub(super) static INVARIANTS: &[Invariant] = &[
    Invariant::of_rows(
        "consumed-quote-has-one-trade",
        "quote",
        &CONSUMED_WITHOUT_TRADE,
    ),
    Invariant::of_rows(
        "trade-has-one-consumed-quote",
        "trade",
        &TRADE_WITHOUT_CONSUMED,
    ),
    Invariant::of_rows("quote-has-one-fate", "quote", &TWO_OUTCOMES),
    Invariant::of_rows("quote-is-decided-in-time", "quote", &LATE),
    Invariant::of_rows("trade-has-its-quotes-terms", "trade", &TERMS),
    Invariant::of_rows("bps-within-limits", "quote", &BPS),
    Invariant::of_rows("trade-state-fits-its-facts", "trade", &FACTS),
    Invariant::of_rows("trade-moves-by-allowed-steps", "trade", &STEPS),
    Invariant::of_rows("trade-steps-fit-its-state", "trade", &STEPS_OF_STATE),
    Invariant::of_rows("reserve-is-posted-once", "trade", &RESERVE),
    Invariant::of_rows("reserve-has-one-fate", "trade", &CLOSE),
    Invariant::of_rows("return-is-refunded-once", "trade", &RETURN),
    Invariant::of_rows("entry-of-trade-names-its-quote", "entry", &ENTRY_REFERENCE),
    Invariant::of_texts("deposit-is-its-entry", &DEPOSIT),
    Invariant::of_rows("what-may-come-back-has-room", "account", &CONTINGENT),
    Invariant::of_rows("terminal-trade-has-one-event", "trade", &EVENT_MISSING),
    Invariant::of_rows("event-has-its-trade", "event", &EVENT_EXTRA),
    Invariant::of_rows("event-has-its-delivery", "event", &UNDELIVERED),
    Invariant::of_rows("delivery-is-of-its-event", "delivery", &DELIVERY),
    Invariant::of_rows("idempotency-record-is-of-its-trade", "key", &ANSWERED),
    Invariant::of_texts("rows-stay-in-their-mode", &MODES),
];

static CONSUMED_WITHOUT_TRADE: Statement = Statement::new(
    "quotes",
    "SELECT q.mode, q.partner_id, q.id, 'is consumed without a trade of that instant' AS breach
     FROM quotes AS q
     LEFT JOIN trades AS t ON t.mode = q.mode AND t.partner_id = q.partner_id AND t.quote_id = q.id
     WHERE q.consumed_at IS NOT NULL AND t.created_at IS DISTINCT FROM q.consumed_at",
);

static TRADE_WITHOUT_CONSUMED: Statement = Statement::new(
    "trades",
    "SELECT t.mode, t.partner_id, t.id, 'shares its quote, or its quote is not consumed' AS breach
     FROM trades AS t
     LEFT JOIN quotes AS q ON q.mode = t.mode AND q.partner_id = t.partner_id AND q.id = t.quote_id
     WHERE q.consumed_at IS NULL
        OR EXISTS (SELECT 1 FROM trades AS o WHERE o.mode = t.mode AND o.partner_id = t.partner_id
                   AND o.quote_id = t.quote_id AND o.id <> t.id)",
);

static TWO_OUTCOMES: Statement = Statement::new(
    "quotes",
    "SELECT mode, partner_id, id, 'is both consumed and rejected' AS breach
     FROM quotes WHERE consumed_at IS NOT NULL AND rejected_at IS NOT NULL",
);

static LATE: Statement = Statement::new(
    "quotes",
    "SELECT mode, partner_id, id, 'was decided outside its time' AS breach
     FROM quotes
     WHERE consumed_at >= expires_at OR consumed_at < created_at
        OR rejected_at >= expires_at OR rejected_at < created_at",
);

static TERMS: Statement = Statement::new(
    "trades",
    "SELECT t.mode, t.partner_id, t.id, 'has other terms than its quote' AS breach
     FROM trades AS t
     JOIN quotes AS q ON q.mode = t.mode AND q.partner_id = t.partner_id AND q.id = t.quote_id
     WHERE (t.pool, t.side, t.network, t.fiat, t.crypto, t.rate, t.spread_bps, t.fee_bps, t.notional)
           IS DISTINCT FROM (q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps, q.fee_bps, q.notional)
        OR t.dest_address IS DISTINCT FROM q.dest_address OR t.dest_network IS DISTINCT FROM q.dest_network
        OR t.mid <> q.mid OR (t.mid IS NOT NULL AND q.mid IS NULL)",
);

static BPS: Statement = Statement::new(
    "quotes",
    "SELECT mode, partner_id, id, 'has ' || spread_bps || ' and ' || fee_bps || ' bps' AS breach
     FROM quotes WHERE spread_bps NOT BETWEEN 0 AND 50 OR fee_bps NOT BETWEEN 0 AND 5000",
);

static FACTS: Statement = Statement::new(
    "trades",
    "SELECT mode, partner_id, id, 'is ' || status || ' against its facts' AS breach
     FROM trades
     WHERE (settled_at IS NOT NULL) <> (status IN ('settled', 'returned'))
        OR (fill IS NOT NULL) <> (settled_at IS NOT NULL)
        OR (released_at IS NOT NULL) <> (status = 'released')
        OR (failed_at IS NOT NULL) <> (status = 'failed')
        OR (returned_at IS NOT NULL) <> (status = 'returned')
        OR settled_at < created_at OR released_at < created_at OR failed_at < created_at
        OR returned_at < settled_at
        OR (side = 'on_ramp' AND reserved IS NOT NULL AND reserved <> fiat)
        OR (side = 'off_ramp' AND reserved IS DISTINCT FROM crypto)",
);

static STEPS: Statement = Statement::new(
    "trade_transitions",
    "SELECT s.mode, s.partner_id, s.trade_id AS id, 'went from ' || s.from_status || ' to ' || s.to_status AS breach
     FROM trade_transitions AS s
     LEFT JOIN allowed_trade_transitions AS a ON a.from_status = s.from_status AND a.to_status = s.to_status
     WHERE a.from_status IS NULL",
);

/// Each state follows its own steps, at its own instants, and no others.
static STEPS_OF_STATE: Statement = Statement::new(
    "trades",
    "SELECT t.mode, t.partner_id, t.id, 'is ' || t.status || ' by other steps' AS breach
     FROM trades AS t
     WHERE (SELECT count(*) FROM trade_transitions AS s
            WHERE s.mode = t.mode AND s.partner_id = t.partner_id AND s.trade_id = t.id)
           <> CASE t.status WHEN 'reserved' THEN 0 WHEN 'returned' THEN 2 ELSE 1 END
        OR (t.status <> 'reserved' AND NOT EXISTS (
            SELECT 1 FROM trade_transitions AS s
            WHERE s.mode = t.mode AND s.partner_id = t.partner_id AND s.trade_id = t.id AND s.to_status = t.status
              AND s.created_at = CASE t.status WHEN 'settled' THEN t.settled_at WHEN 'released' THEN t.released_at
                                 WHEN 'failed' THEN t.failed_at ELSE t.returned_at END))
        OR (t.status = 'returned' AND NOT EXISTS (
            SELECT 1 FROM trade_transitions AS s
            WHERE s.mode = t.mode AND s.partner_id = t.partner_id AND s.trade_id = t.id AND s.to_status = 'settled'
              AND s.created_at = t.settled_at))",
);

/// The currency of a trade's pool.
macro_rules! fiat {
    (sqlite) => {
        "substr(t.pool, 1, instr(t.pool, '-') - 1)"
    };
    (postgres) => {
        "split_part(t.pool, '-', 1)"
    };
}

/// The asset that a trade reserves.
macro_rules! reserved_asset {
    ($engine:ident) => {
        concat!(
            "CASE t.side WHEN 'on_ramp' THEN ",
            fiat!($engine),
            " ELSE ",
            reserved_asset!(crypto $engine),
            " END"
        )
    };
    (crypto sqlite) => {
        "substr(t.pool, instr(t.pool, '-') + 1)"
    };
    (crypto postgres) => {
        "split_part(t.pool, '-', 2)"
    };
}

macro_rules! reserve {
    ($engine:ident) => {
        concat!(
            "SELECT t.mode, t.partner_id, t.id, 'and the entry of its reserve disagree' AS breach
     FROM trades AS t
     WHERE (SELECT count(*) FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'reserve')
           <> CAST(t.reserved IS NOT NULL AS integer)
        OR (t.reserved IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'reserve'
              AND e.debit = 'partner' AND e.credit = 'reserved' AND e.amount = t.reserved
              AND e.created_at = t.created_at
              AND e.reason = CASE t.side WHEN 'on_ramp' THEN 'buy_debit' ELSE 'sell_debit' END
              AND e.asset = ",
            reserved_asset!($engine),
            "))"
        )
    };
}
static RESERVE: Statement = per_engine!("trades", reserve);

/// A reserve is open, or went to the operator at settlement, or was returned, exactly once.
macro_rules! close {
    ($engine:ident) => {
        concat!(
            "SELECT t.mode, t.partner_id, t.id, 'is ' || t.status || ' and its reserve is not' AS breach
     FROM trades AS t
     WHERE (SELECT count(*) FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'close')
           <> CAST(t.reserved IS NOT NULL AND t.status <> 'reserved' AS integer)
        OR (t.reserved IS NOT NULL AND t.status <> 'reserved' AND NOT EXISTS (
            SELECT 1 FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'close'
              AND e.debit = 'reserved' AND e.amount = t.reserved
              AND e.credit = CASE WHEN t.status IN ('settled', 'returned') THEN 'operator' ELSE 'partner' END
              AND e.reason = CASE WHEN t.status IN ('settled', 'returned') THEN 'settlement'
                             WHEN t.side = 'on_ramp' THEN 'buy_refund' ELSE 'sell_refund' END
              AND e.asset = ",
            reserved_asset!($engine),
            "))"
        )
    };
}
static CLOSE: Statement = per_engine!("trades", close);

/// The refund of a returned purchase credits its reserve to the partner, that of a returned sale the fiat leg.
macro_rules! returned {
    ($engine:ident) => {
        concat!(
            "SELECT t.mode, t.partner_id, t.id, 'is ' || t.status || ' and its refund is not' AS breach
     FROM trades AS t
     WHERE (SELECT count(*) FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'return')
           <> CAST(t.status = 'returned' AND (t.side = 'off_ramp' OR t.reserved IS NOT NULL) AS integer)
        OR (t.status = 'returned' AND (t.side = 'off_ramp' OR t.reserved IS NOT NULL) AND NOT EXISTS (
            SELECT 1 FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'return'
              AND e.debit = 'operator' AND e.credit = 'partner' AND e.reason = 'buy_refund'
              AND e.amount = CASE t.side WHEN 'on_ramp' THEN t.reserved ELSE t.fiat END
              AND e.asset = ",
            fiat!($engine),
            "))"
        )
    };
}
static RETURN: Statement = per_engine!("trades", returned);

macro_rules! entry_reference {
    ($engine:ident) => {
        concat!(
            "SELECT e.mode, e.partner_id, e.id, 'names another quote than its trade' AS breach
     FROM ledger_entries AS e
     LEFT JOIN trades AS t ON t.mode = e.mode AND t.partner_id = e.partner_id AND t.id = e.trade_id
     WHERE (e.trade_id IS NOT NULL AND e.reference IS DISTINCT FROM 'pq_' || t.mode || '_' || ",
            ulid!($engine, "t.quote_id"),
            ")
        OR (e.trade_id IS NULL AND e.reason IN ('buy_debit', 'buy_refund', 'sell_debit', 'sell_refund', 'settlement'))"
        )
    };
}
static ENTRY_REFERENCE: Statement = per_engine!("ledger_entries", entry_reference);

macro_rules! deposit {
    ($engine:ident) => {
        concat!(
            "SELECT d.mode || '/' || d.partner_id || ' deposit ' || d.reference || ' and its entry disagree' AS breach
     FROM deposits AS d
     LEFT JOIN ledger_entries AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.entry_id
     WHERE (e.amount, e.asset, e.reference, e.debit, e.credit, e.created_at, e.reason)
           IS DISTINCT FROM (d.amount, d.asset, d.reference, 'outside', 'partner', d.created_at,
                   CASE WHEN d.network IS NULL THEN 'payin_credit' ELSE 'crypto_receipt' END)
     UNION ALL
     SELECT e.mode || '/' || e.partner_id || ' entry ' || ",
            ulid!($engine, "e.id"),
            " || ' came from outside without a deposit'
     FROM ledger_entries AS e
     WHERE e.reason IN ('payin_credit', 'crypto_receipt')
       AND NOT EXISTS (SELECT 1 FROM deposits AS d
                       WHERE d.mode = e.mode AND d.partner_id = e.partner_id AND d.entry_id = e.id)"
        )
    };
}
static DEPOSIT: Statement = per_engine!("deposits", deposit);

/// The contingent credits of an account (table `commitments`) cover its balance and what trades may still credit to it, a return
/// within 30 days. On SQLite, whole units and fractions are summed separately, because their sum might overflow.
static CONTINGENT: Statement = Statement::per_engine(
    "commitments",
    Sql {
        sqlite: "SELECT b.mode, b.partner_id, b.asset AS id, 'has no room for what may come back' AS breach
     FROM (
         SELECT a.mode, a.partner_id, a.asset, a.available, coalesce(c.total, 0) AS total
         FROM accounts AS a
         LEFT JOIN commitments AS c ON c.mode = a.mode AND c.partner_id = a.partner_id AND c.asset = a.asset
         UNION ALL
         SELECT c.mode, c.partner_id, c.asset, 0, c.total
         FROM commitments AS c
         WHERE NOT EXISTS (SELECT 1 FROM accounts AS a
                           WHERE a.mode = c.mode AND a.partner_id = c.partner_id AND a.asset = c.asset)
     ) AS b
     WHERE (b.total / 100000000, b.total % 100000000) < (
         SELECT sum(amount / 100000000) + sum(amount % 100000000) / 100000000, sum(amount % 100000000) % 100000000
         FROM (
             SELECT b.available AS amount
             UNION ALL
             SELECT CASE t.side WHEN 'on_ramp' THEN coalesce(t.reserved, 0) ELSE t.fiat END
             FROM trades AS t
             WHERE t.mode = b.mode AND t.partner_id = b.partner_id AND t.status = 'reserved'
               AND substr(t.pool, 1, length(b.asset) + 1) = b.asset || '-'
             UNION ALL
             SELECT CASE t.side WHEN 'on_ramp' THEN coalesce(t.reserved, 0) ELSE t.fiat END
             FROM trades AS t
             WHERE t.mode = b.mode AND t.partner_id = b.partner_id AND t.status = 'settled'
               AND t.settled_at > (SELECT at FROM clock WHERE id = 1) - 2592000000
               AND substr(t.pool, 1, length(b.asset) + 1) = b.asset || '-'
             UNION ALL
             SELECT t.crypto
             FROM trades AS t
             WHERE t.mode = b.mode AND t.partner_id = b.partner_id AND t.side = 'off_ramp' AND t.status = 'reserved'
               AND substr(t.pool, -length(b.asset) - 1) = '-' || b.asset
         )
     )",
        postgres: "SELECT b.mode, b.partner_id, b.asset AS id, 'has no room for what may come back' AS breach
     FROM (
         SELECT mode, partner_id, asset, sum(amount) AS back
         FROM (
             SELECT mode, partner_id, asset, available AS amount FROM accounts
             UNION ALL
             SELECT mode, partner_id, split_part(pool, '-', 1),
                    CASE side WHEN 'on_ramp' THEN coalesce(reserved, 0) ELSE fiat END
             FROM trades
             WHERE status = 'reserved'
                OR (status = 'settled' AND settled_at > (SELECT max(at) FROM books) - 2592000000)
             UNION ALL
             SELECT mode, partner_id, split_part(pool, '-', 2), crypto
             FROM trades WHERE status = 'reserved' AND side = 'off_ramp'
         ) AS each
         GROUP BY mode, partner_id, asset
     ) AS b
     LEFT JOIN commitments AS c ON c.mode = b.mode AND c.partner_id = b.partner_id AND c.asset = b.asset
     WHERE coalesce(c.total, 0) < b.back",
    },
);

macro_rules! event_missing {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "t", "trades WHERE status <> 'reserved'", "'txn_'", "id" => "object"),
            " SELECT t.mode, t.partner_id, t.id, 'is ' || t.status || ' without one event of it' AS breach
     FROM t
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.object_id = t.object
              AND e.type = 'pool.transaction.' || CASE t.status WHEN 'returned' THEN 'settled' ELSE t.status END
              AND e.created_at = coalesce(t.settled_at, t.released_at, t.failed_at)) <> 1"
        )
    };
}
static EVENT_MISSING: Statement = per_engine!("trades", event_missing);

macro_rules! event_extra {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "t", "trades", "'txn_'", "id" => "object"),
            " SELECT e.mode, e.partner_id, e.id, 'reports what has not happened' AS breach
     FROM events AS e
     LEFT JOIN t ON t.mode = e.mode AND t.partner_id = e.partner_id AND t.object = e.object_id",
            and_by_id!($engine, "t"),
            " WHERE e.service = 'pools'
       AND e.type IN ('pool.transaction.settled', 'pool.transaction.failed', 'pool.transaction.released')
       AND e.type IS DISTINCT FROM 'pool.transaction.' || CASE t.status WHEN 'returned' THEN 'settled' ELSE t.status END"
        )
    };
}
static EVENT_EXTRA: Statement = per_engine!("events", event_extra);

/// An endpoint has existed since the oldest of its secrets or longer, so every later event is queued for it. In that very
/// millisecond either may have come first.
static UNDELIVERED: Statement = Statement::new(
    "events",
    "SELECT e.mode, e.partner_id, e.id, 'is not queued for the endpoint of its partner' AS breach
     FROM events AS e
     WHERE e.created_at > (SELECT min(s.created_at) FROM webhook_endpoints AS w
                           JOIN webhook_secrets AS s ON s.mode = w.mode AND s.partner_id = w.partner_id
                                AND s.endpoint_id = w.id
                           WHERE w.mode = e.mode AND w.partner_id = e.partner_id AND w.service = e.service)
       AND NOT EXISTS (SELECT 1 FROM deliveries AS d
                       WHERE d.mode = e.mode AND d.partner_id = e.partner_id AND d.event_id = e.id)",
);

static DELIVERY: Statement = Statement::new(
    "deliveries",
    "SELECT d.mode, d.partner_id, d.id, 'is not of its event' AS breach
     FROM deliveries AS d
     LEFT JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     LEFT JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
     WHERE (e.object_id, e.service) IS DISTINCT FROM (d.object_id, w.service) OR d.created_at < e.created_at",
);

static ANSWERED: Statement = Statement::new(
    "idempotency_keys",
    "SELECT i.mode, i.partner_id, i.key AS id, 'answered with a trade of another route or instant' AS breach
     FROM idempotency_keys AS i
     LEFT JOIN trades AS t ON t.mode = i.mode AND t.partner_id = i.partner_id AND t.id = i.trade_id
     WHERE i.created_at IS DISTINCT FROM t.created_at
        OR i.route IS DISTINCT FROM 'POST /v1/pools/' || t.pool || '/transact'",
);

/// An object whose name has another mode than its row.
macro_rules! of_another_mode {
    ($engine:ident) => {
        concat!(
            of_another_mode!($engine, "'txn_'", "'txn_' || mode || '_'"),
            " OR ",
            of_another_mode!($engine, "'gs_'", "'gs_' || mode || '_'"),
            " OR ",
            of_another_mode!($engine, "'cus_'", "'cus_' || mode || '_'"),
            " OR ",
            of_another_mode!($engine, "'qt_'", "'qt_' || mode || '_'"),
            " OR ",
            of_another_mode!($engine, "'pi_'", "'pi_' || mode || '_'"),
            " OR ",
            of_another_mode!($engine, "'po_'", "'po_' || mode || '_'")
        )
    };
    ($engine:ident, $kind:literal, $with_mode:literal) => {
        concat!(
            "(",
            starts_with!($engine, "object_id", $kind),
            " AND NOT ",
            starts_with!($engine, "object_id", $with_mode),
            ")"
        )
    };
}

/// A name that contains a mode contains the mode of its row.
macro_rules! modes {
    ($engine:ident) => {
        concat!(
            "SELECT mode || '/' || partner_id || ' event ' || id || ' is about ' || object_id AS breach
     FROM events WHERE ",
            of_another_mode!($engine),
            " UNION ALL
     SELECT mode || '/' || partner_id || ' delivery ' || ",
            ulid!($engine, "id"),
            " || ' is about ' || object_id
     FROM deliveries WHERE ",
            of_another_mode!($engine),
            " UNION ALL
     SELECT mode || '/' || partner_id || ' entry ' || ",
            ulid!($engine, "id"),
            " || ' refers to ' || reference
     FROM ledger_entries WHERE trade_id IS NOT NULL AND NOT ",
            starts_with!($engine, "reference", "'pq_' || mode || '_'")
        )
    };
}
static MODES: Statement = per_engine!("events", modes);
