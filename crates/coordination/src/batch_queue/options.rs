//! How a lane works.

/// How a lane works.
#[derive(Debug, Clone, Copy)]
pub struct BatchQueueOptions {
    /// Names the lane in logs.
    pub name: &'static str,
    /// Commands in one transaction at most.
    pub max_batch: usize,
    /// Commands that may wait; one more is refused at once.
    pub queue: usize,
    /// Commands of one partner that may wait while the partner's row is locked; one more is refused at once.
    pub held: usize,
    /// Partners whose locks may be waited for at once, each on a connection of its own.
    pub aside: usize,
    /// May a command run again after a run that panicked and may have committed? Only commands that
    /// find what an earlier run of them has written.
    pub repeatable: bool,
}

impl BatchQueueOptions {
    /// At most 64 commands a batch, and 1,024 waiting: about a quarter of a second's work. A partner whose row is locked
    /// may have a quarter of that.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            max_batch: 64,
            queue: 1024,
            held: 256,
            aside: 2,
            repeatable: false,
        }
    }

    /// The same for commands that find what an earlier run of them has written.
    #[must_use]
    pub const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}
