//! Values that every core shares: money, ids, instants, modes and the errors of a store.
//!
//! This crate has no async code and no I/O. Instants and randomness are passed in through [`Clock`] and [`Entropy`], so every
//! rule built on these values can be tested at an exact instant with an exact id.

pub mod address;
mod amount;
mod asset;
mod clock;
mod closed_list;
mod debug;
mod error;
mod id;
mod mode;
mod rate;
pub mod rates;
mod time;
mod trace_parent;
mod upstream;

pub use amount::{Amount, AmountError, UNITS_SCALE};
pub use asset::{Asset, AssetKind};
pub use clock::{Clock, Entropy};
pub use error::{Cas, NoWrites, NoWritesReason, Readable, Seen, StoreError, StoreResult, causes};
pub use id::{Id, IdKind, RequestId, before_ulid};
pub use mode::Mode;
pub use rate::{Fraction, Mid, Rate};
pub use time::{Bound, Timestamp, TimestampError};
pub use trace_parent::TraceParent;
pub use upstream::{Named, UpstreamName, Upstreams};

/// Money properties run fifty times as many cases as other properties, whose count is set in `.cargo/config.toml`.
#[cfg(test)]
fn money_cases() -> proptest::test_runner::Config {
    let usual = proptest::test_runner::Config::default();
    proptest::test_runner::Config {
        cases: usual.cases.saturating_mul(50),
        ..usual
    }
}
