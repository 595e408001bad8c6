//! Invariants of verifications.

use super::{Invariant, objects, per_engine, ulid};
use crate::Statement;

pub(super) static INVARIANTS: &[Invariant] = &[
    Invariant::of_rows(
        "verification-says-it-was-required",
        "verification",
        &REQUIRED,
    ),
    Invariant::of_rows("event-has-its-verification", "event", &EVENT),
];

/// A verification has one event of its session at the instant at which it was created.
macro_rules! required {
    ($engine:ident) => {
        concat!(
            "WITH ",
            objects!($engine, "v", "verifications", "'gs_'", "session_id" => "object"),
            " SELECT v.mode, v.partner_id, v.id, 'does not say once that it was required' AS breach
     FROM v
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = v.mode AND e.partner_id = v.partner_id AND e.object_id = v.object
              AND e.type = 'kyc.required' AND e.created_at = v.created_at) <> 1"
        )
    };
}
static REQUIRED: Statement = per_engine!("verifications", required);

macro_rules! event {
    (sqlite) => {
        event!(
            sqlite,
            " AND v.session_id = substr(e.object_id, -26)"
        )
    };
    (postgres) => {
        event!(postgres, "")
    };
    ($engine:ident, $by_id:literal) => {
        concat!(
            "WITH ",
            objects!($engine, "v", "verifications", "'gs_'", "session_id" => "object"),
            " SELECT e.mode, e.partner_id, e.id, 'tells of a verification that does not exist' AS breach
     FROM events AS e
     LEFT JOIN v ON v.mode = e.mode AND v.partner_id = e.partner_id AND v.object = e.object_id",
            $by_id,
            " WHERE e.service = 'gate' AND e.type = 'kyc.required' AND v.id IS NULL"
        )
    };
}
static EVENT: Statement = per_engine!("events", event);
