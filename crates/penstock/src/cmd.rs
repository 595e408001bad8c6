//! The commands. A file has one command, or those that share their work.

pub(crate) mod apply;
pub(crate) mod clock;
pub(crate) mod completions;
pub(crate) mod credit;
pub(crate) mod export;
pub(crate) mod key;
pub(crate) mod master_key;
pub(crate) mod migrate;
pub(crate) mod sandbox;
pub(crate) mod verify;
pub(crate) mod webhook;
