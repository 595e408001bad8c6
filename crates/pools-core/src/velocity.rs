//! The rolling notional cap: a running total that forgets what has left the window.
//!
//! The total is exact at every instant and costs a constant amount of work per trade: each
//! trade is added once when it is made and subtracted once when it leaves the window, or when
//! it is released or fails while it still counts.

use std::time::Duration;

use kernel::Timestamp;

/// A partner's running total, in units of 10^-8 USDT.
///
/// It counts the trades with `created_at > floor` that are neither released nor failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Velocity {
    /// The sum of what counts. Kept in 128 bits: a partner without a cap may pass 64.
    pub total: i128,
    /// Trades made at or before this instant are no longer in the total.
    pub floor: Timestamp,
}

/// The instant the window starts after: a trade counts while `created_at > now − window`.
#[must_use]
pub fn cutoff(now: Timestamp, window: Duration) -> Timestamp {
    now.minus(window)
}

impl Velocity {
    /// A partner without trades.
    #[must_use]
    pub const fn new(floor: Timestamp) -> Self {
        Self { total: 0, floor }
    }

    /// Moves the floor to a new cutoff. `between` holds the notional of every counting trade with
    /// `created_at` after the lower and up to the upper of floor and cutoff: they leave the total
    /// as the window moves on, and come back to it where the operator has lengthened the window.
    #[must_use]
    pub fn slide(&self, cutoff: Timestamp, between: &[i64]) -> Self {
        let crossed: i128 = between.iter().map(|notional| i128::from(*notional)).sum();
        let total = if cutoff >= self.floor {
            self.total.saturating_sub(crossed)
        } else {
            self.total.saturating_add(crossed)
        };
        Self {
            total,
            floor: cutoff,
        }
    }

    /// The total with one more trade; `None` where it would pass the cap. Reaching it is allowed.
    #[must_use]
    pub fn admit(&self, notional: i64, cap: Option<i64>) -> Option<Self> {
        let total = self.total.saturating_add(i128::from(notional));
        cap.is_none_or(|cap| total <= i128::from(cap))
            .then_some(Self { total, ..*self })
    }

    /// The total without a trade that was released or has failed, if it still counted.
    #[must_use]
    pub fn forget(&self, notional: i64, created_at: Timestamp) -> Self {
        let counted = created_at > self.floor;
        let total = if counted {
            self.total.saturating_sub(i128::from(notional))
        } else {
            self.total
        };
        Self { total, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Act {
        Pass(u32),
        Trade(i64),
        Fail(usize),
        Window(u32),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..5_000_u32).prop_map(Act::Pass),
            (1..1_000_i64).prop_map(Act::Trade),
            (0..64_usize).prop_map(Act::Fail),
            (1..20_000_u32).prop_map(Act::Window),
        ]
    }

    struct Made {
        at: Timestamp,
        notional: i64,
        counts: bool,
    }

    proptest! {
        /// The running total equals the plain sum over the window, whatever happens.
        // rule: pools.velocity.given-back, pools.velocity.window
        #[test]
        fn the_running_total_is_the_plain_sum(acts in prop::collection::vec(act(), 1..200)) {
            let mut now = Timestamp::from_millis(1_000_000).unwrap();
            let mut window = Duration::from_millis(10_000);
            let mut velocity = Velocity::new(cutoff(now, window));
            let mut made: Vec<Made> = Vec::new();
            for act in acts {
                match act {
                    Act::Pass(millis) => now = now.plus(Duration::from_millis(millis.into())),
                    Act::Window(millis) => window = Duration::from_millis(millis.into()),
                    Act::Fail(which) => if let Some(trade) = made.get_mut(which).filter(|trade| trade.counts) {
                        trade.counts = false;
                        velocity = velocity.forget(trade.notional, trade.at);
                    },
                    Act::Trade(notional) => {
                        let cutoff = cutoff(now, window);
                        let (low, high) = (cutoff.min(velocity.floor), cutoff.max(velocity.floor));
                        let between: Vec<i64> = made.iter().filter(|t| t.counts && t.at > low && t.at <= high).map(|t| t.notional).collect();
                        velocity = velocity.slide(cutoff, &between);
                        let plain: i128 = made.iter().filter(|t| t.counts && t.at > cutoff).map(|t| i128::from(t.notional)).sum();
                        prop_assert_eq!(velocity.total, plain);
                        if let Some(admitted) = velocity.admit(notional, Some(5_000)) {
                            prop_assert!(plain + i128::from(notional) <= 5_000);
                            velocity = admitted;
                            made.push(Made { at: now, notional, counts: true });
                        } else {
                            prop_assert!(plain + i128::from(notional) > 5_000);
                        }
                    }
                }
            }
        }
    }
}
