//! Idempotency keys: one effect per partner, mode, route and key.

use std::fmt;

use kernel::Timestamp;
use sha2::{Digest, Sha256};

use crate::Tenant;

/// A client's idempotency key: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// The header's value is not 1 to 255 visible ASCII characters, bare or as a quoted string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to 255 visible ASCII characters")]
pub struct MalformedKey;

impl IdempotencyKey {
    /// Parses the header's value, bare (`abc`) or as a quoted string (`"abc"`).
    ///
    /// # Errors
    /// [`MalformedKey`] if the key is not 1 to 255 visible ASCII characters.
    pub fn parse(value: &[u8]) -> Result<Self, MalformedKey> {
        let bare = match value {
            [b'"', inner @ .., b'"'] => inner,
            [b'"', ..] => return Err(MalformedKey),
            bare => bare,
        };
        let fits = (1..=255).contains(&bare.len()) && bare.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(bare)
            .ok()
            .filter(|_| fits)
            .ok_or(MalformedKey)?;
        Ok(Self(text.to_owned()))
    }

    /// The key, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The operation of a request: its method, a space, and its path with the parameters decoded.
///
/// The text is stored, and sealed with the response, so it never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation(String);

impl Operation {
    /// The operation of a method and a path.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self(format!("{method} {path}"))
    }

    /// The text, such as `POST /v1/pools/EUR-USDT/transact`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An idempotency key with the operation it was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationKey {
    pub operation: Operation,
    /// The client's key.
    pub key: IdempotencyKey,
}

/// The scope of a key: partner, mode, route and path. It does not include the API key of the request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The partner and mode.
    pub tenant: Tenant,
    /// The text of the [`Operation`].
    pub route: String,
    /// The client's key.
    pub key: IdempotencyKey,
}

impl Scope {
    /// The scope of a request of a tenant.
    #[must_use]
    pub fn of_request(tenant: Tenant, request: OperationKey) -> Self {
        Self {
            tenant,
            route: request.operation.0,
            key: request.key,
        }
    }

    /// The scope of an object that only one request at a time may work on. The object's id takes the place of the
    /// key. `deed` is not a method and path, so no request has this scope.
    #[must_use]
    pub fn of_object(tenant: Tenant, deed: &str, id: impl fmt::Display) -> Self {
        Self {
            tenant,
            route: deed.to_owned(),
            key: IdempotencyKey(id.to_string()),
        }
    }
}

/// SHA-256 of the canonical form of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of the canonical bytes of a request.
    #[must_use]
    pub fn of(canonical: &[u8]) -> Self {
        Self(Sha256::digest(canonical).into())
    }

    /// The fingerprint of the fields that a route reads, as JSON.
    #[must_use]
    pub fn of_json(fields: &serde_json::Value) -> Self {
        Self::of(fields.to_string().as_bytes())
    }
}

kernel::debug_as_text!(Fingerprint, "Fingerprint(…)");

/// Whether a record that expires at an instant still counts. Each record stores its own expiry, so a changed setting
/// affects only new records. The sweep only keeps the tables small.
#[must_use]
pub fn counts(expires_at: Timestamp, now: Timestamp) -> bool {
    now < expires_at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_bare_and_quoted_keys() {
        assert_eq!(IdempotencyKey::parse(b"a-1").unwrap().as_str(), "a-1");
        assert_eq!(IdempotencyKey::parse(b"\"a-1\"").unwrap().as_str(), "a-1");
        assert_eq!(
            IdempotencyKey::parse(&[b'x'; 255]).unwrap().as_str().len(),
            255
        );
    }

    #[test]
    fn refuses_every_other_value() {
        for bad in [
            &b""[..],
            b"\"\"",
            b"\"",
            b"\"a",
            b"a b",
            b"a\tb",
            "ключ".as_bytes(),
            &[b'x'; 256],
            b"\x00",
            b"\xff",
        ] {
            assert_eq!(IdempotencyKey::parse(bad), Err(MalformedKey), "{bad:?}");
        }
    }
}
