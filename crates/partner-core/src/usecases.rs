//! Use cases: what the operator can do with partners, whatever products they use.

pub mod deliveries;
pub mod keys;
pub mod master_keys;
pub mod partners;
pub mod rotation;
