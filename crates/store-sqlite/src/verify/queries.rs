//! Invariants that rows show by themselves. Each query answers one text per breach.

use store_sql::verify::Asked;

/// Rows of each table.
pub(super) const FIGURES: Asked = &[
    ("partners", "SELECT count(*) FROM partners"),
    ("api_keys", "SELECT count(*) FROM api_keys"),
    ("pools", "SELECT count(*) FROM pools"),
    ("quotes", "SELECT count(*) FROM quotes"),
    ("trades", "SELECT count(*) FROM trades"),
    (
        "trades_reserved",
        "SELECT count(*) FROM trades WHERE status = 'reserved'",
    ),
    ("accounts", "SELECT count(*) FROM accounts"),
    ("ledger_entries", "SELECT count(*) FROM ledger_entries"),
    ("deposits", "SELECT count(*) FROM deposits"),
    ("idempotency_keys", "SELECT count(*) FROM idempotency_keys"),
    ("events", "SELECT count(*) FROM events"),
    ("deliveries", "SELECT count(*) FROM deliveries"),
    ("sessions", "SELECT count(*) FROM sessions"),
    (
        "sessions_open",
        "SELECT count(*) FROM sessions WHERE status = 'open'",
    ),
    ("transactions", "SELECT count(*) FROM transactions"),
    ("signed_quotes", "SELECT count(*) FROM signed_quotes"),
    ("rail_records", "SELECT count(*) FROM rail_records"),
    ("customers", "SELECT count(*) FROM customers"),
    ("answers", "SELECT count(*) FROM answers"),
];

/// The name of each invariant, with the query for the rows that break it.
pub(super) const INVARIANTS: Asked = &[
    ("consumed-quote-has-one-trade", CONSUMED_WITHOUT_TRADE),
    ("trade-has-one-consumed-quote", TRADE_WITHOUT_CONSUMED),
    ("quote-has-one-fate", TWO_FATES),
    ("quote-is-decided-in-time", LATE),
    ("trade-has-its-quotes-terms", TERMS),
    ("bps-within-limits", BPS),
    ("trade-state-fits-its-facts", FACTS),
    ("trade-moves-by-allowed-steps", STEPS),
    ("trade-steps-fit-its-state", STEPS_OF_STATE),
    ("reserve-is-posted-once", RESERVE),
    ("reserve-has-one-fate", CLOSE),
    ("return-is-refunded-once", RETURN),
    ("entry-of-trade-names-its-quote", ENTRY_REFERENCE),
    ("deposit-is-its-entry", DEPOSIT),
    ("deposits-have-one-owner", SHARED_DEPOSITS),
    ("what-may-come-back-has-room", COMMITTED),
    ("terminal-trade-has-one-event", EVENT_MISSING),
    ("event-has-its-trade", EVENT_EXTRA),
    ("event-has-its-delivery", UNDELIVERED),
    ("delivery-is-of-its-event", DELIVERY),
    ("idempotency-record-is-of-its-trade", ANSWERED),
    ("rows-stay-in-their-mode", MODES),
];

/// SQLite's own check: pages, indexes, types, unique keys, and the `CHECK` constraints of the schema.
pub(super) const WHOLE: &str =
    "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'";

pub(super) const REFERENCES: &str =
    "SELECT \"table\" || ' row ' || coalesce(rowid, '?') || ' refers to no row of ' || parent
     FROM pragma_foreign_key_check";

const CONSUMED_WITHOUT_TRADE: &str =
    "SELECT q.mode || '/' || q.partner_id || ' quote ' || q.id || ' is consumed without a trade of that instant'
     FROM quotes AS q
     LEFT JOIN trades AS t ON t.mode = q.mode AND t.partner_id = q.partner_id AND t.quote_id = q.id
     WHERE q.consumed_at IS NOT NULL AND t.created_at IS NOT q.consumed_at";

pub(super) const SHARED_DEPOSITS: &str =
    "SELECT mode || ' ' || kind || ' ' || claim || ' is of partners ' || group_concat(partner_id, ', ' ORDER BY partner_id)
     FROM (
         SELECT mode, 'reference' AS kind, upper(funding_reference) AS claim, partner_id FROM pools_profiles
         UNION
         SELECT mode, 'address', CASE WHEN address LIKE '0x%' THEN lower(address) ELSE address END, partner_id
         FROM (
             SELECT p.mode, p.partner_id, json_extract(t.value, '$.crypto_deposit_address') AS address
             FROM pools_profiles AS p, json_each(p.terms) AS t
         ) AS terms
         WHERE address IS NOT NULL
     ) AS claims
     GROUP BY mode, kind, claim HAVING count(*) > 1";

const TRADE_WITHOUT_CONSUMED: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' shares its quote, or its quote is not consumed'
     FROM trades AS t
     LEFT JOIN quotes AS q ON q.mode = t.mode AND q.partner_id = t.partner_id AND q.id = t.quote_id
     WHERE q.consumed_at IS NULL
        OR EXISTS (SELECT 1 FROM trades AS o WHERE o.mode = t.mode AND o.partner_id = t.partner_id
                   AND o.quote_id = t.quote_id AND o.id <> t.id)";

const TWO_FATES: &str =
    "SELECT mode || '/' || partner_id || ' quote ' || id || ' is both consumed and rejected'
     FROM quotes WHERE consumed_at IS NOT NULL AND rejected_at IS NOT NULL";

const LATE: &str =
    "SELECT mode || '/' || partner_id || ' quote ' || id || ' was decided outside its time'
     FROM quotes
     WHERE consumed_at >= expires_at OR consumed_at < created_at
        OR rejected_at >= expires_at OR rejected_at < created_at";

const TERMS: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' has other terms than its quote'
     FROM trades AS t
     JOIN quotes AS q ON q.mode = t.mode AND q.partner_id = t.partner_id AND q.id = t.quote_id
     WHERE (t.pool, t.side, t.network, t.fiat, t.crypto, t.rate, t.spread_bps, t.fee_bps, t.notional)
           IS NOT (q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps, q.fee_bps, q.notional)
        OR t.dest_address IS NOT q.dest_address OR t.dest_network IS NOT q.dest_network
        OR t.mid <> q.mid OR (t.mid IS NOT NULL AND q.mid IS NULL)";

const BPS: &str =
    "SELECT mode || '/' || partner_id || ' quote ' || id || ' has ' || spread_bps || ' and ' || fee_bps || ' bps'
     FROM quotes WHERE spread_bps NOT BETWEEN 0 AND 50 OR fee_bps NOT BETWEEN 0 AND 5000";

const FACTS: &str =
    "SELECT mode || '/' || partner_id || ' trade ' || id || ' is ' || status || ' against its facts'
     FROM trades
     WHERE (settled_at IS NOT NULL) <> (status IN ('settled', 'returned'))
        OR (fill IS NOT NULL) <> (settled_at IS NOT NULL)
        OR (released_at IS NOT NULL) <> (status = 'released')
        OR (failed_at IS NOT NULL) <> (status = 'failed')
        OR (returned_at IS NOT NULL) <> (status = 'returned')
        OR settled_at < created_at OR released_at < created_at OR failed_at < created_at
        OR returned_at < settled_at
        OR (side = 'on_ramp' AND reserved IS NOT NULL AND reserved <> fiat)
        OR (side = 'off_ramp' AND reserved IS NOT crypto)";

const STEPS: &str =
    "SELECT s.mode || '/' || s.partner_id || ' trade ' || s.trade_id || ' went from ' || s.from_status || ' to ' || s.to_status
     FROM trade_transitions AS s
     LEFT JOIN allowed_trade_transitions AS a ON a.from_status = s.from_status AND a.to_status = s.to_status
     WHERE a.from_status IS NULL";

/// Each state has its own steps behind it, at its own instants, and no others.
const STEPS_OF_STATE: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' is ' || t.status || ' by other steps'
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
              AND s.created_at = t.settled_at))";

const RESERVE: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' and the entry of its reserve disagree'
     FROM trades AS t
     WHERE (SELECT count(*) FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'reserve')
           <> (t.reserved IS NOT NULL)
        OR (t.reserved IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'reserve'
              AND e.debit = 'partner' AND e.credit = 'reserved' AND e.amount = t.reserved
              AND e.created_at = t.created_at
              AND e.reason = CASE t.side WHEN 'on_ramp' THEN 'buy_debit' ELSE 'sell_debit' END
              AND e.asset = CASE t.side WHEN 'on_ramp' THEN substr(t.pool, 1, instr(t.pool, '-') - 1)
                            ELSE substr(t.pool, instr(t.pool, '-') + 1) END))";

/// A reserve is open, went to the operator at settlement, or came back: one of them, once.
const CLOSE: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' is ' || t.status || ' and its reserve is not'
     FROM trades AS t
     WHERE (SELECT count(*) FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'close')
           <> (t.reserved IS NOT NULL AND t.status <> 'reserved')
        OR (t.reserved IS NOT NULL AND t.status <> 'reserved' AND NOT EXISTS (
            SELECT 1 FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'close'
              AND e.debit = 'reserved' AND e.amount = t.reserved
              AND e.credit = CASE WHEN t.status IN ('settled', 'returned') THEN 'operator' ELSE 'partner' END
              AND e.reason = CASE WHEN t.status IN ('settled', 'returned') THEN 'settlement'
                             WHEN t.side = 'on_ramp' THEN 'buy_refund' ELSE 'sell_refund' END
              AND e.asset = CASE t.side WHEN 'on_ramp' THEN substr(t.pool, 1, instr(t.pool, '-') - 1)
                            ELSE substr(t.pool, instr(t.pool, '-') + 1) END))";

/// A returned purchase gives back what it had reserved, a returned sale its fiat leg.
const RETURN: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' is ' || t.status || ' and its refund is not'
     FROM trades AS t
     WHERE (SELECT count(*) FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'return')
           <> (t.status = 'returned' AND (t.side = 'off_ramp' OR t.reserved IS NOT NULL))
        OR (t.status = 'returned' AND (t.side = 'off_ramp' OR t.reserved IS NOT NULL) AND NOT EXISTS (
            SELECT 1 FROM ledger_entries AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'return'
              AND e.debit = 'operator' AND e.credit = 'partner' AND e.reason = 'buy_refund'
              AND e.amount = CASE t.side WHEN 'on_ramp' THEN t.reserved ELSE t.fiat END
              AND e.asset = substr(t.pool, 1, instr(t.pool, '-') - 1)))";

const ENTRY_REFERENCE: &str =
    "SELECT e.mode || '/' || e.partner_id || ' entry ' || e.id || ' names another quote than its trade'
     FROM ledger_entries AS e
     LEFT JOIN trades AS t ON t.mode = e.mode AND t.partner_id = e.partner_id AND t.id = e.trade_id
     WHERE (e.trade_id IS NOT NULL AND e.reference IS NOT 'pq_' || t.mode || '_' || t.quote_id)
        OR (e.trade_id IS NULL AND e.reason IN ('buy_debit', 'buy_refund', 'sell_debit', 'sell_refund', 'settlement'))";

const DEPOSIT: &str =
    "SELECT d.mode || '/' || d.partner_id || ' deposit ' || d.reference || ' and its entry disagree'
     FROM deposits AS d
     LEFT JOIN ledger_entries AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.entry_id
     WHERE (e.amount, e.asset, e.reference, e.debit, e.credit, e.created_at, e.reason)
           IS NOT (d.amount, d.asset, d.reference, 'outside', 'partner', d.created_at,
                   CASE WHEN d.network IS NULL THEN 'payin_credit' ELSE 'crypto_receipt' END)
     UNION ALL
     SELECT e.mode || '/' || e.partner_id || ' entry ' || e.id || ' came from outside without a deposit'
     FROM ledger_entries AS e
     WHERE e.reason IN ('payin_credit', 'crypto_receipt')
       AND NOT EXISTS (SELECT 1 FROM deposits AS d
                       WHERE d.mode = e.mode AND d.partner_id = e.partner_id AND d.entry_id = e.id)";

/// What an account is committed to is never less than what it holds and trades may still credit to
/// it, a return within 30 days. Wholes and rests are summed apart: together they might not fit.
const COMMITTED: &str =
    "SELECT b.mode || '/' || b.partner_id || ' account ' || b.asset || ' has no room for what may come back'
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
     )";

const EVENT_MISSING: &str =
    "SELECT t.mode || '/' || t.partner_id || ' trade ' || t.id || ' is ' || t.status || ' without one event of it'
     FROM trades AS t
     WHERE t.status <> 'reserved'
       AND (SELECT count(*) FROM events AS e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.object_id = 'txn_' || t.mode || '_' || t.id
              AND e.type = 'pool.transaction.' || CASE t.status WHEN 'returned' THEN 'settled' ELSE t.status END
              AND e.created_at = coalesce(t.settled_at, t.released_at, t.failed_at)) <> 1";

const EVENT_EXTRA: &str =
    "SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' reports what has not happened'
     FROM events AS e
     LEFT JOIN trades AS t ON t.mode = e.mode AND t.partner_id = e.partner_id AND t.id = substr(e.object_id, -26)
          AND e.object_id = 'txn_' || t.mode || '_' || t.id
     WHERE e.service = 'pools'
       AND e.type IN ('pool.transaction.settled', 'pool.transaction.failed', 'pool.transaction.released')
       AND e.type IS NOT 'pool.transaction.' || CASE t.status WHEN 'returned' THEN 'settled' ELSE t.status END";

/// An endpoint has been there since the oldest of its secrets, if not longer: every event after
/// that was queued for it. In that very millisecond either may have come first.
const UNDELIVERED: &str =
    "SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' is not queued for the endpoint of its partner'
     FROM events AS e
     WHERE e.created_at > (SELECT min(s.created_at) FROM webhook_endpoints AS w
                           JOIN webhook_secrets AS s ON s.mode = w.mode AND s.partner_id = w.partner_id
                                AND s.endpoint_id = w.id
                           WHERE w.mode = e.mode AND w.partner_id = e.partner_id AND w.service = e.service)
       AND NOT EXISTS (SELECT 1 FROM deliveries AS d
                       WHERE d.mode = e.mode AND d.partner_id = e.partner_id AND d.event_id = e.id)";

const DELIVERY: &str =
    "SELECT d.mode || '/' || d.partner_id || ' delivery ' || d.id || ' is not of its event'
     FROM deliveries AS d
     LEFT JOIN events AS e ON e.mode = d.mode AND e.partner_id = d.partner_id AND e.id = d.event_id
     LEFT JOIN webhook_endpoints AS w ON w.mode = d.mode AND w.partner_id = d.partner_id AND w.id = d.endpoint_id
     WHERE (e.object_id, e.service) IS NOT (d.object_id, w.service) OR d.created_at < e.created_at";

const ANSWERED: &str =
    "SELECT i.mode || '/' || i.partner_id || ' key ' || i.key || ' answered with a trade of another route or instant'
     FROM idempotency_keys AS i
     LEFT JOIN trades AS t ON t.mode = i.mode AND t.partner_id = i.partner_id AND t.id = i.trade_id
     WHERE i.created_at IS NOT t.created_at OR i.route IS NOT 'POST /v1/pools/' || t.pool || '/transact'";

/// What is written out with its mode carries the mode of its row.
const MODES: &str =
    "SELECT mode || '/' || partner_id || ' event ' || id || ' is about ' || object_id
     FROM events
     WHERE (object_id GLOB 'txn_*' AND object_id NOT GLOB 'txn_' || mode || '_*')
        OR (object_id GLOB 'gs_*' AND object_id NOT GLOB 'gs_' || mode || '_*')
        OR (object_id GLOB 'cus_*' AND object_id NOT GLOB 'cus_' || mode || '_*')
        OR (object_id GLOB 'qt_*' AND object_id NOT GLOB 'qt_' || mode || '_*')
        OR (object_id GLOB 'p[io]_*' AND object_id NOT GLOB 'p[io]_' || mode || '_*')
     UNION ALL
     SELECT mode || '/' || partner_id || ' delivery ' || id || ' is about ' || object_id
     FROM deliveries
     WHERE (object_id GLOB 'txn_*' AND object_id NOT GLOB 'txn_' || mode || '_*')
        OR (object_id GLOB 'gs_*' AND object_id NOT GLOB 'gs_' || mode || '_*')
        OR (object_id GLOB 'cus_*' AND object_id NOT GLOB 'cus_' || mode || '_*')
        OR (object_id GLOB 'qt_*' AND object_id NOT GLOB 'qt_' || mode || '_*')
        OR (object_id GLOB 'p[io]_*' AND object_id NOT GLOB 'p[io]_' || mode || '_*')
     UNION ALL
     SELECT mode || '/' || partner_id || ' entry ' || id || ' refers to ' || reference
     FROM ledger_entries WHERE trade_id IS NOT NULL AND reference NOT GLOB 'pq_' || mode || '_*'";
