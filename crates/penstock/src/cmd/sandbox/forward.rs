//! Sends the demo partner's events on to the developer's own server, which decides how each delivery ends.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use kernel::Mode;
use partner_core::webhooks::target::{AllowPrivate, Target};
use tokio::net::TcpStream;

use super::receiver::Delivery;

/// Timeout of one delivery. A service gives up after 10 s, and must still hear what happened.
const TIMEOUT: Duration = Duration::from_secs(9);

/// The developer's server.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    target: Arc<Target>,
    url: String,
}

/// How the developer's server answered.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<HeaderValue>,
    /// What the sandbox prints about it.
    pub(super) shown: String,
}

impl Forward {
    /// Reads the value of `--events-to`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let target = Target::parse(text, Mode::Test, AllowPrivate::Loopback)?;
        if target.tls() {
            return Err("expected an http URL, such as http://127.0.0.1:3000/webhooks".to_owned());
        }
        Ok(Self {
            target: Arc::new(target),
            url: text.to_owned(),
        })
    }

    /// Posts a delivery with its own headers and bytes. Without an answer the status is 502.
    pub(super) async fn send(&self, delivery: &Delivery) -> Forwarded {
        let url = &self.url;
        let answered = tokio::time::timeout(TIMEOUT, self.post(delivery)).await;
        let failed = |why: &dyn std::fmt::Display| Forwarded {
            status: StatusCode::BAD_GATEWAY,
            retry_after: None,
            shown: format!("no answer from {url}: {why}"),
        };
        match answered {
            Ok(Ok((status, retry_after))) => Forwarded {
                status,
                retry_after,
                shown: format!("{} from {url}", status.as_u16()),
            },
            Ok(Err(error)) => failed(&error),
            Err(_) => failed(&format_args!("it took more than {TIMEOUT:?}")),
        }
    }

    async fn post(
        &self,
        delivery: &Delivery,
    ) -> Result<(StatusCode, Option<HeaderValue>), Box<dyn Error + Send + Sync>> {
        let address = format!("{}:{}", self.target.host(), self.target.port());
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let driving = tokio::spawn(connection);
        let path = self.target.path_and_query();
        let mut request = Request::post(path).body(Full::new(delivery.body.clone()))?;
        request.headers_mut().clone_from(&delivery.headers);
        let host = HeaderValue::try_from(self.target.authority())?;
        request.headers_mut().insert(HOST, host);
        let response = sender.send_request(request).await;
        driving.abort();
        let (head, _) = response?.into_parts();
        Ok((head.status, head.headers.get(RETRY_AFTER).cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: cli.sandbox.events-to
    #[test]
    fn only_http_urls_of_allowed_addresses_are_taken() {
        for text in ["http://127.0.0.1:3000/webhooks", "http://localhost:3000"] {
            assert!(Forward::parse(text).is_ok(), "{text}");
        }
        for text in [
            "https://127.0.0.1:3000/",
            "127.0.0.1:3000",
            "http://10.0.0.1/",
            "ftp://127.0.0.1/",
        ] {
            assert!(Forward::parse(text).is_err(), "{text}");
        }
    }
}
