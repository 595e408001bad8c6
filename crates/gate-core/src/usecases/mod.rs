//! Use cases: what a partner, a browser or the operator can do with the gate.

pub mod acting;
pub mod bootstrap;
pub mod branding;
pub mod create;
pub mod expiry;
pub mod reading;
pub mod webhook_test;
