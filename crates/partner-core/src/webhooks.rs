//! Webhooks: where they may go, how they are signed, when they are tried again, and the life of
//! one delivery. Also the signatures of notifications that upstreams send. Rules only; the worker that sends lives elsewhere and asks them.

pub mod delivery;
pub mod fairness;
pub mod notification;
pub mod schedule;
pub mod signing;
pub mod target;
