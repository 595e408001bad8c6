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
    "SELECT q.mode || '/' || q.partner_id || ' signed quote ' || q.id || ' is not redeemed as its record says'
     FROM signed_quotes AS q
     LEFT JOIN rail_records AS r ON r.mode = q.mode AND r.partner_id = q.partner_id AND r.quote_id = q.id
     WHERE q.consumed_at IS NOT r.created_at
        OR q.side IS NOT coalesce(CASE r.kind WHEN 'pay_in' THEN 'on_ramp' WHEN 'pay_out' THEN 'off_ramp' END, q.side)";

/// One event that it was made, and one of its end; one that its quote was consumed.
const SAID: &str =
    "SELECT r.mode || '/' || r.partner_id || ' rail record ' || r.id || ' does not say once how it stands'
     FROM rail_records AS r
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id
              AND e.object_id = CASE r.kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || r.mode || '_' || r.id
              AND e.type = 'rail.' || r.kind || '.processing' AND e.created_at = r.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id
              AND e.object_id = CASE r.kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || r.mode || '_' || r.id
              AND e.type = 'rail.' || r.kind || '.' || r.status AND e.created_at = coalesce(r.ended_at, r.created_at)) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = 'qt_' || r.mode || '_' || r.quote_id
              AND e.type = 'quote.consumed' AND e.created_at = r.created_at) <> 1";

const TOLD_OF: &str =
    "SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' tells of a rail what has not happened'
     FROM events AS e
     LEFT JOIN rail_records AS r ON r.mode = e.mode AND r.partner_id = e.partner_id AND r.id = substr(e.object_id, -26)
          AND e.object_id = CASE r.kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || r.mode || '_' || r.id
     LEFT JOIN signed_quotes AS q ON q.mode = e.mode AND q.partner_id = e.partner_id AND q.id = substr(e.object_id, -26)
          AND e.object_id = 'qt_' || q.mode || '_' || q.id
     WHERE e.service = 'gate'
       AND CASE WHEN e.type = 'quote.consumed' THEN q.consumed_at IS NULL
                WHEN e.type GLOB 'rail.*' THEN
                    r.id IS NULL OR e.type NOT IN ('rail.' || r.kind || '.processing', 'rail.' || r.kind || '.' || r.status)
                ELSE 0 END";

/// A record that settled has completed its session then, unless that had ended before.
const SETTLED: &str =
    "SELECT r.mode || '/' || r.partner_id || ' rail record ' || r.id || ' has not completed its session as it settled'
     FROM rail_records AS r
     LEFT JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
     WHERE CASE WHEN s.transaction_id IS r.transaction_id
                THEN (r.status, r.ended_at) IS NOT ('settled', s.completed_at)
                ELSE r.status = 'settled'
                     AND coalesce(s.completed_at, s.cancelled_at, s.expired_at, r.ended_at + 1) > r.ended_at END";

/// A session has one payment in progress or settled at most, and one that has ended was ended by it.
/// Payments from before this rule are marked.
const ONE_PAYMENT: &str =
    "SELECT s.mode || '/' || s.partner_id || ' session ' || s.id || ' has a payment beside the one it may have'
     FROM sessions AS s
     WHERE EXISTS (SELECT 1 FROM rail_records AS r
                   WHERE r.mode = s.mode AND r.partner_id = s.partner_id AND r.session_id = s.id
                     AND r.status IN ('processing', 'settled') AND r.predates_rule = 0
                     AND (s.status <> 'open' AND s.transaction_id IS NOT r.transaction_id
                          OR EXISTS (SELECT 1 FROM rail_records AS other
                                     WHERE other.mode = r.mode AND other.partner_id = r.partner_id
                                       AND other.session_id = r.session_id AND other.id <> r.id
                                       AND other.status IN ('processing', 'settled') AND other.predates_rule = 0)))";
