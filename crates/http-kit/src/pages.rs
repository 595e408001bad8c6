//! Routes that need no key: the reference, the contract, and the probes.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use partner_core::ports::{Readiness, Throttle};
use partner_core::throttle::Counting;
use serde::Serialize;

use crate::error::ApiError;

/// The page's own rule: no script can run in it, nothing is fetched, nobody frames it.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /docs`: the reference as HTML.
pub fn docs_route<S: Clone + Send + Sync + 'static>(html: String) -> Router<S> {
    let page = Bytes::from(html);
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Router::new().route("/docs", get(move || ready((headers, page.clone()))))
}

/// `GET /openapi/<name>`: a published document, as YAML.
pub fn openapi_route<S: Clone + Send + Sync + 'static>(name: &str, yaml: String) -> Router<S> {
    let document = Bytes::from(yaml);
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, "application/yaml"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Router::new().route(
        &format!("/openapi/{name}"),
        get(move || ready((headers, document.clone()))),
    )
}

/// `GET /metrics`, and 404 for everything else: what a private listener serves. Not to be closed with
/// [`crate::finish`]: nobody wants a log line each time it is asked.
pub fn metrics_router(render: fn() -> String) -> Router {
    const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let metrics = move || ready(([(header::CONTENT_TYPE, TEXT_FORMAT)], render()));
    Router::new()
        .route("/metrics", get(metrics))
        .fallback(|| ready((StatusCode::NOT_FOUND, "Metrics are at /metrics.\n")))
}

/// What one readiness check found.
#[derive(Debug)]
pub struct Check {
    /// What was looked at, such as `database`.
    pub name: &'static str,
    /// What is said of it where nothing is wrong.
    pub word: &'static str,
    /// What is wrong with it, for the log alone.
    pub fault: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Check {
    /// A check from a result.
    pub fn of<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        name: &'static str,
        found: Result<(), E>,
    ) -> Self {
        Self {
            name,
            word: "ok",
            fault: found.err().map(Into::into),
        }
    }

    /// A detail worth knowing, whatever it is: it makes the service no less ready.
    #[must_use]
    pub const fn detail(name: &'static str, word: &'static str) -> Self {
        Self {
            name,
            word,
            fault: None,
        }
    }
}

/// `GET /health` says that the process is alive; `GET /health/ready` that it can serve.
pub fn health_routes<S, F, R>(checks: F) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    F: Fn() -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Vec<Check>> + Send,
{
    Router::new()
        .route("/health", get(|| ready(alive())))
        .route(
            "/health/ready",
            get(move || {
                let found = checks();
                async move { readiness(found.await) }
            }),
        )
}

/// The probes of a service: it is ready while its database is, and says where requests are counted.
pub fn probes(readiness: Arc<dyn Readiness>, throttle: Arc<dyn Throttle>) -> Router {
    health_routes(move || {
        let readiness = Arc::clone(&readiness);
        let limits = limits(throttle.counting());
        async move {
            let database = Check::of("database", readiness.ready().await);
            std::iter::once(database).chain(limits).collect()
        }
    })
}

/// Said only of what is to be shared: a service that shares nothing has nothing to miss.
fn limits(counting: Counting) -> Option<Check> {
    let word = match counting {
        Counting::Alone => return None,
        Counting::Shared => "shared",
        Counting::Apart => "apart",
    };
    Some(Check::detail("limits", word))
}

#[derive(Serialize)]
struct Health<'a> {
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<serde_json::Map<String, serde_json::Value>>,
}

fn alive() -> Response {
    axum::Json(Health {
        status: "ok",
        checks: None,
    })
    .into_response()
}

/// A failed check is named; what is behind it goes to the log.
fn readiness(checks: Vec<Check>) -> Response {
    let ready = checks
        .iter()
        .map(|check| (check.name.to_owned(), check.word.into()))
        .collect();
    for check in checks {
        if let Some(fault) = check.fault {
            return ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not_ready",
                format!("Not ready: the check `{}` failed.", check.name),
            )
            .caused_by(fault)
            .into_response();
        }
    }
    axum::Json(Health {
        status: "ready",
        checks: Some(ready),
    })
    .into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::outer::finish;
    use crate::site::testing::site;

    async fn fetch(app: Router, path: &str) -> (Response<()>, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let (parts, body) = finish(app, site())
            .oneshot(request)
            .await
            .unwrap()
            .into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (
            Response::from_parts(parts, ()),
            String::from_utf8(bytes.to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn serves_pages_with_their_types() {
        let app =
            docs_route("<p>".to_owned()).merge(openapi_route("pools-v1.yaml", "a: 1\n".to_owned()));
        let (answer, body) = fetch(app.clone(), "/docs").await;
        assert_eq!(body, "<p>");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        let (answer, body) = fetch(app, "/openapi/pools-v1.yaml").await;
        assert_eq!(body, "a: 1\n");
        assert_eq!(answer.headers()["content-type"], "application/yaml");
    }

    #[tokio::test]
    async fn metrics_are_all_that_their_router_serves() {
        let app = metrics_router(|| "up 1\n".to_owned());
        let ask = async |path: &str| {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let answer = app.clone().oneshot(request).await.unwrap();
            let kind = answer.headers()["content-type"].clone();
            (answer.status().as_u16(), kind)
        };
        let (status, kind) = ask("/metrics").await;
        assert_eq!(status, 200);
        assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
        for path in ["/", "/metrics/", "/v1/pools", "/health"] {
            assert_eq!(ask(path).await.0, 404, "{path}");
        }
    }

    #[tokio::test]
    async fn tells_alive_from_ready() {
        let good = health_routes(|| ready(vec![Check::of("database", Ok::<(), &str>(()))]));
        let (_, body) = fetch(good.clone(), "/health").await;
        assert_eq!(body, r#"{"status":"ok"}"#);
        let (answer, body) = fetch(good, "/health/ready").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(body, r#"{"status":"ready","checks":{"database":"ok"}}"#);
        let detailed = health_routes(|| ready(vec![Check::detail("limits", "apart")]));
        let (answer, body) = fetch(detailed, "/health/ready").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(body, r#"{"status":"ready","checks":{"limits":"apart"}}"#);
        let bad = health_routes(|| ready(vec![Check::of("database", Err("disk gone"))]));
        let (answer, body) = fetch(bad, "/health/ready").await;
        assert_eq!(answer.status(), 503);
        assert!(
            body.contains("\"not_ready\"") && body.contains("`database`"),
            "{body}"
        );
        assert!(!body.contains("disk"), "{body}");
    }
}
