//! The two providers of a live campaign, and which of them the gate is configured with.

use kernel::Timestamp;
use parking_lot::Mutex;

use super::provider::{Books, Provider};
use crate::programs::Installation;

/// Percentage of starts with a former provider.
const WITH_FORMER: u8 = 70;

/// Which provider the gate is configured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    /// Whether the first provider is the present one. Otherwise the second one is.
    is_first: bool,
    /// Whether the other provider is configured as the former one.
    has_former: bool,
}

/// A rail, as it signs notifications.
#[derive(Debug, Clone)]
pub(super) struct Signer {
    pub(super) secret: String,
    /// Whether the gate is configured with the rail.
    pub(super) is_configured: bool,
}

/// Two providers. Each payment is begun at the present one, and stays there.
#[derive(Debug)]
pub(super) struct Upstreams {
    providers: [Provider; 2],
    choice: Mutex<Choice>,
}

impl Upstreams {
    /// Starts both providers. The gate is configured with both.
    pub(super) fn start(seed: u64) -> Self {
        let chance = |of: u64| seed.wrapping_mul(2).wrapping_add(of);
        Self {
            providers: [
                Provider::start("first", chance(0)),
                Provider::start("second", chance(1)),
            ],
            choice: Mutex::new(Choice {
                is_first: true,
                has_former: true,
            }),
        }
    }

    /// Chooses the providers of the next start: another present one, or the same, mostly with the other one as the former one.
    pub(super) fn choose(&self, chance: &mut fastrand::Rng) {
        *self.choice.lock() = Choice {
            is_first: chance.bool(),
            has_former: chance.u8(0..100) < WITH_FORMER,
        };
    }

    /// Configures both providers for the next start, so that everything can end.
    pub(super) fn choose_both(&self) {
        self.choice.lock().has_former = true;
    }

    /// Writes the choice into the settings of the next start.
    pub(super) fn configure(&self, installation: &Installation) {
        let choice = *self.choice.lock();
        let [first, second] = &self.providers;
        let (present, other) = match choice.is_first {
            true => (first, second),
            false => (second, first),
        };
        let mut settings = present.settings("");
        present.books().is_configured = true;
        other.books().is_configured = choice.has_former;
        if choice.has_former {
            settings.extend(other.settings("_FORMER"));
        }
        installation.change(settings);
    }

    /// Compares something with the books of both.
    pub(super) fn with_books<T>(&self, compare: impl FnOnce([&Books; 2]) -> T) -> T {
        let [first, second] = &self.providers;
        let (first, second) = (first.books(), second.books());
        let books: [&Books; 2] = [&first, &second];
        compare(books)
    }

    /// Lets the rails change the ends of payments.
    pub(super) fn change_ends<'i>(&self, ids: impl Iterator<Item = &'i String>, now: Timestamp) {
        let [first, second] = &self.providers;
        let (mut first, mut second) = (first.books(), second.books());
        for id in ids {
            first.ledger.change_end(id, now);
            second.ledger.change_end(id, now);
        }
    }

    /// The rails, the one first that knows the payment. Both are in either order if neither knows it.
    pub(super) fn signers(&self, id: &str) -> [Signer; 2] {
        let [first, second] = self.providers.each_ref().map(|provider| {
            let books = provider.books();
            let signer = Signer {
                secret: provider.rail_secret(),
                is_configured: books.is_configured,
            };
            (books.ledger.payments.contains_key(id), signer)
        });
        match (first, second) {
            ((false, first), (true, second)) => [second, first],
            ((_, first), (_, second)) => [first, second],
        }
    }

    /// Counts of both.
    pub(super) fn figures(&self) -> Vec<(&'static str, u64)> {
        self.with_books(|[first, second]| {
            let both = first.figures().into_iter().zip(second.figures());
            both.map(|((what, one), (_, other))| (what, one + other))
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::provider::Payment;
    use super::*;
    use crate::programs::Programs;

    /// The names of the rails that a start is configured with.
    fn rails_of(upstreams: &Upstreams) -> (Option<String>, Option<String>) {
        let programs = Programs {
            plain: "plain".into(),
            armed: "armed".into(),
        };
        let installation = Installation::new(Path::new("folder"), &programs, &[]);
        upstreams.configure(&installation);
        let command = installation.service(None);
        let setting = |name: &str| {
            let mut all = command.get_envs();
            let found = all.find(|(known, _)| *known == name);
            Some(found?.1?.to_string_lossy().into_owned())
        };
        (
            setting("PENSTOCK_RAIL_NAME"),
            setting("PENSTOCK_RAIL_FORMER_NAME"),
        )
    }

    #[test]
    fn starts_have_either_provider_with_the_other_one_or_without() {
        let upstreams = Upstreams::start(1);
        let name = |text: &str| Some(text.to_owned());
        let both = (name("first"), name("second"));
        assert_eq!(rails_of(&upstreams), both, "a start has both");
        let mut chance = fastrand::Rng::with_seed(1);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            upstreams.choose(&mut chance);
            let (present, former) = rails_of(&upstreams);
            let configured = upstreams.with_books(|books| books.map(|it| it.is_configured));
            let names = ["first", "second"].map(name);
            let is_named = names.map(|name| present == name || former == name);
            assert_eq!(configured, is_named);
            assert_ne!(present, former);
            seen.insert((present, former));
        }
        let all = [
            (name("first"), None),
            both,
            (name("second"), None),
            (name("second"), name("first")),
        ];
        assert_eq!(seen, BTreeSet::from(all));
        upstreams.choose_both();
        assert!(rails_of(&upstreams).1.is_some());
    }

    #[test]
    fn rail_that_knows_a_payment_signs_first() {
        let upstreams = Upstreams::start(1);
        let [first, second] = upstreams.signers("pi_live_1").map(|it| it.secret);
        assert_ne!(first, second);
        let [_, provider] = &upstreams.providers;
        let payment = Payment::default();
        let id = "pi_live_1".to_owned();
        provider.books().ledger.payments.insert(id, payment);
        let swapped = upstreams.signers("pi_live_1").map(|it| it.secret);
        assert_eq!(swapped, [second, first]);
    }
}
