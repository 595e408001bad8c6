//! A partner's server that follows a script.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kernel::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

/// A connection, plain or encrypted.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// What a receiver does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Responds with a status and a short body.
    Status(u16),
    /// Responds, then closes without announcing it.
    StatusAndHangUp(u16),
    /// Responds after a delay.
    Slow(Duration, u16),
    /// Responds once this is set.
    Held(Arc<AtomicBool>, u16),
    Redirect(u16, String),
    /// Never responds.
    Silence,
    /// Closes without a response.
    HangUp,
    /// Closes its side for writing, and continues to read.
    HalfClose,
    /// Resets the connection before it reads a request.
    ResetAtOnce,
    /// Writes these bytes, then resets the connection.
    Reset(&'static str),
    /// Writes these bytes and closes.
    Raw(&'static str),
    /// Writes these bytes, then nothing more.
    Stall(&'static str),
    /// Writes these bytes, then one byte every 5 ms.
    Dribble(&'static str),
    /// Writes the first bytes, then repeats the second ones without end.
    Flood(&'static str, &'static str),
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) line: String,
    /// The names are in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    pub(crate) fn event(&self) -> &str {
        self.header("webhook-id")
    }

    /// The second of the signature.
    pub(crate) fn signed_at(&self) -> Timestamp {
        let seconds: i64 = self.header("webhook-timestamp").parse().unwrap();
        Timestamp::from_millis(seconds * 1000).unwrap()
    }
}

#[derive(Default)]
struct Inner {
    received: Mutex<Vec<Received>>,
    script: Mutex<VecDeque<Reply>>,
    connections: AtomicUsize,
    flooded: AtomicUsize,
}

impl Inner {
    /// Takes the next reply of the script if it matches.
    fn pop_if(&self, wanted: impl Fn(&Reply) -> bool) -> bool {
        let mut script = self.script.lock().unwrap();
        let next = script.front().is_some_and(wanted);
        if next {
            script.pop_front();
        }
        next
    }
}

/// A server on its own port. Drop stops it.
pub(crate) struct Receiver {
    inner: Arc<Inner>,
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// Follows the script, then responds with 200.
    pub(crate) async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(listener, script, |stream| async { Some(stream) })
    }

    /// Starts on this socket, and passes each connection through `wrap` first.
    pub(crate) fn start_on<S, F>(
        listener: TcpListener,
        script: impl IntoIterator<Item = Reply>,
        wrap: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        S: Wire,
        F: Future<Output = Option<S>> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Mutex::new(script.into_iter().collect()),
            ..Inner::default()
        });
        let serving = inner.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let (inner, wrapped) = (serving.clone(), wrap(stream));
                connections.spawn(async move {
                    if let Some(stream) = wrapped.await {
                        serve(stream, &inner).await;
                    }
                });
            }
        });
        Self {
            inner,
            address,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks?a=b", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    /// The ids of the events, in the order of their arrival.
    pub(crate) fn events(&self) -> Vec<String> {
        let received = self.received();
        received.iter().map(|one| one.event().to_owned()).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.inner.connections.load(Ordering::SeqCst)
    }

    /// Bytes of a flood that the client accepted.
    pub(crate) fn flooded(&self) -> usize {
        self.inner.flooded.load(Ordering::SeqCst)
    }

    /// Waits for this many requests.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Received> {
        for _ in 0..6000 {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{count} requests expected, got {:#?}", self.received());
    }

    /// Waits for the first request of an event.
    pub(crate) async fn wait_for_event(&self, id: &str) -> Received {
        for _ in 0..6000 {
            let mut received = self.received().into_iter();
            if let Some(found) = received.find(|one| one.event() == id) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{id} expected, got {:#?}", self.received());
    }
}

async fn serve<S: Wire>(mut stream: S, inner: &Inner) {
    let mut buffer = Vec::new();
    if inner.pop_if(|reply| matches!(reply, Reply::ResetAtOnce)) {
        let _ = stream.tcp().set_zero_linger();
        return;
    }
    while let Some(received) = read(&mut stream, &mut buffer).await {
        inner.received.lock().unwrap().push(received);
        let next = inner.script.lock().unwrap().pop_front();
        if !reply(&mut stream, inner, next.unwrap_or(Reply::Status(200))).await {
            return;
        }
    }
}

async fn read<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut Vec<u8>) -> Option<Received> {
    let head = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(buffer[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let mut headers = BTreeMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let twice = headers.insert(name.to_ascii_lowercase(), value.to_owned());
        assert!(twice.is_none(), "{name} twice");
    }
    let length: usize = headers["content-length"].parse().unwrap();
    while buffer.len() < head + 4 + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[head + 4..head + 4 + length].to_vec();
    buffer.drain(..head + 4 + length);
    Some(Received {
        line,
        headers,
        body,
    })
}

/// Replies. Returns whether the connection stays open.
async fn reply<S: Wire>(stream: &mut S, inner: &Inner, reply: Reply) -> bool {
    let response = |status: u16| format!("HTTP/1.1 {status} So\r\ncontent-length: 2\r\n\r\nok");
    let text = match reply {
        Reply::Status(status) => response(status),
        Reply::StatusAndHangUp(status) => {
            let _ = stream.write_all(response(status).as_bytes()).await;
            return false;
        }
        Reply::Slow(wait, status) => {
            tokio::time::sleep(wait).await;
            response(status)
        }
        Reply::Held(released, status) => {
            while !released.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            response(status)
        }
        Reply::Redirect(status, to) => {
            format!("HTTP/1.1 {status} So\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        }
        Reply::Silence => {
            std::future::pending::<()>().await;
            return false;
        }
        Reply::HangUp | Reply::ResetAtOnce => return false,
        Reply::HalfClose => {
            let _ = stream.shutdown().await;
            std::future::pending::<()>().await;
            return false;
        }
        Reply::Reset(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.tcp().set_zero_linger();
            return false;
        }
        Reply::Raw(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            return false;
        }
        Reply::Stall(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            std::future::pending::<()>().await;
            return false;
        }
        Reply::Dribble(text) => {
            let mut written = stream.write_all(text.as_bytes()).await;
            while written.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                written = stream.write_all(b"x").await;
            }
            return false;
        }
        Reply::Flood(first, then) => {
            let chunk = then.repeat(16 * 1024 / then.len());
            let mut written = stream.write_all(first.as_bytes()).await;
            while written.is_ok() {
                written = stream.write_all(chunk.as_bytes()).await;
                inner.flooded.fetch_add(chunk.len(), Ordering::SeqCst);
            }
            return false;
        }
    };
    stream.write_all(text.as_bytes()).await.is_ok()
}
