//! The smallest client that can hand spans to a collector nearby: one request, one connection, no TLS.
//!
//! It blocks, because the thread that gathers spans does nothing else; so it needs no part of the runtime that serves
//! requests, and works after that has ended.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// A status line is short.
const LONGEST_LINE: u64 = 1024;

#[derive(Debug)]
pub(super) struct Client {
    patience: Duration,
    /// Whether the last sending failed, so that a collector that is away is said once.
    failing: AtomicBool,
}

impl Client {
    pub(super) const fn new(patience: Duration) -> Self {
        Self {
            patience,
            failing: AtomicBool::new(false),
        }
    }

    fn send(&self, request: &Request<Bytes>) -> io::Result<u16> {
        let mut stream = self.connect(request)?;
        stream.write_all(&head(request))?;
        stream.write_all(request.body())?;
        let mut line = String::new();
        BufReader::new(stream.take(LONGEST_LINE)).read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
    }

    fn connect(&self, request: &Request<Bytes>) -> io::Result<TcpStream> {
        let host = request.uri().host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = request.uri().port_u16().unwrap_or(80);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.patience) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(self.patience))?;
                    stream.set_write_timeout(Some(self.patience))?;
                    return Ok(stream);
                }
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    fn say(&self, fault: Option<String>) {
        let failed = fault.is_some();
        if self.failing.swap(failed, Ordering::Relaxed) == failed {
            return;
        }
        match fault {
            Some(fault) => {
                tracing::warn!(error.chain = fault, "Failed to send traces; some are lost")
            }
            None => tracing::info!("Traces are sent again"),
        }
    }
}

fn head(request: &Request<Bytes>) -> Vec<u8> {
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n");
    // Writing to a string cannot fail.
    let _ = write!(head, "content-length: {}\r\n", request.body().len());
    let mut head = head.into_bytes();
    for (name, value) in request.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.send(&request);
        match &sent {
            Ok(status) if (200..300).contains(status) => self.say(None),
            Ok(status) => self.say(Some(format!("the collector answers {status}"))),
            Err(fault) => self.say(Some(fault.to_string())),
        }
        Ok(Response::builder().status(sent?).body(Bytes::new())?)
    }
}
