//! Invariants of sessions, transactions, customers and stored responses.

use super::{Invariant, and_by_id, objects, per_engine, starts_with, ulid};
use crate::{Sql, Statement};

pub(super) static INVARIANTS: &[Invariant] = &[
    Invariant::of_rows("session-says-it-was-made", "session", &CREATED),
    Invariant::of_rows("ended-session-has-one-event", "session", &ENDED),
    Invariant::of_rows("event-has-its-session", "event", &EVENT_OF_SESSION),
    Invariant::of_texts("completed-session-has-its-transaction", &PAID),
    Invariant::of_rows("transaction-has-its-sessions-terms", "transaction", &TERMS),
    Invariant::of_texts("tally-counts-live-sessions", &TALLY),
    Invariant::of_rows("customer-says-what-happened", "customer", &CUSTOMER),
    Invariant::of_rows("event-has-its-customer", "event", &EVENT_OF_CUSTOMER),
    Invariant::of_rows("answer-is-of-what-was-done", "key", &ANSWERED),
];

/// A session has one event of its creation, at that instant, and one of its KYC package if it has one.
macro_rules! created {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "s", "sessions", "'gs_'", "id" => "object"),
            " SELECT s.mode, s.partner_id, s.id, 'does not say once how it was made' AS breach
     FROM s
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.created' AND e.created_at = s.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.kyc_package_accepted' AND e.created_at = s.created_at)
           <> CAST(s.kyc_pre_verified AS integer)"
        )
    };
}
static CREATED: Statement = per_engine!("sessions", created);

macro_rules! ended {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "s", "sessions WHERE status <> 'open'", "'gs_'", "id" => "object"),
            " SELECT s.mode, s.partner_id, s.id, 'is ' || s.status || ' without one event of it' AS breach
     FROM s
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.' || s.status
              AND e.created_at = coalesce(s.completed_at, s.cancelled_at, s.expired_at)) <> 1"
        )
    };
}
static ENDED: Statement = per_engine!("sessions", ended);

macro_rules! event_of_session {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "s", "sessions", "'gs_'", "id" => "object"),
            " SELECT e.mode, e.partner_id, e.id, 'reports what has not happened' AS breach
     FROM events AS e
     LEFT JOIN s ON s.mode = e.mode AND s.partner_id = e.partner_id AND s.object = e.object_id",
            and_by_id!($engine, "s"),
            " WHERE e.service = 'gate' AND ",
            starts_with!($engine, "e.type", "'gate_session.'"),
            " AND CASE e.type WHEN 'gate_session.created' THEN s.id IS NULL
                       WHEN 'gate_session.kyc_package_accepted' THEN s.kyc_pre_verified IS NOT TRUE
                       WHEN 'gate_session.processing' THEN s.id IS NULL
                       WHEN 'gate_session.failed' THEN s.id IS NULL
                       ELSE e.type IS DISTINCT FROM 'gate_session.' || s.status END"
        )
    };
}
static EVENT_OF_SESSION: Statement = per_engine!("events", event_of_session);

/// The session and the transaction that paid it name each other, and were completed at the same instant. A transaction of a rail
/// may be completed after its session.
macro_rules! paid {
    ($engine:ident) => {
        concat!(
            "SELECT s.mode || '/' || s.partner_id || ' session ' || ",
            ulid!($engine, "s.id"),
            " || ' is completed without its transaction' AS breach
     FROM sessions AS s
     LEFT JOIN transactions AS t ON t.mode = s.mode AND t.partner_id = s.partner_id AND t.id = s.transaction_id
     WHERE s.status = 'completed'
       AND (t.session_id, t.status, t.completed_at) IS DISTINCT FROM (s.id, 'completed', s.completed_at)
     UNION ALL
     SELECT t.mode || '/' || t.partner_id || ' transaction ' || ",
            ulid!($engine, "t.id"),
            " || ' is completed and has completed no session'
     FROM transactions AS t
     LEFT JOIN sessions AS s ON s.mode = t.mode AND s.partner_id = t.partner_id AND s.id = t.session_id
     WHERE t.status = 'completed' AND t.local_rail_transaction_id IS NULL
       AND (s.status, s.transaction_id) IS DISTINCT FROM ('completed', t.id)"
        )
    };
}
static PAID: Statement = per_engine!("sessions", paid);

/// Transactions have the terms that their session binds, and began while it could be paid. Those of rails have their quotes' terms.
static TERMS: Statement = Statement::new(
    "transactions",
    "SELECT t.mode, t.partner_id, t.id, 'has other terms than its session' AS breach
     FROM transactions AS t
     JOIN sessions AS s ON s.mode = t.mode AND s.partner_id = t.partner_id AND s.id = t.session_id
     WHERE (t.local_rail_transaction_id IS NULL
            AND (t.currency, t.fiat_amount, t.action, t.token, t.network)
                IS DISTINCT FROM (s.currency, s.amount, coalesce(s.flow, t.action), coalesce(s.target_token, t.token),
                                  coalesce(s.target_network, t.network)))
        OR t.created_at < s.created_at OR t.created_at >= s.expires_at",
);

/// A partner's tally is the count of its live sessions since the month of the newest session. Another invariant reports a text that
/// is not a month.
static TALLY: Statement = Statement::per_engine(
    "session_tallies",
    Sql {
        sqlite: "SELECT p.mode || '/' || p.partner_id || ' has a tally of ' || coalesce(t.created || ' in ' || t.month, 'none')
            || ' and other live sessions' AS breach
     FROM partners AS p
     LEFT JOIN session_tallies AS t ON t.mode = p.mode AND t.partner_id = p.partner_id
     WHERE t.created IS NOT CASE p.mode WHEN 'live' THEN nullif((
               SELECT count(*) FROM sessions AS s
               WHERE s.mode = p.mode AND s.partner_id = p.partner_id
                 AND s.created_at >= coalesce(unixepoch(t.month || '-01') * 1000, 0)
           ), 0) END
        OR EXISTS (SELECT 1 FROM sessions AS s
                   WHERE s.mode = p.mode AND s.partner_id = p.partner_id
                     AND s.created_at >= unixepoch(t.month || '-01', '+1 month') * 1000)",
        postgres: "SELECT t.mode || '/' || t.partner_id || ' has a tally of ' || coalesce(t.created || ' in ' || t.month, 'none')
            || ' and other live sessions' AS breach
     FROM (
         SELECT p.mode, p.partner_id, c.created, c.month,
                CASE WHEN c.month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$' THEN (c.month || '-01')::timestamp END AS start
         FROM partners AS p
         LEFT JOIN session_tallies AS c ON c.mode = p.mode AND c.partner_id = p.partner_id
     ) AS t
     WHERE t.created IS DISTINCT FROM CASE t.mode WHEN 'live' THEN nullif((
               SELECT count(*) FROM sessions AS s
               WHERE s.mode = t.mode AND s.partner_id = t.partner_id
                 AND s.created_at >= coalesce(extract(epoch FROM t.start)::bigint * 1000, 0)
           ), 0) END
        OR EXISTS (SELECT FROM sessions AS s
                   WHERE s.mode = t.mode AND s.partner_id = t.partner_id
                     AND s.created_at >= extract(epoch FROM t.start + interval '1 month')::bigint * 1000)",
    },
);

/// A customer has one event of its creation, one of every change and, if it was deleted, one of that. The last change has the
/// instant that is stored with the customer.
macro_rules! customer {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "c", "customers", "'cus_'", "id" => "object"),
            " SELECT c.mode, c.partner_id, c.id, 'does not say once what has happened to it' AS breach
     FROM c
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type = 'customer.created' AND e.created_at = c.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type = 'customer.updated') <> c.revision - 1 - CAST(c.deleted_at IS NOT NULL AS integer)
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type = 'customer.deleted' AND e.created_at = c.deleted_at) <> CAST(c.deleted_at IS NOT NULL AS integer)
        OR (SELECT max(e.created_at) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type IN ('customer.created', 'customer.updated')) <> c.updated_at"
        )
    };
}
static CUSTOMER: Statement = per_engine!("customers", customer);

macro_rules! event_of_customer {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "c", "customers", "'cus_'", "id" => "object"),
            " SELECT e.mode, e.partner_id, e.id, 'tells of a customer what has not happened' AS breach
     FROM events AS e
     LEFT JOIN c ON c.mode = e.mode AND c.partner_id = e.partner_id AND c.object = e.object_id",
            and_by_id!($engine, "c"),
            " WHERE e.service = 'gate' AND ",
            starts_with!($engine, "e.type", "'customer.'"),
            " AND CASE e.type WHEN 'customer.created' THEN c.id IS NULL
                       WHEN 'customer.updated' THEN c.id IS NULL OR c.revision = 1
                       WHEN 'customer.deleted' THEN c.deleted_at IS NULL
                       ELSE true END"
        )
    };
}
static EVENT_OF_CUSTOMER: Statement = per_engine!("events", event_of_customer);

/// A response is stored at the instant of its effect. Without an entry here, a request about a session or a customer is answered not
/// before the object's first event, which is that of its creation.
static ANSWERED: Statement = Statement::per_engine(
    "answers",
    Sql {
        sqlite: "SELECT a.mode, a.partner_id, a.key AS id, 'was answered ' || a.route || ', which was not done then' AS breach
     FROM answers AS a
     WHERE NOT CASE
         WHEN a.route = 'POST /v1/gate_sessions' THEN EXISTS (
             SELECT 1 FROM sessions AS s
             WHERE s.mode = a.mode AND s.partner_id = a.partner_id AND s.created_at = a.created_at)
         WHEN a.route = 'POST /v1/quotes' THEN EXISTS (
             SELECT 1 FROM signed_quotes AS q
             WHERE q.mode = a.mode AND q.partner_id = a.partner_id AND q.created_at = a.created_at)
         WHEN a.route IN ('POST /v1/rails/pay_ins', 'POST /v1/rails/pay_outs') THEN EXISTS (
             SELECT 1 FROM rail_records AS r
             WHERE r.mode = a.mode AND r.partner_id = a.partner_id AND r.created_at = a.created_at
               AND a.route = 'POST /v1/rails/' || r.kind || 's')
         WHEN a.route = 'PATCH /v1/branding' THEN EXISTS (
             SELECT 1 FROM branding AS b WHERE b.mode = a.mode AND b.partner_id = a.partner_id)
         WHEN a.route = 'POST /v1/customers' THEN EXISTS (
             SELECT 1 FROM customers AS c
             WHERE c.mode = a.mode AND c.partner_id = a.partner_id AND c.created_at = a.created_at)
         WHEN a.route GLOB 'DELETE /v1/customers/*' THEN EXISTS (
             SELECT 1 FROM customers AS c
             WHERE c.mode = a.mode AND c.partner_id = a.partner_id AND c.id = substr(a.route, -26)
               AND a.created_at >= c.deleted_at AND a.route = 'DELETE /v1/customers/cus_' || c.mode || '_' || c.id)
         WHEN a.route GLOB 'POST /v1/embed/payments *' THEN EXISTS (
             SELECT 1 FROM rail_records AS r
             WHERE r.mode = a.mode AND r.partner_id = a.partner_id AND r.session_id = substr(a.route, -26)
               AND r.hosted AND r.created_at = a.created_at
               AND a.route = 'POST /v1/embed/payments gs_' || r.mode || '_' || r.session_id)
         WHEN a.route GLOB '*/cancel' THEN EXISTS (
             SELECT 1 FROM sessions AS s
             WHERE s.mode = a.mode AND s.partner_id = a.partner_id AND s.id = substr(a.route, -33, 26)
               AND s.cancelled_at = a.created_at
               AND a.route = 'POST /v1/gate_sessions/gs_' || s.mode || '_' || s.id || '/cancel')
         WHEN a.route GLOB '*/complete' THEN EXISTS (
             SELECT 1 FROM sessions AS s
             WHERE s.mode = a.mode AND s.partner_id = a.partner_id AND s.id = substr(a.route, -35, 26)
               AND s.completed_at = a.created_at
               AND a.route = 'POST /v1/test_helpers/sessions/gs_' || s.mode || '_' || s.id || '/complete')
         WHEN a.route GLOB '*/fail' THEN EXISTS (
             SELECT 1 FROM transactions AS t
             WHERE t.mode = a.mode AND t.partner_id = a.partner_id AND t.session_id = substr(a.route, -31, 26)
               AND t.status = 'failed' AND t.created_at = a.created_at
               AND a.route = 'POST /v1/test_helpers/sessions/gs_' || t.mode || '_' || t.session_id || '/fail')
         ELSE EXISTS (
             SELECT 1 FROM events AS e
             WHERE e.mode = a.mode AND e.partner_id = a.partner_id AND e.created_at <= a.created_at
               AND e.object_id = CASE
                   WHEN a.route GLOB '* /v1/customers/*' THEN substr(a.route, instr(a.route, '/cus_') + 1, 35)
                   ELSE substr(a.route, instr(a.route, '/gs_') + 1, 34) END)
         END",
        postgres: "WITH done AS MATERIALIZED (
         SELECT mode, partner_id, 'POST /v1/gate_sessions' AS route, created_at AS at FROM sessions
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/gate_sessions/gs_' || mode || '_' || ulid(id) || '/cancel', cancelled_at
         FROM sessions WHERE status = 'cancelled'
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/test_helpers/sessions/gs_' || mode || '_' || ulid(id) || '/complete',
                completed_at
         FROM sessions WHERE status = 'completed'
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/test_helpers/sessions/gs_' || mode || '_' || ulid(session_id) || '/fail',
                created_at
         FROM transactions WHERE status = 'failed'
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/quotes', created_at FROM signed_quotes
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/rails/' || kind || 's', created_at FROM rail_records
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/embed/payments gs_' || mode || '_' || ulid(session_id), created_at
         FROM rail_records WHERE hosted
         UNION ALL
         SELECT mode, partner_id, 'POST /v1/customers', created_at FROM customers
     ),
     c AS MATERIALIZED (
         SELECT *, '/v1/customers/cus_' || mode || '_' || ulid(id) AS place FROM customers
     )
     SELECT a.mode, a.partner_id, a.key AS id, 'was answered ' || a.route || ', which was not done then' AS breach
     FROM answers AS a
     LEFT JOIN c ON c.mode = a.mode AND c.partner_id = a.partner_id AND c.place = split_part(a.route, ' ', 2)
     WHERE CASE
         WHEN a.route = 'PATCH /v1/branding' THEN NOT EXISTS (
             SELECT FROM branding AS b WHERE b.mode = a.mode AND b.partner_id = a.partner_id)
         WHEN starts_with(a.route, 'DELETE /v1/customers/') THEN coalesce(a.created_at < c.deleted_at, true)
         WHEN a.route ~ '/(cus|gs)_' AND a.route !~ '/(cancel|complete|fail)$' THEN NOT EXISTS (
             SELECT FROM events AS e
             WHERE e.mode = a.mode AND e.partner_id = a.partner_id AND e.created_at <= a.created_at
               AND e.object_id = substring(a.route FROM '/([a-z]+_[a-z]+_[0-9A-Z]{26})'))
         ELSE (a.mode, a.partner_id, a.route, a.created_at) NOT IN (SELECT mode, partner_id, route, at FROM done) END",
    },
);
