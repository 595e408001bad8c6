//! The progress of long work: one line on stderr if stderr is a terminal, removed at the end.

use std::time::Duration;

use indicatif::ProgressBar;

/// How often the line is drawn again without a new text.
const TICK: Duration = Duration::from_millis(100);

/// A progress line. Dropping it removes the line.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows a progress line, unless stderr is not a terminal.
    pub(crate) fn begin(line: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(line);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Shows nothing.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Changes the text.
    pub(crate) fn say(&self, line: String) {
        self.0.set_message(line);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
