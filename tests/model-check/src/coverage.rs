//! What a check has covered over all its scenes: every call cut off by a crash, every call failed in each way, every response.
//! A run that misses one of these did not check it and fails.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ports::{Call, Fault};
use crate::request::{Ask, Said};

/// A step at which a request or a worker can be when a server dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// A use case, by its name, before a call.
    Request(&'static str, Call),
    /// A worker before it posts a claimed delivery.
    Post,
    /// A worker before it reports.
    Report,
}

const USES: [&str; 5] = ["Transact", "Reject", "Read", "Poll", "Credit"];

/// The name of a request's use case.
pub(crate) const fn use_case(ask: Ask) -> &'static str {
    match ask {
        Ask::Transact { .. } => "Transact",
        Ask::Reject { .. } => "Reject",
        Ask::Read { .. } => "Read",
        Ask::Poll { .. } => "Poll",
        Ask::Credit => "Credit",
    }
}

impl Point {
    fn all() -> impl Iterator<Item = Self> {
        let requests = USES
            .iter()
            .flat_map(|own| Call::ALL.iter().map(|call| Self::Request(own, *call)));
        requests.chain([Self::Post, Self::Report])
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(own, call) => write!(f, "{own} before {call:?}"),
            Self::Post | Self::Report => write!(f, "Worker before {self:?}"),
        }
    }
}

/// A set of up to 64 items. Adding a present item costs only a read, because it happens at every step.
struct Seen(AtomicU64);

impl Seen {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn add(&self, place: Option<usize>) {
        let bit = 1 << place.expect("everything that can come about is listed");
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn has(&self, place: usize) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << place) != 0
    }
}

static REACHED: Seen = Seen::new();
static CUT: Seen = Seen::new();
static WRONG: Seen = Seen::new();
static SAID: Seen = Seen::new();

fn faults() -> impl Iterator<Item = (Call, Fault)> {
    let of = |call: &'static Call| call.faults().iter().map(|fault| (*call, *fault));
    Call::ALL.iter().flat_map(of)
}

/// Records that a request or a worker continued from a point.
pub(crate) fn reached(point: Point) {
    REACHED.add(Point::all().position(|other| other == point));
}

/// Records that a crash ended a request or a worker at a point.
pub(crate) fn cut(point: Point) {
    CUT.add(Point::all().position(|other| other == point));
}

/// Records that a call failed.
pub(crate) fn wrong(call: Call, fault: Fault) {
    WRONG.add(faults().position(|other| other == (call, fault)));
}

/// Records a response to a client.
pub(crate) fn said(said: Said) {
    SAID.add(Said::ALL.iter().position(|other| *other == said));
}

/// Lists what was covered and what was not.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) shown: Vec<String>,
    pub(crate) missing: Vec<String>,
}

impl Report {
    pub(crate) fn of_the_run() -> Self {
        let mut report = Self::default();
        let points = Point::all().enumerate();
        for (place, point) in points.filter(|(place, _)| REACHED.has(*place)) {
            report.note(CUT.has(place), format!("crash: {point}"));
        }
        for (place, (call, fault)) in faults().enumerate() {
            report.note(WRONG.has(place), format!("fault: {call:?} {fault:?}"));
        }
        for (place, said) in Said::ALL.iter().enumerate() {
            report.note(SAID.has(place), format!("answer: {said:?}"));
        }
        report
    }

    fn note(&mut self, came_about: bool, what: String) {
        if came_about {
            self.shown.push(what);
        } else {
            self.missing.push(what);
        }
    }
}
