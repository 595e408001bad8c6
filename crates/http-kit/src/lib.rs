//! The HTTP layer of both APIs: listener, deadlines, error envelope, strict request readers, route
//! classes.
//!
//! It also writes the published contract as YAML and as JSON. A service merges its routes,
//! closes the router with [`finish`] and passes it to [`serve()`].

mod admission;
mod api;
#[cfg(test)]
#[path = "../../../tests/bent.rs"]
mod bent;
mod body;
mod class;
mod client_ip;
pub mod codes;
mod connection;
mod cors;
mod credential;
mod deadlines;
mod error;
mod error_code;
mod framing;
mod idempotency;
mod idempotent_response;
mod json;
mod logged_ids;
pub mod openapi;
mod pages;
mod path;
mod query;
mod replay_on_bad_request;
mod request_layer;
mod serve;
mod service_info;
mod service_paths;
mod throttle;
mod waiting;
mod warning;
mod words;

pub use admission::Bounds;
pub use api::{Api, Operation};
pub use body::{BODY_LIMIT, read as read_body, refuse_encoded};
pub use class::{
    AnyKey, Class, ClassLayer, Door, DoorConfig, Embedded, Entitled, Entitlement, OwnPage, OwnTier,
    PresentedToken, ProductErrorCodes, Publishable, ReadToken, Sandbox, Secret,
};
pub use client_ip::{Peer, TrustedProxies};
pub use cors::{CorsPolicy, OwnDomains};
pub use credential::dead_token;
pub use deadlines::Deadlines;
pub use error::ApiError;
pub use error_code::{ErrorCode, Kind, errors_page};
pub use idempotency::{IdempotencyHeader, OperationOf};
pub use idempotent_response::{IdempotentReply, ResponseBuilder, is_well_formed};
pub use json::{Json, JsonWithUnknown, OptionalJson, RawJson, UnknownFields, parse as parse_json};
pub use logged_ids::log_id;
pub use pages::{Document, documentation, metrics_router, probes};
pub use path::PathId;
pub use query::Query;
pub use replay_on_bad_request::replay_first_response;
pub use request_layer::{X_REQUEST_ID, finish, finish_pages};
pub use serve::{Options, serve};
pub use service_info::ServiceInfo;
pub use throttle::{Limit, LimitBy};
pub use waiting::Waiting;
pub use warning::Warning;
pub use words::{read_word, word_schema};

/// The router type that a service builds.
pub use axum::Router;
pub use axum::http::StatusCode;
