//! The use cases of the gate, for partners, browsers and the operator.

pub mod act_on_session;
pub mod advance_rails;
pub mod bootstrap_embed;
pub mod create_session;
pub mod customers;
pub mod expiry;
pub mod lock_quote;
pub mod preview_quotes;
pub mod queries;
pub mod redeem_quote;
pub mod send_test_event;
pub mod update_branding;
