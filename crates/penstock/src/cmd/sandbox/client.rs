//! A plain HTTP client for calls to the services of this process, and the readers of their responses.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Timeout of a call; longer than any call of a healthy sandbox.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
}

pub(super) struct Call<'c> {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) key: &'c str,
    pub(super) idempotency_key: Option<&'c str>,
    /// The origin of the calling page, which a browser sends.
    pub(super) origin: Option<&'c str>,
    pub(super) body: Option<Value>,
}

impl<'c> Call<'c> {
    pub(super) fn get(key: &'c str, path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            key,
            idempotency_key: None,
            origin: None,
            body: None,
        }
    }

    pub(super) fn post(key: &'c str, path: impl Into<String>, body: Value) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(key, path)
        }
    }
}

impl Client {
    /// Makes a call. Any response other than a 2xx with JSON is an error with that response.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Value, String> {
        let label = format!("{} {}", call.method, call.path);
        let (status, body) = self.send(call).await?;
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body);
            return Err(format!("{label}: {status}: {text}"));
        }
        serde_json::from_slice(&body)
            .map_err(|error| format!("{label}: the response is not valid JSON: {error}"))
    }

    /// Makes a call. Any response with a body is a success.
    pub(super) async fn send(&self, call: Call<'_>) -> Result<(StatusCode, Bytes), String> {
        let label = format!("{} {}", call.method, call.path);
        let answered = tokio::time::timeout(CALL_TIMEOUT, self.exchange(call)).await;
        answered
            .map_err(|_| format!("{label}: no response within {CALL_TIMEOUT:?}"))?
            .map_err(|error| format!("{label}: {error}"))
    }

    async fn exchange(
        &self,
        call: Call<'_>,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let driving = tokio::spawn(connection);
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", call.key));
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(origin) = call.origin {
            request = request.header(ORIGIN, origin);
        }
        let body = match call.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let response = sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        driving.abort();
        Ok((status, body))
    }
}

pub(super) fn expect(holds: bool, expected: &str, response: &Value) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("expected {expected}, got {response}"))
    }
}

pub(super) fn text(response: &Value, field: &str) -> Result<String, String> {
    let value = response.get(field).and_then(Value::as_str);
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("expected a text in `{field}`, got {response}"))
}

pub(super) fn number(response: &Value, field: &str) -> Result<u64, String> {
    let value = response.get(field).and_then(Value::as_u64);
    value.ok_or_else(|| format!("expected a number in `{field}`, got {response}"))
}
