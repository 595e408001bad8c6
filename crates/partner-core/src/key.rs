//! API keys: their form, their stored record, and their generation.

use kernel::{Entropy, Id, Mode, Timestamp};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use crate::Tenant;
use crate::sealing::{SealRefused, Sealed, Sealer};

kernel::id_kind!(KeyIdKind, "key");

/// `key_<mode>_<ULID>`. An id is not secret.
pub type KeyId = Id<KeyIdKind>;

/// Characters after the prefix of a key. They have 190 bits of randomness from the operating system.
const LENGTH: usize = 32;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

kernel::closed_list! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum KeyKind {
        /// `sk_…`: all routes. For servers only.
        Secret = "secret",
        /// `pk_…`: discovery only.
        Publishable = "publishable",
    }
}

impl KeyKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Secret => "sk",
            Self::Publishable => "pk",
        }
    }
}

/// SHA-256 of a key, which is stored in its place. The entropy of keys makes a slow hash unnecessary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 32]);

kernel::debug_as_text!(KeyHash, "KeyHash(…)");

/// A well-formed key of a request: its kind, its mode and its hash. The text of the key is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresentedKey {
    /// Secret or publishable, from the prefix.
    pub kind: KeyKind,
    /// The mode, from the prefix.
    pub mode: Mode,
    /// The hash that finds the key.
    pub hash: KeyHash,
}

impl PresentedKey {
    /// Parses `(sk|pk)_(test|live)_` and 32 base-62 characters; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '_');
        let kind = match parts.next()? {
            "sk" => KeyKind::Secret,
            "pk" => KeyKind::Publishable,
            _ => return None,
        };
        let mode = Mode::parse(parts.next()?)?;
        let is_whole = is_random_base62(parts.next()?);
        is_whole.then(|| Self {
            kind,
            mode,
            hash: KeyHash(Sha256::digest(text.as_bytes()).into()),
        })
    }
}

/// The stored record of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: KeyId,
    pub kind: KeyKind,
    /// Its first characters, such as `sk_test_Ab3d`.
    pub prefix: String,
    /// Its last four characters.
    pub last4: String,
    /// Whether Penstock generated it; `false` if the declarative file contains it literally.
    pub generated: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The operator's label.
    pub label: Option<String>,
    /// When it expires; `None` means never. It is accepted while `now < expires_at`.
    pub expires_at: Option<Timestamp>,
}

/// The operator's settings of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyTerms {
    pub label: Option<String>,
    /// When it expires; `None` means never. It is accepted while `now < expires_at`.
    pub expires_at: Option<Timestamp>,
}

/// The last use of a key, as one process observed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// The partner and mode of the key.
    pub who: crate::Tenant,
    pub key: KeyId,
    /// When it was used.
    pub at: Timestamp,
}

/// Maximum characters of a label.
pub const LABEL_LENGTH: usize = 64;

/// The place that the text of a publishable key is sealed for.
#[must_use]
pub fn publishable_place(who: &Tenant, id: KeyId) -> String {
    format!("api_keys/{}/{}/{id}/publishable", who.mode, who.partner)
}

/// A key to be stored, with its hash.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The record that is stored in clear.
    pub record: KeyRecord,
    /// The hash that finds the key.
    pub hash: KeyHash,
    /// The sealed text of a publishable key, which a session's link carries. A secret key is never stored.
    pub publishable: Option<Sealed>,
}

impl NewKey {
    /// The same key with a label and an expiry.
    #[must_use]
    pub fn with(mut self, terms: KeyTerms) -> Self {
        self.record.label = terms.label;
        self.record.expires_at = terms.expires_at;
        self
    }

    /// The same key of a partner with its text, sealed, if it is publishable.
    pub fn sealing(
        mut self,
        who: &Tenant,
        text: &str,
        sealer: &Sealer,
        entropy: &dyn Entropy,
    ) -> Result<Self, SealRefused> {
        if self.record.kind == KeyKind::Publishable {
            let place = publishable_place(who, self.record.id);
            self.publishable = Some(sealer.seal(&place, text.as_bytes(), entropy)?);
        }
        Ok(self)
    }

    /// Generates a key. The text of a secret key is shown once and never stored.
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

    /// Accepts a literal key of the operator. `None` unless it is a well-formed key of this kind and of mode test.
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
            publishable: None,
        }
    }
}

/// 32 unbiased base-62 characters (190 bits). Bytes that would bias the result are drawn again.
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

/// Whether a text has the form of [`random_base62`].
#[must_use]
pub fn is_random_base62(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
