//! A rate source behind HTTP whose responses are set by tests.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

struct Inner {
    /// Status and body; `None` never responds.
    answer: Option<(u16, String)>,
    asked: Vec<(String, String)>,
}

/// A source, listening on this machine until the value is dropped.
pub struct FarRates {
    url: String,
    inner: Arc<Mutex<Inner>>,
    server: AbortHandle,
}

impl fmt::Debug for FarRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FarRates")
    }
}

impl Drop for FarRates {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FarRates {
    /// Starts a source that sends this response.
    pub async fn start(body: &str) -> Self {
        let inner = Arc::new(Mutex::new(Inner {
            answer: Some((200, body.to_owned())),
            asked: Vec::new(),
        }));
        let service = axum::Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move { axum::serve(listener, service).await });
        Self {
            url,
            inner,
            server: serving.abort_handle(),
        }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the response.
    pub fn says(&self, status: u16, body: &str) {
        self.inner.lock().answer = Some((status, body.to_owned()));
    }

    /// Accepts requests from now on, but never responds.
    pub fn is_mute(&self) {
        self.inner.lock().answer = None;
    }

    /// Path with query and the header `Authorization` of every request since the last call of this method.
    pub fn asked(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.inner.lock().asked)
    }
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, request: Request) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.map_or("", |value| value.to_str().expect("ASCII"));
    let asked = (request.uri().to_string(), shown.to_owned());
    let answer = {
        let mut inner = inner.lock();
        inner.asked.push(asked);
        inner.answer.clone()
    };
    match answer {
        Some((status, body)) => {
            let status = StatusCode::from_u16(status).expect("a status");
            (status, [(header::LOCATION, "/elsewhere")], body).into_response()
        }
        None => std::future::pending().await,
    }
}
