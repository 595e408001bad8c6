//! Client secrets, which bind the bootstrap of a browser to one session.

use kernel::Entropy;
use partner_core::key::{is_random_base62, random_base62};
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::session::SessionId;

/// The SHA-256 of a client secret, which is stored in its place.
#[derive(Clone, Copy)]
pub struct SecretHash(pub [u8; 32]);

impl PartialEq for SecretHash {
    /// Compares in constant time.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretHash {}

kernel::debug_as_text!(SecretHash, "SecretHash(…)");

/// A new client secret. Its text is shown once and never stored.
#[derive(Debug)]
pub struct ClientSecret {
    /// `gsec_<session_id>_<random>`.
    pub text: SecretString,
    /// The hash that is stored.
    pub hash: SecretHash,
}

impl ClientSecret {
    /// Makes the secret of a session from 32 random characters.
    #[must_use]
    pub fn generate(session: SessionId, entropy: &dyn Entropy) -> Self {
        let text = format!("gsec_{session}_{}", random_base62(entropy));
        Self {
            hash: hash_of(&text),
            text: SecretString::from(text),
        }
    }
}

/// A presented client secret: the session it names, and its hash. The text is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresentedSecret {
    /// The session it names.
    pub session: SessionId,
    /// The hash that is compared.
    pub hash: SecretHash,
}

impl PresentedSecret {
    /// Parses `gsec_<session_id>_<random>`; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (session, random) = text.strip_prefix("gsec_")?.rsplit_once('_')?;
        if !is_random_base62(random) {
            return None;
        }
        Some(Self {
            session: SessionId::parse(session)?,
            hash: hash_of(text),
        })
    }
}

fn hash_of(text: &str) -> SecretHash {
    SecretHash(Sha256::digest(text.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use kernel::{Mode, Timestamp};
    use secrecy::ExposeSecret as _;

    use super::*;

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(7);
        }
    }

    // rule: gate.session.secret-once, gate.session.secret-hashed
    #[test]
    fn secret_names_its_session_and_stores_hash() {
        let at = Timestamp::from_millis(0).unwrap();
        let session = SessionId::new(Mode::Test, at, &Sevens);
        let secret = ClientSecret::generate(session, &Sevens);
        let text = secret.text.expose_secret();
        assert_eq!(*text, format!("gsec_{session}_{}", "7".repeat(32)));
        let presented = PresentedSecret::parse(text).unwrap();
        assert_eq!((presented.session, presented.hash), (session, secret.hash));
        assert!(!format!("{secret:?}{:?}", presented.hash).contains("7777777777"));
        let other = format!("gsec_{session}_{}", "8".repeat(32));
        let wrong = PresentedSecret::parse(&other).unwrap();
        assert_ne!(wrong.hash, secret.hash);
        for bad in [
            "",
            "gsec_",
            "gsec__x",
            "gsec_gs_test_x_y",
            &format!("gsec_{session}"),
            &format!("gsec_{session}_"),
            &format!("gsec_gs_test_x_{}", "7".repeat(32)),
            &format!("{text}7"),
            &text[..text.len() - 1],
            &format!("gsec_{session}_{}-", "7".repeat(31)),
            &text[5..],
            "sk_test_x",
        ] {
            assert_eq!(PresentedSecret::parse(bad), None, "{bad}");
        }
    }
}
