//! Choices that a seed decides.

use acceptance::Seeded;

/// A stream of choices: the same for the same seed.
#[derive(Debug)]
pub(crate) struct Dice(Seeded);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Seeded::new(seed))
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: usize) -> usize {
        (self.0.next() % bound as u64) as usize
    }

    /// A number of this range, both ends included.
    pub(crate) fn between(&self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as usize + 1) as i64
    }

    /// True once in so many times.
    pub(crate) fn one_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub(crate) fn pick<'t, T>(&self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len())]
    }

    /// An owned text of these.
    pub(crate) fn word(&self, list: &[&str]) -> String {
        (*self.pick(list)).to_owned()
    }
}
