//! Bugs planted on purpose, to see that the tests find them.
//!
//! Each is one slip of a hasty change, at the place where it would be made: `if planted(…)`.
//! Without the feature `planted-bugs` that is `false` to the compiler, and nothing of a bug is
//! built. With it, `PENSTOCK_PLANTED_BUG` names the one bug of the process. The feature is never
//! a default, and a profile without debug assertions refuses it.

#[cfg(all(feature = "planted-bugs", not(debug_assertions)))]
compile_error!(
    "planted bugs are for tests: a profile without debug assertions is not built with them"
);

/// A transact reads the clock before it has the lock.
pub const STALE_EXPIRY: &str = "stale-expiry";
/// A report is applied whoever holds the lease by now.
pub const LATE_REPORT: &str = "late-report";
/// Each poll asks the engine under an id of its own.
pub const ENGINE_ID_PER_POLL: &str = "engine-id-per-poll";
/// A return is believed of a settled trade only.
pub const RETURN_NEEDS_SETTLEMENT: &str = "return-needs-settlement";
/// A failure that is reported of a settled trade counts as its return.
pub const FAILED_AFTER_SETTLEMENT: &str = "failed-after-settlement";
/// A lapsed hold is believed without asking for the report.
pub const LAPSED_UNASKED: &str = "lapsed-unasked";
/// A velocity total is written back as it was before the lock was given up and taken again.
pub const LOST_UPDATE: &str = "lost-update";
/// An idempotency record still counts at the instant it ends.
pub const TTL_OFF_BY_ONE: &str = "ttl-off-by-one";
/// A trade is found by its id alone, whose ever it is.
pub const TENANT_FILTER_MISSING: &str = "tenant-filter-missing";
/// A delivery is signed for the instant of its event, at every attempt.
pub const SIGNED_ONCE: &str = "signed-once";
/// The key of a request stands in its log line.
pub const SECRET_LOGGED: &str = "secret-logged";
/// The cap is judged without the trades that the same batch has opened.
pub const CAP_WITHOUT_LOCK: &str = "cap-without-lock";
/// A cursor stands for an instant and forgets the rows that share it.
pub const CURSOR_FORGETS_TIES: &str = "cursor-forgets-ties";
/// What a key was used for is known in memory only.
pub const KEY_IN_MEMORY_ONLY: &str = "key-in-memory-only";
/// An event is written in a transaction after that of its trade.
pub const EVENT_AFTERWARDS: &str = "event-afterwards";

/// What a create was answered is kept in a transaction after that of its session.
pub const ANSWER_AFTERWARDS: &str = "answer-afterwards";

/// Is this bug planted?
#[cfg(not(feature = "planted-bugs"))]
#[must_use]
pub const fn planted(_: &str) -> bool {
    false
}

/// Is this bug planted?
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn planted(bug: &str) -> bool {
    static PLANTED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let name = PLANTED.get_or_init(|| std::env::var("PENSTOCK_PLANTED_BUG").ok());
    name.as_deref() == Some(bug)
}
