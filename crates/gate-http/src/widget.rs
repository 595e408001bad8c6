//! The origin of the hosted widget: the page on which a user pays, the browser SDK and its types, the SDK as an npm package, the
//! licences of what they contain, the pages on which the sandbox plays a provider, and the probes. It has no API and sets no cookie.

mod cached;
mod files;
mod pages;
mod policy;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use gate_core::profile::GateProfile;
use http_kit::{ServiceInfo, finish_pages, probes};
use kernel::Mode;
use partner_core::origin::Origin;
use partner_core::ports::{Directory, Readiness, Throttle};

use cached::{Cached, Lifetime};
use pages::{Checkout, Page};

pub use files::{DemoFile, DemoPlaces, demo_file, demo_page};
pub use policy::demo_policy;

/// The components of the widget's listener.
#[derive(Clone)]
pub struct WidgetSetup {
    /// Whether money is real.
    pub mode: Mode,
    /// The public origin of the gate service, which the pages call.
    pub gate: Origin,
    /// The public origin of the widget.
    pub widget: Origin,
    /// Finds the partner of a publishable key.
    pub directory: Arc<dyn Directory<GateProfile>>,
    /// Reports where requests are counted.
    pub throttle: Arc<dyn Throttle>,
    pub readiness: Arc<dyn Readiness>,
    /// Creates request ids and has the clock.
    pub site: ServiceInfo,
}

/// Builds the router of the widget's origin. Origins are written into the files here, once.
pub fn widget(setup: WidgetSetup) -> Router {
    let places = files::Places {
        gate: &setup.gate,
        widget: &setup.widget,
        mode: setup.mode,
    };
    let page = |name| Page {
        html: files::text(name, &places),
        policy: policy::page_policy(&setup.gate),
    };
    let checkout = Checkout {
        page: page("embed.html"),
        mode: setup.mode,
        directory: Arc::clone(&setup.directory),
        clock: Arc::clone(setup.site.clock()),
    };
    let mut router = Router::new()
        .route("/embed", get(pages::embed))
        .route("/checkout", get(pages::checkout))
        .with_state(checkout);
    let mut folders = vec![files::ASSETS];
    if setup.mode == Mode::Test {
        router = router.merge(sandbox(page("sandbox.html")));
        folders.push(files::SANDBOX);
    }
    for (name, bytes) in folders.into_iter().flat_map(files::of_folder) {
        let file = Cached::new(name, bytes.to_vec(), Lifetime::Immutable);
        router = router.route(&format!("/{name}"), cached::route(file));
    }
    for name in ["gate.js", "gate.mjs", "gate.d.ts", "licenses.txt"] {
        let text = files::text(name, &places);
        let file = Cached::new(name, text.into_bytes(), Lifetime::Short);
        router = router.route(&format!("/{name}"), cached::route(file));
    }
    let package = Cached::new(files::PACKAGE, files::package().to_vec(), Lifetime::Short);
    router = router.route(&format!("/{}", files::PACKAGE), cached::route(package));
    finish_pages(
        router
            .merge(probes(setup.readiness, setup.throttle))
            .fallback(pages::not_found)
            .method_not_allowed_fallback(pages::method_not_allowed),
        setup.site,
    )
}

/// The routes of the sandbox's pages, which share one file.
fn sandbox(page: Page) -> Router {
    Router::new()
        .route("/sandbox/card", get(pages::sandbox))
        .route("/sandbox/identity", get(pages::sandbox))
        .with_state(page)
}
