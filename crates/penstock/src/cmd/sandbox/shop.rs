//! The demo shop: a page that creates a session, pays it in the hosted widget, and shows the signed webhooks.
//!
//! It is a partner's server: it calls the gate over HTTP with the demo partner's secret key.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gate_service::{DemoPlaces, PublicOrigins, demo_file, demo_page, demo_policy};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use kernel::{Clock, Entropy, RequestId};
use partner_core::origin::Origin;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::client::{Call, Client};
use super::demo::Demo;
use super::event_log::EventLog;
use super::server::{BackgroundTask, serve};

/// The usual port.
const PORT: u16 = 4050;
/// Maximum length of an order, in bytes.
const MAX_ORDER_BYTES: usize = 4 * 1024;
/// Maximum time that a request for events is held open.
const MAX_WAIT_SECONDS: u64 = 25;
/// The fields of an order that the shop passes on.
const ORDER_FIELDS: [&str; 5] = [
    "amount",
    "currency",
    "flow",
    "target_token",
    "target_network",
];

/// The shop's listener, before it serves.
#[derive(Debug)]
pub(super) struct BoundShop {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundShop {
    /// Listens on the given port. Without one, listens on the stored port or else on the usual one, or on a free port if another
    /// program has it.
    pub(super) async fn bind(port: Option<u16>, stored: Option<u16>) -> io::Result<Self> {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            Some(port) => bind(port).await?,
            None => match bind(stored.unwrap_or(PORT)).await {
                Ok(listener) => listener,
                Err(_) => bind(0).await?,
            },
        };
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The port of the shop's page.
    pub(super) const fn port(&self) -> u16 {
        self.address.port()
    }

    /// The origin of the shop's page.
    pub(super) fn origin(&self) -> Origin {
        Origin::of_address(self.address)
    }

    /// Serves the page until the result is dropped.
    pub(super) fn serve(self, shop: Shop) -> BackgroundTask {
        let shop = Arc::new(shop);
        BackgroundTask::start(serve(self.listener, move |request| {
            let shop = Arc::clone(&shop);
            async move { shop.respond(request).await }
        }))
    }
}

/// What the shop needs to serve.
pub(super) struct Shop {
    pub(super) origin: Origin,
    pub(super) origins: PublicOrigins,
    pub(super) gate: Client,
    pub(super) demo: Demo,
    pub(super) log: Arc<EventLog>,
    /// Whether this sandbox listens at the partner's endpoint.
    pub(super) is_listening: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
}

impl Shop {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.is_addressed(&request) {
            let text = format!("Open {}/demo\n", self.origin);
            return response(StatusCode::MISDIRECTED_REQUEST, "text/plain", text);
        }
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let reads = method == Method::GET || method == Method::HEAD;
        match path.as_str() {
            "/demo/sessions" if method == Method::POST => self.create(request).await,
            "/demo/sessions" => not_allowed("POST"),
            _ if !reads => not_allowed("GET, HEAD"),
            "/" | "/demo/" => to_page(),
            "/demo" => self.page(),
            "/demo/events" => self.events(request.uri().query().unwrap_or_default()).await,
            path => match demo_file(path) {
                Some(file) => response(StatusCode::OK, file.kind, file.bytes),
                None => response(
                    StatusCode::NOT_FOUND,
                    "text/plain",
                    "There is no such page.\n",
                ),
            },
        }
    }

    /// Whether the request names the shop's own host. A foreign name that resolves to this machine is refused.
    fn is_addressed(&self, request: &Request<Incoming>) -> bool {
        let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
        host.is_some_and(|host| self.origin.as_str() == format!("http://{host}"))
    }

    fn page(&self) -> Response<Full<Bytes>> {
        let PublicOrigins { gate, widget } = &self.origins;
        let html = demo_page(DemoPlaces {
            widget,
            publishable_key: &self.demo.publishable_key,
        });
        let mut page = response(StatusCode::OK, "text/html; charset=utf-8", html);
        if let Ok(policy) = HeaderValue::try_from(demo_policy(gate, widget)) {
            page.headers_mut().insert("content-security-policy", policy);
        }
        page
    }

    /// Creates a session with the secret key, as the server of every shop does. A refusal of the gate is passed on.
    async fn create(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        // A page of another origin cannot send this type without a preflight, which is never granted.
        let kind = request.headers().get(CONTENT_TYPE);
        if kind.is_none_or(|kind| kind != "application/json") {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "An order is JSON.");
        }
        let body = Limited::new(request.into_body(), MAX_ORDER_BYTES)
            .collect()
            .await;
        let order: Option<Map<String, Value>> = body
            .ok()
            .and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
        let Some(mut order) = order else {
            return refused(
                StatusCode::BAD_REQUEST,
                "The order is not a small JSON object.",
            );
        };
        order.retain(|name, value| ORDER_FIELDS.contains(&name.as_str()) && !value.is_null());
        let page = format!("{}/demo", self.origin);
        order.insert("return_url".to_owned(), format!("{page}?paid").into());
        order.insert("cancel_url".to_owned(), format!("{page}?cancelled").into());
        let key = RequestId::new(&*self.clock, &*self.entropy).to_string();
        let mut call = Call::post(
            &self.demo.secret_key,
            "/v1/gate_sessions",
            Value::Object(order),
        );
        call.idempotency_key = Some(&key);
        match self.gate.send(call).await {
            Ok((StatusCode::CREATED, body)) => {
                let session: Value = serde_json::from_slice(&body).unwrap_or_default();
                let elsewhere = self.events_elsewhere().await;
                let created = json!({
                    "session_id": session.get("id"),
                    "client_secret": session.get("client_secret"),
                    "url": session.get("url"),
                    "events_to": elsewhere,
                });
                response(StatusCode::CREATED, "application/json", created.to_string())
            }
            Ok((status, body)) => response(status, "application/json", body),
            Err(error) => refused(StatusCode::BAD_GATEWAY, &error),
        }
    }

    /// The events after a number, for a long poll.
    async fn events(&self, query: &str) -> Response<Full<Bytes>> {
        let number = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut named = pairs.filter(|(found, _)| *found == name);
            named
                .next()
                .map_or(Some(0), |(_, text)| text.parse::<u64>().ok())
        };
        let (Some(after), Some(wait)) = (number("after"), number("wait")) else {
            return refused(StatusCode::BAD_REQUEST, "after and wait are whole numbers.");
        };
        let wait = Duration::from_secs(wait.min(MAX_WAIT_SECONDS));
        let mut read = self.log.read(after, wait).await;
        if let Some(read) = read.as_object_mut() {
            let elsewhere = self.events_elsewhere().await;
            read.insert("events_to".to_owned(), json!(elsewhere));
        }
        response(StatusCode::OK, "application/json", read.to_string())
    }

    /// Where the gate sends the partner's events, if not to this sandbox. The newest delivery says it.
    async fn events_elsewhere(&self) -> Option<String> {
        let call = Call::get(&self.demo.secret_key, "/v1/webhooks/deliveries?limit=1");
        let page = self.gate.call(call).await.ok()?;
        let url = page.pointer("/data/0/target_url")?.as_str()?;
        let is_here = self.is_listening && url == self.demo.events_url();
        (!is_here).then(|| url.to_owned())
    }
}

fn to_page() -> Response<Full<Bytes>> {
    let mut moved = response(
        StatusCode::TEMPORARY_REDIRECT,
        "text/plain",
        "The shop is at /demo\n",
    );
    moved
        .headers_mut()
        .insert(LOCATION, HeaderValue::from_static("/demo"));
    moved
}

fn not_allowed(methods: &'static str) -> Response<Full<Bytes>> {
    let mut refused = refused(
        StatusCode::METHOD_NOT_ALLOWED,
        "The shop has no such method.",
    );
    refused
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(methods));
    refused
}

/// A refusal in the form of the gate's errors, which the page shows.
fn refused(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let body =
        json!({ "code": "demo_shop_refused", "message": message, "statusCode": status.as_u16() });
    response(status, "application/json", body.to_string())
}

fn response(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    response
}
