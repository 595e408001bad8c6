//! Rounds with kills until enough purchases, sales and swaps were paid in widgets.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::gate::{Gate, PAYMENTS};
use crate::kills::{self, Tally};

/// Payments in widgets that a run must make, and among them of each kind.
const MIN_PAYMENTS: u64 = 1_000;
const MIN_OF_KIND: u64 = 100;

/// Runs campaigns until there are enough payments. A run that has too few after all its rounds fails.
pub(crate) fn run(
    rounds: u64,
    campaign: u64,
    seed: u64,
    make: impl Fn(&Path, u64) -> Result<Gate>,
    tell: impl Fn(&Tally),
) -> Result<Tally> {
    let is_enough = |tally: &Tally| {
        tell(tally);
        lacks(&tally.made).is_empty()
    };
    let mut tally = kills::campaigns(rounds, campaign, seed, make, is_enough)?;
    let lacks = lacks(&tally.made);
    tally.demand(seed, lacks);
    Ok(tally)
}

/// The counts that are too low, one sentence each.
fn lacks(made: &BTreeMap<&'static str, u64>) -> Vec<String> {
    let counts = PAYMENTS.map(|(_, what)| (what, made.get(what).copied().unwrap_or_default()));
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut lacks = Vec::new();
    if all < MIN_PAYMENTS {
        let listed = counts.map(|(what, count)| format!("{count} {what}"));
        let listed = listed.join(", ");
        lacks.push(format!(
            "only {all} payments were made, and {MIN_PAYMENTS} are required: {listed}"
        ));
    }
    for (what, count) in counts {
        if count < MIN_OF_KIND {
            lacks.push(format!(
                "only {count} {what} were made, and {MIN_OF_KIND} are required"
            ));
        }
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_needs_enough_payments_and_enough_of_each_kind() {
        let found = |counts: [u64; 3]| {
            let kinds = PAYMENTS.map(|(_, what)| what);
            lacks(&kinds.into_iter().zip(counts).collect())
        };
        assert!(found([500, 400, 100]).is_empty());
        let few = found([500, 300, 199]);
        assert_eq!(
            few,
            [
                "only 999 payments were made, and 1000 are required: 500 purchases in widgets, 300 sales in widgets, 199 swaps in widgets"
            ]
        );
        let without_swaps = found([900, 400, 0]);
        assert_eq!(
            without_swaps,
            ["only 0 swaps in widgets were made, and 100 are required"]
        );
        assert_eq!(lacks(&BTreeMap::new()).len(), 4);
    }
}
