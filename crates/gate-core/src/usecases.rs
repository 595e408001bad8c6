//! The use cases of the gate, for partners, browsers and the operator.

pub mod act_on_session;
pub mod advance_rails;
pub mod advance_verifications;
pub mod bootstrap_embed;
pub mod cancel_payment;
pub mod compare_customers;
pub mod context;
pub mod create_session;
pub mod customers;
mod expiry;
pub mod list_options;
pub mod lock_quote;
pub mod pay_session;
pub mod pretend;
pub mod preview_quotes;
pub mod queries;
pub mod quote_session;
pub mod redeem_quote;
pub mod redemption;
pub mod send_test_event;
pub mod show_outcome;
pub mod show_session;
pub mod update_branding;
pub mod verify_user;
pub mod wake_rail;
pub mod watch_rails;
