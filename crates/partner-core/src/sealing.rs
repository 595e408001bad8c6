//! Encryption at rest: webhook secrets, event bodies, stored answers and personal data reach a
//! store only as [`Sealed`] bytes, and are found there by a [`Mark`].

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::digest::array::Array;
use hmac::{Hmac, Mac as _};
use kernel::Entropy;
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;
use zeroize::Zeroizing;

/// First byte of sealed bytes: the only form there is so far.
const VERSION: u8 = 1;
const NONCE: usize = 24;

/// The installation's 32-byte master key. Everything sealed or signed derives from it.
#[derive(Debug)]
pub struct MasterKey(SecretBox<[u8; 32]>);

impl MasterKey {
    /// Takes the 32 bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(SecretBox::new(Box::new(bytes)))
    }

    /// Sixteen hexadecimal digits that name the key without telling it: stored in the database,
    /// so that a program started with another key refuses to run.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(&self.derive("penstock/fingerprint/v1")[..8])
    }

    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut derived = [0; 32];
        let expanded = Hkdf::<Sha256>::new(None, self.0.expose_secret())
            .expand(purpose.as_bytes(), &mut derived);
        debug_assert!(expanded.is_ok(), "32 bytes are within the limit of HKDF");
        derived
    }
}

/// Encrypted and authenticated bytes: a version, a nonce, the ciphertext.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// A keyed hash of a value that is kept sealed: what it is found by, and known by to be there twice.
/// It tells nothing of the value to who has not the master key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub [u8; 32]);

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mark")
    }
}

/// HMAC-SHA256 over bytes, under a key of the installation's: they are what it once gave. Printed in
/// hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 32]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Sealed bytes that do not open: another key, another row, or damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sealed bytes do not open: another master key, another row, or damage")]
pub struct SealBroken;

/// Seals and opens with XChaCha20-Poly1305 under a key derived from the master key.
///
/// `place` names the row the bytes belong to and is authenticated with them, so that a
/// ciphertext moved to another row does not open.
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    marks: Hmac<Sha256>,
    signatures: Hmac<Sha256>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// The sealer of an installation.
    #[must_use]
    pub fn new(master: &MasterKey) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(master.derive("penstock/seal/v1"))),
            marks: keyed(&master.derive("penstock/mark/v1")),
            signatures: keyed(&master.derive("penstock/signature/v1")),
        }
    }

    /// The mark of a value among those of `place`, such as the emails of one partner: equal values
    /// have equal marks there, and other marks in every other place.
    #[must_use]
    pub fn mark(&self, place: &str, value: &str) -> Mark {
        let mut mac = self.marks.clone();
        // A place has no NUL, so no two pairs are the same bytes.
        for part in [place.as_bytes(), b"\0", value.as_bytes()] {
            mac.update(part);
        }
        Mark(mac.finalize().into_bytes().into())
    }

    /// Signs bytes that say themselves what they are.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        let mut mac = self.signatures.clone();
        mac.update(bytes);
        Signature(mac.finalize().into_bytes().into())
    }

    /// Seals `plain` for the row named by `place`.
    ///
    /// # Errors
    /// [`SealBroken`] only for more bytes than the cipher can take (256 GiB).
    pub fn seal(
        &self,
        place: &str,
        plain: &[u8],
        entropy: &dyn Entropy,
    ) -> Result<Sealed, SealBroken> {
        let mut nonce = [0; NONCE];
        entropy.fill(&mut nonce);
        let payload = Payload {
            msg: plain,
            aad: place.as_bytes(),
        };
        let ciphertext = self
            .cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| SealBroken)?;
        let mut bytes = Vec::with_capacity(1 + NONCE + ciphertext.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&ciphertext);
        Ok(Sealed(bytes))
    }

    /// Opens what was sealed for `place`.
    ///
    /// # Errors
    /// [`SealBroken`] where the bytes were sealed with another key or for another row.
    pub fn open(&self, place: &str, sealed: &Sealed) -> Result<Vec<u8>, SealBroken> {
        let (version, rest) = sealed.0.split_first().ok_or(SealBroken)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE>().ok_or(SealBroken)?;
        if *version != VERSION {
            return Err(SealBroken);
        }
        let payload = Payload {
            msg: ciphertext,
            aad: place.as_bytes(),
        };
        self.cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| SealBroken)
    }
}

/// HMAC fills a key up to the digest's block with zeros; ours have 32 and 50 bytes.
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
    fn opens_only_what_was_sealed_here_with_this_key() {
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
    fn marks_are_of_one_value_one_place_and_one_key() {
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
    fn fingerprints_tell_keys_apart() {
        assert_ne!(
            MasterKey::new([1; 32]).fingerprint(),
            MasterKey::new([2; 32]).fingerprint()
        );
        assert_eq!(MasterKey::new([1; 32]).fingerprint().len(), 16);
    }
}
