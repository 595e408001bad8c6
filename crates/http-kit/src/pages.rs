//! Routes that need no key: the reference page, the contract and the probes.

use std::future::ready;
use std::sync::Arc;

use axum::http::{HeaderName, StatusCode, header};
use axum::response::Redirect;
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use bytes::Bytes;
use kernel::StoreResult;
use partner_core::ports::{Readiness, Throttle};
use partner_core::throttle::CountScope;
use serde::Serialize;
use utoipa::openapi::OpenApi;

use crate::codes;
use crate::error::ApiError;
use crate::openapi::{ContractError, to_json, to_yaml};

/// The page's content security policy: no script, no external resource except the icon, no framing.
const PAGE_POLICY: &str = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const DOCS: &str = "/docs";
const ICON: &str = include_str!("icon.svg");

/// A document that a service publishes.
#[derive(Clone)]
pub struct Document {
    /// The name under `/openapi/` without an extension, such as `pools-v1`.
    pub name: &'static str,
    pub api: OpenApi,
}

impl Document {
    /// The path at which a service serves the document; `ending` is `yaml` or `json`.
    #[must_use]
    pub fn path(&self, ending: &str) -> String {
        format!("/openapi/{}.{ending}", self.name)
    }
}

/// The documentation routes of a service.
///
/// `/docs` is the reference page, to which `/` redirects. The page is a committed file, made from the documents by
/// `cargo xtask openapi`, and is served unchanged. Every document is served as YAML and as JSON.
///
/// # Errors
/// [`ContractError`] if YAML or JSON cannot express a document.
pub fn documentation<S: Clone + Send + Sync + 'static>(
    documents: &[Document],
    reference: &'static str,
) -> Result<Router<S>, ContractError> {
    let mut router = Router::new();
    for document in documents {
        let yaml = fixed("application/yaml", to_yaml(&document.api)?);
        let json = fixed("application/json", to_json(&document.api)?);
        router = router
            .route(&document.path("yaml"), yaml)
            .route(&document.path("json"), json);
    }
    let Some(first) = documents.first() else {
        return Ok(router);
    };
    // The redirect is temporary, so that browsers do not cache its target.
    let to_docs = || get(|| ready(Redirect::temporary(DOCS)));
    let json_path = first.path("json");
    let to_json = move || get(move || ready(Redirect::temporary(&json_path)));
    Ok(router
        .route(DOCS, page(reference))
        .route("/", to_docs())
        .route("/docs/", to_docs())
        .route("/openapi", to_json.clone()())
        .route("/openapi.json", to_json())
        .route("/favicon.ico", fixed("image/svg+xml", ICON.to_owned())))
}

fn page<S: Clone + Send + Sync + 'static>(html: &'static str) -> MethodRouter<S> {
    let page = Bytes::from_static(html.as_bytes());
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    get(move || ready((headers, page.clone())))
}

/// Serves a text that stays the same while the process runs.
fn fixed<S: Clone + Send + Sync + 'static>(kind: &'static str, text: String) -> MethodRouter<S> {
    let text = Bytes::from(text);
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    get(move || ready((headers, text.clone())))
}

/// The routes of the metrics listener: `GET /metrics`, and 404 for all other paths.
///
/// Do not close it with [`crate::finish`], which would log every scrape.
pub fn metrics_router(render: fn() -> String) -> Router {
    const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let metrics = move || ready(([(header::CONTENT_TYPE, TEXT_FORMAT)], render()));
    Router::new()
        .route("/metrics", get(metrics))
        .fallback(|| ready((StatusCode::NOT_FOUND, "Metrics are at /metrics.\n")))
}

/// The paths of the probes, which the reserved share of connections serves.
pub(crate) const HEALTH_PATHS: [&str; 2] = ["/health", "/health/ready"];

/// The probes of a service. `GET /health` reports that the process runs. `GET /health/ready` reports that its database is ready, and
/// shows where requests are counted.
pub fn probes(database: Arc<dyn Readiness>, throttle: Arc<dyn Throttle>) -> Router {
    let [alive_path, ready_path] = HEALTH_PATHS;
    let check = move || {
        let (database, counting) = (Arc::clone(&database), throttle.counting());
        async move { readiness(database.ready().await, counting) }
    };
    Router::new()
        .route(alive_path, get(|| ready(alive())))
        .route(ready_path, get(check))
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Checks>,
}

#[derive(Serialize)]
struct Checks {
    database: &'static str,
    /// Only for a process that is configured to share its counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'static str>,
}

fn alive() -> Json<Health> {
    Json(Health {
        status: "ok",
        checks: None,
    })
}

/// Names a failed check and its reason in the response, and logs its cause, which may name hosts and files.
fn readiness(database: StoreResult<()>, counting: CountScope) -> Result<Json<Health>, ApiError> {
    database.map_err(|error| {
        let reason = error.no_writes_reason().as_str();
        let message = format!("Not ready: the check `database` failed: {reason}.");
        ApiError::new(codes::NOT_READY, message).caused_by(error)
    })?;
    let checks = Checks {
        database: "ok",
        limits: match counting {
            CountScope::Alone => None,
            CountScope::Shared => Some("shared"),
            CountScope::Apart => Some("apart"),
        },
    };
    Ok(Json(Health {
        status: "ready",
        checks: Some(checks),
    }))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use axum::http::response::Parts;
    use kernel::{NoWritesReason, StoreError};
    use partner_core::events::Service;

    use super::*;
    use crate::request_layer::finish;
    use crate::service_info::testing::{call, site};

    async fn fetch(app: Router, path: &str) -> (Parts, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        call(&finish(app, Service::Pools, site()), request).await
    }

    fn document(name: &'static str, title: &str) -> Document {
        let info = utoipa::openapi::Info::new(title, "1");
        let api = OpenApi::new(info, utoipa::openapi::Paths::new());
        Document { name, api }
    }

    #[tokio::test]
    async fn documentation_serves_pages_and_leads_to_them() {
        let documents = [
            document("things-v1", "Things"),
            document("things-helpers-v1", "Helpers"),
        ];
        let reference = "<!doctype html>\n<title>Things</title>\n";
        let app = documentation(&documents, reference).unwrap();
        let (response, body) = fetch(app.clone(), "/docs").await;
        assert_eq!(body, reference);
        assert_eq!(response.headers["content-security-policy"], PAGE_POLICY);
        assert_eq!(response.headers["cache-control"], "no-cache");
        for (path, kind, text) in [
            ("/docs", "text/html; charset=utf-8", "<!doctype html>"),
            ("/openapi/things-v1.yaml", "application/yaml", "openapi: 3."),
            ("/openapi/things-v1.json", "application/json", "{\n"),
            ("/openapi/things-helpers-v1.json", "application/json", "{\n"),
            ("/favicon.ico", "image/svg+xml", "<svg"),
        ] {
            let (response, body) = fetch(app.clone(), path).await;
            assert_eq!(response.headers["content-type"], kind, "{path}");
            assert!(body.starts_with(text), "{path}: {body}");
        }
        for (path, target) in [
            ("/", "/docs"),
            ("/docs/", "/docs"),
            ("/openapi", "/openapi/things-v1.json"),
            ("/openapi.json", "/openapi/things-v1.json"),
        ] {
            let (response, _) = fetch(app.clone(), path).await;
            assert_eq!(response.status, 307, "{path}");
            assert_eq!(response.headers["location"], target, "{path}");
        }
        for path in ["/docs/x", "/openapi/", "/openapi/x.json", "/favicon.svg"] {
            assert_eq!(fetch(app.clone(), path).await.0.status, 404, "{path}");
        }
    }

    #[tokio::test]
    async fn metrics_router_serves_metrics_only() {
        let app = metrics_router(|| "up 1\n".to_owned());
        let ask = async |path: &str| {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let (response, _) = call(&app, request).await;
            (
                response.status.as_u16(),
                response.headers["content-type"].clone(),
            )
        };
        let (status, kind) = ask("/metrics").await;
        assert_eq!(status, 200);
        assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
        for path in ["/", "/metrics/", "/v1/pools", "/health"] {
            assert_eq!(ask(path).await.0, 404, "{path}");
        }
    }

    #[tokio::test]
    async fn probes_report_process_and_database() {
        fn app(found: fn() -> StoreResult<()>, counting: CountScope) -> Router {
            Router::new()
                .route("/health", get(|| ready(alive())))
                .route("/ready", get(move || ready(readiness(found(), counting))))
        }
        fn bad() -> StoreResult<()> {
            Err(StoreError::unavailable("disk gone"))
        }
        let good = app(|| Ok(()), CountScope::Alone);
        let (_, body) = fetch(good.clone(), "/health").await;
        assert_eq!(body, r#"{"status":"ok"}"#);
        let (response, body) = fetch(good, "/ready").await;
        assert_eq!(response.status, 200);
        assert_eq!(body, r#"{"status":"ready","checks":{"database":"ok"}}"#);
        let (_, body) = fetch(app(|| Ok(()), CountScope::Apart), "/ready").await;
        let checks = r#"{"database":"ok","limits":"apart"}"#;
        assert_eq!(body, format!(r#"{{"status":"ready","checks":{checks}}}"#));
        let (response, body) = fetch(app(bad, CountScope::Alone), "/ready").await;
        assert_eq!(response.status, 503);
        assert!(
            body.contains("\"not_ready\"")
                && body.contains("the check `database` failed: it cannot be reached or fails."),
            "{body}"
        );
        assert!(!body.contains("gone"), "{body}");
        fn full() -> StoreResult<()> {
            let cause = "the disk of /srv/penstock.db is full";
            Err(StoreError::no_writes(NoWritesReason::DiskFull, cause))
        }
        let (_, body) = fetch(app(full, CountScope::Alone), "/ready").await;
        assert!(
            body.contains("its disk is full.") && !body.contains("/srv"),
            "{body}"
        );
    }
}
