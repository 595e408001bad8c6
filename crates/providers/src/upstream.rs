//! An upstream of the operator over HTTP: the calls of its contract, and the strict reading of its responses.
//!
//! An invalid response counts as no response, and no decision is based on a missing response.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use instruments::trace;
use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::{CallError, Caller, HttpClient, HttpResponse};
use crate::contract::Call;

/// Maximum length of a reference, in characters.
const LONGEST_REFERENCE: usize = 128;
const JSON: &str = "application/json";
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// For a call without a request body.
pub(crate) const NO_BODY: Option<&()> = None;

pub(crate) struct HttpUpstream {
    pub(crate) client: HttpClient,
    url: UpstreamUrl,
    bearer: Option<HeaderValue>,
    pub(crate) timeout: Duration,
    /// Whether the last call got a valid response.
    pub(crate) answering: AtomicBool,
}

/// Why a call has no valid response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Silence {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the request cannot be built")]
    Unmade,
    #[error("the response has the status {0}, not 200")]
    Status(StatusCode),
    #[error("the content type of the response is not application/json")]
    ContentType,
    #[error("the response body is not a JSON object")]
    NoObject,
    // The text of the error is not shown, because it may repeat what the upstream says about the user.
    #[error("the response body does not match the contract, in column {0}")]
    Body(usize),
    // Cut to 200 characters, because the text repeats an unknown value of any length.
    #[error("the response body does not match the contract: {:.200}", .0.to_string())]
    ShownBody(serde_json::Error),
    #[error("the response has the id of another {0}")]
    OtherId(&'static str),
    /// The response contradicts itself, the call or an earlier response.
    #[error("{0}")]
    Contradiction(&'static str),
}

impl Silence {
    /// Whether nothing was sent, so that the upstream cannot have acted.
    pub(crate) fn is_unsent(&self) -> bool {
        match self {
            Self::Call(error) => error.is_unsent(),
            Self::Unmade => true,
            Self::Status(_)
            | Self::ContentType
            | Self::NoObject
            | Self::Body(_)
            | Self::ShownBody(_)
            | Self::OtherId(_)
            | Self::Contradiction(_) => false,
        }
    }
}

impl HttpUpstream {
    /// An upstream at this URL. Each call carries this secret. No response is longer than `longest` bytes.
    pub(crate) fn new(
        url: UpstreamUrl,
        secret: Option<&UpstreamSecret>,
        timeout: Duration,
        longest: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            client: HttpClient::new(url.is_encrypted(), longest)?,
            url,
            bearer: secret.map(UpstreamSecret::bearer),
            timeout,
            answering: AtomicBool::new(true),
        })
    }

    /// Sends a call about this id.
    pub(crate) async fn send(
        &self,
        caller: Caller<'_>,
        call: &Call,
        id: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<HttpResponse, Silence> {
        let request = self.request(call, id, body)?;
        Ok(self.client.send(caller, request, self.timeout).await?)
    }

    fn request(
        &self,
        call: &Call,
        id: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Request<Full<Bytes>>, Silence> {
        let uri = self.url.below(&call.path_of(id));
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        if let Some(cause) = trace::cause() {
            request = request.header(TRACEPARENT, cause.to_string());
        }
        let body = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, JSON);
                Bytes::from(serde_json::to_vec(body).map_err(|_| Silence::Unmade)?)
            }
            None => Bytes::new(),
        };
        request.body(Full::new(body)).map_err(|_| Silence::Unmade)
    }

    /// Records whether the last call got a valid response. Returns whether the call before it differs.
    pub(crate) fn turns(&self, answers: bool) -> bool {
        self.answering.swap(answers, Ordering::Relaxed) != answers
    }
}

/// The body of a 404 about an id that an upstream does not know. It may name the id.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Unknown {
    #[schema(example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    id: Option<String>,
}

/// A response that names what it is about.
pub(crate) trait Answer: DeserializeOwned {
    fn id(&self) -> &str;
}

/// Reads a response about the `subject` with this id.
pub(crate) fn read_about<A: Answer>(
    subject: &'static str,
    id: &str,
    response: &HttpResponse,
) -> Result<A, Silence> {
    check_status(response)?;
    let answer: A = read_body(response)?;
    if answer.id() == id {
        Ok(answer)
    } else {
        Err(Silence::OtherId(subject))
    }
}

/// Checks a 404 that says that the upstream does not know the `subject` with this id. A 404 of a proxy, or a wrong route, is not of the
/// contract.
pub(crate) fn read_unknown(
    subject: &'static str,
    id: &str,
    response: &HttpResponse,
) -> Result<(), Silence> {
    let unknown: Unknown = read_body(response)?;
    match unknown.id {
        Some(other) if other != id => Err(Silence::OtherId(subject)),
        Some(_) | None => Ok(()),
    }
}

/// Reads a response of any content type. The error shows what does not match the contract.
pub(crate) fn read_shown<A: DeserializeOwned>(response: &HttpResponse) -> Result<A, Silence> {
    check_status(response)?;
    check_object(response)?;
    serde_json::from_slice(&response.body).map_err(Silence::ShownBody)
}

/// Reads a JSON object.
fn read_body<A: DeserializeOwned>(response: &HttpResponse) -> Result<A, Silence> {
    if !response.content_type.as_ref().is_some_and(is_json) {
        return Err(Silence::ContentType);
    }
    check_object(response)?;
    serde_json::from_slice(&response.body).map_err(|error| Silence::Body(error.column()))
}

fn check_status(response: &HttpResponse) -> Result<(), Silence> {
    match response.status {
        StatusCode::OK => Ok(()),
        other => Err(Silence::Status(other)),
    }
}

/// The JSON parser would also accept a list of the fields as an object.
fn check_object(response: &HttpResponse) -> Result<(), Silence> {
    if response.body.trim_ascii_start().starts_with(b"{") {
        Ok(())
    } else {
        Err(Silence::NoObject)
    }
}

/// Whether a content type is JSON, with any parameters.
fn is_json(value: &HeaderValue) -> bool {
    let text = value.to_str().unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(JSON)
}

/// Parses a status that is a string. The derived parser would also accept `{"approved": null}`.
pub(crate) fn word<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    T::deserialize(String::deserialize(from)?.into_deserializer())
}

/// Parses an optional text by `parse`. `null` counts as absent.
pub(crate) fn optional<'de, D: Deserializer<'de>, T>(
    from: D,
    expected: &str,
    parse: impl FnOnce(String) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else {
        return Ok(None);
    };
    parse(text)
        .map(Some)
        .ok_or_else(|| D::Error::custom(expected))
}

/// Parses an optional field `reference`.
pub(crate) fn reference<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let expected = "`reference` is not 1 to 128 visible ASCII characters";
    optional(from, expected, visible)
}

/// A text of 1 to 128 visible ASCII characters.
pub(crate) fn visible(text: String) -> Option<String> {
    let fits = (1..=LONGEST_REFERENCE).contains(&text.len());
    (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then_some(text)
}

#[cfg(test)]
pub(crate) mod replies;
