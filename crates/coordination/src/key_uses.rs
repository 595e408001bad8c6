//! The last uses of keys: recorded in memory with each request, and returned rarely to be stored.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use kernel::Timestamp;
use parking_lot::Mutex;
use partner_core::key::{KeyId, KeyUse};
use partner_core::{Access, Tenant};

/// Minimum interval between two stored uses of a key.
pub const STORED_EVERY: Duration = Duration::from_secs(60);

/// The keys that this process has seen.
#[derive(Debug, Default)]
pub struct KeyUses {
    seen: Mutex<HashMap<KeyId, Seen>>,
}

#[derive(Debug)]
struct Seen {
    who: Tenant,
    last: Timestamp,
    /// The use that was last returned for storing.
    stored: Option<Timestamp>,
}

impl KeyUses {
    /// Records the use of a key.
    pub fn note<P>(&self, access: &Access<P>, at: Timestamp) {
        match self.seen.lock().entry(access.key.id) {
            Entry::Occupied(mut seen) => {
                let last = &mut seen.get_mut().last;
                *last = at.max(*last);
            }
            Entry::Vacant(unseen) => {
                unseen.insert(Seen {
                    who: access.tenant.clone(),
                    last: at,
                    stored: None,
                });
            }
        }
    }

    /// Returns the uses to store, and skips keys whose last use was returned less than [`STORED_EVERY`] ago. Keys that have
    /// been idle for that long are removed.
    pub fn due(&self, now: Timestamp) -> Vec<KeyUse> {
        let mut seen = self.seen.lock();
        seen.retain(|_, one| one.stored != Some(one.last) || now.since(one.last) < STORED_EVERY);
        let mut due = Vec::new();
        for (key, one) in seen.iter_mut() {
            let waits = one
                .stored
                .is_some_and(|stored| now.since(stored) < STORED_EVERY);
            if waits || one.stored == Some(one.last) {
                continue;
            }
            one.stored = Some(one.last);
            due.push(KeyUse {
                who: one.who.clone(),
                key: *key,
                at: one.last,
            });
        }
        due
    }

    /// Takes back uses that could not be stored.
    pub fn restore(&self, uses: &[KeyUse]) {
        let mut seen = self.seen.lock();
        for one in uses {
            let unstored = seen.entry(one.key).or_insert_with(|| Seen {
                who: one.who.clone(),
                last: one.at,
                stored: None,
            });
            unstored.stored = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Entropy, Mode};
    use partner_core::key::{KeyKind, NewKey};
    use partner_core::{Partner, PartnerId, PartnerStatus};

    use super::*;

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    fn access() -> Access<()> {
        let (key, _) = NewKey::generate(KeyKind::Secret, Mode::Test, at(0), &Ones);
        let id = PartnerId::parse("acme").unwrap();
        let partner = Partner {
            id,
            name: "Acme".to_owned(),
            status: PartnerStatus::Active,
        };
        Access::new(Mode::Test, key.record, partner, ())
    }

    fn instants(uses: &[KeyUse]) -> Vec<Timestamp> {
        uses.iter().map(|one| one.at).collect()
    }

    // rule: auth.last-use
    #[test]
    fn use_is_due_immediately_and_then_once_a_minute() {
        let (uses, access) = (KeyUses::default(), access());
        assert!(uses.due(at(0)).is_empty());
        for seconds in 0..10 {
            uses.note(&access, at(seconds));
        }
        assert_eq!(instants(&uses.due(at(9))), [at(9)]);
        assert!(uses.due(at(10)).is_empty());
        for seconds in 11..60 {
            uses.note(&access, at(seconds));
            assert!(uses.due(at(seconds)).is_empty());
        }
        assert_eq!(instants(&uses.due(at(69))), [at(59)]);
        assert!(uses.due(at(200)).is_empty(), "an idle key is stored once");
        assert!(uses.seen.lock().is_empty(), "an idle key is removed");
    }

    // rule: auth.last-use
    #[test]
    fn use_that_was_not_stored_is_due_again() {
        let (uses, access) = (KeyUses::default(), access());
        uses.note(&access, at(1));
        let due = uses.due(at(1));
        uses.restore(&due);
        assert_eq!(instants(&uses.due(at(2))), [at(1)]);
        uses.note(&access, at(0));
        assert!(uses.due(at(90)).is_empty(), "time does not run backwards");
    }
}
