//! Invariants of signed quotes and rail records that rows show by themselves.

use store_sql::verify::Asked;

/// The name of each invariant, with the query for the rows that break it.
pub(super) const INVARIANTS: Asked = &[
    ("consumed-quote-has-its-record", REDEEMED),
    ("rail-record-says-how-it-stands", SAID),
    ("event-has-its-rail-record", TOLD_OF),
    ("settled-record-completes-its-session", SETTLED),
    ("session-has-one-payment", ONE_PAYMENT),
];

/// A quote was consumed at the instant its one record was made, and has the record's side.
const REDEEMED: &str =
    "SELECT q.mode || '/' || q.partner_id || ' signed quote ' || ulid(q.id) || ' is not redeemed as its record says'
     FROM signed_quotes AS q
     LEFT JOIN rail_records AS r ON r.mode = q.mode AND r.partner_id = q.partner_id AND r.quote_id = q.id
     WHERE q.consumed_at IS DISTINCT FROM r.created_at
        OR q.side <> coalesce(CASE r.kind WHEN 'pay_in' THEN 'on_ramp' WHEN 'pay_out' THEN 'off_ramp' END, q.side)";

/// One event that it was made, and one of its end; one that its quote was consumed.
const SAID: &str =
    "WITH r AS MATERIALIZED (
         SELECT *, CASE kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || mode || '_' || ulid(id) AS object,
                'qt_' || mode || '_' || ulid(quote_id) AS quote
         FROM rail_records
     )
     SELECT r.mode || '/' || r.partner_id || ' rail record ' || ulid(r.id) || ' does not say once how it stands'
     FROM r
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.object
              AND e.type = 'rail.' || r.kind || '.processing' AND e.created_at = r.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.object
              AND e.type = 'rail.' || r.kind || '.' || r.status AND e.created_at = coalesce(r.ended_at, r.created_at)) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.quote
              AND e.type = 'quote.consumed' AND e.created_at = r.created_at) <> 1";

const TOLD_OF: &str =
    "WITH r AS MATERIALIZED (
         SELECT *, CASE kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || mode || '_' || ulid(id) AS object
         FROM rail_records
     ),
     q AS MATERIALIZED (SELECT *, 'qt_' || mode || '_' || ulid(id) AS object FROM signed_quotes)
     SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' tells of a rail what has not happened'
     FROM events AS e
     LEFT JOIN r ON r.mode = e.mode AND r.partner_id = e.partner_id AND r.object = e.object_id
     LEFT JOIN q ON q.mode = e.mode AND q.partner_id = e.partner_id AND q.object = e.object_id
     WHERE e.service = 'gate' AND (e.type = 'quote.consumed' OR starts_with(e.type, 'rail.'))
       AND CASE e.type
           WHEN 'quote.consumed' THEN q.consumed_at IS NULL
           ELSE r.id IS NULL OR e.type NOT IN ('rail.' || r.kind || '.processing', 'rail.' || r.kind || '.' || r.status)
       END";

/// A record that settled has completed its session then, unless that had ended before.
const SETTLED: &str =
    "SELECT r.mode || '/' || r.partner_id || ' rail record ' || ulid(r.id) || ' has not completed its session as it settled'
     FROM rail_records AS r
     LEFT JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
     WHERE CASE WHEN s.transaction_id = r.transaction_id
                THEN (r.status, r.ended_at) IS DISTINCT FROM ('settled', s.completed_at)
                ELSE r.status = 'settled'
                     AND coalesce(s.completed_at, s.cancelled_at, s.expired_at, r.ended_at + 1) > r.ended_at END";

/// A session has one payment in progress or settled at most, and one that has ended was ended by it.
/// Payments from before this rule are marked.
const ONE_PAYMENT: &str =
    "SELECT DISTINCT s.mode || '/' || s.partner_id || ' session ' || ulid(s.id) || ' has a payment beside the one it may have'
     FROM rail_records AS r
     JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
     WHERE r.status IN ('processing', 'settled') AND NOT r.predates_rule
       AND (s.status <> 'open' AND s.transaction_id IS DISTINCT FROM r.transaction_id
            OR EXISTS (SELECT 1 FROM rail_records AS other
                       WHERE other.mode = r.mode AND other.partner_id = r.partner_id AND other.session_id = r.session_id
                         AND other.id <> r.id AND other.status IN ('processing', 'settled') AND NOT other.predates_rule))";
