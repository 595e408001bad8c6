//! Limits of a batch queue.

/// Limits of a batch queue.
#[derive(Debug, Clone, Copy)]
pub struct BatchQueueOptions {
    /// The queue's name in logs, metrics and traces.
    pub name: &'static str,
    /// Commands in one transaction, at most.
    pub max_batch: usize,
    /// Commands that may wait. A further command is refused immediately.
    pub queue: usize,
    /// Commands of one partner that may wait while the partner's row is locked. A further command is refused immediately.
    pub max_held: usize,
    /// Partners whose locks may be waited for at the same time, each on a connection of its own.
    pub separate_runs: usize,
    /// Whether a command may run again after a run that panicked and may have committed. Set it only for commands that
    /// find what an earlier run of them has written.
    pub repeatable: bool,
}

impl BatchQueueOptions {
    /// At most 64 commands in a batch and 1,024 waiting, which is about a quarter of a second's work. A partner whose row
    /// is locked may have a quarter of the queue.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            max_batch: 64,
            queue: 1024,
            max_held: 256,
            separate_runs: 2,
            repeatable: false,
        }
    }

    /// The same limits for commands that find what an earlier run of them has written.
    #[must_use]
    pub const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}
