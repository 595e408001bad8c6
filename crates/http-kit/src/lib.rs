//! What both HTTP APIs share: the listener and its deadlines, the error envelope, strict
//! readers of bodies, queries and ids, route classes with their throttles, and the published
//! contract as YAML and as a page.
//!
//! A service merges its routes, closes the router with [`finish`] and hands it to [`serve()`].

mod admission;
mod answer;
mod body;
mod browsers;
mod class;
mod client_ip;
mod conn;
mod credential;
mod docs_page;
mod error;
mod error_docs;
mod fallback;
mod framing;
mod idempotency;
mod json;
pub mod openapi;
mod outer;
mod pages;
mod path;
mod phase;
mod query;
mod repeats;
mod serve;
mod site;
mod throttle;

pub use admission::Bounds;
pub use answer::{Pen, Sent};
pub use body::{BODY_LIMIT, read as read_body};
pub use browsers::{Admitting, Browsers};
pub use class::{
    AnyKey, ClassLayer, Door, DoorConfig, Entitled, Guarded, OwnPage, Publishable, Sandbox, Secret,
    Wording,
};
pub use client_ip::{Peer, TrustedProxies};
pub use error::{ApiError, Kind};
pub use error_docs::{ErrorDoc, SHARED_ERRORS, error_doc, errors_page};
pub use idempotency::IdempotencyHeader;
pub use json::{Json, JsonWithUnknown, OptionalJson, RawJson, UnknownFields, parse as parse_json};
pub use outer::{X_REQUEST_ID, finish};
pub use pages::{Check, Document, documentation, health_routes, metrics_router, probes};
pub use path::PathId;
pub use phase::Deadlines;
pub use query::Query;
pub use repeats::first_answer;
pub use serve::{Options, serve};
pub use site::Site;
pub use throttle::{Limit, Whose};

/// What a service merges its routes into.
pub use axum::Router;
