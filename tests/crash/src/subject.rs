//! What is put to the proof: one service with its partners, and what they know of it.

use std::net::SocketAddr;

use crate::Result;
use crate::caller::Caller;
use crate::history::{Op, Wanted};
use crate::linear::Checked;
use crate::programs::Installation;
use crate::receiver::Receiver;

pub(crate) trait Subject: Sync {
    /// Where it is installed.
    fn installation(&self) -> &Installation;

    /// Who takes its events.
    fn receiver(&self) -> &Receiver;

    /// A request that it answers with 200 once it is up.
    fn greeting(&self) -> Vec<u8>;

    /// A client does something.
    fn visit(&self, caller: &mut Caller<'_>, chance: &mut fastrand::Rng);

    /// The operator does something meanwhile.
    fn operate(&self, chance: &mut fastrand::Rng) -> Option<Op>;

    /// So many clients close at random bytes and instants. What they may have done to things that others meet on is
    /// answered: a history without it would be no history.
    fn rage(&self, address: SocketAddr, disconnects: u64, seed: u64) -> Vec<Op>;

    /// Clients meet on nothing any more that they have met on so far.
    fn turn_the_page(&self);

    /// Retries whatever has no end, under its own key, until it has one; how much that was.
    fn converge(&self, address: SocketAddr) -> Result<u64>;

    /// Compares everything new, or with `all` everything there is; every breach is named.
    fn judge(&self, address: SocketAddr, all: bool) -> Result<Vec<String>>;

    /// Brings everything that is under way to its end; what has none.
    fn end_all(&self, address: SocketAddr) -> Result<Vec<String>>;

    /// Waits for the events of everything that has ended; what is wrong with them.
    fn events(&self, address: SocketAddr) -> Result<Vec<String>>;

    /// Is this history what one client after another could have seen?
    fn linear(&self, ops: &[Op]) -> Checked;

    /// What its histories have to show to count.
    fn wanted(&self) -> Wanted;

    /// What has been made so far.
    fn figures(&self) -> Vec<(&'static str, u64)>;
}
