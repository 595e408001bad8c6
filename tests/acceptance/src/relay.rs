//! A relay to a server on this machine that can end kept connections under a request.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

const BUFFER_BYTES: usize = 64 * 1024;

/// A relay, listening until the value is dropped.
pub struct Relay {
    address: String,
    /// The number of requests that may still end their connection, and of those that did.
    left: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Relay {
    /// Starts a relay to the server at this address.
    pub async fn start(server: &str) -> Self {
        let server = server.to_owned();
        let (left, ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let counts = (Arc::clone(&left), Arc::clone(&ended));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, (left, ended)) = (server.clone(), counts.clone());
                tokio::spawn(async move { relay(client, &server, &left, &ended).await });
            }
        });
        Self {
            address,
            left,
            ended,
            accepting: accepting.abort_handle(),
        }
    }

    /// The relay's own address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Lets the next requests over connections that have carried a response end these connections. The server receives none of
    /// these requests.
    pub fn end_kept(&self, requests: usize) {
        self.left.store(requests, Ordering::SeqCst);
    }

    /// The number of connections that ended in this way.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

async fn relay(
    mut client: TcpStream,
    server: &str,
    left: &AtomicUsize,
    ended: &AtomicUsize,
) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    let (mut request, mut response) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    let mut answered = false;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                if answered && take_one(left) {
                    ended.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
                server.write_all(&request[..read]).await?;
            }
            read = server.read(&mut response) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                answered = true;
                client.write_all(&response[..read]).await?;
            }
        }
    }
}

fn take_one(left: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    taken.is_ok()
}
