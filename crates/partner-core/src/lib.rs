//! Partners and the parts that every product shares: API keys, entitlement, idempotency, throttles, events and
//! sealing. It has rules and ports, but no I/O.

pub mod access;
pub mod audit;
pub mod clock;
pub mod credential;
pub mod events;
pub mod export;
pub mod idempotency;
pub mod key;
pub mod origin;
pub mod page;
pub mod partner;
pub mod permits;
pub mod ports;
pub mod races;
pub mod sealing;
pub mod stored_response;
pub mod tables;
pub mod text;
pub mod throttle;
pub mod usecases;
pub mod webhooks;

pub use access::{Access, Denial, Profile};
pub use partner::{Partner, PartnerId, PartnerStatus, Tenant};
