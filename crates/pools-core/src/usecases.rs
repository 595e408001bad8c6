//! Use cases: what a partner or the operator can do with pools.

pub mod catch_up;
pub mod credit;
pub mod poll;
pub mod quoting;
pub mod reading;
pub mod recount;
pub mod reject;
pub mod transact;
