//! Contingent credits (table `commitments`): what an account holds with all that trades may still credit to it.
//!
//! The stored figure is an upper bound: sales and credits add to it, and a recount lowers it. A recount reads the trades that
//! may still be credited in slices of bounded size. Between two slices trades may open, settle, end, or leave the return window:
//! each trade that may be credited at the end has been counted, and few are counted that no longer may. If nothing moved
//! meanwhile, the result is the plain sum.

use std::time::Duration;

use kernel::Timestamp;

use crate::usecases::poll_trade::RETURN_WINDOW;

/// A poll that has claimed a trade on its last day may apply the return a little later.
const MARGIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Trades that one slice reads of each kind, and those of the same millisecond as the last.
pub const SLICE: u32 = 2_000;

/// The smallest difference between two instants.
const TICK: Duration = Duration::from_millis(1);

/// How far a recount has come.
///
/// Settled trades are read first, by the instant of their settlement, then reserved ones, by the instant they were made. A
/// trade may settle after it was counted as a reserved one. Such a trade is known by its instant: it was made at `reserved` or
/// earlier. Every slice reads what has settled since the last one before it goes on with reserved trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ended; `None` while it goes on.
    pub ended_at: Option<Timestamp>,
    /// Trades settled at this instant or earlier have been read.
    pub settled: Timestamp,
    /// Trades made at this instant or earlier that were reserved have been read.
    pub reserved: Timestamp,
    /// What the trades read may credit, in units of 10^-8; more than fits counts as the most that does.
    pub total: i64,
}

/// Trades that a slice reads, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// Trades settled after `after` and up to `up_to`. Only those made after `made_after` add to the amount.
    Settled {
        /// Only trades settled after this instant.
        after: Timestamp,
        /// Only trades settled at this instant or earlier.
        up_to: Timestamp,
        /// Trades made at this instant or earlier have been counted already.
        made_after: Timestamp,
    },
    /// Reserved trades made after `after`.
    Reserved {
        /// Only trades made after this instant.
        after: Timestamp,
    },
}

/// What a slice has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// What the trades read may credit to the account, in units of 10^-8.
    pub amount: i128,
    /// The instant of the last trade read; `None` if the slice has read all trades of its range.
    pub reached: Option<Timestamp>,
}

/// What a slice has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// More has to be read.
    More(Recount),
    /// All has been read: the sum over the trades, in units of 10^-8.
    Counted(i128),
}

impl Recount {
    /// A recount that has read nothing.
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

    /// What has settled up to the last millisecond: what settles in the present one may not be over.
    #[must_use]
    pub fn settled_range(&self, now: Timestamp) -> Range {
        Range::Settled {
            after: self.settled,
            up_to: now.minus(TICK),
            made_after: self.reserved,
        }
    }

    /// What has settled in the present millisecond.
    #[must_use]
    pub fn latest_range(&self, now: Timestamp) -> Range {
        Range::Settled {
            after: now.minus(TICK),
            up_to: now,
            made_after: self.reserved,
        }
    }

    /// What is still reserved.
    #[must_use]
    pub const fn reserved_range(&self) -> Range {
        Range::Reserved {
            after: self.reserved,
        }
    }

    /// The recount with the settled trades of a slice; `true` if that were all.
    #[must_use]
    pub fn with_settled(&self, read: &Amounts, now: Timestamp) -> (Self, bool) {
        let after = Self {
            settled: read.reached.unwrap_or(now.minus(TICK)).max(self.settled),
            total: self.total_with(read.amount),
            ..*self
        };
        (after, read.reached.is_none())
    }

    /// The recount with what was reserved and what has settled in the present millisecond, after all that had settled before.
    #[must_use]
    pub fn with_reserved(&self, latest: &Amounts, reserved: &Amounts, now: Timestamp) -> Slice {
        // Trades opened later have this instant at least.
        let all = reserved.reached.is_none_or(|reached| reached >= now);
        if all && latest.reached.is_none_or(|reached| reached >= now) {
            let total = i128::from(self.total).saturating_add(latest.amount);
            return Slice::Counted(total.saturating_add(reserved.amount));
        }
        // What has settled in the present millisecond would be taken for counted if this went on before it was read.
        if all || latest.amount > 0 || latest.reached.is_some() {
            return Slice::More(*self);
        }
        Slice::More(Self {
            reserved: reserved.reached.unwrap_or(self.reserved),
            total: self.total_with(reserved.amount),
            ..*self
        })
    }

    /// The recount at its end.
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

/// A figure as it is stored: past what fits it says as much as an account that is full.
#[must_use]
pub fn stored(total: i128) -> i64 {
    i64::try_from(total).unwrap_or(i64::MAX)
}

/// The stored figure after a recount. Both are upper bounds, and the lower one counts.
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

    /// A sale: the account is credited if it is returned.
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
                    made_after,
                } => open
                    .filter_map(|sale| Some((sale.settled?, sale)))
                    .filter(|(at, _)| *at > after && *at <= up_to)
                    .map(|(at, sale)| {
                        (
                            at,
                            if sale.made > made_after {
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

        /// One slice; `true` at the end.
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
        /// The stored figure is never below the plain sum, whatever moves between two slices, and a recount during which
        /// nothing moves makes it the plain sum.
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
            // Past the present millisecond every slice reads at least one trade.
            now = now.plus(TICK);
            for _ in 0..=world.sales.len() * 2 {
                if world.slice(now) { break; }
            }
            prop_assert!(world.recount.is_none(), "it ends");
            prop_assert_eq!(i128::from(world.bound), world.plain(now));
        }
    }
}
