//! The service under test with its partners, and what their clients observed.

use std::net::SocketAddr;

use crate::Result;
use crate::caller::Caller;
use crate::history::{Op, Wanted};
use crate::linear::Checked;
use crate::programs::Installation;
use crate::receiver::Receiver;

pub(crate) trait Subject: Sync {
    fn installation(&self) -> &Installation;

    /// The receiver of its events.
    fn receiver(&self) -> &Receiver;

    /// A request with the response 200 from a running service.
    fn greeting(&self) -> Vec<u8>;

    /// Lets a client do one operation.
    fn visit(&self, caller: &mut Caller<'_>, chance: &mut fastrand::Rng);

    /// Lets the operator do one operation.
    fn operate(&self, chance: &mut fastrand::Rng) -> Option<Op>;

    /// Changes the settings of the next start, as the operator may between two starts.
    fn reconfigure(&self, chance: &mut fastrand::Rng);

    /// Restores the settings without which something that is in progress cannot end, for the next start.
    fn restore(&self);

    /// Lets a number of clients close at random bytes and instants. Returns operations on shared objects, without which the history
    /// would be incomplete.
    fn rage(&self, address: SocketAddr, disconnects: u64, seed: u64) -> Vec<Op>;

    /// Replaces the shared objects of clients by new ones.
    fn start_new_history(&self);

    /// Retries every operation with an unknown outcome under its own key until it is known. Returns their number.
    fn converge(&self, address: SocketAddr) -> Result<u64>;

    /// Compares everything new, or with `all` everything there is. Returns every breach.
    fn judge(&self, address: SocketAddr, all: bool) -> Result<Vec<String>>;

    /// Ends everything that is in progress. Returns what did not end.
    fn end_all(&self, address: SocketAddr) -> Result<Vec<String>>;

    /// Waits for the events of everything that has ended. Returns the breaches.
    fn events(&self, address: SocketAddr) -> Result<Vec<String>>;

    /// Checks whether a history is linearizable.
    fn linear(&self, ops: &[Op]) -> Checked;

    /// What its histories must contain to count.
    fn wanted(&self) -> Wanted;

    /// Counts of what was created so far.
    fn figures(&self) -> Vec<(&'static str, u64)>;
}
