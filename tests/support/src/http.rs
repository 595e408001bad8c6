//! HTTP over plain sockets: an upstream that a test plays, and a client that returns every byte of a response.
//!
//! Both block. The client uses one connection for each request. The upstream has threads of its own, so a test with a runtime can start it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpSocket;

/// Timeout of a response, longer than any deadline of a service.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A request that an upstream has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The first line and the headers, unchanged, with the empty line at their end.
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads a request; `None` if the connection ends before the request does.
    fn read(stream: &mut impl BufRead) -> Option<Self> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let body = Vec::new();
        let mut request = Self { head, body };
        let length = request.header("content-length").parse().unwrap_or(0);
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// The method and the path with its query, such as `GET /health`.
    #[must_use]
    pub fn line(&self) -> &str {
        let (line, _) = self.head.split_once(" HTTP/1.1\r\n").unwrap();
        line
    }

    #[must_use]
    pub fn method(&self) -> &str {
        let (method, _) = self.line().split_once(' ').unwrap();
        method
    }

    /// The path with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        let (_, path) = self.line().split_once(' ').unwrap();
        path
    }

    /// The value of a header; empty if absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// The body; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What an upstream does with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Sends these bytes and closes the connection.
    Sends(String),
    /// Sends these bytes and keeps the connection for the next request.
    Keeps(String),
    /// Closes the connection without a response.
    Closes,
    /// Keeps the connection open and never responds.
    Waits,
}

impl Reply {
    /// Responds with a status and a body in JSON.
    #[must_use]
    pub fn json(status: u16, body: &str) -> Self {
        Self::with(status, &[("Content-Type", "application/json")], body)
    }

    /// Responds with a status, headers and a body.
    #[must_use]
    pub fn with(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let first = format!("HTTP/1.1 {status} X\r\nConnection: close");
        Self::Sends(message(&first, headers, body))
    }

    /// Responds with a status, headers and a body in JSON, and keeps the connection.
    #[must_use]
    pub fn kept(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let first = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json");
        Self::Keeps(message(&first, headers, body))
    }

    /// Closes the connection in the middle of a body in JSON.
    #[must_use]
    pub fn broken() -> Self {
        let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 100";
        Self::Sends(format!("{head}\r\n\r\n{{\"id\":"))
    }
}

/// A server on this machine that a test plays. It serves until the test program ends.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Request>>>,
}

impl Upstream {
    /// Starts a server on a free port. A request counts as received once `reply` has returned.
    #[must_use]
    pub fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let received = Arc::<Mutex<Vec<Request>>>::default();
        let kept = Arc::clone(&received);
        let address = serve(move |request| {
            let reply = reply(&request);
            kept.lock().unwrap().push(request);
            reply
        });
        Self { address, received }
    }

    /// Starts a server that gives these replies in order, and the status 500 to every later request.
    #[must_use]
    pub fn giving(replies: &[Reply]) -> Self {
        let left = Mutex::new(VecDeque::from(replies.to_vec()));
        Self::start(move |_| {
            let next = left.lock().unwrap().pop_front();
            next.unwrap_or_else(|| Reply::with(500, &[], ""))
        })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request since the last call of [`Upstream::take`].
    #[must_use]
    pub fn received(&self) -> Vec<Request> {
        self.received.lock().unwrap().clone()
    }

    /// The same requests, which are then forgotten.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    /// The methods and paths of these requests.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        received.iter().map(|one| one.line().to_owned()).collect()
    }
}

/// Serves requests on a free port until the test program ends.
#[must_use]
pub fn serve(reply: impl Fn(Request) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let reply = Arc::new(reply);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reply = Arc::clone(&reply);
            // A client that has seen enough closes the connection.
            thread::spawn(move || converse(stream, &*reply));
        }
    });
    address
}

fn converse(stream: TcpStream, reply: &impl Fn(Request) -> Reply) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = Request::read(&mut stream) {
        match reply(request) {
            Reply::Keeps(bytes) => stream.get_mut().write_all(bytes.as_bytes())?,
            Reply::Sends(bytes) => return stream.get_mut().write_all(bytes.as_bytes()),
            Reply::Closes => return Ok(()),
            Reply::Waits => return stream.read_exact(&mut [0]),
        }
    }
    Ok(())
}

/// An address at which nothing listens, unless the test starts a program there. Its port belongs to the test until the test program
/// ends: the system gives it to no other socket.
#[must_use]
pub fn nowhere() -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    // A listener also sets this option, and then may share the port.
    socket.set_reuseaddr(true).unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    // Bound until the end, without listening.
    std::mem::forget(socket);
    address
}

/// Sends `GET` for a path, and returns the whole response.
pub fn get(address: &str, path: &str) -> String {
    send(address, &format!("GET {path}"), &[], "")
}

/// Sends a method and a path such as `GET /health`, with headers and a body in JSON or none, and returns the whole response.
pub fn send(address: &str, line: &str, headers: &[(&str, &str)], body: &str) -> String {
    try_send(address, line, headers, body).expect("a response")
}

/// The same, for a server that may not respond.
///
/// # Errors
/// An error without a connection, and if the response does not end in time.
pub fn try_send(
    address: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<String> {
    let mut all = vec![("Host", address)];
    all.extend(headers);
    if !body.is_empty() {
        all.push(("Content-Type", "application/json"));
    }
    let first = format!("{line} HTTP/1.1\r\nConnection: close");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    stream.write_all(message(&first, &all, body).as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// The body of a response.
#[must_use]
pub fn json(response: &str) -> Value {
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// A request or a response. `first` is its first line, or its first lines.
fn message(first: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut message = format!("{first}\r\n");
    for (name, value) in headers {
        message.push_str(&format!("{name}: {value}\r\n"));
    }
    message + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
}
