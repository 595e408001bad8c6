//! Use cases: what a partner, a browser or the operator can do with the gate.

pub mod acting;
pub mod bootstrap;
pub mod branding;
pub mod create;
pub mod customers;
pub mod expiry;
pub mod locking;
pub mod previewing;
pub mod reading;
pub mod redeeming;
pub mod settling;
pub mod webhook_test;
