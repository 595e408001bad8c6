//! How the permits for calls to an upstream are divided among partners.
//!
//! A partner gets a further permit only while it holds fewer than are free. So partners that take all they can hold equal parts, one
//! further part stays free, and another partner finds a permit at once. A hanging partner, whose last calls all timed out, holds few
//! permits, and all hanging partners together hold a part of them: however many partners hang, the others have the rest.

/// Permits that a hanging partner holds at most.
const MAX_PER_HANGING_PARTNER: usize = 2;
/// Hanging partners together hold at most all permits divided by this.
const HANGING_DIVISOR: usize = 2;

/// How many permits for the calls to an upstream there are, and how many are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitLoad {
    /// All permits.
    pub total: usize,
    /// Permits that partners hold.
    pub held: usize,
    /// Permits among them that hanging partners hold.
    pub held_by_hanging: usize,
}

impl PermitLoad {
    /// Whether a partner that holds this many permits gets a further one.
    #[must_use]
    pub const fn admits(&self, held: usize, is_hanging: bool) -> bool {
        let free = self.total.saturating_sub(self.held);
        let hanging = self.total / HANGING_DIVISOR;
        let may_hang = held < MAX_PER_HANGING_PARTNER && self.held_by_hanging < hanging;
        held < free && (!is_hanging || may_hang)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partner that takes all permits that it gets.
    #[derive(Debug, Clone, Copy)]
    struct Taker {
        held: usize,
        is_hanging: bool,
    }

    fn takers(count: usize, is_hanging: bool) -> Vec<Taker> {
        let taker = Taker {
            held: 0,
            is_hanging,
        };
        vec![taker; count]
    }

    fn load(total: usize, takers: &[Taker]) -> PermitLoad {
        let hanging = takers.iter().filter(|taker| taker.is_hanging);
        PermitLoad {
            total,
            held: takers.iter().map(|taker| taker.held).sum(),
            held_by_hanging: hanging.map(|taker| taker.held).sum(),
        }
    }

    /// What each holds in the end, if they take one permit after another in turn.
    fn divided(total: usize, mut takers: Vec<Taker>) -> Vec<usize> {
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for place in 0..takers.len() {
                let Taker { held, is_hanging } = takers[place];
                if load(total, &takers).admits(held, is_hanging) {
                    takers[place].held += 1;
                    is_changed = true;
                }
            }
        }
        takers.into_iter().map(|taker| taker.held).collect()
    }

    // rule: pools.engine.even-share, rail.http.even-share, verifier.http.even-share, pools.poll.even-share, background.even-share
    #[test]
    fn partners_hold_equal_parts_and_leave_one_part() {
        for (count, parts) in [
            (1, vec![128]),
            (2, vec![86, 85]),
            (4, vec![52, 51, 51, 51]),
            (255, vec![1; 255]),
        ] {
            assert_eq!(divided(256, takers(count, false)), parts);
        }
        let crowd = divided(256, takers(300, false));
        assert_eq!(crowd.iter().sum::<usize>(), 256);
        assert!(crowd.iter().all(|held| *held <= 1));
    }

    // rule: upstream.http.hanging
    #[test]
    fn hanging_partners_hold_two_permits_each_and_half_together() {
        assert_eq!(divided(256, takers(4, true)), [2; 4]);
        let mut crowd = takers(100, true);
        crowd.extend(takers(1, false));
        let held = divided(256, crowd);
        assert_eq!(held[..100].iter().sum::<usize>(), 128);
        assert!(held[..100].iter().all(|held| (1..=2).contains(held)));
        assert_eq!(held[100], 64);
    }
}
