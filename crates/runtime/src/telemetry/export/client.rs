//! Posts spans to the collector over HTTP or HTTPS.
//!
//! The client blocks, because its thread does nothing else. It does not use the runtime that serves requests, and works after
//! that runtime has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    /// Whether the last request failed, so that an outage is logged once.
    is_failing: AtomicBool,
}

impl Client {
    /// A client that trusts the certificates of this machine. One request takes at most `timeout`.
    pub(super) fn new(timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .tls_config(tls())
            .build();
        Self {
            agent: Agent::new_with_config(config),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Logs the first failure after a success, and the first success after a failure.
    fn log(&self, failure: Option<String>) {
        let has_failed = failure.is_some();
        if self.is_failing.swap(has_failed, Ordering::Relaxed) == has_failed {
            return;
        }
        match failure {
            Some(failure) => {
                tracing::warn!(
                    error.chain = failure,
                    "Failed to send traces; some are lost"
                )
            }
            None => tracing::info!("Traces are sent again"),
        }
    }
}

/// Certificates that cannot be parsed are skipped. If a collector needs one of them, the call fails and is logged.
fn tls() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found
        .certs
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::from(roots))
        .build()
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let sent = self.agent.run(Request::from_parts(parts, body.as_ref()));
        self.log(match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!(
                "the collector responds {}",
                response.status().as_u16()
            )),
            Err(error) => Some(error.to_string()),
        });
        // The exporter reads only the status.
        Ok(Response::builder()
            .status(sent?.status())
            .body(Bytes::new())?)
    }
}
