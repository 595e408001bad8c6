//! Each sentence of the gate's contract, seen from outside.

mod branding;
mod create;
mod idempotency;
mod keys;
mod logs;
mod sessions;
mod throttles;
mod transactions;
