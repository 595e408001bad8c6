//! The error codes that the HTTP layer returns in every product.

use crate::error_code::ErrorCode;
use crate::error_codes;

const FIX: &str = "Fix the request; do not retry it unchanged.";
const RETRY: &str = "Retry with bounded backoff; retry a write with the same Idempotency-Key.";
const ASK: &str = "Do not retry until the operator has changed your access.";

error_codes! {
    /// The codes that the HTTP layer returns in every product.
    pub SHARED_ERRORS;
    INVALID_REQUEST = BAD_REQUEST "invalid_request",
        "A field, a query parameter or the request itself is not as expected; the message names it.",
        FIX;
    INVALID_JSON = BAD_REQUEST "invalid_json",
        "The body is not one strict JSON object: malformed, empty, a duplicate key, a NUL character, a lone surrogate, invalid UTF-8, or nested deeper than 32.",
        FIX;
    IDEMPOTENCY_KEY_REQUIRED = BAD_REQUEST "idempotency_key_required",
        "The route changes money or state and was called without an `Idempotency-Key`.",
        "Choose a value for each operation, and send the same value with every retry of it.";
    IDEMPOTENCY_KEY_INVALID = BAD_REQUEST "idempotency_key_invalid",
        "The `Idempotency-Key` is empty, repeated, longer than 255 characters or not visible ASCII.",
        FIX;
    UNAUTHORIZED = UNAUTHORIZED "unauthorized",
        "The API key is missing, malformed or unknown.",
        "Send `Authorization: Bearer <API key>` with a key of this environment.";
    SECRET_KEY_IN_QUERY = UNAUTHORIZED "secret_key_in_query",
        "The query string contains a secret key, where logs and browsers keep it.",
        "Revoke that key, create a new one, and send the new key in the header.";
    KEY_REVOKED = FORBIDDEN "key_revoked",
        "The API key has been revoked.",
        "Use the key that replaced it.";
    KEY_EXPIRED = FORBIDDEN "key_expired",
        "The API key has expired.",
        "Use the key that replaces it, or ask the operator for one.";
    ORGANIZATION_SUSPENDED = FORBIDDEN "organization_suspended",
        "The organization is suspended; every route refuses it.",
        ASK;
    RESOURCE_NOT_FOUND = NOT_FOUND "resource_not_found",
        "There is no such object, or it belongs to another partner: the two read the same.",
        "Check the id and the environment.";
    ROUTE_NOT_FOUND = NOT_FOUND "route_not_found",
        "There is no such route.",
        "Check the path against this page.";
    METHOD_NOT_ALLOWED = METHOD_NOT_ALLOWED "method_not_allowed",
        "The route exists, but not for this method.",
        "Use a method of the `Allow` header.";
    REQUEST_TIMEOUT = REQUEST_TIMEOUT "request_timeout",
        "The head of the request took longer than 10 seconds, or its body longer than 15.",
        "Send the complete request again, without a pause.";
    BODY_TOO_LARGE = PAYLOAD_TOO_LARGE "body_too_large",
        "The body is larger than 64 KiB.",
        FIX;
    UNSUPPORTED_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE "unsupported_media_type",
        "The body was not sent as `application/json`, or it has a `Content-Encoding`.",
        FIX;
    RATE_LIMITED = TOO_MANY_REQUESTS "rate_limited",
        "Too many requests in a window of this route, or too many unknown keys from your address.",
        "Wait as long as `Retry-After-short` says, with jitter.";
    HEADERS_TOO_LARGE = REQUEST_HEADER_FIELDS_TOO_LARGE "headers_too_large",
        "The head of the request is larger than 16 KiB or has more than 100 fields.",
        FIX;
    INTERNAL_ERROR = INTERNAL_SERVER_ERROR "internal_error",
        "The service failed; the request is not the cause.",
        RETRY;
    OVERLOADED = SERVICE_UNAVAILABLE "overloaded",
        "The service is busy, or too many connections are open; the request had no effect.",
        RETRY;
    SERVICE_UNAVAILABLE = SERVICE_UNAVAILABLE "service_unavailable",
        "A component that the service depends on does not respond; the request had no effect.",
        RETRY;
    OUTCOME_UNKNOWN = SERVICE_UNAVAILABLE "outcome_unknown",
        "A write was sent to the database and its outcome is not known yet.",
        "Retry with the same Idempotency-Key: the retry returns the outcome.";
    NOT_READY = SERVICE_UNAVAILABLE "not_ready",
        "The readiness probe found the database out of reach or its schema out of date.",
        "Route traffic elsewhere until the probe returns 200.";
}

/// Refusals of the operations that read a body.
pub const BODY: &[&ErrorCode] = &[
    INVALID_REQUEST,
    INVALID_JSON,
    UNSUPPORTED_MEDIA_TYPE,
    BODY_TOO_LARGE,
    REQUEST_TIMEOUT,
];
