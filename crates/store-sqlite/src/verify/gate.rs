//! Invariants of the gate that rows show by themselves. Each query answers one text per breach.

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
    "SELECT s.mode || '/' || s.partner_id || ' session ' || s.id || ' does not say once how it was made'
     FROM sessions AS s
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = 'gs_' || s.mode || '_' || s.id
              AND e.type = 'gate_session.created' AND e.created_at = s.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = 'gs_' || s.mode || '_' || s.id
              AND e.type = 'gate_session.kyc_package_accepted' AND e.created_at = s.created_at)
           <> s.kyc_pre_verified";

const ENDED: &str =
    "SELECT s.mode || '/' || s.partner_id || ' session ' || s.id || ' is ' || s.status || ' without one event of it'
     FROM sessions AS s
     WHERE s.status <> 'open'
       AND (SELECT count(*) FROM events AS e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = 'gs_' || s.mode || '_' || s.id
              AND e.type = 'gate_session.' || s.status
              AND e.created_at = coalesce(s.completed_at, s.cancelled_at, s.expired_at)) <> 1";

const SAID: &str =
    "SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' reports what has not happened'
     FROM events AS e
     LEFT JOIN sessions AS s ON s.mode = e.mode AND s.partner_id = e.partner_id AND s.id = substr(e.object_id, -26)
          AND e.object_id = 'gs_' || s.mode || '_' || s.id
     WHERE e.service = 'gate' AND e.type GLOB 'gate_session.*'
       AND CASE e.type WHEN 'gate_session.created' THEN s.id IS NULL
                       WHEN 'gate_session.kyc_package_accepted' THEN s.kyc_pre_verified IS NOT 1
                       ELSE e.type IS NOT 'gate_session.' || s.status END";

/// The session and the transaction that paid it name each other, and were completed at once. What a
/// rail has begun may be completed after its session.
const PAID: &str =
    "SELECT s.mode || '/' || s.partner_id || ' session ' || s.id || ' is completed without its transaction'
     FROM sessions AS s
     LEFT JOIN transactions AS t ON t.mode = s.mode AND t.partner_id = s.partner_id AND t.id = s.transaction_id
     WHERE s.status = 'completed'
       AND (t.session_id, t.status, t.completed_at) IS NOT (s.id, 'completed', s.completed_at)
     UNION ALL
     SELECT t.mode || '/' || t.partner_id || ' transaction ' || t.id || ' is completed and has completed no session'
     FROM transactions AS t
     LEFT JOIN sessions AS s ON s.mode = t.mode AND s.partner_id = t.partner_id AND s.id = t.session_id
     WHERE t.status = 'completed' AND t.local_rail_transaction_id IS NULL
       AND (s.status, s.transaction_id) IS NOT ('completed', t.id)";

/// What the session binds, its transactions have; and they were begun while it could be paid. Those
/// of rails have their quotes' terms.
const TERMS: &str =
    "SELECT t.mode || '/' || t.partner_id || ' transaction ' || t.id || ' has other terms than its session'
     FROM transactions AS t
     JOIN sessions AS s ON s.mode = t.mode AND s.partner_id = t.partner_id AND s.id = t.session_id
     WHERE (t.local_rail_transaction_id IS NULL
            AND (t.currency, t.fiat_amount, t.action, t.token, t.network)
                IS NOT (s.currency, s.amount, coalesce(s.flow, t.action), coalesce(s.target_token, t.token),
                        coalesce(s.target_network, t.network)))
        OR t.created_at < s.created_at OR t.created_at >= s.expires_at";

/// A partner's tally is the count of its live sessions from the month of the newest on.
const TALLY: &str =
    "SELECT p.mode || '/' || p.partner_id || ' has a tally of ' || coalesce(t.created || ' in ' || t.month, 'none')
            || ' and other live sessions'
     FROM partners AS p
     LEFT JOIN session_tallies AS t ON t.mode = p.mode AND t.partner_id = p.partner_id
     WHERE t.created IS NOT CASE p.mode WHEN 'live' THEN nullif((
               SELECT count(*) FROM sessions AS s
               WHERE s.mode = p.mode AND s.partner_id = p.partner_id
                 AND s.created_at >= coalesce(unixepoch(t.month || '-01') * 1000, 0)
           ), 0) END
        OR EXISTS (SELECT 1 FROM sessions AS s
                   WHERE s.mode = p.mode AND s.partner_id = p.partner_id
                     AND s.created_at >= unixepoch(t.month || '-01', '+1 month') * 1000)";

/// One event that it was made, one for every change, and one that it was deleted if it was; the last
/// change is of the instant that stands with it.
const HAPPENED: &str =
    "SELECT c.mode || '/' || c.partner_id || ' customer ' || c.id || ' does not say once what has happened to it'
     FROM customers AS c
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = 'cus_' || c.mode || '_' || c.id
              AND e.type = 'customer.created' AND e.created_at = c.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = 'cus_' || c.mode || '_' || c.id
              AND e.type = 'customer.updated') <> c.revision - 1 - (c.deleted_at IS NOT NULL)
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = 'cus_' || c.mode || '_' || c.id
              AND e.type = 'customer.deleted' AND e.created_at = c.deleted_at) <> (c.deleted_at IS NOT NULL)
        OR (SELECT max(e.created_at) FROM events AS e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = 'cus_' || c.mode || '_' || c.id
              AND e.type IN ('customer.created', 'customer.updated')) <> c.updated_at";

const TOLD_OF: &str =
    "SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' tells of a customer what has not happened'
     FROM events AS e
     LEFT JOIN customers AS c ON c.mode = e.mode AND c.partner_id = e.partner_id AND c.id = substr(e.object_id, -26)
          AND e.object_id = 'cus_' || c.mode || '_' || c.id
     WHERE e.service = 'gate' AND e.type GLOB 'customer.*'
       AND CASE e.type WHEN 'customer.created' THEN c.id IS NULL
                       WHEN 'customer.updated' THEN c.id IS NULL OR c.revision = 1
                       WHEN 'customer.deleted' THEN c.deleted_at IS NULL
                       ELSE 1 END";

/// An answer is kept at the instant of what it answers; one of a customer that was there already, not
/// before that.
const ANSWERED: &str =
    "SELECT a.mode || '/' || a.partner_id || ' key ' || a.key || ' was answered ' || a.route || ', which was not done then'
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
         WHEN a.route GLOB 'PATCH /v1/customers/*' THEN EXISTS (
             SELECT 1 FROM customers AS c
             WHERE c.mode = a.mode AND c.partner_id = a.partner_id AND c.id = substr(a.route, -26)
               AND a.created_at >= c.created_at AND a.route = 'PATCH /v1/customers/cus_' || c.mode || '_' || c.id)
         WHEN a.route GLOB 'DELETE /v1/customers/*' THEN EXISTS (
             SELECT 1 FROM customers AS c
             WHERE c.mode = a.mode AND c.partner_id = a.partner_id AND c.id = substr(a.route, -26)
               AND a.created_at >= c.deleted_at AND a.route = 'DELETE /v1/customers/cus_' || c.mode || '_' || c.id)
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
         ELSE 0 END";
