//! Choices that depend on a seed only.

use acceptance::Seeded;

/// A stream of choices that depends on its seed only.
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

    /// A number of this range, inclusive at both ends.
    pub(crate) fn between(&self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as usize + 1) as i64
    }

    /// True with a chance of one in `n`.
    pub(crate) fn one_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these items.
    pub(crate) fn pick<'t, T>(&self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len())]
    }

    /// An owned copy of one of these texts.
    pub(crate) fn word(&self, list: &[&str]) -> String {
        (*self.pick(list)).to_owned()
    }

    /// One of these words, which spaces separate.
    pub(crate) fn among(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.word(&words)
    }
}
