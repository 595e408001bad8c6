//! The declarative file, and its application to the database.
//!
//! Parsing a file returns a [`Document`] or all of its errors. Each table replaces the whole entry that it names. A
//! table that is absent changes nothing, so a file never deletes a partner, a pool or a key.
//!
//! [`apply`] applies a document. This is the only crate that knows the entries of both products.

pub mod apply;
mod changes;
mod document;
mod gate_table;
mod loosened;
mod names;
pub mod ports;
mod profiles;
mod report;
mod shapes;
mod value;
mod written;

pub use document::{
    Document, KeyEntry, Mention, PartnerEntry, Setting, WebhookEntry, parse as parse_document,
};
pub use written::WrittenProfile;
