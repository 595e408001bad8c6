//! The bound on how far the rate of a pair may move within a minute.
//!
//! A rate is accepted if it lies within the bound of every rate that was accepted in the last minute, and
//! of the last accepted one however old it is. A rate beyond the bound is a jump. A jump is accepted after
//! it has held for a minute without a gap and prices made after that minute confirm it.
//!
//! Only the monotonic clock counts: setting the machine's clock neither shortens nor lengthens the minute.

use std::collections::VecDeque;
use std::time::Duration;

use rust_decimal::Decimal;
use tokio::time::Instant;

use super::is_near;

/// The bound applies to this span, and a jump must hold for as long.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// Rates accepted within this span share one slot, so that memory does not grow with the number of quotes.
const SLOT: Duration = Duration::from_secs(1);

/// The limit of the file, and the maximum age of a price.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) max_move_bps: u16,
    pub(super) max_age: Duration,
}

/// The result of checking a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The rate is within the bound.
    Near,
    /// The rate is a jump, and the first one.
    JumpBegins,
    /// The rate is a jump, and so was the one before.
    JumpLasts,
    /// The jump has held long enough and is accepted as the rate.
    JumpAccepted,
}

impl Judgement {
    pub(super) const fn is_accepted(self) -> bool {
        matches!(self, Self::Near | Self::JumpAccepted)
    }
}

/// The recently accepted rates of one pair, and the current jump.
#[derive(Debug, Default)]
pub(super) struct Moves {
    accepted: VecDeque<Slot>,
    jump: Option<Jump>,
}

#[derive(Debug)]
struct Slot {
    begun: Instant,
    range: Range,
}

#[derive(Debug)]
struct Jump {
    begun: Instant,
    last: Instant,
    range: Range,
}

#[derive(Debug)]
struct Range {
    lowest: Decimal,
    highest: Decimal,
}

impl Range {
    const fn of(rate: Decimal) -> Self {
        Self {
            lowest: rate,
            highest: rate,
        }
    }

    fn include(&mut self, rate: Decimal) {
        self.lowest = self.lowest.min(rate);
        self.highest = self.highest.max(rate);
    }

    fn is_near(&self, rate: Decimal, max_bps: u16) -> bool {
        is_near(self.lowest, rate, max_bps) && is_near(self.highest, rate, max_bps)
    }
}

impl Moves {
    /// Checks the rate that enough sources agree on.
    ///
    /// `confirmed(age)` returns the rate that prices of at most this age agree on.
    pub(super) fn judge(
        &mut self,
        rate: Decimal,
        now: Instant,
        bound: Bound,
        confirmed: impl FnOnce(Duration) -> Option<Decimal>,
    ) -> Judgement {
        self.forget(now);
        let max_bps = bound.max_move_bps;
        let mut accepted = self.accepted.iter();
        if accepted.all(|slot| slot.range.is_near(rate, max_bps)) {
            self.jump = None;
            self.accept(rate, now);
            return Judgement::Near;
        }
        let had_jump = self.jump.is_some();
        let lasts = |jump: &Jump| {
            now.duration_since(jump.last) <= bound.max_age && jump.range.is_near(rate, max_bps)
        };
        let Some(jump) = self.jump.as_mut().filter(|jump| lasts(jump)) else {
            self.jump = Some(Jump {
                begun: now,
                last: now,
                range: Range::of(rate),
            });
            return if had_jump {
                Judgement::JumpLasts
            } else {
                Judgement::JumpBegins
            };
        };
        jump.last = now;
        jump.range.include(rate);
        let since_minute = now.duration_since(jump.begun).checked_sub(MINUTE);
        let confirmed = since_minute.and_then(|age| confirmed(age.min(bound.max_age)));
        if !confirmed.is_some_and(|rate| jump.range.is_near(rate, max_bps)) {
            return Judgement::JumpLasts;
        }
        self.jump = None;
        self.accepted.clear();
        self.accept(rate, now);
        Judgement::JumpAccepted
    }

    /// Records that the pair has no rate for another reason, which interrupts a jump.
    pub(super) fn interrupt(&mut self) {
        self.jump = None;
    }

    /// Removes the rates accepted more than a minute ago, except for the last.
    fn forget(&mut self, now: Instant) {
        let is_old = |slot: &Slot| now.duration_since(slot.begun) > MINUTE.saturating_add(SLOT);
        while self.accepted.len() > 1 && self.accepted.front().is_some_and(is_old) {
            self.accepted.pop_front();
        }
    }

    fn accept(&mut self, rate: Decimal, now: Instant) {
        match self.accepted.back_mut() {
            Some(slot) if now.duration_since(slot.begun) < SLOT => slot.range.include(rate),
            _ => self.accepted.push_back(Slot {
                begun: now,
                range: Range::of(rate),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUND: Bound = Bound {
        max_move_bps: 100,
        max_age: Duration::from_secs(10),
    };

    fn decimal(text: &str) -> Decimal {
        Decimal::from_str_exact(text).unwrap()
    }

    /// Checks each rate at its second. Prices of any age confirm a rate.
    fn judged(rates: &[(u64, &str)]) -> Vec<Judgement> {
        let (mut moves, start) = (Moves::default(), Instant::now());
        let judge = |(second, rate): &(u64, &str)| {
            let (rate, now) = (decimal(rate), start + Duration::from_secs(*second));
            moves.judge(rate, now, BOUND, |_| Some(rate))
        };
        rates.iter().map(judge).collect()
    }

    /// A jump from 1 to `rate`, checked every 5 seconds from second 2 to `last`.
    fn jump_to(rate: &str, last: u64) -> Vec<(u64, &str)> {
        let held = (2..=last).step_by(5).map(|second| (second, rate));
        std::iter::once((0, "1")).chain(held).collect()
    }

    // rule: rates.http.move
    #[test]
    fn moves_accept_rates_up_to_the_last_digit_of_the_bound() {
        use Judgement::{JumpBegins, Near};
        assert_eq!(judged(&[(0, "1"), (2, "1.01")]), [Near, Near]);
        assert_eq!(judged(&[(0, "1.01"), (2, "1")]), [Near, Near]);
        let beyond = "1.0100000000000000000000001";
        assert_eq!(judged(&[(0, "1"), (2, beyond)]), [Near, JumpBegins]);
        assert_eq!(judged(&[(0, beyond), (2, "1")]), [Near, JumpBegins]);
        assert_eq!(judged(&[(0, "1.085"), (2, "10.85")])[1], JumpBegins);
        assert_eq!(judged(&[(0, "1.085"), (2, "0.1085")])[1], JumpBegins);
    }

    // rule: rates.http.move
    #[test]
    fn moves_refuse_many_small_steps_within_a_minute() {
        use Judgement::{JumpBegins, Near};
        let steps = [(0, "1"), (20, "1.006"), (40, "1.012")];
        assert_eq!(judged(&steps), [Near, Near, JumpBegins]);
        let slower = [(0, "1"), (40, "1.006"), (62, "1.012")];
        assert_eq!(judged(&slower), [Near, Near, Near]);
    }

    // rule: rates.http.move
    #[test]
    fn moves_compare_with_the_last_rate_after_a_pause() {
        use Judgement::{JumpBegins, Near};
        assert_eq!(judged(&[(0, "1"), (86_400, "1.01")]), [Near, Near]);
        assert_eq!(judged(&[(0, "1"), (86_400, "1.02")]), [Near, JumpBegins]);
    }

    // rule: rates.http.move-accepted
    #[test]
    fn jump_is_accepted_after_it_held_for_a_minute() {
        use Judgement::{JumpAccepted, JumpLasts, Near};
        let mut rates = jump_to("10", 57);
        let before = judged(&rates);
        assert_eq!(before.last(), Some(&JumpLasts), "{before:?}");
        rates.extend([(61, "10"), (62, "10.01"), (63, "10.02"), (64, "1")]);
        let after = judged(&rates);
        let tail = [JumpLasts, JumpAccepted, Near, Judgement::JumpBegins];
        assert_eq!(after.last_chunk(), Some(&tail), "{after:?}");
    }

    // rule: rates.http.move-accepted
    #[test]
    fn jump_restarts_after_gap() {
        use Judgement::{JumpAccepted, JumpBegins, JumpLasts, Near};
        // The old rate returns for one check.
        let mut returned = jump_to("10", 57);
        returned.extend([(58, "1"), (60, "10"), (63, "10")]);
        let judgements = judged(&returned);
        let tail = [Near, JumpBegins, JumpLasts];
        assert_eq!(judgements.last_chunk(), Some(&tail), "{judgements:?}");
        // The jump moves further than the limit.
        let mut moved = jump_to("10", 57);
        moved.extend((60..=115).step_by(5).map(|second| (second, "11")));
        assert!(!judged(&moved).contains(&JumpAccepted));
        moved.push((120, "11"));
        assert_eq!(judged(&moved).last(), Some(&JumpAccepted));
        // No rate is checked for longer than the maximum age of a price.
        assert!(!judged(&[(0, "1"), (2, "10"), (63, "10")]).contains(&JumpAccepted));
        // In between, the pair has no rate for another reason.
        let (mut moves, start) = (Moves::default(), Instant::now());
        for (second, rate) in jump_to("10", 62) {
            if second == 32 {
                moves.interrupt();
            }
            let (rate, now) = (decimal(rate), start + Duration::from_secs(second));
            let judgement = moves.judge(rate, now, BOUND, |_| Some(rate));
            assert_ne!(judgement, JumpAccepted, "{second}");
        }
    }

    // rule: rates.http.move-accepted
    #[test]
    fn jump_is_not_accepted_without_prices_made_after_the_minute() {
        let (mut moves, start) = (Moves::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        for (second, rate) in jump_to("10", 62) {
            let rate = decimal(rate);
            let judgement = moves.judge(rate, at(second), BOUND, |_| None);
            assert_ne!(judgement, Judgement::JumpAccepted);
        }
        // The prices made after the minute contradict the jump.
        let ten = decimal("10");
        let other = moves.judge(ten, at(64), BOUND, |_| Some(Decimal::ONE));
        assert_eq!(other, Judgement::JumpLasts);
        let mut asked = None;
        let agreed = moves.judge(ten, at(66), BOUND, |age| {
            asked = Some(age);
            Some(ten)
        });
        assert_eq!(agreed, Judgement::JumpAccepted);
        assert_eq!(asked, Some(Duration::from_secs(4)));
    }

    #[test]
    fn moves_keep_one_slot_per_second() {
        let (mut moves, start) = (Moves::default(), Instant::now());
        for millis in (0..200_000).step_by(50) {
            let now = start + Duration::from_millis(millis);
            moves.judge(Decimal::ONE, now, BOUND, |_| None);
        }
        assert!(moves.accepted.len() <= 63, "{}", moves.accepted.len());
    }

    proptest! {
        // rule: rates.http.move
        #[test]
        fn accepted_rates_within_a_minute_are_near_unless_a_jump_was_accepted_between(
            steps in prop::collection::vec((1_u64..9_000, 9_800_i64..10_200), 1..120),
        ) {
            let (mut moves, mut now) = (Moves::default(), Instant::now());
            let mut accepted: Vec<(Instant, Decimal)> = Vec::new();
            for (millis, price) in steps {
                now += Duration::from_millis(millis);
                let rate = Decimal::new(price, 4);
                match moves.judge(rate, now, BOUND, |_| Some(rate)) {
                    Judgement::JumpAccepted => accepted.clear(),
                    Judgement::Near => {}
                    Judgement::JumpBegins | Judgement::JumpLasts => continue,
                }
                for (at, earlier) in &accepted {
                    let recent = now.duration_since(*at) <= MINUTE;
                    prop_assert!(!recent || is_near(*earlier, rate, BOUND.max_move_bps));
                }
                accepted.push((now, rate));
            }
        }
    }
}
