//! The widget's page, framed by a partner's page or at the top level, and the pages of the sandbox.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gate_core::access::may_write;
use gate_core::profile::GateProfile;
use kernel::{Clock, Mode, StoreResult};
use partner_core::key::{KeyKind, PresentedKey};
use partner_core::ports::Directory;

use super::policy::Ancestors;

/// What the page may use of the browser. The SDK grants its frame `payment` and `clipboard-write`.
const PERMISSIONS: &str = "accelerometer=(), camera=(), clipboard-read=(self), clipboard-write=(self), \
     display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(self), serial=(), usb=()";

/// The place in the page for the origins that may exchange messages with it.
const ORIGINS: &str = "{{penstock.origins}}";
/// The parameter of `/embed` that names the partner.
const KEY: &str = "publishable_key";

/// The page and its policy, which ends before the sources of `frame-ancestors`.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) html: String,
    pub(super) policy: String,
}

/// The state of the page's routes.
#[derive(Clone)]
pub(super) struct Checkout {
    pub(super) page: Page,
    pub(super) mode: Mode,
    pub(super) directory: Arc<dyn Directory<GateProfile>>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Checkout {
    /// The pages that may frame the widget of a key: the partner's, while the key could start it.
    async fn ancestors(&self, query: &str) -> StoreResult<Ancestors> {
        let Some(key) = publishable_key(query).filter(|key| key.mode == self.mode) else {
            return Ok(Ancestors::default());
        };
        let found = self.directory.access_find(self.mode, &key.hash).await?;
        Ok(match found {
            Some(access) if may_write(&access, self.clock.now()).is_ok() => {
                Ancestors::of(&access.profile.allowed_domains)
            }
            Some(_) | None => Ancestors::default(),
        })
    }
}

/// `GET /embed`: the widget in a frame of the partner's page, which may be isolated from other origins.
pub(super) async fn embed(State(checkout): State<Checkout>, RawQuery(query): RawQuery) -> Response {
    let ancestors = checkout.ancestors(query.as_deref().unwrap_or_default());
    match ancestors.await {
        Ok(ancestors) => {
            let headers = [
                ("cross-origin-resource-policy", "cross-origin"),
                ("cross-origin-embedder-policy", "credentialless"),
            ];
            (headers, page(&checkout.page, &ancestors)).into_response()
        }
        Err(error) => {
            tracing::error!(error.chain = %kernel::causes(&error), "Failed to find the partner of a widget");
            let response = plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "The checkout is not available now. Try again in a moment.\n",
            );
            ([(header::RETRY_AFTER, "5")], response).into_response()
        }
    }
}

/// `GET /checkout`: the widget at the top level, which no page may frame.
pub(super) async fn checkout(State(checkout): State<Checkout>) -> Response {
    page(&checkout.page, &Ancestors::default())
}

/// `GET /sandbox/card` and `GET /sandbox/identity`: the sandbox plays a card company or a provider of identity checks. No page may
/// frame them.
pub(super) async fn sandbox(State(provider): State<Page>) -> Response {
    page(&provider, &Ancestors::default())
}

/// The response to an unknown path.
pub(super) async fn not_found() -> Response {
    plain(StatusCode::NOT_FOUND, "There is no such page.\n")
}

/// The response to an unknown method. The router adds `Allow`.
pub(super) async fn method_not_allowed() -> Response {
    plain(
        StatusCode::METHOD_NOT_ALLOWED,
        "This page can only be read.\n",
    )
}

/// The publishable key of a query that names exactly one. A key has no characters that a query encodes.
fn publishable_key(query: &str) -> Option<PresentedKey> {
    let mut named = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| *name == KEY);
    let (_, text) = named.next()?;
    let key = PresentedKey::parse(text).filter(|_| named.next().is_none())?;
    (key.kind == KeyKind::Publishable).then_some(key)
}

fn page(page: &Page, ancestors: &Ancestors) -> Response {
    let policy = format!("{}{}", page.policy, ancestors.sources());
    let Ok(policy) = HeaderValue::try_from(policy) else {
        return plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The checkout has an error.\n",
        );
    };
    let html = page.html.replace(ORIGINS, &ancestors.origins());
    let headers = [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("permissions-policy", PERMISSIONS),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("origin-agent-cluster", "?1"),
    ];
    let policy = [(header::CONTENT_SECURITY_POLICY, policy)];
    (headers, policy, html).into_response()
}

/// A small page of text.
fn plain(status: StatusCode, text: &'static str) -> Response {
    let policy = "default-src 'none'; frame-ancestors 'none'";
    let headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-security-policy", policy),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ];
    (status, headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_names_partner_by_exactly_one_publishable_key() {
        let key = format!("pk_test_{}", "a".repeat(32));
        let found = publishable_key(&format!("theme=dark&publishable_key={key}")).unwrap();
        assert_eq!(Some(found), PresentedKey::parse(&key));
        for query in [
            String::new(),
            "publishable_key=".to_owned(),
            format!("publishable_key=sk_test_{}", "a".repeat(32)),
            format!("publishable_key={key}&publishable_key={key}"),
            format!("publishable_key[]={key}"),
            format!("publishable_key={key}%3B"),
        ] {
            assert_eq!(publishable_key(&query), None, "{query}");
        }
    }
}
