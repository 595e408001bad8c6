//! The gate HTTP API: the route table, the JSON shapes, and the error responses.

mod app;
mod branding;
mod capabilities;
mod contract;
mod customers;
mod embed;
mod embed_caller;
mod embed_options;
mod embed_session;
mod embed_verification;
mod errors;
mod event_docs;
mod payments;
mod previews;
mod proven_country;
mod rail_events;
mod rail_notifications;
mod rails;
mod routes;
mod service;
mod sessions;
mod signed_quotes;
mod test_helpers;
mod transactions;
mod webhooks;
mod whole_list;
mod widget;
mod wire;

pub use app::Parts;
pub use capabilities::EdgeHeader;
pub use contract::{
    embed, embed_yaml, every_error, openapi, openapi_yaml, test_helpers, test_helpers_yaml,
};
pub use event_docs::render_resource;
pub use service::{Setup, Tiers, service};
pub use widget::{DemoFile, DemoPlaces, WidgetSetup, demo_file, demo_page, demo_policy, widget};
