//! An HTTP client that knows whether nothing or possibly all of a request was sent.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Timeout of a response, longer than any deadline of the service. Exceeding it is a breach.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(12);
/// Attempts to be served, and the pause between them.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);
/// Attempts to resolve an outcome. A healthy service needs one; armed faults need more.
const MAX_ATTEMPTS: u32 = 40;

/// A complete response.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `X-Request-Id`, which repeats of a write return unchanged.
    pub(crate) request_id: String,
    pub(crate) body: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Parses the body of a response that must be JSON.
    pub(crate) fn parse(&self) -> crate::Result<Value> {
        let parsed = serde_json::from_slice(&self.body);
        Ok(parsed.map_err(|fault| format!("{fault}: {self:?}"))?)
    }

    /// Returns a text field of the body.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        Some(self.json().get(field)?.as_str()?.to_owned())
    }

    /// Returns the code of an error, else an empty text.
    pub(crate) fn code(&self) -> String {
        if self.status < 400 {
            return String::new();
        }
        self.text("code").unwrap_or_default()
    }

    /// Whether the response is a replay.
    pub(crate) fn tells_of_a_repeat(&self) -> bool {
        self.json().get("idempotent") == Some(&Value::Bool(true))
    }

    /// Hashes status, request id and body.
    pub(crate) fn digest(&self) -> String {
        let mut all = Sha256::new();
        all.update(format!("{} {}\n", self.status, self.request_id));
        all.update(&self.body);
        hex::encode(all.finalize())
    }
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No connection, so nothing was sent.
    Unsent,
    /// A part of the request was sent.
    Unknown,
}

/// Renders a request.
pub(crate) fn request(key: &str, method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} /v1{path} HTTP/1.1\r\nHost: crash\r\nAuthorization: Bearer {key}\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A persistent connection, opened on first use.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
        }
    }

    /// Sends a request and reads the response.
    pub(crate) fn call(&mut self, request: &[u8]) -> Result<Answer, Lost> {
        self.send(request)?;
        self.receive()
    }

    /// Sends a request again after a 503 that is not `overloaded`, or without a response. On a machine that stands still, a healthy service
    /// exceeds a deadline of its store once, and closes idle connections.
    pub(crate) fn call_until_served(&mut self, request: &[u8]) -> Result<Answer, Lost> {
        for _ in 1..ATTEMPTS {
            let answer = self.call(request);
            let is_served = |answer: &Answer| answer.status != 503 || answer.code() == "overloaded";
            if answer.as_ref().is_ok_and(is_served) {
                return answer;
            }
            thread::sleep(PAUSE);
        }
        self.call(request)
    }

    /// Sends a request again until its outcome is definite.
    pub(crate) fn call_until_definite(
        &mut self,
        request: &[u8],
        is_definite: impl Fn(&Result<Answer, Lost>) -> bool,
    ) -> crate::Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            if is_definite(&self.call(request)) {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err("no definite outcome".into())
    }

    /// Reads an object. Asks again without a response and after a 5xx.
    pub(crate) fn read(&mut self, key: &str, path: &str) -> crate::Result<Value> {
        let bytes = request(key, "GET", path, "", "");
        for _ in 0..MAX_ATTEMPTS {
            match self.call(&bytes) {
                Ok(answer) if answer.status == 200 => {
                    let parsed = answer.parse();
                    return parsed.map_err(|fault| format!("GET {path}: {fault}").into());
                }
                Ok(answer) if answer.status < 500 => {
                    return Err(format!("GET {path}: {answer:?}").into());
                }
                _ => thread::sleep(PAUSE),
            }
        }
        Err(format!("GET {path}: no answer").into())
    }

    /// Sends a request without waiting. `receive` reads the response.
    pub(crate) fn send(&mut self, request: &[u8]) -> Result<(), Lost> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).ok_or(Lost::Unsent)?,
        };
        stream.write_all(request).map_err(|_| Lost::Unknown)?;
        self.stream = Some(stream);
        Ok(())
    }

    pub(crate) fn receive(&mut self) -> Result<Answer, Lost> {
        let mut stream = self.stream.take().ok_or(Lost::Unknown)?;
        let answer = read_answer(&mut stream).ok_or(Lost::Unknown)?;
        self.stream = Some(stream);
        Ok(answer)
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.stream = None;
    }
}

pub(crate) fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(RESPONSE_TIMEOUT)).ok()?;
    Some(stream)
}

fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut buffer = Vec::with_capacity(4096);
    let mut chunk = [0; 16 * 1024];
    loop {
        if let Some(answer) = whole(&buffer) {
            return Some(answer);
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend_from_slice(chunk.get(..read)?),
        }
    }
}

/// Parses the response if all of it has arrived.
fn whole(buffer: &[u8]) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(buffer).ok()? else {
        return None;
    };
    let status = head.code?;
    let length = length(head.headers)?;
    let request_id = header(head.headers, "x-request-id").unwrap_or_default();
    let body = buffer.get(start..start.checked_add(length)?)?.to_vec();
    Some(Answer {
        status,
        request_id: request_id.to_owned(),
        body,
    })
}

/// Returns the body's length from the headers; 0 if no header states it.
fn length(headers: &[httparse::Header<'_>]) -> Option<usize> {
    match header(headers, "content-length") {
        None => Some(0),
        Some(text) => text.trim().parse().ok(),
    }
}

fn header<'h>(headers: &'h [httparse::Header<'_>], name: &str) -> Option<&'h str> {
    let found = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(found.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_that_is_no_json_is_an_error() {
        let answer = |body: &[u8]| Answer {
            status: 200,
            body: body.to_vec(),
            ..Answer::default()
        };
        assert_eq!(answer(b"{}").parse().unwrap(), serde_json::json!({}));
        for body in [&b""[..], b"{\"data\":[", b"<html>"] {
            assert!(answer(body).parse().is_err());
        }
    }

    #[test]
    fn response_is_complete_with_its_last_byte() {
        let bytes = b"HTTP/1.1 409 Conflict\r\ncontent-length: 16\r\n\r\n{\"code\":\"gone!\"}";
        for cut in 0..bytes.len() {
            assert!(whole(&bytes[..cut]).is_none(), "{cut}");
        }
        let answer = whole(bytes).unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (409, "gone!"));
    }
}
