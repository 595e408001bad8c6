//! API keys: how they look, what is stored of them, how a new one is made.

use std::fmt;

use kernel::{Entropy, Id, IdKind, Mode, Timestamp};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// Names an API key in the operator's tools; never the key itself.
#[derive(Debug)]
pub enum KeyIdKind {}

impl IdKind for KeyIdKind {
    const PREFIX: &'static str = "key";
}

/// `key_<mode>_<ULID>`.
pub type KeyId = Id<KeyIdKind>;

/// Characters behind a key's prefix: 190 bits of the operating system's randomness.
const LENGTH: usize = 32;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a key is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// `sk_…`: everything; server side only.
    Secret,
    /// `pk_…`: discovery.
    Publishable,
}

impl KeyKind {
    /// The word used in the declarative file, the operator's tools and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Publishable => "publishable",
        }
    }

    /// Reads the word written by [`KeyKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "secret" => Some(Self::Secret),
            "publishable" => Some(Self::Publishable),
            _ => None,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Secret => "sk",
            Self::Publishable => "pk",
        }
    }
}

/// SHA-256 of a key: all that is stored. The keys' entropy makes a slow hash pointless.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}

/// A well-formed key as presented with a request: its kind and mode, and its hash. The key's
/// own text is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresentedKey {
    /// Secret or publishable, by its prefix.
    pub kind: KeyKind,
    /// The mode in its prefix.
    pub mode: Mode,
    /// What it is looked up by.
    pub hash: KeyHash,
}

impl PresentedKey {
    /// Reads `(sk|pk)_(test|live)_` and 32 base-62 characters; anything else is `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '_');
        let kind = match parts.next()? {
            "sk" => KeyKind::Secret,
            "pk" => KeyKind::Publishable,
            _ => return None,
        };
        let mode = Mode::parse(parts.next()?)?;
        let random = parts.next()?;
        let shaped =
            random.len() == LENGTH && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        shaped.then(|| Self {
            kind,
            mode,
            hash: KeyHash(Sha256::digest(text.as_bytes()).into()),
        })
    }
}

/// What is stored of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Names the key.
    pub id: KeyId,
    /// What it is good for.
    pub kind: KeyKind,
    /// Its first characters, such as `sk_test_Ab3d`.
    pub prefix: String,
    /// Its last four characters.
    pub last4: String,
    /// Was it made here, or written literally in the declarative file?
    pub generated: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// What the operator calls it.
    pub label: Option<String>,
    /// From when on it is refused; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// What the operator says of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyTerms {
    /// What it is called.
    pub label: Option<String>,
    /// From when on it is refused; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// The last use of a key that a process has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// The partner and mode of the key.
    pub who: crate::Tenant,
    /// The key.
    pub key: KeyId,
    /// When it was used.
    pub at: Timestamp,
}

/// The longest label of a key, in characters.
pub const LABEL_LENGTH: usize = 64;

/// A key to be stored, with its hash.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// What is stored of it in clear.
    pub record: KeyRecord,
    /// What it will be looked up by.
    pub hash: KeyHash,
}

impl NewKey {
    /// The same key under a label, with an expiry.
    #[must_use]
    pub fn with(mut self, terms: KeyTerms) -> Self {
        self.record.label = terms.label;
        self.record.expires_at = terms.expires_at;
        self
    }

    /// Makes a key from the given randomness. The text is shown once and not kept.
    #[must_use]
    pub fn generate(
        kind: KeyKind,
        mode: Mode,
        at: Timestamp,
        entropy: &dyn Entropy,
    ) -> (Self, SecretString) {
        let text = format!("{}_{mode}_{}", kind.prefix(), random_base62(entropy));
        (
            Self::from_text(kind, mode, at, entropy, &text, true),
            SecretString::from(text),
        )
    }

    /// Takes a key that the operator wrote literally. `None` unless it is a well-formed key of
    /// that kind and of mode test.
    #[must_use]
    pub fn literal(
        kind: KeyKind,
        at: Timestamp,
        entropy: &dyn Entropy,
        text: &str,
    ) -> Option<Self> {
        let presented = PresentedKey::parse(text)?;
        let fits = presented.kind == kind && presented.mode == Mode::Test;
        fits.then(|| Self::from_text(kind, Mode::Test, at, entropy, text, false))
    }

    fn from_text(
        kind: KeyKind,
        mode: Mode,
        at: Timestamp,
        entropy: &dyn Entropy,
        text: &str,
        generated: bool,
    ) -> Self {
        let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
        let record = KeyRecord {
            id: KeyId::new(mode, at, entropy),
            kind,
            prefix: part(0..12),
            last4: part(text.len().saturating_sub(4)..text.len()),
            generated,
            created_at: at,
            revoked_at: None,
            label: None,
            expires_at: None,
        };
        Self {
            record,
            hash: KeyHash(Sha256::digest(text.as_bytes()).into()),
        }
    }
}

/// Thirty-two unbiased base-62 characters, 190 bits: bytes that would favour a character are drawn
/// again.
#[must_use]
pub fn random_base62(entropy: &dyn Entropy) -> String {
    let mut text = String::with_capacity(LENGTH);
    while text.len() < LENGTH {
        let mut bytes = [0; LENGTH];
        entropy.fill(&mut bytes);
        let letters = bytes
            .iter()
            .filter(|byte| **byte < 248)
            .filter_map(|byte| BASE62.get(usize::from(byte % 62)));
        text.extend(
            letters
                .take(LENGTH.saturating_sub(text.len()))
                .map(|byte| char::from(*byte)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(std::sync::atomic::AtomicU8);
    impl Entropy for Count {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill_with(|| self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
    }

    #[test]
    fn reads_well_formed_keys_only() {
        let good = format!("sk_test_{}", "a1B2".repeat(8));
        let key = PresentedKey::parse(&good).unwrap();
        assert_eq!((key.kind, key.mode), (KeyKind::Secret, Mode::Test));
        for bad in [
            "",
            "sk_test_",
            "sk_test_short",
            &good[..39],
            &format!("{good}0"),
            &good.replace("sk", "rk"),
            &good.replace("test", "prod"),
            &good.replace('a', "-"),
        ] {
            assert!(PresentedKey::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn makes_keys_that_read_back() {
        let at = Timestamp::from_millis(0).unwrap();
        let (new, text) =
            NewKey::generate(KeyKind::Publishable, Mode::Live, at, &Count(200.into()));
        let text = secrecy::ExposeSecret::expose_secret(&text).to_owned();
        let read = PresentedKey::parse(&text).unwrap();
        assert_eq!(
            (read.hash, read.kind, read.mode),
            (new.hash, KeyKind::Publishable, Mode::Live)
        );
        assert!(text.starts_with(&new.record.prefix) && text.ends_with(&new.record.last4));
        assert!(!format!("{new:?}").contains(&text));
    }
}
