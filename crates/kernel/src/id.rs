//! Ids: a prefix, a mode and a ULID.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use ulid::Ulid;

use crate::{Clock, Entropy, Mode, Timestamp, TraceParent};

/// The kind of an id. Empty marker types implement it, so that a quote's id and a trade's id cannot be swapped.
pub trait IdKind {
    /// The prefix before the first underscore, such as `pq`.
    const PREFIX: &'static str;
}

/// Declares the kind of the ids with a prefix: an empty enum that implements [`IdKind`].
#[macro_export]
macro_rules! id_kind {
    ($kind:ident, $prefix:literal) => {
        /// The kind of the ids with this prefix.
        #[derive(Debug)]
        pub enum $kind {}

        impl $crate::IdKind for $kind {
            const PREFIX: &'static str = $prefix;
        }
    };
}

/// `<prefix>_<mode>_<ULID>`, the ULID in canonical upper case.
///
/// Ids are ordered by their ULID, that is by the millisecond of their creation.
pub struct Id<K> {
    mode: Mode,
    ulid: Ulid,
    kind: PhantomData<fn() -> K>,
}

impl<K: IdKind> Id<K> {
    /// Creates an id at an instant.
    #[must_use]
    pub fn new(mode: Mode, at: Timestamp, entropy: &dyn Entropy) -> Self {
        Self::from_parts(mode, new_ulid(at, entropy))
    }

    /// Builds an id from the parts that a store reads from a row.
    #[must_use]
    pub const fn from_parts(mode: Mode, ulid: Ulid) -> Self {
        Self {
            mode,
            ulid,
            kind: PhantomData,
        }
    }

    /// Parses the canonical form. Returns `None` for other texts: in a path this means "not found".
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(K::PREFIX)?.strip_prefix('_')?;
        let (mode, ulid) = rest.split_once('_')?;
        Some(Self::from_parts(Mode::parse(mode)?, parse_ulid(ulid)?))
    }

    /// The mode of the id.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The id, or `None` if it belongs to the other mode: such an id is well-formed but unknown here.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Option<Self> {
        (self.mode == mode).then_some(self)
    }

    /// The ULID, as a store keeps it.
    #[must_use]
    pub const fn ulid(&self) -> Ulid {
        self.ulid
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Id<K> {}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.mode == other.mode && self.ulid == other.ulid
    }
}

impl<K> Eq for Id<K> {}

impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.ulid, self.mode).cmp(&(other.ulid, other.mode))
    }
}

impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mode.hash(state);
        self.ulid.hash(state);
    }
}

impl<K: IdKind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; ulid::ULID_LEN];
        let ulid = self.ulid.array_to_str(&mut buffer);
        write!(f, "{}_{}_{ulid}", K::PREFIX, self.mode)
    }
}

impl<K: IdKind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `req_<ULID>`: the id of a request in responses and logs. It has no mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(Ulid);

impl RequestId {
    /// Creates a request id.
    #[must_use]
    pub fn new(clock: &dyn Clock, entropy: &dyn Entropy) -> Self {
        Self(new_ulid(clock.now(), entropy))
    }

    /// The trace parent of a request that is part of no known trace: its trace id is the ULID, its span id the ULID's low 64 bits.
    /// So a log of an upstream can be joined with ours by the request id.
    #[must_use]
    pub fn trace_parent(self) -> TraceParent {
        let Ulid(bits) = self.0;
        let low = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
        TraceParent {
            // Zero is no valid id.
            trace_id: bits.max(1),
            span_id: low.max(1),
            sampled: false,
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; ulid::ULID_LEN];
        write!(f, "req_{}", self.0.array_to_str(&mut buffer))
    }
}

fn new_ulid(at: Timestamp, entropy: &dyn Entropy) -> Ulid {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    Ulid::from_parts(at.millis().unsigned_abs(), u128::from_be_bytes(random))
}

/// The prefix and mode of a text in the form of an id of any kind, such as `pq_test`. `None` for a text that does not end in an
/// underscore and a canonical ULID.
#[must_use]
pub fn before_ulid(text: &str) -> Option<&str> {
    let (before, ulid) = text.rsplit_once('_')?;
    parse_ulid(ulid).map(|_| before)
}

/// Parses a ULID in canonical form: 26 characters, upper case, no overflow.
fn parse_ulid(text: &str) -> Option<Ulid> {
    let ulid = Ulid::from_string(text).ok()?;
    let mut buffer = [0; ulid::ULID_LEN];
    (ulid.array_to_str(&mut buffer) == text).then_some(ulid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    enum Quote {}
    impl IdKind for Quote {
        const PREFIX: &'static str = "pq";
    }

    struct Ones;
    impl Entropy for Ones {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(1);
        }
    }

    // rule: id.shape
    #[test]
    fn id_prints_and_parses_canonical_form() {
        let at = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let id = Id::<Quote>::new(Mode::Test, at, &Ones);
        let text = id.to_string();
        assert!(text.starts_with("pq_test_01HF7YAT00"), "{text}");
        assert_eq!(Id::<Quote>::parse(&text), Some(id));
    }

    // rule: id.shape, id.kinds-differ
    #[test]
    fn id_parser_refuses_other_forms() {
        let good = "pq_test_01HF7YAT00408104G208104081";
        assert!(Id::<Quote>::parse(good).is_some());
        for bad in [
            "",
            "pq_test_",
            "txn_test_01HF7YAT00408104G208104081",
            "pq_prod_01HF7YAT00408104G208104081",
            "pq_test_01hf7yat00408104g208104081",
            "pq_test_01HF7YAT0O408104G208104081",
            "pq_test_81HF7YAT00408104G208104081",
            "pq_test_01HF7YAT00408104G2081040812",
            "pq_test_01HF7YAT00408104G208104081 ",
            "pq_test_01HF7YAT00408104G2081040é",
        ] {
            assert!(Id::<Quote>::parse(bad).is_none(), "{bad}");
        }
    }

    // rule: upstream.http.trace-source
    #[test]
    fn trace_parent_of_request_contains_its_ulid() {
        let parent_of = |ulid: Ulid| RequestId(ulid).trace_parent().to_string();
        for (ulid, parent) in [
            (
                "01HF7YAT00408104G208104081",
                "00-018bcfe5680020101012020202020101-1012020202020101-00",
            ),
            (
                "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
                "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-00",
            ),
        ] {
            assert_eq!(parent_of(parse_ulid(ulid).unwrap()), parent);
        }
        let without_low_bits = "00-00000000000000010000000000000000-0000000000000001-00";
        assert_eq!(parent_of(Ulid(1 << 64)), without_low_bits);
        let nil = "00-00000000000000000000000000000001-0000000000000001-00";
        assert_eq!(parent_of(Ulid::nil()), nil);
    }

    // rule: id.shape
    #[test]
    fn text_before_canonical_ulid_is_found() {
        for (text, before) in [
            ("pq_test_01HF7YAT00408104G208104081", Some("pq_test")),
            ("test_tx_01HF7YAT00408104G208104081", Some("test_tx")),
            ("_01HF7YAT00408104G208104081", Some("")),
            ("01HF7YAT00408104G208104081", None),
            ("pq_test_01hf7yat00408104g208104081", None),
            ("pq_test_81HF7YAT00408104G208104081", None),
            ("pq_test_01HF7YAT00408104G2081040812", None),
            ("pq_test_01HF7YAT00408104G2081040é", None),
            ("pq_test_", None),
            ("", None),
        ] {
            assert_eq!(before_ulid(text), before, "{text}");
        }
    }

    proptest! {
        // rule: id.shape
        #[test]
        fn id_has_one_text(number in any::<u128>(), live in any::<bool>()) {
            let mode = if live { Mode::Live } else { Mode::Test };
            let id = Id::<Quote>::from_parts(mode, Ulid(number));
            prop_assert_eq!(Id::<Quote>::parse(&id.to_string()), Some(id));
        }

        // rule: id.shape
        #[test]
        fn parsed_id_prints_the_same_text(text in "pq_(test|live)_[0-9A-Za-z]{25,27}") {
            if let Some(id) = Id::<Quote>::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
