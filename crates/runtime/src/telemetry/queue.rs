//! Queues log lines for a thread that writes them, so that no caller waits for the reader of stderr.
//!
//! If the queue is full, further lines are dropped and counted. After the reader has caught up, one line reports their number.

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes of lines that wait for the writer: about 10,000 requests.
pub(super) const CAPACITY: usize = 4 * 1024 * 1024;
/// Bytes that each of the two buffers keeps after a burst.
const KEPT_BYTES: usize = 64 * 1024;
/// Pause before another write to a stderr that is non-blocking and full.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

thread_local! {
    /// Whether this thread writes the lines. Its own lines are never dropped, because one of them reports the dropped lines.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// A bounded queue of lines. Cheap to clone.
#[derive(Clone)]
pub(super) struct LogQueue(Arc<Shared>);

struct Shared {
    /// The maximum of [`State::waiting`], in bytes.
    capacity: usize,
    state: Mutex<State>,
    /// Wakes the writer after a line was added.
    added: Condvar,
    /// Wakes [`LogQueue::drain`] after every line was written.
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    /// Whole lines that the writer has not taken yet.
    waiting: Vec<u8>,
    /// Lines dropped since the last report.
    dropped: u64,
    /// Whether the writer has taken lines that are not written yet.
    is_writing: bool,
}

impl LogQueue {
    /// Starts the thread that writes the lines to `out`. The thread calls `report` with the number of dropped lines.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        capacity: usize,
        report: impl Fn(&Self, u64) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Self(Arc::new(Shared {
            capacity,
            state: Mutex::default(),
            added: Condvar::new(),
            emptied: Condvar::new(),
        }));
        let writer = queue.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.run(out, report))?;
        Ok(queue)
    }

    /// Waits until every line was written, for `timeout` at most.
    pub(super) fn drain(&self, timeout: Duration) {
        let is_busy = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        let state = self.state();
        drop(self.0.emptied.wait_timeout_while(state, timeout, is_busy));
    }

    /// Adds a line, or drops it if the queue is full. Never waits for the writer.
    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        let size = state.waiting.len().saturating_add(line.len());
        if size > self.0.capacity && !IS_WRITER.get() {
            state.dropped = state.dropped.saturating_add(1);
            drop(state);
            instruments::log::dropped(1);
            return;
        }
        state.waiting.extend_from_slice(line);
        drop(state);
        self.0.added.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut out: impl Write, report: impl Fn(&Self, u64)) {
        IS_WRITER.set(true);
        let mut lines = Vec::new();
        // Whether the last write that succeeded ended within a line.
        let mut is_torn = false;
        loop {
            self.take(&mut lines);
            let ended = match is_torn {
                true => write_whole(&mut out, b"\n").is_ok(),
                false => true,
            };
            is_torn &= !ended;
            let written = match ended {
                true => write_whole(&mut out, &lines),
                false => Err(lines.as_slice()),
            };
            match written {
                Ok(()) => {
                    let dropped = mem::take(&mut self.state().dropped);
                    if dropped > 0 {
                        report(self, dropped);
                    }
                }
                // Nothing is reported before a write succeeds.
                Err(unwritten) => {
                    let written = lines.len().saturating_sub(unwritten.len());
                    let last = written.checked_sub(1).and_then(|at| lines.get(at));
                    is_torn |= last.is_some_and(|byte| *byte != b'\n');
                    self.count_unwritten(unwritten);
                }
            }
        }
    }

    /// Waits for lines and takes them in exchange for the buffer of written lines.
    fn take(&self, lines: &mut Vec<u8>) {
        lines.clear();
        lines.shrink_to(KEPT_BYTES);
        let mut state = self.state();
        state.is_writing = false;
        if state.waiting.is_empty() {
            self.0.emptied.notify_all();
        }
        let state = self
            .0
            .added
            .wait_while(state, |state| state.waiting.is_empty());
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut state.waiting, lines);
        state.is_writing = true;
    }

    fn count_unwritten(&self, lines: &[u8]) {
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let mut state = self.state();
        state.dropped = state.dropped.saturating_add(count);
        drop(state);
        instruments::log::dropped(count);
    }
}

impl Write for LogQueue {
    /// Takes one event. The subscriber writes each event as a whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all bytes. If that fails, returns the bytes that were not written.
fn write_whole<'b>(out: &mut impl Write, mut bytes: &'b [u8]) -> Result<(), &'b [u8]> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(written @ 1..) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_PAUSE),
            Ok(_) | Err(_) => return Err(bytes),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// A reader of the queue's lines. The test lets it read, or lets writes fail.
    struct Reader {
        written: Receiver<Vec<u8>>,
        allow: Sender<io::Result<()>>,
    }

    /// The end of the queue's thread. Each write waits until the test allows it.
    struct Out {
        written: Sender<Vec<u8>>,
        allowed: Receiver<io::Result<()>>,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.send(bytes.to_vec()).unwrap();
            self.allowed.recv().unwrap()?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Reader {
        /// The lines of the next write, which does not return yet.
        fn next(&self) -> String {
            String::from_utf8(self.written.recv_timeout(SOON).unwrap()).unwrap()
        }

        fn read(&self) {
            self.allow.send(Ok(())).unwrap();
        }
    }

    fn start(capacity: usize) -> (LogQueue, Reader) {
        let (written, lines) = mpsc::channel();
        let (allow, allowed) = mpsc::channel();
        let out = Out { written, allowed };
        let report = |queue: &LogQueue, lines: u64| {
            queue.push(format!("dropped {lines}\n").as_bytes());
        };
        let queue = LogQueue::start(out, capacity, report).unwrap();
        let reader = Reader {
            written: lines,
            allow,
        };
        (queue, reader)
    }

    // rule: program.log-never-blocks
    #[test]
    fn full_queue_drops_lines_and_reports_their_number_afterwards() {
        let (queue, reader) = start(12);
        queue.push(b"first\n");
        assert_eq!(reader.next(), "first\n");
        for line in ["second\n", "third\n", "4\n", "fifth\n"] {
            queue.push(line.as_bytes());
        }
        reader.read();
        assert_eq!(reader.next(), "second\n4\ndropped 2\n");
        queue.push(b"sixth\n");
        reader.read();
        assert_eq!(reader.next(), "sixth\n");
        reader.read();
        queue.drain(SOON);
    }

    // rule: program.log-never-blocks
    #[test]
    fn drain_waits_for_the_last_line_and_no_longer_than_its_timeout() {
        let (queue, reader) = start(CAPACITY);
        queue.drain(SOON);
        queue.push(b"last\n");
        assert_eq!(reader.next(), "last\n");
        queue.drain(Duration::from_millis(20));
        reader.read();
        queue.drain(SOON);
        assert!(!queue.state().is_writing, "every line was written");
    }

    // rule: program.log-never-blocks
    #[test]
    fn lines_of_failed_writes_are_reported_after_a_write_succeeds() {
        let (queue, reader) = start(CAPACITY);
        queue.push(b"one\ntwo\n");
        reader.next();
        let full = io::Error::from(ErrorKind::StorageFull);
        reader.allow.send(Err(full)).unwrap();
        queue.drain(SOON);
        queue.push(b"three\n");
        assert_eq!(reader.next(), "three\n");
        let interrupted = io::Error::from(ErrorKind::Interrupted);
        reader.allow.send(Err(interrupted)).unwrap();
        assert_eq!(reader.next(), "three\n");
        reader.read();
        assert_eq!(reader.next(), "dropped 2\n");
        reader.read();
        queue.drain(SOON);
    }
}
