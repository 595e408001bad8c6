//! The rules of the gate's contract, tested over HTTP.

mod bootstrap;
mod branding;
mod browsers;
mod capabilities;
mod create;
mod customers;
mod idempotency;
mod keys;
mod logs;
mod payments;
mod previews;
mod races;
mod rails;
mod sessions;
mod tenancy;
mod throttles;
mod transactions;
mod webhooks;
