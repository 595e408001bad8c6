//! The rolling notional cap: a running total over the velocity window.
//!
//! Each trade is added when it is created. It is subtracted when it leaves the window, or earlier when it is released
//! or fails. The floor of the total moves towards the start of the window in stored steps of bounded size, so the
//! total may lag.
//!
//! A lagging total is the exact sum of a longer window, and so an upper bound. If it does not admit a trade, the result
//! is [`DoesNotFit::Behind`], and the caller lets the floor catch up before it decides. Only an exact total refuses a
//! trade.

use std::cmp::Ordering;
use std::time::Duration;

use kernel::Timestamp;

/// A partner's running total, in units of 10^-8 USDT.
///
/// It counts the trades with `created_at > floor` that are neither released nor failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Velocity {
    /// The sum. It has 128 bits because a partner without a cap may exceed 64 bits.
    pub total: i128,
    /// The total excludes trades created at or before this instant.
    pub floor: Timestamp,
}

/// Maximum trades that one batch removes from a partner's total. Trades of the same millisecond as the last one are
/// removed in addition.
pub const BATCH_STEP: u32 = 500;

/// Maximum trades that one step of catching up reads. Trades of the same millisecond as the last one are read in
/// addition.
pub const STEP: u32 = 5_000;

/// The start of the window (exclusive): a trade counts while `created_at > now − window`.
#[must_use]
pub fn cutoff(now: Timestamp, window: Duration) -> Timestamp {
    now.minus(window)
}

/// The trades that one step has read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TradesRead {
    /// The notional of each trade that counts.
    pub notionals: Vec<i64>,
    /// The instant of the last trade read; `None` if the step has read all trades of its range.
    pub reached: Option<Timestamp>,
}

/// A running total with the oldest trades that it may count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedTrades {
    pub velocity: Velocity,
    /// The creation and the notional of the oldest trades after the floor, the oldest first. The notional of a released or failed trade
    /// is 0.
    pub oldest: Vec<(Timestamp, i64)>,
}

impl CountedTrades {
    /// The instant from which a trade fits under the cap if no other trade is created. `None` if the trade alone exceeds the cap.
    ///
    /// If more trades than those that were read must leave the window first, it is the instant at which the last of these leaves.
    #[must_use]
    pub fn fits_from(&self, notional: i64, cap: i64, window: Duration) -> Option<Timestamp> {
        if notional > cap {
            return None;
        }
        let total = self.velocity.total.saturating_add(i128::from(notional));
        let mut excess = total.saturating_sub(i128::from(cap));
        let mut last = self.velocity.floor;
        for (created_at, notional) in &self.oldest {
            if excess <= 0 {
                break;
            }
            excess = excess.saturating_sub(i128::from(*notional));
            last = *created_at;
        }
        Some(last.plus(window))
    }
}

/// The next step that moves a total's floor to the start of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatchUpStep {
    /// None: the total is exact.
    Nothing,
    /// The oldest trades after the floor leave the total.
    RemoveOldest,
    /// The newest trades up to the floor return to the total.
    AddNewest,
    /// The floor lags by more than a window. The total starts again from the newest trades.
    Restart,
}

/// Why a trade does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoesNotFit {
    /// The trade would exceed the cap.
    Exceeded,
    /// The trade would exceed the cap by a total that has not caught up with the window.
    Behind,
}

impl Velocity {
    /// The total of a partner without trades.
    #[must_use]
    pub const fn new(floor: Timestamp) -> Self {
        Self { total: 0, floor }
    }

    /// Moves the floor to a new cutoff.
    ///
    /// `between` has the notional of every counting trade created after the earlier and up to the later of floor and
    /// cutoff. These trades leave the total if the window moves on, and return to it if the operator has lengthened
    /// the window.
    #[must_use]
    pub fn slide(&self, cutoff: Timestamp, between: &[i64]) -> Self {
        let moved: i128 = between.iter().map(|notional| i128::from(*notional)).sum();
        let total = if cutoff >= self.floor {
            self.total.saturating_sub(moved)
        } else {
            self.total.saturating_add(moved)
        };
        Self {
            total,
            floor: cutoff,
        }
    }

    /// The next step of this total.
    #[must_use]
    pub fn next(&self, cutoff: Timestamp, window: Duration) -> CatchUpStep {
        match self.floor.cmp(&cutoff) {
            Ordering::Equal => CatchUpStep::Nothing,
            Ordering::Greater => CatchUpStep::AddNewest,
            Ordering::Less if self.floor < cutoff.minus(window) => CatchUpStep::Restart,
            Ordering::Less => CatchUpStep::RemoveOldest,
        }
    }

    /// Removes the oldest trades after the floor. A floor at or after the cutoff stays.
    #[must_use]
    pub fn remove_oldest(&self, cutoff: Timestamp, trades: &TradesRead) -> Self {
        if self.floor >= cutoff {
            return *self;
        }
        self.slide(trades.reached.unwrap_or(cutoff), &trades.notionals)
    }

    /// Adds the newest trades up to the floor.
    #[must_use]
    pub fn add_newest(&self, cutoff: Timestamp, trades: &TradesRead) -> Self {
        let before = |reached: Timestamp| reached.minus(Duration::from_millis(1));
        let floor = trades.reached.map_or(cutoff, before).max(cutoff);
        self.slide(floor, &trades.notionals)
    }

    /// The total of only the newest trades created up to `now`.
    #[must_use]
    pub fn restarted(now: Timestamp, cutoff: Timestamp, trades: &TradesRead) -> Self {
        Self::new(now).add_newest(cutoff, trades)
    }

    /// The total with one more trade. It may reach the cap but not exceed it (rule `pools.velocity.boundary`).
    ///
    /// # Errors
    /// [`DoesNotFit`] if the trade does not fit under the cap.
    pub fn admit(
        &self,
        notional: i64,
        cap: Option<i64>,
        cutoff: Timestamp,
    ) -> Result<Self, DoesNotFit> {
        let total = self.total.saturating_add(i128::from(notional));
        let admitted = Self { total, ..*self };
        let Some(cap) = cap else {
            return Ok(admitted);
        };
        match self.floor.cmp(&cutoff) {
            // The total lacks trades of the window.
            Ordering::Greater => Err(DoesNotFit::Behind),
            _ if total <= i128::from(cap) => Ok(admitted),
            Ordering::Less => Err(DoesNotFit::Behind),
            Ordering::Equal => Err(DoesNotFit::Exceeded),
        }
    }

    /// Removes a released or failed trade if it still counts.
    #[must_use]
    pub fn remove_trade(&self, notional: i64, created_at: Timestamp) -> Self {
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

    // rule: pools.velocity.retry-after
    #[test]
    fn amount_fits_as_soon_as_enough_trades_have_left() {
        let window = Duration::from_secs(60);
        let at = |millis: i64| Timestamp::from_millis(1_000_000 + millis).unwrap();
        let counted = CountedTrades {
            velocity: Velocity {
                total: 90,
                floor: at(0),
            },
            // The second trade was released.
            oldest: vec![(at(1), 30), (at(2), 0), (at(3), 40), (at(4), 20)],
        };
        for (notional, expected) in [
            (10, Some(at(0))),
            (11, Some(at(1))),
            (40, Some(at(1))),
            (41, Some(at(3))),
            (100, Some(at(4))),
            (101, None),
        ] {
            let found = counted.fits_from(notional, 100, window);
            assert_eq!(found, expected.map(|at| at.plus(window)), "{notional}");
        }
    }

    struct Made {
        at: Timestamp,
        notional: i64,
        counts: bool,
    }

    proptest! {
        /// The running total equals the sum over the window after every history.
        // rule: pools.velocity.given-back, pools.velocity.window
        #[test]
        fn running_total_equals_window_sum(acts in prop::collection::vec(act(), 1..200)) {
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
                        velocity = velocity.remove_trade(trade.notional, trade.at);
                    },
                    Act::Trade(notional) => {
                        let cutoff = cutoff(now, window);
                        let (low, high) = (cutoff.min(velocity.floor), cutoff.max(velocity.floor));
                        let between: Vec<i64> = made.iter().filter(|t| t.counts && t.at > low && t.at <= high).map(|t| t.notional).collect();
                        velocity = velocity.slide(cutoff, &between);
                        let plain: i128 = made.iter().filter(|t| t.counts && t.at > cutoff).map(|t| i128::from(t.notional)).sum();
                        prop_assert_eq!(velocity.total, plain);
                        if let Ok(admitted) = velocity.admit(notional, Some(5_000), cutoff) {
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

    /// The trades of a range, as a store reads them for one step.
    fn read(made: &[Made], (after, up_to): (Timestamp, Timestamp), newest: bool) -> TradesRead {
        const LIMIT: usize = 3;
        let within = |trade: &&Made| trade.at > after && trade.at <= up_to;
        let mut instants: Vec<Timestamp> = made.iter().filter(within).map(|t| t.at).collect();
        instants.sort_unstable();
        if newest {
            instants.reverse();
        }
        let reached = instants.get(LIMIT - 1).copied();
        let (low, high) = match (reached, newest) {
            (Some(reached), true) => (reached.minus(Duration::from_millis(1)), up_to),
            (Some(reached), false) => (after, reached),
            (None, _) => (after, up_to),
        };
        let counting = made
            .iter()
            .filter(|t| t.counts && t.at > low && t.at <= high);
        TradesRead {
            notionals: counting.map(|t| t.notional).collect(),
            reached,
        }
    }

    /// Runs one step of catching up.
    fn step(velocity: Velocity, made: &[Made], now: Timestamp, window: Duration) -> Velocity {
        let cutoff = cutoff(now, window);
        match velocity.next(cutoff, window) {
            CatchUpStep::Nothing => velocity,
            CatchUpStep::RemoveOldest => {
                velocity.remove_oldest(cutoff, &read(made, (velocity.floor, cutoff), false))
            }
            CatchUpStep::AddNewest => {
                velocity.add_newest(cutoff, &read(made, (cutoff, velocity.floor), true))
            }
            CatchUpStep::Restart => {
                Velocity::restarted(now, cutoff, &read(made, (cutoff, now), true))
            }
        }
    }

    proptest! {
        /// After each step the total is the sum of all trades after its floor, whatever trades are created, fail or
        /// leave the window between steps. The cap admits and refuses trades exactly as the sum over the window does.
        // rule: pools.velocity.bounded, pools.velocity.window, pools.velocity.given-back
        #[test]
        fn total_equals_plain_sum_when_steps_are_bounded(
            acts in prop::collection::vec((act(), any::<bool>()), 1..200),
            capped in any::<bool>(),
        ) {
            let cap = capped.then_some(5_000);
            let mut now = Timestamp::from_millis(1_000_000).unwrap();
            let mut window = Duration::from_millis(10_000);
            let mut velocity = Velocity::new(cutoff(now, window));
            let mut made: Vec<Made> = Vec::new();
            for (act, patient) in acts {
                match act {
                    Act::Pass(millis) => now = now.plus(Duration::from_millis(millis.into())),
                    Act::Window(millis) => window = Duration::from_millis(millis.into()),
                    Act::Fail(which) => if let Some(trade) = made.get_mut(which).filter(|trade| trade.counts) {
                        trade.counts = false;
                        velocity = velocity.remove_trade(trade.notional, trade.at);
                    },
                    Act::Trade(notional) => {
                        let cutoff = cutoff(now, window);
                        let plain: i128 = made.iter().filter(|t| t.counts && t.at > cutoff).map(|t| i128::from(t.notional)).sum();
                        let after = plain + i128::from(notional);
                        let mut decided = velocity.admit(notional, cap, cutoff);
                        // The total of a partner without a cap never lags and needs no step.
                        prop_assert!(capped || decided.is_ok());
                        while patient && decided == Err(DoesNotFit::Behind) {
                            velocity = step(velocity, &made, now, window);
                            decided = velocity.admit(notional, cap, cutoff);
                        }
                        match decided {
                            Ok(admitted) => {
                                prop_assert!(cap.is_none_or(|cap| after <= i128::from(cap)));
                                velocity = admitted;
                                made.push(Made { at: now, notional, counts: true });
                            }
                            Err(DoesNotFit::Exceeded) => prop_assert!(after > 5_000),
                            Err(DoesNotFit::Behind) => velocity = step(velocity, &made, now, window),
                        }
                    }
                }
                let sum: i128 = made.iter().filter(|t| t.counts && t.at > velocity.floor).map(|t| i128::from(t.notional)).sum();
                prop_assert_eq!(velocity.total, sum);
            }
        }
    }
}
