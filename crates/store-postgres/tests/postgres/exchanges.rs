//! Counts the exchanges of a batch with the server.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::fixture::{Database, open_at};

/// A proxy between a store and its server that counts the exchanges.
struct CountingProxy {
    url: String,
    exchanges: Arc<AtomicUsize>,
}

impl CountingProxy {
    async fn before(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let proxy = Self {
            url: url.replace(&server, &here),
            exchanges: Arc::default(),
        };
        let exchanges = Arc::clone(&proxy.exchanges);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                let (asking, to_client) = client.into_split();
                let (answering, to_server) = server.into_split();
                let answered = Arc::new(AtomicBool::new(true));
                let (exchanges, asked) = (Arc::clone(&exchanges), Arc::clone(&answered));
                tokio::spawn(pass(asking, to_server, move || {
                    if asked.swap(false, Ordering::SeqCst) {
                        exchanges.fetch_add(1, Ordering::SeqCst);
                    }
                }));
                tokio::spawn(pass(answering, to_client, move || {
                    answered.store(true, Ordering::SeqCst);
                }));
            }
        });
        proxy
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    seen: impl Fn() + Send,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        seen();
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// The exchanges of `batches` batches and of their setup.
async fn exchanges(batches: usize) -> usize {
    let database = Database::make().await;
    let proxy = CountingProxy::before(&database.serving()).await;
    let url = proxy.url.clone();
    let store = open_at(database, &url, 1).await;
    test_support::contract::throughput::run(store, 3, 1, batches * 3).await;
    proxy.exchanges.load(Ordering::SeqCst)
}

/// The exchanges are begin, lock, read, write and commit. One statement opens the quotes of all batches, so it cancels out.
#[tokio::test]
async fn batch_takes_five_exchanges() {
    let mut counted = Vec::new();
    // On a busy machine a connection may be idle for so long that the store tests it, which is one more exchange.
    for _ in 0..5 {
        let (few, more) = (exchanges(4).await, exchanges(14).await);
        if more == few + 10 * 5 {
            return;
        }
        counted.push((few, more));
    }
    panic!("{counted:?}");
}
