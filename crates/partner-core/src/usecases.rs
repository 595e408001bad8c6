//! Use cases: what the operator can do with partners, whatever products they use.

pub mod apply;
mod changes;
pub mod deliveries;
pub mod keys;
pub mod master_keys;
pub mod partners;
mod profiles;
mod report;
pub mod rotation;
