//! The commands, one file each.

pub(crate) mod apply;
pub(crate) mod balance;
mod credit;
pub(crate) mod crypto;
pub(crate) mod key;
pub(crate) mod sandbox;
pub(crate) mod verify;
