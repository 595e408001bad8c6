//! Signatures of notifications that an upstream sends to Penstock, in the scheme of our own deliveries: `t=<unix seconds>,v1=<hex>`,
//! lowercase hex of HMAC-SHA256 over `<t>.<body>`, whose key is the whole text of the upstream's secret.

use std::borrow::Cow;

use hmac::Mac;
use kernel::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::signing::{Timed, is_recent, plain};

/// The longest key that HMAC-SHA256 uses as it is. It uses the hash of a longer one.
const BLOCK: usize = 64;

/// The secret that an upstream signs its notifications with.
pub struct NotificationSecret(SecretString);

/// Why a notification is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// The header does not have the form of a signature.
    #[error("the signature does not have the form `t=<unix seconds>,v1=<hex>`")]
    Malformed,
    /// No signature of the header fits the body.
    #[error("the signature does not fit the body and the secret")]
    Wrong,
    /// The signature is genuine, but was not made within five minutes of now.
    #[error("the timestamp is more than five minutes away from the current time")]
    Old,
}

impl NotificationSecret {
    /// The secret of an upstream.
    #[must_use]
    pub const fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Checks that the holder of the secret signed this body within five minutes of now.
    pub fn check(&self, header: &str, body: &[u8], now: Timestamp) -> Result<(), Unproven> {
        let timed = Timed::read(header).ok_or(Unproven::Malformed)?;
        if !timed.proves(plain(&self.key(), timed.time, body)) {
            return Err(Unproven::Wrong);
        }
        if is_recent(timed.time, now) {
            Ok(())
        } else {
            Err(Unproven::Old)
        }
    }

    /// The signature of a body at an instant.
    #[must_use]
    pub fn sign(&self, body: &[u8], now: Timestamp) -> String {
        let time = now.seconds();
        let mac = plain(&self.key(), time, body).finalize().into_bytes();
        format!("t={time},v1={}", hex::encode(mac))
    }

    fn key(&self) -> Cow<'_, [u8]> {
        let key = self.0.expose_secret().as_bytes();
        if key.len() > BLOCK {
            Cow::Owned(Sha256::digest(key).to_vec())
        } else {
            Cow::Borrowed(key)
        }
    }
}

kernel::debug_as_text!(NotificationSecret, "NotificationSecret");

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"pi_live_01KSFVT4Z2V6B9C1D3F5G7H8JK"}"#;

    fn secret(text: &str) -> NotificationSecret {
        NotificationSecret::new(text.into())
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000).unwrap()
    }

    /// The expected values come from OpenSSL.
    // rule: rail.notification.signature
    #[test]
    fn signature_matches_vectors_of_short_and_long_secrets() {
        for (text, expected) in VECTORS {
            let signed = secret(text).sign(BODY, at(1_700_000_000));
            assert_eq!(signed, format!("t=1700000000,v1={expected}"));
        }
    }

    // rule: rail.notification.signature
    #[test]
    fn check_accepts_only_recent_signatures_of_the_body() {
        let (ours, now) = (secret("a-secret-of-the-rail"), at(1_700_000_000));
        let signed = ours.sign(BODY, now);
        let other = secret("another-secret-of-the-rail").sign(BODY, now);
        assert_eq!(ours.check(&signed, BODY, now), Ok(()));
        let rotated = format!("{other},{}", signed.split_once(',').unwrap().1);
        assert_eq!(ours.check(&rotated, BODY, now), Ok(()));
        for seconds in [-300, 300] {
            assert_eq!(
                ours.check(&signed, BODY, at(1_700_000_000 + seconds)),
                Ok(())
            );
        }
        for seconds in [-301, 301] {
            let checked = ours.check(&signed, BODY, at(1_700_000_000 + seconds));
            assert_eq!(checked, Err(Unproven::Old));
        }
        assert_eq!(ours.check(&other, BODY, now), Err(Unproven::Wrong));
        assert_eq!(ours.check(&signed, b"{}", now), Err(Unproven::Wrong));
        let later = signed.replace("t=1700000000", "t=1700000001");
        assert_eq!(ours.check(&later, BODY, now), Err(Unproven::Wrong));
        assert_eq!(ours.check("t=1700000000", BODY, now), Err(Unproven::Wrong));
        for bad in ["", "v1=00", "t=,v1=00", "t=+1700000000,v1=00", "sha256=00"] {
            assert_eq!(
                ours.check(bad, BODY, now),
                Err(Unproven::Malformed),
                "{bad}"
            );
        }
    }

    const VECTORS: [(&str, &str); 2] = [
        (
            "a-secret-of-the-rail",
            "e0e11daa902013aa2aa33fd461c114505245f5a25bc78cb696c9da7d60118b7c",
        ),
        (
            "a-secret-of-the-rail-that-is-longer-than-one-block-of-the-hash-function",
            "7b7a886b58b42053a9dbc2a214aa200c46f072f2bfd1762704c5ec28cce53faf",
        ),
    ];
}
