//! Errors and broken invariants.

use kernel::StoreError;

use crate::registry::{Counters, MetricRegistry};
use crate::{metrics, record};

#[derive(Debug)]
pub(crate) struct Metrics {
    faults: Counters<1>,
    violations: Counters<1>,
    begun_anew: Counters<1>,
}

impl Metrics {
    pub(crate) fn new(book: &mut MetricRegistry) -> Self {
        let faults = book.counters(
            "penstock_store_faults_total",
            "Store errors, each counted once by its handler",
            ["kind"],
        );
        faults.begin(
            [
                "retry",
                "unavailable",
                "overloaded",
                "commit_unknown",
                "inconsistent",
                "guard",
                "unexpected",
            ]
            .map(|kind| [kind]),
        );
        // The name is older than the other names' prefix, and alerts depend on it.
        let violations = book.counters(
            "invariant_violations_total",
            "Broken invariants; a value other than 0 means a bug or a damaged database",
            ["kind"],
        );
        violations.begin(Violation::ALL.map(|violation| [violation.as_str()]));
        let begun_anew = book.counters(
            "penstock_background_restarts_total",
            "Restarts of background tasks after a panic",
            ["task"],
        );
        Self {
            faults,
            violations,
            begun_anew,
        }
    }
}

/// A broken invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A row has values that no rule writes.
    Inconsistent,
    /// The schema, or the number of rows a write changed, contradicts what the rules decided.
    Guard,
    /// The engine's report contradicts the settlement of a trade, or the verifier's the end of a verification.
    Contradiction,
    /// The transfer or event of a decided step could not be created.
    Undoable,
}

impl Violation {
    const ALL: [Self; 4] = [
        Self::Inconsistent,
        Self::Guard,
        Self::Contradiction,
        Self::Undoable,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Inconsistent => "inconsistent",
            Self::Guard => "guard",
            Self::Contradiction => "contradiction",
            Self::Undoable => "undoable",
        }
    }
}

/// Counts an error of the store. Call it once, at the place that handles the error.
pub fn of_store(error: &StoreError) {
    let Some(metrics) = metrics() else {
        return;
    };
    let (kind, broken) = match error {
        StoreError::Retry => ("retry", None),
        StoreError::Unavailable(_) => ("unavailable", None),
        StoreError::Overloaded => ("overloaded", None),
        StoreError::CommitUnknown(_) => ("commit_unknown", None),
        StoreError::Inconsistent { .. } => ("inconsistent", Some(Violation::Inconsistent)),
        StoreError::Guard(_) => ("guard", Some(Violation::Guard)),
        StoreError::Unexpected(_) => ("unexpected", None),
    };
    metrics.faults.faults.inc([kind]);
    if let Some(broken) = broken {
        violated(broken);
    }
}

/// Registers a background task.
pub fn supervised(task: &'static str) {
    record(|metrics| metrics.faults.begun_anew.begin([[task]]));
}

/// Counts a panic of a background task, which restarts.
pub fn begun_anew(task: &'static str) {
    record(|metrics| metrics.faults.begun_anew.inc([task]));
}

/// Counts a broken invariant.
pub fn violated(invariant: Violation) {
    record(|metrics| metrics.faults.violations.inc([invariant.as_str()]));
}
