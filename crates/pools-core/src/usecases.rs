//! The use cases of the pools, for partners and the operator.

pub mod catch_up;
pub mod create_quote;
pub mod credit_account;
pub mod poll_trade;
pub mod queries;
pub mod recount_contingent_credits;
pub mod reject_quote;
pub mod transact_quote;
