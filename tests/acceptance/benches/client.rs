//! A client with minimal overhead: requests are prepared bytes, responses are parsed only as far as needed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Result;
use acceptance::measure::Stopwatch;

/// The bytes of a request; clients share them.
pub(crate) type Request = Arc<[u8]>;

/// A keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response.
pub(crate) struct Answer<'buffer> {
    pub(crate) status: u16,
    pub(crate) body: &'buffer [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let buffer = Vec::with_capacity(64 * 1024);
        Ok(Self { stream, buffer })
    }

    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the service closed the connection".into());
            }
            if let Some((status, start, end)) = whole(&self.buffer)? {
                let body = self.buffer.get(start..end).unwrap_or_default();
                return Ok(Answer { status, body });
            }
        }
    }
}

/// Status and position of the body, once the whole response has arrived.
fn whole(buffer: &[u8]) -> Result<Option<(u16, usize, usize)>> {
    let Some(head_end) = find(buffer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(buffer.get(..head_end).unwrap_or_default())?;
    let status = head.get(9..12).ok_or("no status line")?.parse()?;
    let length: usize = head
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .ok_or("a response without Content-Length")?
        .1
        .trim()
        .parse()?;
    let start = head_end + 4;
    Ok((buffer.len() >= start + length).then_some((status, start, start + length)))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The text of a JSON field, found by its name.
pub(crate) fn field(body: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split('"').next()?.to_owned())
}

/// Results of a run of requests.
pub(crate) struct Load {
    pub(crate) took: Duration,
    pub(crate) latencies: Vec<Duration>,
    /// Arrival time of each response, measured from the first request.
    arrivals: Vec<Duration>,
    /// The requested field of every response, in the order of the requests.
    pub(crate) fields: Vec<String>,
}

impl Load {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }

    /// Responses per second up to this time.
    pub(crate) fn per_second_until(&self, then: Duration) -> f64 {
        let answered = self.arrivals.iter().filter(|at| **at <= then).count();
        answered as f64 / then.as_secs_f64()
    }
}

/// Sends all requests over this number of connections, one request at a time on each, and expects 200.
pub(crate) async fn drive(
    address: SocketAddr,
    clients: usize,
    requests: Vec<Request>,
    wanted: Option<&'static str>,
) -> Result<Load> {
    let mut connections = Vec::with_capacity(clients);
    for _ in 0..clients {
        connections.push(Connection::open(address).await?);
    }
    let mut shares: Vec<Vec<(usize, Request)>> = vec![Vec::new(); clients];
    for (place, request) in requests.into_iter().enumerate() {
        if let Some(share) = shares.get_mut(place % clients) {
            share.push((place, request));
        }
    }
    let mut tasks = JoinSet::new();
    let watch = Stopwatch::start();
    for (connection, share) in connections.into_iter().zip(shares) {
        tasks.spawn(one_client(connection, share, wanted, watch));
    }
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        answers.extend(done??);
    }
    let took = watch.elapsed();
    answers.sort_unstable_by_key(|answer| answer.place);
    Ok(Load {
        took,
        latencies: answers.iter().map(|answer| answer.took).collect(),
        arrivals: answers.iter().map(|answer| answer.at).collect(),
        fields: answers
            .into_iter()
            .filter_map(|answer| answer.field)
            .collect(),
    })
}

struct Answered {
    place: usize,
    took: Duration,
    at: Duration,
    field: Option<String>,
}

async fn one_client(
    mut connection: Connection,
    share: Vec<(usize, Request)>,
    wanted: Option<&'static str>,
    began: Stopwatch,
) -> Result<Vec<Answered>> {
    let mut answered = Vec::with_capacity(share.len());
    for (place, request) in share {
        let watch = Stopwatch::start();
        let answer = connection.exchange(&request).await?;
        let took = watch.elapsed();
        if answer.status != 200 {
            let text = String::from_utf8_lossy(answer.body);
            return Err(format!("answered {}: {text}", answer.status).into());
        }
        let field = wanted.and_then(|name| field(answer.body, name));
        answered.push(Answered {
            place,
            took,
            at: began.elapsed(),
            field,
        });
    }
    Ok(answered)
}

/// A request with a key and, if given, a JSON body.
pub(crate) fn request(
    method: &str,
    path: &str,
    key: &str,
    headers: &str,
    body: Option<&str>,
) -> Request {
    let mut text = format!(
        "{method} /v1{path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n{headers}"
    );
    match body {
        Some(body) => text.push_str(&format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )),
        None => text.push_str("\r\n"),
    }
    text.into_bytes().into()
}
