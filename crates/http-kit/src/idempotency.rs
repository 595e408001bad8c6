//! The `Idempotency-Key` header.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use partner_core::idempotency::IdempotencyKey;

use crate::error::ApiError;

/// The header as sent. Taking it refuses nothing, so that a handler can judge the body first
/// and the key after it.
#[derive(Debug, Clone)]
pub struct IdempotencyHeader(Found);

#[derive(Debug, Clone)]
enum Found {
    Absent,
    Malformed,
    Key(IdempotencyKey),
}

impl IdempotencyHeader {
    /// The key of a write that cannot do without one.
    ///
    /// # Errors
    /// 400 `idempotency_key_required` or `idempotency_key_invalid`.
    pub fn required(self) -> Result<IdempotencyKey, ApiError> {
        self.optional()?.ok_or_else(|| {
            ApiError::invalid(
                "idempotency_key_required",
                "The `Idempotency-Key` header is required here: a value of your own, the same for every retry of one operation.",
            )
        })
    }

    /// The key of a write that is safe without one.
    ///
    /// # Errors
    /// 400 `idempotency_key_invalid`.
    pub fn optional(self) -> Result<Option<IdempotencyKey>, ApiError> {
        match self.0 {
            Found::Absent => Ok(None),
            Found::Key(key) => Ok(Some(key)),
            Found::Malformed => Err(ApiError::invalid(
                "idempotency_key_invalid",
                "The `Idempotency-Key` header must be sent once and hold 1 to 255 visible ASCII characters.",
            )),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyHeader {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut values = parts.headers.get_all("idempotency-key").iter();
        Ok(Self(match (values.next(), values.next()) {
            (None, _) => Found::Absent,
            (Some(only), None) => match IdempotencyKey::parse(only.as_bytes()) {
                Ok(key) => Found::Key(key),
                Err(_) => Found::Malformed,
            },
            (Some(_), Some(_)) => Found::Malformed,
        }))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, Request};

    use super::*;

    async fn read(values: &[&[u8]]) -> IdempotencyHeader {
        let mut request = Request::new(());
        for value in values {
            let value = HeaderValue::from_bytes(value).unwrap();
            request.headers_mut().append("idempotency-key", value);
        }
        let mut parts = request.into_parts().0;
        let Ok(header) = IdempotencyHeader::from_request_parts(&mut parts, &()).await;
        header
    }

    #[tokio::test]
    async fn tells_absent_from_malformed() {
        let key = read(&[b"abc"]).await.required().unwrap();
        assert_eq!(key.as_str(), "abc");
        assert_eq!(read(&[b"\"abc\""]).await.required().unwrap(), key);
        assert!(read(&[]).await.optional().unwrap().is_none());
        let code = read(&[]).await.required().unwrap_err().code();
        assert_eq!(code, "idempotency_key_required");
        for bad in [&[&b""[..]][..], &[b"a b"], &[b"\xff"], &[b"a", b"a"]] {
            let code = read(bad).await.required().unwrap_err().code();
            assert_eq!(code, "idempotency_key_invalid", "{bad:?}");
        }
    }
}
