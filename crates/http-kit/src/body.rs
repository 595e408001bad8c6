//! Reads a whole request body, within a size limit and a deadline, before its handler runs.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::codes;
use crate::deadlines::Progress;
use crate::error::ApiError;

/// The largest body that is read, in bytes.
pub const BODY_LIMIT: usize = 64 * 1024;
/// The longest name of an encoding that an error repeats. All registered names are shorter.
const MAX_SHOWN_ENCODING: usize = 20;

/// Reads a body to its end.
///
/// # Errors
/// - 413 `body_too_large`: the rest is not read.
/// - 408 `request_timeout`: the body did not arrive in time.
/// - 400 `invalid_request`: the body ended early or its framing is invalid.
pub async fn read(mut body: Body) -> Result<Bytes, ApiError> {
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else {
            continue;
        };
        if first.len() + rest.len() + data.len() > BODY_LIMIT {
            return Err(too_large());
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

/// Refuses a body that is encoded, such as a compressed one. Its bytes would be taken for its text.
///
/// # Errors
/// 415 `unsupported_media_type` if `Content-Encoding` has another value than `identity`. The message names it.
pub fn refuse_encoded(headers: &HeaderMap) -> Result<(), ApiError> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut names = names.map(<[u8]>::trim_ascii);
    let encoded = names.find(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"));
    let Some(encoding) = encoded else {
        return Ok(());
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let is_shown = encoding.len() <= MAX_SHOWN_ENCODING && encoding.iter().all(is_name);
    let shown = std::str::from_utf8(encoding).ok().filter(|_| is_shown);
    let header = shown.map_or_else(
        || "`Content-Encoding`".to_owned(),
        |name| format!("`Content-Encoding: {name}`"),
    );
    Err(ApiError::new(
        codes::UNSUPPORTED_MEDIA_TYPE,
        format!("The body must not be encoded: send it without {header}."),
    ))
}

fn too_large() -> ApiError {
    ApiError::new(
        codes::BODY_TOO_LARGE,
        "The request body is larger than 64 KiB.",
    )
    .closing()
}

fn broken(error: &(dyn Error + 'static)) -> ApiError {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<TooSlow>() {
            return request_timeout("The request body did not arrive in time.");
        }
        next = cause.source();
    }
    ApiError::invalid_request("The request body ended early or was framed wrongly.").closing()
}

/// 408: part of the request did not arrive in time.
pub(crate) fn request_timeout(message: &'static str) -> ApiError {
    ApiError::new(codes::REQUEST_TIMEOUT, message).closing()
}

/// A body from the connection, with one deadline for all of it.
pub(crate) struct TimedBody {
    inner: Incoming,
    due: Instant,
    alarm: Option<Pin<Box<Sleep>>>,
    progress: Arc<Progress>,
}

impl TimedBody {
    pub(crate) fn new(inner: Incoming, within: Duration, progress: Arc<Progress>) -> Self {
        Self {
            inner,
            due: Instant::now() + within,
            alarm: None,
            progress,
        }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            if frame.is_none() || self.inner.is_end_stream() {
                self.progress.body_ended();
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        // Most bodies have arrived already. Only a body that is still arriving needs a timer.
        let due = self.due;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        match alarm.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(Box::new(TooSlow)))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the request body did not arrive in time")]
struct TooSlow;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn read_accepts_limit_and_rejects_one_byte_more() {
        let whole = read(Body::from(vec![b'x'; BODY_LIMIT])).await.unwrap();
        assert_eq!(whole.len(), BODY_LIMIT);
        let error = read(Body::from(vec![b'x'; BODY_LIMIT + 1]))
            .await
            .unwrap_err();
        assert_eq!(
            (error.status().as_u16(), error.code()),
            (413, "body_too_large")
        );
        assert!(read(Body::empty()).await.unwrap().is_empty());
    }

    // rule: error.content-encoding
    #[test]
    fn encoded_body_is_refused_with_its_encoding() {
        let refused = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
            }
            refuse_encoded(&headers).err().map(|error| {
                assert_eq!(error.code(), "unsupported_media_type");
                error.message().to_owned()
            })
        };
        for plain in [
            &[][..],
            &["identity"],
            &["Identity, identity"],
            &["identity", ""],
            &[" ,"],
        ] {
            assert_eq!(refused(plain), None, "{plain:?}");
        }
        for (encoded, name) in [
            (&["gzip"][..], ": gzip"),
            (&["GZIP"], ": GZIP"),
            (&["identity, br"], ": br"),
            (&["identity", "x-zstd"], ": x-zstd"),
            (&["gz ip"], ""),
            (&["abcdefghijklmnopqrstu"], ""),
        ] {
            let message =
                format!("The body must not be encoded: send it without `Content-Encoding{name}`.");
            assert_eq!(refused(encoded), Some(message), "{encoded:?}");
        }
    }

    #[tokio::test]
    async fn read_joins_frames() {
        let (first, second) = (Body::from("ab"), Body::from("cd"));
        let joined = Body::new(Chained(vec![second, first]));
        assert_eq!(read(joined).await.unwrap(), "abcd");
        let big = Body::from(vec![0; BODY_LIMIT]);
        let error = read(Body::new(Chained(vec![Body::from("x"), big])))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "body_too_large");
    }

    struct Chained(Vec<Body>);

    impl HttpBody for Chained {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            while let Some(last) = self.0.last_mut() {
                match Pin::new(last).poll_frame(cx) {
                    Poll::Ready(None) => drop(self.0.pop()),
                    other => return other,
                }
            }
            Poll::Ready(None)
        }
    }
}
