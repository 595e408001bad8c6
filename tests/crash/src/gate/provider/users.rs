//! The users of a verifier. It approves every user, some of them after a while, as their amounts say.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use kernel::Timestamp;

use super::lies::Lie;
use super::word::{Answer, Report, Word};

/// Longest time until a decision, in milliseconds.
const MAX_DECISION_MS: u64 = 1_500;
/// The reports that lie, counted from 1.
const LYING_REPORTS: RangeInclusive<u32> = 1..=2;

/// A user whose verification the gate has started.
#[derive(Debug)]
pub(in crate::gate) struct User {
    pub(in crate::gate) lie: Option<Lie>,
    pub(in crate::gate) decided_at: Timestamp,
    pub(in crate::gate) starts: u32,
    pub(in crate::gate) reports: u32,
    /// What the gate may have received, oldest first.
    pub(in crate::gate) said: Vec<Word>,
}

impl User {
    /// A user whose verification has this amount. `.61` is approved at once.
    fn new(amount: &str, chance: &mut fastrand::Rng, now: Timestamp) -> Self {
        let wait = match amount.ends_with(".61") {
            true => Duration::ZERO,
            false => Duration::from_millis(chance.u64(1..MAX_DECISION_MS)),
        };
        Self {
            lie: Lie::about_user(chance),
            decided_at: now.plus(wait),
            starts: 0,
            reports: 0,
            said: Vec::new(),
        }
    }

    fn status(&self, now: Timestamp) -> &'static str {
        match now < self.decided_at {
            true => "pending",
            false => "approved",
        }
    }
}

#[derive(Debug)]
pub(in crate::gate) struct Users {
    pub(in crate::gate) users: BTreeMap<String, User>,
    chance: fastrand::Rng,
    /// Number of untrue reports.
    pub(super) lies: u64,
}

impl Users {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            users: BTreeMap::new(),
            chance: fastrand::Rng::with_seed(seed),
            lies: 0,
        }
    }

    pub(super) fn start(&mut self, id: &str, amount: &str, now: Timestamp) -> Answer {
        let Self { users, chance, .. } = self;
        let new = || User::new(amount, chance, now);
        let user = users.entry(id.to_owned()).or_insert_with(new);
        user.starts = user.starts.saturating_add(1);
        let status = user.status(now);
        match user.lie {
            Some(Lie::NamesAnother) if user.starts == 1 => Answer::about_another(id, status),
            _ => Answer::says(id, Word::new(status, now)),
        }
    }

    pub(super) fn report(&mut self, id: &str, now: Timestamp) -> Answer {
        let Some(user) = self.users.get_mut(id) else {
            return Answer::refuses(404, id);
        };
        user.reports = user.reports.saturating_add(1);
        let lie = user.lie.filter(|_| LYING_REPORTS.contains(&user.reports));
        self.lies += u64::from(lie.is_some());
        match lie {
            None => Answer::reports(id, &Report::of(user.status(now)), now),
            Some(Lie::Forgets) => Answer::refuses(404, id),
            Some(Lie::IsHidden) => Answer::proxy_page(),
            Some(Lie::NamesAnother) => Answer::about_another(id, "approved"),
            Some(_) => Answer::silence(),
        }
    }

    /// Records that a response was sent.
    pub(super) fn note(&mut self, id: &str, word: Word) {
        if let Some(user) = self.users.get_mut(id) {
            user.said.push(word);
        }
    }
}
