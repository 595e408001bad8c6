//! The documentation of error codes, with the codes that all services share.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::error::Kind;

/// The documentation of one error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorDoc {
    /// The `code`; also the anchor on the documentation page.
    pub code: &'static str,
    /// The status of the response.
    pub status: u16,
    /// The `type` of the response.
    pub kind: Kind,
    /// Why the request failed.
    pub meaning: &'static str,
    /// What the caller should do.
    pub what_to_do: &'static str,
}

/// Builds a row of [`SHARED_ERRORS`] or of a product's list.
#[must_use]
pub const fn error_doc(
    code: &'static str,
    status: u16,
    kind: Kind,
    meaning: &'static str,
    what_to_do: &'static str,
) -> ErrorDoc {
    ErrorDoc {
        code,
        status,
        kind,
        meaning,
        what_to_do,
    }
}

/// A Markdown page of the codes, by status. Each heading is only the code, so that its anchor is
/// the code.
#[must_use]
pub fn errors_page(introduction: &str, docs: impl IntoIterator<Item = ErrorDoc>) -> String {
    let mut by_status: BTreeMap<u16, Vec<ErrorDoc>> = BTreeMap::new();
    for doc in docs {
        by_status.entry(doc.status).or_default().push(doc);
    }
    let mut text = introduction.to_owned();
    text.push_str("\n| status | codes |\n| --- | --- |\n");
    for (status, docs) in &by_status {
        let links = docs.iter().map(|doc| format!("[`{0}`](#{0})", doc.code));
        let links: Vec<String> = links.collect();
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "| {status} | {} |", links.join(", "));
    }
    for (status, docs) in &by_status {
        let _ = write!(text, "\n## {status}\n");
        for doc in docs {
            let (code, kind) = (doc.code, doc.kind.as_str());
            let (meaning, advice) = (doc.meaning, doc.what_to_do);
            let _ = write!(
                text,
                "\n### {code}\n\nType `{kind}`. {meaning}\n\nWhat to do: {advice}\n"
            );
        }
    }
    text
}

const FIX: &str = "Fix the request; do not retry it unchanged.";
const RETRY: &str = "Retry with bounded backoff; retry a write with the same Idempotency-Key.";
const ASK: &str = "Do not retry until the operator has changed your access.";

/// Error codes that the HTTP layer returns in every product.
pub const SHARED_ERRORS: &[ErrorDoc] = {
    use Kind::{Forbidden, InvalidRequest, NotFound, RateLimited, ServerError, Unauthorized};
    &[
        error_doc(
            "invalid_request",
            400,
            InvalidRequest,
            "A field, a query parameter or the request itself is not as expected; the message names it.",
            FIX,
        ),
        error_doc(
            "invalid_json",
            400,
            InvalidRequest,
            "The body is not one strict JSON object: malformed, empty, a duplicate key, a NUL character, a lone surrogate, invalid UTF-8, or nested deeper than 32.",
            FIX,
        ),
        error_doc(
            "idempotency_key_required",
            400,
            InvalidRequest,
            "The route changes money or state and was called without an `Idempotency-Key`.",
            "Choose a value for each operation, and send the same value with every retry of it.",
        ),
        error_doc(
            "idempotency_key_invalid",
            400,
            InvalidRequest,
            "The `Idempotency-Key` is empty, repeated, longer than 255 characters or not visible ASCII.",
            FIX,
        ),
        error_doc(
            "unauthorized",
            401,
            Unauthorized,
            "The API key is missing, malformed or unknown.",
            "Send `Authorization: Bearer <API key>` with a key of this environment.",
        ),
        error_doc(
            "secret_key_in_query",
            401,
            Unauthorized,
            "The query string contains a secret key, where logs and browsers keep it.",
            "Revoke that key, create a new one, and send the new key in the header.",
        ),
        error_doc(
            "key_revoked",
            403,
            Forbidden,
            "The API key has been revoked.",
            "Use the key that replaced it.",
        ),
        error_doc(
            "key_expired",
            403,
            Forbidden,
            "The API key has expired.",
            "Use the key that replaces it, or ask the operator for one.",
        ),
        error_doc(
            "organization_suspended",
            403,
            Forbidden,
            "The organization is suspended; every route refuses it.",
            ASK,
        ),
        error_doc(
            "resource_not_found",
            404,
            NotFound,
            "There is no such object, or it belongs to another partner: the two read the same.",
            "Check the id and the environment.",
        ),
        error_doc(
            "route_not_found",
            404,
            InvalidRequest,
            "There is no such route.",
            "Check the path against this page.",
        ),
        error_doc(
            "method_not_allowed",
            405,
            InvalidRequest,
            "The route exists, but not for this method.",
            "Use a method of the `Allow` header.",
        ),
        error_doc(
            "request_timeout",
            408,
            InvalidRequest,
            "The head of the request took longer than 10 seconds, or its body longer than 15.",
            "Send the complete request again, without a pause.",
        ),
        error_doc(
            "body_too_large",
            413,
            InvalidRequest,
            "The body is larger than 64 KiB.",
            FIX,
        ),
        error_doc(
            "unsupported_media_type",
            415,
            InvalidRequest,
            "The body was not sent as `application/json`.",
            FIX,
        ),
        error_doc(
            "rate_limited",
            429,
            RateLimited,
            "Too many requests in a window of this route, or too many unknown keys from your address.",
            "Wait as long as the `Retry-After-<tier>` headers say, with jitter.",
        ),
        error_doc(
            "headers_too_large",
            431,
            InvalidRequest,
            "The head of the request is larger than 16 KiB or has more than 100 fields.",
            FIX,
        ),
        error_doc(
            "internal_error",
            500,
            ServerError,
            "The service failed; the request is not the cause.",
            RETRY,
        ),
        error_doc(
            "overloaded",
            503,
            ServerError,
            "The service is busy, or too many connections are open; the request had no effect.",
            RETRY,
        ),
        error_doc(
            "service_unavailable",
            503,
            ServerError,
            "A component that the service depends on does not respond; the request had no effect.",
            RETRY,
        ),
        error_doc(
            "outcome_unknown",
            503,
            ServerError,
            "A write was sent to the database and its outcome is not known yet.",
            "Retry with the same Idempotency-Key: the retry returns the outcome.",
        ),
        error_doc(
            "not_ready",
            503,
            ServerError,
            "The readiness probe found the database out of reach or its schema out of date.",
            "Route traffic elsewhere until the probe returns 200.",
        ),
    ]
};

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn codes_are_unique_and_fit_their_status() {
        for (at, doc) in SHARED_ERRORS.iter().enumerate() {
            let earlier = SHARED_ERRORS.iter().take(at);
            assert!(
                earlier.into_iter().all(|other| other.code != doc.code),
                "{}",
                doc.code
            );
            let status = StatusCode::from_u16(doc.status).unwrap();
            let expected = if doc.code == "route_not_found" {
                Kind::InvalidRequest
            } else {
                Kind::of(status)
            };
            assert_eq!(doc.kind, expected, "{}", doc.code);
        }
    }

    #[test]
    fn every_code_of_this_crate_is_explained() {
        let sources = [
            include_str!("body.rs"),
            include_str!("class.rs"),
            include_str!("connection.rs"),
            include_str!("credential.rs"),
            include_str!("error.rs"),
            include_str!("fallback.rs"),
            include_str!("idempotency.rs"),
            include_str!("json.rs"),
            include_str!("throttle.rs"),
        ];
        for doc in SHARED_ERRORS.iter().filter(|doc| doc.code != "not_ready") {
            let quoted = format!("\"{}\"", doc.code);
            let given = sources.iter().any(|source| source.contains(&quoted));
            assert!(given, "{} is explained and never given", doc.code);
        }
    }
}
