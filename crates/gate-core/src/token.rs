//! Signed tokens: JSON Web Tokens with HS256, under a key of the installation.
//!
//! `jsonwebtoken` encodes and decodes them. HMAC-SHA-256 comes from the crates that sign events, so no second
//! cryptography library is compiled. This module does not check the expiry: the caller compares it with the store's
//! clock.

use std::sync::Arc;

use hmac::digest::KeyInit as _;
use hmac::{Hmac, Mac as _};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::Sha256;
use signature::{Signer, Verifier};

use partner_core::sealing::DerivedKeys;

/// Signs tokens and verifies its own signatures.
#[derive(Clone)]
pub struct TokenKey(Arc<Keys>);

struct Keys {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

/// The claims could not be serialized.
#[derive(Debug, thiserror::Error)]
#[error("a token could not be signed")]
pub struct Unsigned(#[source] Error);

impl TokenKey {
    /// The token key of an installation.
    #[must_use]
    pub fn new(derived: &DerivedKeys) -> Self {
        // Returns an error if a provider is installed already.
        let _ = PROVIDER.install_default();
        let key = derived.token_key();
        Self(Arc::new(Keys {
            encoding: EncodingKey::from_secret(&key),
            decoding: DecodingKey::from_secret(&key),
        }))
    }

    /// Signs claims.
    ///
    /// # Errors
    /// [`Unsigned`] if the claims cannot be serialized.
    pub fn sign(&self, claims: &Map<String, Value>) -> Result<String, Unsigned> {
        let header = Header::new(Algorithm::HS256);
        jsonwebtoken::encode(&header, claims, &self.0.encoding).map_err(Unsigned)
    }

    /// The claims of a token signed with this key; `None` for any other text. Does not check the expiry.
    #[must_use]
    pub fn open<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        let data = jsonwebtoken::decode(token, &self.0.decoding, &validation).ok()?;
        Some(data.claims)
    }
}

/// Provides only HS256.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| {
        let key = hs256(*algorithm, key.as_bytes())?;
        Ok(Box::new(key))
    },
    verifier_factory: |algorithm, key| {
        let key = hs256(*algorithm, key.try_get_as_bytes()?)?;
        Ok(Box::new(key))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

struct Hs256(Hmac<Sha256>);

fn hs256(algorithm: Algorithm, key: &[u8]) -> Result<Hs256, Error> {
    if algorithm != Algorithm::HS256 {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let keyed = Hmac::new_from_slice(key).map_err(|_| ErrorKind::InvalidKeyFormat)?;
    Ok(Hs256(keyed))
}

impl Hs256 {
    fn of(&self, message: &[u8]) -> Hmac<Sha256> {
        self.0.clone().chain_update(message)
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.of(message).finalize().into_bytes().to_vec())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], given: &Vec<u8>) -> Result<(), signature::Error> {
        // Compares in constant time.
        let verified = self.of(message).verify_slice(given);
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use partner_core::sealing::MasterKey;

    fn key(byte: u8) -> TokenKey {
        TokenKey::new(&DerivedKeys::of(&MasterKey::new([byte; 32])))
    }

    fn claims(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    // rule: gate.bootstrap.token-hs256
    #[test]
    fn token_signature_is_digest_of_its_text() {
        let token = key(1).sign(&claims(r#"{"sub":"acme"}"#)).unwrap();
        let (signed, digest) = token.rsplit_once('.').unwrap();
        let (header, body) = signed.split_once('.').unwrap();
        let decoded = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap());
        assert_eq!(decoded(header).unwrap(), r#"{"typ":"JWT","alg":"HS256"}"#);
        assert_eq!(decoded(body).unwrap(), r#"{"sub":"acme"}"#);
        let secret = DerivedKeys::of(&MasterKey::new([1; 32])).token_key();
        let expected = Hmac::<Sha256>::new_from_slice(&secret)
            .unwrap()
            .chain_update(signed);
        let digest = URL_SAFE_NO_PAD.decode(digest).unwrap();
        assert!(expected.verify_slice(&digest).is_ok());
    }

    // rule: gate.bootstrap.token-hs256
    #[test]
    fn token_of_other_key_or_algorithm_is_refused() {
        let ours = key(1);
        let token = ours.sign(&claims(r#"{"sub":"acme","exp":1}"#)).unwrap();
        let read = |key: &TokenKey, token: &str| key.open::<Map<String, Value>>(token);
        assert_eq!(read(&ours, &token).unwrap()["sub"], "acme");
        assert_eq!(read(&key(2), &token), None);
        let (signed, digest) = token.rsplit_once('.').unwrap();
        let body = signed.split_once('.').unwrap().1;
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"HS384","typ":"JWT"}"#,
            r#"{"alg":"RS256"}"#,
        ] {
            let header = URL_SAFE_NO_PAD.encode(header);
            assert_eq!(read(&ours, &format!("{header}.{body}.{digest}")), None);
            assert_eq!(read(&ours, &format!("{header}.{body}.")), None);
        }
        let other = URL_SAFE_NO_PAD.encode(r#"{"sub":"bolt","exp":1}"#);
        let head = signed.split_once('.').unwrap().0;
        assert_eq!(read(&ours, &format!("{head}.{other}.{digest}")), None);
        for bad in ["", ".", "..", "a.b.c", &token[1..]] {
            assert_eq!(read(&ours, bad), None, "{bad}");
        }
    }
}
