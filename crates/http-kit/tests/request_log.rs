//! The log of requests. The test is a program of its own because the subscriber is global to the
//! process.

#![expect(clippy::unwrap_used, reason = "this whole program is a test")]

use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use http_kit::finish;
use parking_lot::Mutex;
use partner_core::events::Service;
use serde_json::Value;
use tower::ServiceExt;

mod site;
use site::site;

/// Collects the log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn call(app: &Router, path: &str) -> String {
    let request = Request::builder()
        .uri(path)
        .header("x-request-id", "mine")
        .header("x-secret-key", "canary-header")
        .body(Body::empty())
        .unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn request_has_one_log_line_without_path_or_query() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let routes = Router::new()
        .route(
            "/v1/things/{id}",
            get(async || {
                tracing::warn!("Something on the way");
                "fine"
            }),
        )
        .route(
            "/v1/panic",
            get(async || -> &'static str { panic!("deliberate") }),
        );
    let app = finish(routes, Service::Pools, site());

    let id = call(&app, "/v1/things/canary-id?k=canary-query").await;
    call(&app, "/v1/panic").await;

    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let values: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [on_the_way, answered, failed, failed_answer] = values.as_slice() else {
        panic!("four lines: {text}")
    };
    for line in [on_the_way, answered] {
        assert_eq!(line["span"]["request.id"], id);
    }
    assert_eq!(answered["client_request_id"], "mine");
    assert_eq!(answered["http.method"], "GET");
    assert_eq!(answered["http.route"], "/v1/things/{id}");
    assert_eq!(answered["http.status"], 200);
    assert_eq!(failed["level"], "ERROR");
    assert_eq!(failed["error.chain"], "a handler panicked: deliberate");
    assert_eq!(
        failed["span"]["request.id"],
        failed_answer["span"]["request.id"]
    );
    assert_eq!(failed_answer["error.code"], "internal_error");
}
