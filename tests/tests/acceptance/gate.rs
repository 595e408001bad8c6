//! Each sentence of the gate's contract, seen from outside.

mod bootstrap;
mod branding;
mod browsers;
mod create;
mod idempotency;
mod keys;
mod logs;
mod sessions;
mod tenancy;
mod throttles;
mod transactions;
mod webhooks;
