//! Armed: what happens at a point is told by `FAILPOINTS`, read when the first point is reached.
//!
//! `FAILPOINTS=TradeInsert.after=5*off->1*return(abort)` lets the point pass five times and ends
//! the process at the sixth. The words are `abort`, `panic`, `fail`, `full` (a full disk) and
//! `wait MS`. A handler's points are called by its route: `GET /v1/pools.before`.

use std::io::{self, Write as _};
use std::process;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use super::{Fault, FromInjectedFault, Side, Step, TruncatedResponse};

/// Runs a step between its two points.
pub async fn around<F>(step: Step, work: F) -> F::Output
where
    F: Future<Output: FromInjectedFault>,
{
    if let Some(fault) = reached(step, Side::Before).await {
        return FromInjectedFault::broken(fault);
    }
    let answer = work.await;
    match reached(step, Side::After).await {
        Some(fault) => FromInjectedFault::broken(fault),
        None => answer,
    }
}

/// A handler's two points.
#[derive(Debug)]
pub struct Handler(String);

impl Handler {
    /// Of the handler behind this route: a method, a space and a path.
    #[must_use]
    pub fn of(route: impl FnOnce() -> String) -> Self {
        Self(route())
    }

    /// Answers between the points. A handler can panic or be held up; whatever it answers is an
    /// answer, so that it cannot fail.
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

/// Is an answer of so many bytes to be torn? Who asks can wait for nothing, so a `wait` holds up
/// its thread.
#[must_use]
pub fn torn(bytes: usize) -> Option<TruncatedResponse> {
    let sides = [(Side::Before, 0), (Side::After, bytes / 2)];
    sides.into_iter().find_map(
        |(side, bytes)| match act(&Step::AnswerWrite.point(side), false)? {
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

async fn reached(step: Step, side: Side) -> Option<Fault> {
    match act(&step.point(side), step.is_commit())? {
        Act::Abort => process::abort(),
        Act::Fail(fault) => Some(fault),
        Act::Wait(span) => {
            tokio::time::sleep(span).await;
            None
        }
    }
}

/// What the process takes an instant of the machine's clock for: `FAILPOINTS_CLOCK` says how many
/// milliseconds it is ahead, or behind where that is negative.
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
            "FAILPOINTS_CLOCK: `{text}` is no number of milliseconds"
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

/// What the test has asked for at this point, said aloud so that it knows the point was reached.
#[expect(clippy::panic, reason = "a test has asked for one")]
fn act(point: &str, commit: bool) -> Option<Act> {
    LazyLock::force(&ARMED);
    let word = fail::eval(point, Option::unwrap_or_default)?;
    say(&format!("failpoint {point} {word}"));
    if word == "panic" {
        panic!("a test has asked for it");
    }
    match Act::parse(&word, commit) {
        Some(act) => Some(act),
        None => refuse(&format!("{point}: `{word}` is no word of a failpoint")),
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
    let sides = [Side::Before, Side::After];
    let is_step = |step: &Step| sides.iter().any(|side| step.point(*side) == point);
    // Which routes there are is not known here; a test sees that its point was reached.
    let is_route = point.contains(" /");
    if !is_route && !Step::ALL.iter().any(is_step) {
        return Err(format!("no point is called `{point}`"));
    }
    fail::cfg(point, actions)
}

/// A test that asks for what there is not must not pass.
fn refuse(line: &str) -> ! {
    say(line);
    process::exit(2)
}

fn say(line: &str) {
    // Whoever started the program may have stopped reading.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
