//! The commands, one file each.

pub(crate) mod apply;
pub(crate) mod balance;
pub(crate) mod clock;
pub(crate) mod completions;
mod credit;
pub(crate) mod crypto;
pub(crate) mod export;
pub(crate) mod key;
pub(crate) mod master_key;
pub(crate) mod sandbox;
pub(crate) mod verify;
pub(crate) mod webhook;
