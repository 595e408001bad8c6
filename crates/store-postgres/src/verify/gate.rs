//! Invariants of the gate that rows show by themselves. Each query answers one text per breach.
//!
//! A session's name in events and routes is made once: made while looking for it, it would be made
//! for each of those.

use store_sql::verify::Asked;

/// The name of each invariant, with the query for the rows that break it.
pub(super) const INVARIANTS: Asked = &[
    ("session-says-it-was-made", MADE),
    ("ended-session-has-one-event", ENDED),
    ("event-has-its-session", SAID),
    ("completed-session-has-its-transaction", PAID),
    ("transaction-has-its-sessions-terms", TERMS),
    ("tally-counts-live-sessions", TALLY),
    ("customer-says-what-happened", HAPPENED),
    ("event-has-its-customer", TOLD_OF),
    ("answer-is-of-what-was-done", ANSWERED),
];

/// One event that it was made, at that instant; and one that its package was accepted, if it came
/// with one.
const MADE: &str =
    "WITH s AS MATERIALIZED (SELECT *, 'gs_' || mode || '_' || ulid(id) AS object FROM sessions)
     SELECT s.mode || '/' || s.partner_id || ' session ' || ulid(s.id) || ' does not say once how it was made'
     FROM s
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.created' AND e.created_at = s.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.kyc_package_accepted' AND e.created_at = s.created_at)
           <> s.kyc_pre_verified::integer";

const ENDED: &str =
    "WITH s AS MATERIALIZED (
         SELECT *, 'gs_' || mode || '_' || ulid(id) AS object FROM sessions WHERE status <> 'open'
     )
     SELECT s.mode || '/' || s.partner_id || ' session ' || ulid(s.id) || ' is ' || s.status || ' without one event of it'
     FROM s
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type = 'gate_session.' || s.status
              AND e.created_at = coalesce(s.completed_at, s.cancelled_at, s.expired_at)) <> 1";

const SAID: &str =
    "WITH s AS MATERIALIZED (SELECT *, 'gs_' || mode || '_' || ulid(id) AS object FROM sessions)
     SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' reports what has not happened'
     FROM events AS e
     LEFT JOIN s ON s.mode = e.mode AND s.partner_id = e.partner_id AND s.object = e.object_id
     WHERE e.service = 'gate' AND starts_with(e.type, 'gate_session.')
       AND CASE e.type WHEN 'gate_session.created' THEN s.id IS NULL
                       WHEN 'gate_session.kyc_package_accepted' THEN s.kyc_pre_verified IS NOT TRUE
                       ELSE e.type IS DISTINCT FROM 'gate_session.' || s.status END";

/// The session and the transaction that paid it name each other, and were completed at once. What a
/// rail has begun may be completed after its session.
const PAID: &str =
    "SELECT s.mode || '/' || s.partner_id || ' session ' || ulid(s.id) || ' is completed without its transaction'
     FROM sessions AS s
     LEFT JOIN transactions AS t ON t.mode = s.mode AND t.partner_id = s.partner_id AND t.id = s.transaction_id
     WHERE s.status = 'completed'
       AND (t.session_id, t.status, t.completed_at) IS DISTINCT FROM (s.id, 'completed', s.completed_at)
     UNION ALL
     SELECT t.mode || '/' || t.partner_id || ' transaction ' || ulid(t.id) || ' is completed and has completed no session'
     FROM transactions AS t
     LEFT JOIN sessions AS s ON s.mode = t.mode AND s.partner_id = t.partner_id AND s.id = t.session_id
     WHERE t.status = 'completed' AND t.local_rail_transaction_id IS NULL
       AND (s.status, s.transaction_id) IS DISTINCT FROM ('completed', t.id)";

/// What the session binds, its transactions have; and they were begun while it could be paid. Those
/// of rails have their quotes' terms.
const TERMS: &str =
    "SELECT t.mode || '/' || t.partner_id || ' transaction ' || ulid(t.id) || ' has other terms than its session'
     FROM transactions AS t
     JOIN sessions AS s ON s.mode = t.mode AND s.partner_id = t.partner_id AND s.id = t.session_id
     WHERE (t.local_rail_transaction_id IS NULL
            AND (t.currency, t.fiat_amount, t.action, t.token, t.network)
                IS DISTINCT FROM (s.currency, s.amount, coalesce(s.flow, t.action), coalesce(s.target_token, t.token),
                                  coalesce(s.target_network, t.network)))
        OR t.created_at < s.created_at OR t.created_at >= s.expires_at";

/// A partner's tally is the count of its live sessions from the month of the newest on. What is no
/// month has its own name.
const TALLY: &str =
    "SELECT t.mode || '/' || t.partner_id || ' has a tally of ' || coalesce(t.created || ' in ' || t.month, 'none')
            || ' and other live sessions'
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
                     AND s.created_at >= extract(epoch FROM t.start + interval '1 month')::bigint * 1000)";

/// One event that it was made, one for every change, and one that it was deleted if it was; the last
/// change is of the instant that stands with it.
const HAPPENED: &str =
    "WITH c AS MATERIALIZED (SELECT *, 'cus_' || mode || '_' || ulid(id) AS object FROM customers)
     SELECT c.mode || '/' || c.partner_id || ' customer ' || ulid(c.id) || ' does not say once what has happened to it'
     FROM c
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type = 'customer.created' AND e.created_at = c.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type = 'customer.updated') <> c.revision - 1 - (c.deleted_at IS NOT NULL)::integer
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type = 'customer.deleted' AND e.created_at = c.deleted_at) <> (c.deleted_at IS NOT NULL)::integer
        OR (SELECT max(e.created_at) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object
              AND e.type IN ('customer.created', 'customer.updated')) <> c.updated_at";

const TOLD_OF: &str =
    "WITH c AS MATERIALIZED (SELECT *, 'cus_' || mode || '_' || ulid(id) AS object FROM customers)
     SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' tells of a customer what has not happened'
     FROM events AS e
     LEFT JOIN c ON c.mode = e.mode AND c.partner_id = e.partner_id AND c.object = e.object_id
     WHERE e.service = 'gate' AND starts_with(e.type, 'customer.')
       AND CASE e.type WHEN 'customer.created' THEN c.id IS NULL
                       WHEN 'customer.updated' THEN c.id IS NULL OR c.revision = 1
                       WHEN 'customer.deleted' THEN c.deleted_at IS NULL
                       ELSE true END";

/// An answer is kept at the instant of what it answers; one of a customer that was there already, not
/// before that.
const ANSWERED: &str =
    "WITH done AS MATERIALIZED (
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
         SELECT mode, partner_id, 'POST /v1/customers', created_at FROM customers
     ),
     c AS MATERIALIZED (
         SELECT *, '/v1/customers/cus_' || mode || '_' || ulid(id) AS place FROM customers
     )
     SELECT a.mode || '/' || a.partner_id || ' key ' || a.key || ' was answered ' || a.route || ', which was not done then'
     FROM answers AS a
     LEFT JOIN c ON c.mode = a.mode AND c.partner_id = a.partner_id AND c.place = split_part(a.route, ' ', 2)
     WHERE CASE
         WHEN a.route = 'PATCH /v1/branding' THEN NOT EXISTS (
             SELECT FROM branding AS b WHERE b.mode = a.mode AND b.partner_id = a.partner_id)
         WHEN starts_with(a.route, 'PATCH /v1/customers/') THEN coalesce(a.created_at < c.created_at, true)
         WHEN starts_with(a.route, 'DELETE /v1/customers/') THEN coalesce(a.created_at < c.deleted_at, true)
         ELSE (a.mode, a.partner_id, a.route, a.created_at) NOT IN (SELECT mode, partner_id, route, at FROM done) END";
