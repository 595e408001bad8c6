//! Encryption at rest. Webhook secrets, event bodies, stored responses and personal data reach a store only as
//! [`Sealed`] bytes, and are found there by a [`BlindIndex`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::digest::array::Array;
use hmac::{Hmac, Mac as _};
use kernel::{Clock, Entropy, StoreError};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;
use zeroize::Zeroizing;

/// First byte of bytes sealed with the installation's first key. Programs before key rotation read only these.
const BY_FIRST_KEY: u8 = 1;
/// First byte of bytes that name their key: the fingerprint follows.
const BY_NAMED_KEY: u8 = 2;
const NONCE: usize = 24;
const FINGERPRINT: usize = 8;
/// The index of a current key that is not held.
const NOT_HELD: usize = usize::MAX;
/// The confirmation of a sealer that does not need one.
const UNTIL_CONFIRMED: u64 = u64::MAX;
/// How long a service seals with a key after the database last confirmed it as current (decision 0035).
pub const KEY_CONFIRMED_FOR: Duration = Duration::from_secs(5);
/// The length of [`DerivedKeys`], in bytes.
const DERIVED: usize = 3 * 32;

/// The installation's 32-byte master key. All sealing and signing keys derive from it.
#[derive(Debug)]
pub struct MasterKey(SecretBox<[u8; 32]>);

impl MasterKey {
    /// Takes the 32 bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(SecretBox::new(Box::new(bytes)))
    }

    /// Identifies the key without revealing it. The database stores it, so that a program with another key exits.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let derived = self.derive("penstock/fingerprint/v1");
        let mut bytes = [0; FINGERPRINT];
        for (to, from) in bytes.iter_mut().zip(derived) {
            *to = from;
        }
        Fingerprint(bytes)
    }

    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut derived = [0; 32];
        let expanded = Hkdf::<Sha256>::new(None, self.0.expose_secret())
            .expand(purpose.as_bytes(), &mut derived);
        debug_assert!(expanded.is_ok(), "32 bytes are within the limit of HKDF");
        derived
    }
}

/// The fingerprint of a master key, printed as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; FINGERPRINT]);

impl Fingerprint {
    /// Parses 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; FINGERPRINT];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        (hex::encode(bytes) == text).then_some(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

kernel::debug_as_display!(Fingerprint);

/// The keys of blind indexes, signatures and tokens.
///
/// They derive from the installation's first master key and survive its rotation, because indexes are unique in the
/// database and signatures are published. A rotation seals them with the new key.
pub struct DerivedKeys(Zeroizing<[u8; DERIVED]>);

impl DerivedKeys {
    /// Derives the keys from the installation's first master key.
    #[must_use]
    pub fn of(first: &MasterKey) -> Self {
        let mut bytes = Zeroizing::new([0; DERIVED]);
        let purposes = [
            "penstock/mark/v1",
            "penstock/signature/v1",
            "penstock/token/embed/v1",
        ];
        for (part, purpose) in bytes.chunks_exact_mut(32).zip(purposes) {
            part.copy_from_slice(&first.derive(purpose));
        }
        Self(bytes)
    }

    /// The bytes to be sealed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Reads the bytes of [`DerivedKeys::as_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    fn part(&self, number: usize) -> [u8; 32] {
        let mut part = [0; 32];
        if let Some(bytes) = self.0.chunks_exact(32).nth(number) {
            part.copy_from_slice(bytes);
        }
        part
    }

    /// The key that signs tokens.
    #[must_use]
    pub fn token_key(&self) -> [u8; 32] {
        self.part(2)
    }
}

/// Encrypted and authenticated bytes: a version, the key's fingerprint if the version has one, a nonce, the ciphertext.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// The blind index of a sealed value: a keyed hash that finds the value and shows duplicates. It reveals nothing
/// about the value without the master key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlindIndex(pub [u8; 32]);

kernel::debug_as_text!(BlindIndex, "Mark");

/// HMAC-SHA256 over bytes, under a key of the installation. It proves that the installation signed them. Printed in
/// hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 32]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

kernel::debug_as_display!(Signature);

/// Sealed bytes could not be opened: another key, another row, or damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sealed bytes do not open: another master key, another row, or damage")]
pub struct SealBroken;

/// Sealing was refused, so that no value is written under a key that a rotation has replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealRefused {
    /// The database's current key is not configured.
    #[error(
        "the database's current master key is not configured here; add it to PENSTOCK_MASTER_KEY or the key file, and restart"
    )]
    NotHeld,
    /// The database has not confirmed the current key for [`KEY_CONFIRMED_FOR`].
    #[error("the database has not confirmed the current master key for 5 s")]
    Unconfirmed,
    /// More bytes than the cipher accepts (256 GiB).
    #[error("too many bytes to seal")]
    TooLong,
}

impl From<SealRefused> for StoreError {
    /// A value that cannot be sealed is not stored. The call may be repeated later.
    fn from(refused: SealRefused) -> Self {
        match refused {
            SealRefused::NotHeld | SealRefused::Unconfirmed => Self::unavailable(refused),
            SealRefused::TooLong => Self::unexpected(refused),
        }
    }
}

/// Seals and opens with XChaCha20-Poly1305 under keys derived from master keys.
///
/// It seals with the current key and opens with every key that it holds. `place` names the row of the bytes and is
/// authenticated with them, so that a ciphertext moved to another row cannot be opened.
pub struct Sealer {
    keys: Vec<(Fingerprint, XChaCha20Poly1305)>,
    /// The key of bytes without a fingerprint.
    first: Fingerprint,
    /// The index of the current key in `keys`, or [`NOT_HELD`].
    current: AtomicUsize,
    /// Set in a service, whose key another process may rotate.
    confirmation: Option<Confirmation>,
    marks: Hmac<Sha256>,
    signatures: Hmac<Sha256>,
}

/// The end of the current key's confirmation, in milliseconds of [`Clock::elapsed`].
struct Confirmation {
    clock: Arc<dyn Clock>,
    until: AtomicU64,
}

impl Confirmation {
    fn extend(&self, asked: Duration) {
        let until = millis(asked.saturating_add(KEY_CONFIRMED_FOR));
        self.until.store(until, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        millis(self.clock.elapsed()) >= self.until.load(Ordering::Relaxed)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

kernel::debug_as_text!(Sealer, "Sealer");

impl Sealer {
    /// The sealer of an installation with one key.
    #[must_use]
    pub fn new(master: &MasterKey) -> Self {
        let first = master.fingerprint();
        Self::holding(
            std::slice::from_ref(master),
            first,
            &DerivedKeys::of(master),
        )
    }

    /// The sealer that holds `keys` and seals with the first one until [`Sealer::use_key`] changes it. `first` is the
    /// fingerprint of the installation's first key, which may be absent from `keys`.
    #[must_use]
    pub fn holding(keys: &[MasterKey], first: Fingerprint, derived: &DerivedKeys) -> Self {
        let cipher = |master: &MasterKey| {
            let key = Key::from(master.derive("penstock/seal/v1"));
            (master.fingerprint(), XChaCha20Poly1305::new(&key))
        };
        Self {
            keys: keys.iter().map(cipher).collect(),
            first,
            current: AtomicUsize::new(0),
            confirmation: None,
            marks: keyed(&derived.part(0)),
            signatures: keyed(&derived.part(1)),
        }
    }

    /// The sealer of a service. From [`Sealer::expect_confirmations`] on, it seals only for [`KEY_CONFIRMED_FOR`]
    /// after each [`Sealer::confirm`].
    #[must_use]
    pub fn requiring_confirmation(mut self, clock: Arc<dyn Clock>) -> Self {
        self.confirmation = Some(Confirmation {
            clock,
            until: AtomicU64::new(UNTIL_CONFIRMED),
        });
        self
    }

    /// Seals with the key of this fingerprint from now on. Returns `false` if it is not held; sealing then fails.
    pub fn use_key(&self, fingerprint: Fingerprint) -> bool {
        let place = self.keys.iter().position(|(held, _)| *held == fingerprint);
        self.current
            .store(place.unwrap_or(NOT_HELD), Ordering::Relaxed);
        place.is_some()
    }

    /// Starts to require confirmations. The first one counts as received now.
    pub fn expect_confirmations(&self) {
        if let Some(confirmation) = &self.confirmation {
            confirmation.extend(confirmation.clock.elapsed());
        }
    }

    /// As [`Sealer::use_key`], with the key that the database reported as current. `asked` is the [`Clock::elapsed`]
    /// at the start of the query.
    pub fn confirm(&self, fingerprint: Fingerprint, asked: Duration) -> bool {
        let held = self.use_key(fingerprint);
        if let Some(confirmation) = &self.confirmation {
            confirmation.extend(asked);
        }
        held
    }

    /// Checks that the current key is held and confirmed.
    ///
    /// # Errors
    /// [`SealRefused`] if it is not.
    pub fn can_seal(&self) -> Result<(), SealRefused> {
        self.current().map(|_| ())
    }

    fn current(&self) -> Result<&(Fingerprint, XChaCha20Poly1305), SealRefused> {
        if self
            .confirmation
            .as_ref()
            .is_some_and(Confirmation::is_over)
        {
            return Err(SealRefused::Unconfirmed);
        }
        let place = self.current.load(Ordering::Relaxed);
        self.keys.get(place).ok_or(SealRefused::NotHeld)
    }

    /// The held keys.
    pub fn held(&self) -> impl Iterator<Item = Fingerprint> {
        self.keys.iter().map(|(held, _)| *held)
    }

    /// Whether a key is held.
    #[must_use]
    pub fn holds(&self, fingerprint: Fingerprint) -> bool {
        self.held().any(|held| held == fingerprint)
    }

    /// The key that sealed these bytes; `None` if they are malformed.
    #[must_use]
    pub fn key_of(&self, sealed: &Sealed) -> Option<Fingerprint> {
        let (version, rest) = sealed.0.split_first()?;
        match *version {
            BY_FIRST_KEY => Some(self.first),
            BY_NAMED_KEY => rest.first_chunk().map(|bytes| Fingerprint(*bytes)),
            _ => None,
        }
    }

    /// Distinguishes bytes of an absent key from damaged bytes.
    ///
    /// # Errors
    /// [`SealRefused::NotHeld`] if the key of the bytes is not held.
    pub fn can_open(&self, sealed: &Sealed) -> Result<(), SealRefused> {
        match self.key_of(sealed) {
            Some(key) if !self.holds(key) => Err(SealRefused::NotHeld),
            _ => Ok(()),
        }
    }

    /// Whether the current key sealed these bytes.
    #[must_use]
    pub fn is_current(&self, sealed: &Sealed) -> bool {
        let current = self.keys.get(self.current.load(Ordering::Relaxed));
        self.key_of(sealed)
            .is_some_and(|key| current.is_some_and(|(held, _)| *held == key))
    }

    /// The blind index of a value within `place`, such as the emails of one partner. Equal values have equal indexes
    /// within a place, and different indexes in different places.
    #[must_use]
    pub fn mark(&self, place: &str, value: &str) -> BlindIndex {
        let mut mac = self.marks.clone();
        // A place contains no NUL, so different pairs give different bytes.
        for part in [place.as_bytes(), b"\0", value.as_bytes()] {
            mac.update(part);
        }
        BlindIndex(mac.finalize().into_bytes().into())
    }

    /// Signs bytes. Their content must state what they are, because all signatures use one key.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        let mut mac = self.signatures.clone();
        mac.update(bytes);
        Signature(mac.finalize().into_bytes().into())
    }

    /// Seals `plain` for the row named by `place`.
    ///
    /// # Errors
    /// [`SealRefused`] if the current key is not held or not confirmed, or if `plain` is too long.
    pub fn seal(
        &self,
        place: &str,
        plain: &[u8],
        entropy: &dyn Entropy,
    ) -> Result<Sealed, SealRefused> {
        let (fingerprint, cipher) = self.current()?;
        let mut nonce = [0; NONCE];
        entropy.fill(&mut nonce);
        let payload = Payload {
            msg: plain,
            aad: place.as_bytes(),
        };
        let ciphertext = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| SealRefused::TooLong)?;
        let mut bytes = Vec::with_capacity(1 + FINGERPRINT + NONCE + ciphertext.len());
        if *fingerprint == self.first {
            bytes.push(BY_FIRST_KEY);
        } else {
            bytes.push(BY_NAMED_KEY);
            bytes.extend_from_slice(&fingerprint.0);
        }
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&ciphertext);
        Ok(Sealed(bytes))
    }

    /// Opens bytes that were sealed for `place`.
    ///
    /// # Errors
    /// [`SealBroken`] if the bytes were sealed with another key or for another row, or are damaged.
    pub fn open(&self, place: &str, sealed: &Sealed) -> Result<Vec<u8>, SealBroken> {
        let key = self.key_of(sealed).ok_or(SealBroken)?;
        let (_, cipher) = self
            .keys
            .iter()
            .find(|(held, _)| *held == key)
            .ok_or(SealBroken)?;
        let named = sealed.0.first() == Some(&BY_NAMED_KEY);
        let header = if named { 1 + FINGERPRINT } else { 1 };
        let rest = sealed.0.get(header..).ok_or(SealBroken)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE>().ok_or(SealBroken)?;
        let payload = Payload {
            msg: ciphertext,
            aad: place.as_bytes(),
        };
        cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| SealBroken)
    }
}

/// HMAC pads a key to the block size with zeros; these keys have 32 and 50 bytes.
pub(crate) fn keyed(key: &[u8]) -> Hmac<Sha256> {
    let mut block = Zeroizing::new([0; 64]);
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    Hmac::new(&Array::from(*block))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(7);
        }
    }

    #[test]
    fn sealed_bytes_open_only_in_same_place_with_same_key() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let sealed = sealer.seal("events/1", b"body", &Sevens).unwrap();
        assert_eq!(sealer.open("events/1", &sealed).unwrap(), b"body");
        assert_eq!(sealer.open("events/2", &sealed), Err(SealBroken));
        assert_eq!(
            Sealer::new(&MasterKey::new([2; 32])).open("events/1", &sealed),
            Err(SealBroken)
        );
        let mut damaged = sealed.clone();
        *damaged.0.last_mut().unwrap() ^= 1;
        assert_eq!(sealer.open("events/1", &damaged), Err(SealBroken));
        assert_eq!(sealer.open("events/1", &Sealed(vec![])), Err(SealBroken));
    }

    // rule: gate.customer.keyed-hash
    #[test]
    fn index_depends_on_value_place_and_key() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let mark = sealer.mark("emails/acme", "ann@example.com");
        assert_eq!(sealer.mark("emails/acme", "ann@example.com"), mark);
        assert_ne!(sealer.mark("emails/acme", "ann@example.co"), mark);
        assert_ne!(sealer.mark("emails/rival", "ann@example.com"), mark);
        let other = Sealer::new(&MasterKey::new([2; 32]));
        assert_ne!(other.mark("emails/acme", "ann@example.com"), mark);
        assert_eq!(format!("{mark:?}"), "Mark");
    }

    #[test]
    fn token_key_is_derived_for_embed_tokens() {
        let first = MasterKey::new([1; 32]);
        let derived = first.derive("penstock/token/embed/v1");
        assert_eq!(DerivedKeys::of(&first).token_key(), derived);
    }

    #[test]
    fn fingerprints_differ_by_key() {
        assert_ne!(
            MasterKey::new([1; 32]).fingerprint(),
            MasterKey::new([2; 32]).fingerprint()
        );
        let text = MasterKey::new([1; 32]).fingerprint().to_string();
        assert_eq!(text.len(), 16);
        assert_eq!(Fingerprint::parse(&text).unwrap().to_string(), text);
        assert_eq!(Fingerprint::parse(&text.to_uppercase()), None);
    }

    // rule: base.master-key-rotation
    #[test]
    fn sealer_opens_with_every_held_key_and_seals_with_current_key() {
        let keys = [1, 2].map(|byte| MasterKey::new([byte; 32]));
        let [first, second] = keys.each_ref().map(MasterKey::fingerprint);
        let derived = DerivedKeys::of(&keys[0]);
        let sealer = Sealer::holding(&keys, first, &derived);
        let old = sealer.seal("a", b"x", &Sevens).unwrap();
        assert_eq!((old.0[0], sealer.key_of(&old)), (1, Some(first)));
        assert!(sealer.is_current(&old));
        // The key is not held, so nothing is sealed, but all values can still be opened.
        assert!(!sealer.use_key(MasterKey::new([3; 32]).fingerprint()));
        let refused = sealer.seal("a", b"x", &Sevens);
        assert_eq!(refused.unwrap_err(), SealRefused::NotHeld);
        assert_eq!(sealer.open("a", &old).unwrap(), b"x");
        assert!(sealer.use_key(second));
        let new = sealer.seal("a", b"x", &Sevens).unwrap();
        assert_eq!((new.0[0], sealer.key_of(&new)), (2, Some(second)));
        assert!(sealer.is_current(&new) && !sealer.is_current(&old));
        for sealed in [&old, &new] {
            assert_eq!(sealer.open("a", sealed).unwrap(), b"x");
        }
        // Without the old key, only values that name the new key open. Indexes and signatures are unchanged.
        let kept = DerivedKeys::from_bytes(derived.as_bytes()).unwrap();
        let alone = Sealer::holding(&keys[1..], first, &kept);
        assert_eq!(alone.open("a", &old), Err(SealBroken));
        assert_eq!(alone.open("a", &new).unwrap(), b"x");
        assert_eq!(alone.mark("p", "v"), sealer.mark("p", "v"));
        assert_eq!(alone.sign(b"b"), Sealer::new(&keys[0]).sign(b"b"));
        assert_eq!(alone.open("a", &Sealed(vec![2, 0])), Err(SealBroken));
    }

    struct Hand(AtomicU64);
    impl Clock for Hand {
        fn now(&self) -> kernel::Timestamp {
            kernel::Timestamp::EARLIEST
        }
        fn elapsed(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    // rule: base.master-key-rotation
    #[test]
    fn service_sealer_seals_for_five_seconds_after_confirmation() {
        let key = MasterKey::new([1; 32]);
        let clock = Arc::new(Hand(AtomicU64::new(60_000)));
        let sealer = Sealer::new(&key).requiring_confirmation(clock.clone());
        assert_eq!(sealer.can_seal(), Ok(()));
        clock.0.store(90_000, Ordering::Relaxed);
        assert_eq!(sealer.can_seal(), Ok(()), "not required yet");
        clock.0.store(50_000, Ordering::Relaxed);
        sealer.expect_confirmations();
        clock.0.store(55_000, Ordering::Relaxed);
        assert_eq!(sealer.can_seal(), Err(SealRefused::Unconfirmed));
        clock.0.store(60_000, Ordering::Relaxed);
        assert!(sealer.confirm(key.fingerprint(), Duration::from_secs(59)));
        clock.0.store(63_999, Ordering::Relaxed);
        assert_eq!(sealer.can_seal(), Ok(()));
        clock.0.store(64_000, Ordering::Relaxed);
        assert_eq!(sealer.can_seal(), Err(SealRefused::Unconfirmed));
        let refused = sealer.seal("a", b"x", &Sevens).unwrap_err();
        assert!(matches!(
            StoreError::from(refused),
            StoreError::Unavailable(_)
        ));
        assert!(sealer.confirm(key.fingerprint(), Duration::from_secs(64)));
        assert_eq!(sealer.can_seal(), Ok(()));
    }
}
