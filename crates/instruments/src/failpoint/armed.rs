//! The build with failpoints. `FAILPOINTS`, read when the first point is reached, says what happens at each point.
//!
//! `FAILPOINTS=trade.insert.after=5*off->1*return(abort)` passes the point five times and ends the process at the sixth. The
//! actions are `abort`, `panic`, `fail`, `full` (a full disk) and `wait MS`. The name of a handler's point is its route: `GET
//! /v1/pools.before`.

use std::io::{self, Write as _};
use std::process;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use super::{Fault, FromInjectedFault, RESPONSE_WRITE, Side, TruncatedResponse};

/// Runs a step between its two points.
pub async fn around<F>(step: &'static str, work: F) -> F::Output
where
    F: Future<Output: FromInjectedFault>,
{
    between(step, work).await
}

/// Runs the commit of a transaction between its two points, `trade_apply.commit.before` and `trade_apply.commit.after`.
pub async fn around_commit<F>(transaction: &str, work: F) -> F::Output
where
    F: Future<Output: FromInjectedFault>,
{
    between(&format!("{transaction}{COMMIT}"), work).await
}

/// The end of the names of commits: a fault leaves open whether the commit happened.
const COMMIT: &str = ".commit";

async fn between<F>(step: &str, work: F) -> F::Output
where
    F: Future<Output: FromInjectedFault>,
{
    if let Some(fault) = reached(step, Side::Before).await {
        return FromInjectedFault::broken(fault);
    }
    let output = work.await;
    match reached(step, Side::After).await {
        Some(fault) => FromInjectedFault::broken(fault),
        None => output,
    }
}

/// The two points of a handler.
#[derive(Debug)]
pub struct Handler(String);

impl Handler {
    /// The points of the handler of this route: a method, a space and a path.
    #[must_use]
    pub fn of(route: impl FnOnce() -> String) -> Self {
        Self(route())
    }

    /// Runs the handler between its points. The points can panic or delay, but not fail: every response of a handler counts as a
    /// response.
    pub async fn answers<F: Future>(self, work: F) -> F::Output {
        self.reached(Side::Before).await;
        let answer = work.await;
        self.reached(Side::After).await;
        answer
    }

    async fn reached(&self, side: Side) {
        let point = side.of(&self.0);
        match act(&point, false) {
            Some(Act::Wait(span)) => tokio::time::sleep(span).await,
            Some(Act::Abort) => process::abort(),
            Some(Act::Fail(_)) => refuse(&format!("{point}: a handler does not fail")),
            None => {}
        }
    }
}

/// Returns where to truncate a response of `bytes` bytes, or `None`. The caller is not async, so `wait` blocks its thread.
#[must_use]
pub fn torn(bytes: usize) -> Option<TruncatedResponse> {
    let sides = [(Side::Before, 0), (Side::After, bytes / 2)];
    sides.into_iter().find_map(
        |(side, bytes)| match act(&side.of(&RESPONSE_WRITE), false)? {
            Act::Abort => Some(TruncatedResponse {
                bytes,
                end: || process::abort(),
            }),
            Act::Fail(_) => Some(TruncatedResponse {
                bytes,
                end: || io::ErrorKind::ConnectionReset.into(),
            }),
            Act::Wait(span) => {
                std::thread::sleep(span);
                None
            }
        },
    )
}

async fn reached(step: &str, side: Side) -> Option<Fault> {
    match act(&side.of(&step), step.ends_with(COMMIT))? {
        Act::Abort => process::abort(),
        Act::Fail(fault) => Some(fault),
        Act::Wait(span) => {
            tokio::time::sleep(span).await;
            None
        }
    }
}

/// Returns the process's view of an instant of the machine's clock. `FAILPOINTS_CLOCK` is the offset in milliseconds, negative if
/// the process is behind.
#[must_use]
pub fn by_own_clock(now: SystemTime) -> SystemTime {
    let span = Duration::from_millis(AHEAD.unsigned_abs());
    let skewed = if *AHEAD < 0 {
        now.checked_sub(span)
    } else {
        now.checked_add(span)
    };
    skewed.unwrap_or(now)
}

static AHEAD: LazyLock<i64> = LazyLock::new(|| {
    let text = std::env::var("FAILPOINTS_CLOCK").unwrap_or_else(|_| "0".to_owned());
    match text.parse() {
        Ok(millis) => millis,
        Err(_) => refuse(&format!(
            "FAILPOINTS_CLOCK: `{text}` is not a number of milliseconds"
        )),
    }
});

enum Act {
    Abort,
    Fail(Fault),
    Wait(Duration),
}

impl Act {
    fn parse(word: &str, commit: bool) -> Option<Self> {
        Some(match word {
            "abort" => Self::Abort,
            "fail" if commit => Self::Fail(Fault::InDoubt),
            "fail" => Self::Fail(Fault::Failed),
            "full" => Self::Fail(Fault::DiskFull),
            wait => {
                let millis = wait.strip_prefix("wait ")?.parse().ok()?;
                Self::Wait(Duration::from_millis(millis))
            }
        })
    }
}

/// Returns the action that the test armed at this point. Prints it, so that the test sees that the point was reached.
#[expect(clippy::panic, reason = "a test armed the panic")]
fn act(point: &str, commit: bool) -> Option<Act> {
    LazyLock::force(&ARMED);
    let word = fail::eval(point, Option::unwrap_or_default)?;
    say(&format!("failpoint {point} {word}"));
    if word == "panic" {
        panic!("a test armed a panic at this failpoint");
    }
    match Act::parse(&word, commit) {
        Some(act) => Some(act),
        None => refuse(&format!(
            "{point}: `{word}` is not an action of a failpoint"
        )),
    }
}

static ARMED: LazyLock<()> = LazyLock::new(|| {
    let text = std::env::var("FAILPOINTS").unwrap_or_default();
    for entry in text.split(';').filter(|entry| !entry.is_empty()) {
        if let Err(fault) = arm(entry) {
            refuse(&format!("FAILPOINTS: {entry}: {fault}"));
        }
    }
});

fn arm(entry: &str) -> Result<(), String> {
    let (point, actions) = entry.split_once('=').ok_or("expected NAME=ACTIONS")?;
    // The names are at the calls, so an unknown step is not noticed here. A test checks that its point was reached.
    let is_point = [".before", ".after"]
        .iter()
        .any(|side| point.ends_with(side));
    if !is_point {
        return Err(format!("`{point}` does not end with `.before` or `.after`"));
    }
    fail::cfg(point, actions)
}

/// Ends the program, because a test with a wrong failpoint must not pass.
fn refuse(line: &str) -> ! {
    say(line);
    process::exit(2)
}

fn say(line: &str) {
    // The parent process may have closed the pipe, so a failed write is ignored.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
