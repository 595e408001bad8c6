//! Invariants of signed quotes and rail records.

use super::{Invariant, and_by_id, objects, per_engine, starts_with, ulid};
use crate::{Sql, Statement};

pub(super) static INVARIANTS: &[Invariant] = &[
    Invariant::of_rows("consumed-quote-has-its-record", "signed quote", &REDEEMED),
    Invariant::of_rows("rail-record-says-how-it-stands", "rail record", &EVENTS),
    Invariant::of_rows("event-has-its-rail-record", "event", &EVENT_OF_RAIL),
    Invariant::of_rows(
        "settled-record-completes-its-session",
        "rail record",
        &SETTLED,
    ),
    Invariant::of_rows("session-has-one-payment", "session", &ONE_PAYMENT),
    Invariant::of_rows("hosted-payment-has-its-quote", "rail record", &HOSTED),
    Invariant::of_rows(
        "hosted-payment-has-its-destination",
        "rail record",
        &DESTINATION,
    ),
    Invariant::of_rows("quote-of-session-is-its-own", "signed quote", &OF_SESSION),
    Invariant::of_rows("session-has-one-quote", "session", &ONE_QUOTE),
    Invariant::of_rows("session-reports-its-payments", "session", &REPORTED),
    Invariant::of_rows("open-item-fits-its-payment", "rail record", &OPEN_ITEM),
];

/// What an operator must look at fits the status of its record, and what has arrived.
static OPEN_ITEM: Statement = Statement::new(
    "rail_records",
    "SELECT r.mode, r.partner_id, r.id, 'has an open item that does not fit it' AS breach
     FROM rail_records AS r
     WHERE r.open_item IS NOT NULL AND NOT CASE r.open_item
               WHEN 'late' THEN r.status IN ('failed', 'cancelled')
               WHEN 'returned' THEN r.status = 'settled'
               WHEN 'retracted' THEN r.status = 'settled'
               WHEN 'underpaid' THEN r.status = 'processing' AND r.received IS NOT NULL
               ELSE r.status IN ('processing', 'settled') AND r.received IS NOT NULL END
        OR r.open_item_at < r.created_at OR r.acknowledged_at < r.created_at",
);

/// A quote is consumed at the instant at which its one record was created, and has the record's side.
static REDEEMED: Statement = Statement::new(
    "signed_quotes",
    "SELECT q.mode, q.partner_id, q.id, 'is not redeemed as its record says' AS breach
     FROM signed_quotes AS q
     LEFT JOIN rail_records AS r ON r.mode = q.mode AND r.partner_id = q.partner_id AND r.quote_id = q.id
     WHERE q.consumed_at IS DISTINCT FROM r.created_at
        OR q.side <> coalesce(CASE r.kind WHEN 'pay_in' THEN 'on_ramp' WHEN 'pay_out' THEN 'off_ramp' ELSE r.kind END, q.side)",
);

/// The status of a record `r` on the rail routes.
macro_rules! on_rails {
    () => {
        "CASE WHEN r.kind = 'pay_out' AND r.status = 'cancelled' THEN 'failed' ELSE r.status END"
    };
}

/// The number of `rail.*` events of each step of a record `r`. A swap has no such event.
macro_rules! rail_events {
    () => {
        "CASE WHEN r.kind = 'swap' THEN 0 ELSE CAST(r.rail_events AS integer) END"
    };
}

/// A record has one event of its creation, one of its status, and one of its consumed quote; a hosted one of a partner without rails
/// has no such events, and a swap only that of its quote. On the rail routes, a cancelled pay-out has failed.
macro_rules! events {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "r", "rail_records", "CASE kind WHEN 'pay_in' THEN 'pi_' WHEN 'pay_out' THEN 'po_' ELSE 'sw_' END", "id" => "object", "'qt_'", "quote_id" => "quote"),
            " SELECT r.mode, r.partner_id, r.id, 'does not say once how it stands' AS breach
     FROM r
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.object
              AND e.type = 'rail.' || r.kind || '.processing' AND e.created_at = r.created_at)
           <> ", rail_events!(), "
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.object
              AND e.type = 'rail.' || r.kind || '.' || ", on_rails!(), "
              AND e.created_at = coalesce(r.ended_at, r.created_at)) <> ", rail_events!(), "
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.quote
              AND e.type = 'quote.consumed' AND e.created_at = r.created_at) <> CAST(r.rail_events AS integer)"
        )
    };
}
static EVENTS: Statement = per_engine!("rail_records", events);

macro_rules! event_of_rail {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "r", "rail_records", "CASE kind WHEN 'pay_in' THEN 'pi_' WHEN 'pay_out' THEN 'po_' ELSE 'sw_' END", "id" => "object"),
            ", ",
            objects!($engine, "q", "signed_quotes", "'qt_'", "id" => "object"),
            " SELECT e.mode, e.partner_id, e.id, 'tells of a rail what has not happened' AS breach
     FROM events AS e
     LEFT JOIN r ON r.mode = e.mode AND r.partner_id = e.partner_id AND r.object = e.object_id",
            and_by_id!($engine, "r"),
            " LEFT JOIN q ON q.mode = e.mode AND q.partner_id = e.partner_id AND q.object = e.object_id",
            and_by_id!($engine, "q"),
            " WHERE e.service = 'gate' AND (e.type = 'quote.consumed' OR ",
            starts_with!($engine, "e.type", "'rail.'"),
            ")
       AND CASE e.type
           WHEN 'quote.consumed' THEN q.consumed_at IS NULL
           ELSE r.id IS NULL OR r.kind = 'swap'
             OR e.type NOT IN ('rail.' || r.kind || '.processing', 'rail.' || r.kind || '.' || ", on_rails!(), ")
       END"
        )
    };
}
static EVENT_OF_RAIL: Statement = per_engine!("events", event_of_rail);

/// A record that settled completed its session at that instant, unless the session had ended before.
static SETTLED: Statement = Statement::new(
    "rail_records",
    "SELECT r.mode, r.partner_id, r.id, 'has not completed its session as it settled' AS breach
     FROM rail_records AS r
     LEFT JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
     WHERE CASE WHEN s.transaction_id = r.transaction_id
                THEN (r.status, r.ended_at) IS DISTINCT FROM ('settled', s.completed_at)
                ELSE r.status = 'settled'
                     AND coalesce(s.completed_at, s.cancelled_at, s.expired_at, r.ended_at + 1) > r.ended_at END",
);

/// A session has at most one payment that is in progress or settled, and that payment is the one which ended it. Payments from
/// before this rule are marked.
static ONE_PAYMENT: Statement = Statement::per_engine(
    "rail_records",
    Sql {
        sqlite: "SELECT s.mode, s.partner_id, s.id, 'has a payment beside the one it may have' AS breach
     FROM sessions AS s
     WHERE EXISTS (SELECT 1 FROM rail_records AS r
                   WHERE r.mode = s.mode AND r.partner_id = s.partner_id AND r.session_id = s.id
                     AND r.status IN ('processing', 'settled') AND r.predates_rule = 0
                     AND (s.status <> 'open' AND s.transaction_id IS NOT r.transaction_id
                          OR EXISTS (SELECT 1 FROM rail_records AS other
                                     WHERE other.mode = r.mode AND other.partner_id = r.partner_id
                                       AND other.session_id = r.session_id AND other.id <> r.id
                                       AND other.status IN ('processing', 'settled') AND other.predates_rule = 0)))",
        postgres: "SELECT DISTINCT s.mode, s.partner_id, s.id, 'has a payment beside the one it may have' AS breach
     FROM rail_records AS r
     JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
     WHERE r.status IN ('processing', 'settled') AND NOT r.predates_rule
       AND (s.status <> 'open' AND s.transaction_id IS DISTINCT FROM r.transaction_id
            OR EXISTS (SELECT 1 FROM rail_records AS other
                       WHERE other.mode = r.mode AND other.partner_id = r.partner_id AND other.session_id = r.session_id
                         AND other.id <> r.id AND other.status IN ('processing', 'settled') AND NOT other.predates_rule))",
    },
);

/// A hosted payment redeems a quote of its session, and only a hosted payment does.
static HOSTED: Statement = Statement::new(
    "rail_records",
    "SELECT r.mode, r.partner_id, r.id, 'does not redeem a quote of its session' AS breach
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     WHERE q.session_id IS DISTINCT FROM CASE WHEN r.hosted THEN r.session_id END
        OR (r.payout IS NOT NULL AND NOT r.hosted)",
);

/// A hosted purchase or swap has the address that it delivers to, and no other record has one. A swap is always hosted.
static DESTINATION: Statement = Statement::new(
    "rail_records",
    "SELECT r.mode, r.partner_id, r.id, 'does not say where it delivers to' AS breach
     FROM rail_records AS r
     WHERE (r.wallet_address IS NOT NULL) <> (r.kind IN ('pay_in', 'swap') AND r.hosted)
        OR (r.kind = 'swap' AND NOT r.hosted)",
);

/// The session of a quote exists, and the quote was created while it was.
static OF_SESSION: Statement = Statement::new(
    "signed_quotes",
    "SELECT q.mode, q.partner_id, q.id, 'is of a session that the partner does not have' AS breach
     FROM signed_quotes AS q
     LEFT JOIN sessions AS s ON s.mode = q.mode AND s.partner_id = q.partner_id AND s.id = q.session_id
     WHERE q.session_id IS NOT NULL AND (s.id IS NULL OR q.created_at < s.created_at)",
);

/// A session has at most one quote that can be paid. An index promises it, and this statement reads that index.
static ONE_QUOTE: Statement = Statement::new(
    "signed_quotes",
    "SELECT q.mode, q.partner_id, q.session_id AS id, 'has a quote beside the one that can be paid' AS breach
     FROM signed_quotes AS q
     WHERE q.session_id IS NOT NULL AND q.superseded_at IS NULL AND q.consumed_at IS NULL
     GROUP BY q.mode, q.partner_id, q.session_id
     HAVING count(*) > 1",
);

/// A session has one event for each hosted payment that began, and one for each that failed, at the instants of their records.
macro_rules! reported {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "s", "sessions", "'gs_'", "id" => "object"),
            " SELECT s.mode, s.partner_id, s.id, 'does not report its payments' AS breach
     FROM s
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.processing')
           <> (SELECT count(*) FROM rail_records AS r
               WHERE r.mode = s.mode AND r.partner_id = s.partner_id AND r.session_id = s.id AND r.hosted)
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.failed')
           <> (SELECT count(*) FROM rail_records AS r
               WHERE r.mode = s.mode AND r.partner_id = s.partner_id AND r.session_id = s.id AND r.hosted
                 AND r.status = 'failed')
        OR EXISTS (SELECT 1 FROM rail_records AS r
                   WHERE r.mode = s.mode AND r.partner_id = s.partner_id AND r.session_id = s.id AND r.hosted
                     AND (NOT EXISTS (SELECT 1 FROM events AS e
                                      WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
                                        AND e.type = 'gate_session.processing' AND e.created_at = r.created_at)
                          OR r.status = 'failed'
                             AND NOT EXISTS (SELECT 1 FROM events AS e
                                             WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
                                               AND e.type = 'gate_session.failed' AND e.created_at = r.ended_at)))"
        )
    };
}
static REPORTED: Statement = per_engine!("sessions", reported);
