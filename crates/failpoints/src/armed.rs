//! Armed: what happens at a point is told by `FAILPOINTS`, read when the first point is reached.
//!
//! `FAILPOINTS=TradeInsert.after=5*off->1*return(abort)` lets the point pass five times and ends
//! the process at the sixth. The words are `abort`, `fail`, `full` (a full disk) and `wait MS`.

use std::io::{self, Write as _};
use std::process;
use std::sync::LazyLock;
use std::time::Duration;

use crate::{Broken, Fault, Side, Step, Torn};

/// Runs a step between its two points.
pub async fn around<F>(step: Step, work: F) -> F::Output
where
    F: Future<Output: Broken>,
{
    if let Some(fault) = reached(step, Side::Before).await {
        return Broken::broken(fault);
    }
    let answer = work.await;
    match reached(step, Side::After).await {
        Some(fault) => Broken::broken(fault),
        None => answer,
    }
}

/// Is an answer of so many bytes to be torn? Who asks can wait for nothing, so a `wait` holds up
/// its thread.
#[must_use]
pub fn torn(bytes: usize) -> Option<Torn> {
    let sides = [(Side::Before, 0), (Side::After, bytes / 2)];
    sides
        .into_iter()
        .find_map(|(side, bytes)| match act(Step::AnswerWrite, side)? {
            Act::Abort => Some(Torn {
                bytes,
                end: || process::abort(),
            }),
            Act::Fail(_) => Some(Torn {
                bytes,
                end: || io::ErrorKind::ConnectionReset.into(),
            }),
            Act::Wait(span) => {
                std::thread::sleep(span);
                None
            }
        })
}

async fn reached(step: Step, side: Side) -> Option<Fault> {
    match act(step, side)? {
        Act::Abort => process::abort(),
        Act::Fail(fault) => Some(fault),
        Act::Wait(span) => {
            tokio::time::sleep(span).await;
            None
        }
    }
}

enum Act {
    Abort,
    Fail(Fault),
    Wait(Duration),
}

impl Act {
    fn parse(word: &str, step: Step) -> Option<Self> {
        Some(match word {
            "abort" => Self::Abort,
            "fail" if step.is_commit() => Self::Fail(Fault::InDoubt),
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
fn act(step: Step, side: Side) -> Option<Act> {
    LazyLock::force(&ARMED);
    let point = step.point(side);
    let word = fail::eval(&point, Option::unwrap_or_default)?;
    say(&format!("failpoint {point} {word}"));
    match Act::parse(&word, step) {
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
    let known = Step::ALL.iter().any(|step| {
        [Side::Before, Side::After]
            .map(|side| step.point(side))
            .contains(&point.to_owned())
    });
    if !known {
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
