//! How far long work is: one line on stderr, where that is a terminal, gone when it is done.

use std::time::Duration;

use indicatif::ProgressBar;

/// How often the line moves although nothing was said.
const TICK: Duration = Duration::from_millis(100);

/// The line, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Begins to tell. Where stderr is no terminal, nobody is told.
    pub(crate) fn begin(line: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(line);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Tells nobody.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Says something else.
    pub(crate) fn say(&self, line: String) {
        self.0.set_message(line);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
