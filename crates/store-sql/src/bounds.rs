//! The bounds of pages by (`created_at`, id) descending.

use kernel::Timestamp;
use ulid::Ulid;

/// The pair of instant and id below which a page begins: of the cursor and of the latest instant, whichever is smaller.
pub(crate) fn upper_bound(before: Option<Timestamp>, cursor: Option<(i64, Ulid)>) -> (i64, Ulid) {
    let latest = before.map_or(i64::MAX, |before| before.millis().saturating_add(1));
    let latest = (latest, Ulid::nil());
    cursor.map_or(latest, |cursor| latest.min(cursor))
}

/// The milliseconds that every item of a page is above.
pub(crate) fn exclusive_lower_bound(after: Option<Timestamp>) -> i64 {
    after.map_or(i64::MIN, Timestamp::millis)
}
