//! Use cases: what a partner or the operator can do with pools.

mod commitment;
pub mod credit;
pub mod poll;
pub mod quoting;
pub mod reading;
pub mod recount;
pub mod reject;
pub mod transact;
