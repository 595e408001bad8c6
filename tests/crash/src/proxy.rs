//! A proxy between a service and its database. On command it drops the responses to commits, or all traffic.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use test_support::time;

use crate::Result;

/// The `COMMIT` statement on the wire. `READ COMMITTED` does not match.
const COMMIT: &[u8] = b"COMMIT\0";

/// A connection that met a silence stays open this long, as if its server had vanished.
const SILENT_LINGER: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A proxy that listens until the driver ends.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    answers: Arc<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    silent: AtomicBool,
    to_lose: AtomicU64,
    lost: AtomicU64,
}

impl Proxy {
    pub(crate) fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let proxy = Self {
            address: listener.local_addr()?,
            answers: Arc::default(),
        };
        let answers = Arc::clone(&proxy.answers);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if answers.is_silent() {
                    let answers = Arc::clone(&answers);
                    thread::spawn(move || {
                        answers.outlast_silence();
                        drop(client);
                    });
                    continue;
                }
                // If the server refuses, the proxy closes the connection.
                if let Ok(server) = TcpStream::connect(server) {
                    let answers = Arc::clone(&answers);
                    thread::spawn(move || pass(client, server, answers));
                }
            }
        });
        Ok(proxy)
    }

    /// Passes nothing on from now on, on old and new connections, and closes none.
    pub(crate) fn go_silent(&self) {
        self.answers.silent.store(true, Ordering::SeqCst);
    }

    /// Serves new connections again. Those that met the silence stay silent.
    pub(crate) fn answer_again(&self) {
        self.answers.silent.store(false, Ordering::SeqCst);
    }

    /// Lets the next N commits run, and closes their connections instead of passing the responses on.
    pub(crate) fn lose(&self, answers: u64) {
        self.answers.to_lose.fetch_add(answers, Ordering::Relaxed);
    }

    /// Loses no further response.
    pub(crate) fn lose_no_more(&self) {
        self.answers.to_lose.store(0, Ordering::Relaxed);
    }

    /// Returns the number of lost responses.
    pub(crate) fn lost(&self) -> u64 {
        self.answers.lost.load(Ordering::Relaxed)
    }
}

impl Answers {
    fn is_silent(&self) -> bool {
        self.silent.load(Ordering::SeqCst)
    }

    /// Keeps a connection that has met the silence open.
    fn outlast_silence(&self) {
        let began = time::now();
        while self.is_silent() || time::now().saturating_sub(began) < SILENT_LINGER {
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn loses_this(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        let told = self
            .to_lose
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        told.is_ok()
    }
}

/// Passes both directions of a connection on until one of them ends.
fn pass(client: TcpStream, server: TcpStream, answers: Arc<Answers>) {
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    for stream in [&client, &server] {
        // The option only saves time.
        let _ = stream.set_nodelay(true);
    }
    let cut = Arc::new(AtomicBool::new(false));
    let committing = Arc::clone(&cut);
    let counted = Arc::clone(&answers);
    let requests = move |bytes: &[u8]| {
        if has_commit(bytes) && answers.loses_this() {
            committing.store(true, Ordering::SeqCst);
        }
        true
    };
    let silence = Arc::clone(&counted);
    thread::spawn(move || copy(from_client, to_server, &silence, requests));
    copy(server, client, &counted, |_| {
        let cut = cut.load(Ordering::SeqCst);
        if cut {
            counted.lost.fetch_add(1, Ordering::Relaxed);
        }
        !cut
    });
}

fn has_commit(bytes: &[u8]) -> bool {
    bytes.windows(COMMIT.len()).any(|window| window == COMMIT)
}

/// Passes bytes on until the end or a silence, then closes both directions.
fn copy(
    mut from: TcpStream,
    mut to: TcpStream,
    silence: &Answers,
    may_pass: impl Fn(&[u8]) -> bool,
) {
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = from.read(&mut chunk);
        // A silence also hides the end of a connection.
        if silence.is_silent() {
            silence.outlast_silence();
            break;
        }
        let Ok(read) = read else {
            break;
        };
        let bytes = chunk.get(..read).unwrap_or_default();
        if bytes.is_empty() || !may_pass(bytes) || to.write_all(bytes).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        // The connection may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that responds `done` to every message of N bytes.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut chunk = [0; 64];
                    while stream.read(&mut chunk).is_ok_and(|read| read > 0) {
                        stream.write_all(b"done").unwrap();
                    }
                });
            }
        });
        address
    }

    fn ask(stream: &mut TcpStream, text: &[u8]) -> Vec<u8> {
        stream.write_all(text).unwrap();
        let mut chunk = [0; 64];
        let read = stream.read(&mut chunk).unwrap_or(0);
        chunk[..read].to_vec()
    }

    #[test]
    fn only_commit_responses_are_lost_and_only_as_often_as_requested() {
        let proxy = Proxy::before(server()).unwrap();
        let connect = || TcpStream::connect(proxy.address).unwrap();
        let mut one = connect();
        proxy.lose(1);
        assert_eq!(
            ask(&mut one, b"BEGIN ISOLATION LEVEL READ COMMITTED\0"),
            b"done"
        );
        assert_eq!(ask(&mut one, b"Q\0\0\0\x0bCOMMIT\0"), b"");
        assert_eq!(proxy.lost(), 1);
        assert_eq!(ask(&mut connect(), b"Q\0\0\0\x0bCOMMIT\0"), b"done");
        assert_eq!(proxy.lost(), 1);
    }
}
