//! The operator's use cases for partners of every product.

pub mod deliveries;
pub mod keys;
pub mod master_keys;
pub mod partners;
pub mod rotation;
