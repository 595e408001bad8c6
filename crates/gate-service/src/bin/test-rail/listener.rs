//! A small HTTP listener: one thread and one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The longest head and the longest body, in bytes.
const MAX_BYTES: u64 = 64 * 1024;
/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    authorization: String,
    /// The JSON body; null without one.
    pub(crate) body: Value,
}

/// A response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl Response {
    /// A response with a JSON body.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.to_string(),
        }
    }
}

/// Responds to every connection, for ever. A request without the secret gets 401, unless its path is public. `None` closes the
/// connection without a response.
pub(crate) fn serve(
    listener: &TcpListener,
    secret: Option<&str>,
    is_public: fn(&str) -> bool,
    respond: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static,
) {
    let expected = Arc::new(secret.map(|secret| format!("Bearer {secret}")));
    let respond = Arc::new(respond);
    for stream in listener.incoming().flatten() {
        let (expected, respond) = (Arc::clone(&expected), Arc::clone(&respond));
        thread::spawn(move || {
            let admit = |request: &Request| match expected.as_deref() {
                Some(expected)
                    if !is_public(&request.path) && !equal(expected, &request.authorization) =>
                {
                    Some(Response::json(401, &Value::Null))
                }
                _ => respond(request),
            };
            // A client that breaks off gets no response.
            let _ = converse(stream, admit);
        });
    }
}

/// Compares two texts in a time that depends only on their lengths.
fn equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes());
    let differing = differences.fold(0, |found, (one, other)| found | (one ^ other));
    one.len() == other.len() && differing == 0
}

fn converse(
    mut stream: TcpStream,
    respond: impl FnOnce(&Request) -> Option<Response>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = read(&stream)?;
    let Some(response) = respond(&request) else {
        return Ok(());
    };
    let Response {
        status,
        content_type,
        body,
    } = response;
    write!(
        stream,
        "HTTP/1.1 {status} -\r\nContent-Type: {content_type}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream.take(2 * MAX_BYTES));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let (mut authorization, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.trim().clone_into(&mut authorization),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = Vec::new();
    reader.take(MAX_BYTES.min(length)).read_to_end(&mut body)?;
    Ok(Request {
        method,
        path,
        authorization,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
