//! Contingent credits (table `commitments`): the balance of an account plus what trades may still credit to it.
//!
//! The stored figure is an upper bound. Sales and credits add to it, and a recount lowers it. A recount reads the
//! trades that may still be credited, in slices of bounded size.
//!
//! Between two slices trades may open, settle, end or leave the return window. The result counts every trade that may
//! be credited at the end, and possibly a few that no longer may. If no trade changes during the recount, the result
//! is the exact sum.

use std::time::Duration;

use kernel::Timestamp;

use crate::usecases::poll_trade::RETURN_WINDOW;

/// Margin after the return window. A poll that claims a trade on its last day may apply the return later.
const MARGIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum trades of each kind in one slice. Trades of the same millisecond as the last one are read in addition.
pub const SLICE: u32 = 2_000;

/// The smallest difference between two instants.
const RESOLUTION: Duration = Duration::from_millis(1);

/// The progress of a recount.
///
/// A recount reads settled trades first, ordered by settlement, then reserved trades, ordered by creation. A trade that
/// was counted as reserved may settle later. The recount does not count it twice: settled trades that were created at
/// `reserved` or earlier add nothing. Each slice first reads the trades settled since the previous slice, then it
/// continues with reserved trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ended; `None` while it is running.
    pub ended_at: Option<Timestamp>,
    /// All trades settled at this instant or earlier have been read.
    pub settled: Timestamp,
    /// All trades created at this instant or earlier that were reserved have been read.
    pub reserved: Timestamp,
    /// The sum of what the trades read may credit, in units of 10^-8. It saturates at the maximum.
    pub total: i64,
}

/// The range of trades that a slice reads, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// Trades settled after `after` and up to `up_to`. Only trades created after `created_after` add to the amount.
    Settled {
        /// Only trades settled after this instant.
        after: Timestamp,
        /// Only trades settled at this instant or earlier.
        up_to: Timestamp,
        /// Trades created at this instant or earlier are counted already.
        created_after: Timestamp,
    },
    /// Reserved trades created after `after`.
    Reserved {
        /// Only trades created after this instant.
        after: Timestamp,
    },
}

/// The result of reading a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// The sum of what the trades may credit to the account, in units of 10^-8.
    pub amount: i128,
    /// The instant of the last trade read; `None` if all trades of the range were read.
    pub reached: Option<Timestamp>,
}

/// The outcome of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// Further slices are needed.
    More(Recount),
    /// All trades were read. The sum, in units of 10^-8.
    Counted(i128),
}

impl Recount {
    /// A recount that starts now.
    #[must_use]
    pub fn begin(now: Timestamp) -> Self {
        let settled = now.minus(RETURN_WINDOW).minus(MARGIN);
        Self {
            begun_at: now,
            ended_at: None,
            settled,
            reserved: Timestamp::from_millis(0).unwrap_or(settled),
            total: 0,
        }
    }

    /// The trades settled before the current millisecond. More trades may settle within it, so it is read separately.
    #[must_use]
    pub fn settled_range(&self, now: Timestamp) -> Range {
        Range::Settled {
            after: self.settled,
            up_to: now.minus(RESOLUTION),
            created_after: self.reserved,
        }
    }

    /// The trades settled in the current millisecond.
    #[must_use]
    pub fn latest_range(&self, now: Timestamp) -> Range {
        Range::Settled {
            after: now.minus(RESOLUTION),
            up_to: now,
            created_after: self.reserved,
        }
    }

    /// The trades that are still reserved.
    #[must_use]
    pub const fn reserved_range(&self) -> Range {
        Range::Reserved {
            after: self.reserved,
        }
    }

    /// Adds the settled trades of a slice. Returns `true` if the slice read all of them.
    #[must_use]
    pub fn with_settled(&self, read: &Amounts, now: Timestamp) -> (Self, bool) {
        let after = Self {
            settled: read
                .reached
                .unwrap_or(now.minus(RESOLUTION))
                .max(self.settled),
            total: self.total_with(read.amount),
            ..*self
        };
        (after, read.reached.is_none())
    }

    /// Adds the reserved trades, and the trades settled in the current millisecond. All trades settled earlier must
    /// be read.
    #[must_use]
    pub fn with_reserved(&self, latest: &Amounts, reserved: &Amounts, now: Timestamp) -> Slice {
        // A trade that opens later is created at `now` or later.
        let all = reserved.reached.is_none_or(|reached| reached >= now);
        if all && latest.reached.is_none_or(|reached| reached >= now) {
            let total = i128::from(self.total).saturating_add(latest.amount);
            return Slice::Counted(total.saturating_add(reserved.amount));
        }
        // Continuing now would move `reserved` past these trades, and a later slice would skip them as counted.
        if all || latest.amount > 0 || latest.reached.is_some() {
            return Slice::More(*self);
        }
        Slice::More(Self {
            reserved: reserved.reached.unwrap_or(self.reserved),
            total: self.total_with(reserved.amount),
            ..*self
        })
    }

    /// The finished recount.
    #[must_use]
    pub const fn ended(&self, now: Timestamp) -> Self {
        Self {
            ended_at: Some(now),
            ..*self
        }
    }

    fn total_with(&self, amount: i128) -> i64 {
        stored(i128::from(self.total).saturating_add(amount))
    }
}

/// The figure that is stored. A sum that does not fit is stored as the maximum, which means a full account.
#[must_use]
pub fn stored(total: i128) -> i64 {
    i64::try_from(total).unwrap_or(i64::MAX)
}

/// The stored figure after a recount: the lower one of the two upper bounds.
#[must_use]
pub fn lowered(before: Option<i64>, counted: i128) -> i64 {
    let counted = stored(counted);
    before.map_or(counted, |before| before.min(counted))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 3;

    /// A sale, whose return would credit the account.
    #[derive(Debug, Clone, Copy)]
    struct Sale {
        made: Timestamp,
        settled: Option<Timestamp>,
        amount: i128,
        over: bool,
    }

    #[derive(Debug, Clone)]
    enum Act {
        Pass(u32),
        Sell(u32),
        Settle(usize),
        End(usize),
        Return(usize),
        Slice,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            2 => (0..3_u32).prop_map(Act::Pass),
            1 => (0..3_000_000_000_u32).prop_map(Act::Pass),
            3 => (1..1_000_u32).prop_map(Act::Sell),
            4 => (0..64_usize).prop_map(Act::Settle),
            1 => (0..64_usize).prop_map(Act::End),
            1 => (0..64_usize).prop_map(Act::Return),
            6 => Just(Act::Slice),
        ]
    }

    #[derive(Default)]
    struct World {
        sales: Vec<Sale>,
        available: i128,
        bound: i64,
        recount: Option<Recount>,
    }

    impl World {
        fn plain(&self, now: Timestamp) -> i128 {
            let since = now.minus(RETURN_WINDOW).minus(MARGIN);
            let may = |sale: &&Sale| !sale.over && sale.settled.is_none_or(|at| at > since);
            let back: i128 = self.sales.iter().filter(may).map(|sale| sale.amount).sum();
            self.available + back
        }

        fn read(&self, range: Range) -> Amounts {
            let open = self.sales.iter().filter(|sale| !sale.over);
            let mut found: Vec<(Timestamp, i128)> = match range {
                Range::Settled {
                    after,
                    up_to,
                    created_after,
                } => open
                    .filter_map(|sale| Some((sale.settled?, sale)))
                    .filter(|(at, _)| *at > after && *at <= up_to)
                    .map(|(at, sale)| {
                        (
                            at,
                            if sale.made > created_after {
                                sale.amount
                            } else {
                                0
                            },
                        )
                    })
                    .collect(),
                Range::Reserved { after } => open
                    .filter(|sale| sale.settled.is_none() && sale.made > after)
                    .map(|sale| (sale.made, sale.amount))
                    .collect(),
            };
            found.sort_unstable();
            let reached = found.get(LIMIT - 1).map(|(at, _)| *at);
            let within = found
                .iter()
                .filter(|(at, _)| reached.is_none_or(|reached| *at <= reached));
            Amounts {
                amount: within.map(|(_, amount)| amount).sum(),
                reached,
            }
        }

        /// Runs one slice; `true` at the end of the recount.
        fn slice(&mut self, now: Timestamp) -> bool {
            let recount = self.recount.unwrap_or_else(|| Recount::begin(now));
            let (recount, all) = recount.with_settled(&self.read(recount.settled_range(now)), now);
            let slice = if all {
                let latest = self.read(recount.latest_range(now));
                recount.with_reserved(&latest, &self.read(recount.reserved_range()), now)
            } else {
                Slice::More(recount)
            };
            match slice {
                Slice::More(recount) => self.recount = Some(recount),
                Slice::Counted(total) => {
                    self.bound = lowered(Some(self.bound), total + self.available);
                    self.recount = None;
                }
            }
            self.recount.is_none()
        }
    }

    proptest! {
        /// The stored figure is never below the exact sum, whatever changes between two slices. If no trade changes
        /// during a recount, it is the exact sum.
        // rule: money.credit-limit, money.recount
        #[test]
        fn recount_bounds_plain_sum_and_converges(acts in prop::collection::vec(act(), 1..120)) {
            let mut now = Timestamp::from_millis(1_779_710_400_000).unwrap();
            let mut world = World::default();
            for act in acts {
                match act {
                    Act::Pass(millis) => now = now.plus(Duration::from_millis(millis.into())),
                    Act::Sell(amount) => {
                        let amount = i128::from(amount);
                        world.sales.push(Sale { made: now, settled: None, amount, over: false });
                        world.bound += stored(amount);
                    }
                    Act::Settle(which) => if let Some(sale) = world.sales.get_mut(which).filter(|sale| !sale.over && sale.settled.is_none()) {
                        sale.settled = Some(now);
                    },
                    Act::End(which) => if let Some(sale) = world.sales.get_mut(which).filter(|sale| !sale.over && sale.settled.is_none()) {
                        sale.over = true;
                    },
                    Act::Return(which) => {
                        let lately = now.minus(RETURN_WINDOW);
                        if let Some(sale) = world.sales.get_mut(which).filter(|sale| !sale.over && sale.settled.is_some_and(|at| at > lately)) {
                            sale.over = true;
                            world.available += sale.amount;
                        }
                    }
                    Act::Slice => { world.slice(now); }
                }
                prop_assert!(i128::from(world.bound) >= world.plain(now));
            }
            world.recount = None;
            // From the next millisecond on, every slice reads at least one trade.
            now = now.plus(RESOLUTION);
            for _ in 0..=world.sales.len() * 2 {
                if world.slice(now) { break; }
            }
            prop_assert!(world.recount.is_none(), "the recount ends");
            prop_assert_eq!(i128::from(world.bound), world.plain(now));
        }
    }
}
