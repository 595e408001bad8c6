//! The declarative file and what makes the database agree with it.
//!
//! Reading a file gives a [`Document`] or every fault in it at once. Each table of the file stands
//! for itself: one that is written replaces what it names wholly, one that is left out changes
//! nothing, so a partner, a pool or a key is never taken away by a file that does not mention it.
//! [`apply`] carries a document out. This is the only crate that knows the entries of both products.

pub mod apply;
mod changes;
mod document;
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
