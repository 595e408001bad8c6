//! What the sandbox prints when it starts: addresses, credentials and the first calls.

use std::net::SocketAddr;

use partner_core::origin::Origin;

use super::demo::Demo;
use crate::terminal::Style;

/// The addresses of the pages for people.
#[derive(Debug)]
pub(super) struct Pages<'p> {
    pub(super) shop: &'p Origin,
    pub(super) widget: &'p Origin,
}

/// Twelve lines. Two lines with the services' addresses follow.
pub(super) fn text(
    demo: &Demo,
    pages: &Pages<'_>,
    pools: SocketAddr,
    gate: SocketAddr,
    folder: &str,
    style: Style,
) -> String {
    let Demo {
        secret_key,
        publishable_key,
        webhook_secret,
        ..
    } = demo;
    let title = style.strong("Penstock sandbox");
    let label = |text: &str| style.faint(&format!("{text:<16}"));
    let rows = [
        (
            "demo shop",
            format!("{}/demo   hosted widget {}", pages.shop, pages.widget),
        ),
        (
            "pools API",
            format!("http://{pools}/v1   reference http://{pools}/docs"),
        ),
        (
            "gate API",
            format!("http://{gate}/v1   reference http://{gate}/docs"),
        ),
        ("secret key", secret_key.clone()),
        ("publishable key", publishable_key.clone()),
        (
            "webhook secret",
            format!("{webhook_secret} (events are shown below)"),
        ),
    ];
    let rows = rows.map(|(name, value)| format!("  {}{value}\n", label(name)));
    format!(
        "{title}: no real money. Data and credentials are in {folder}.\n{}\
         Paste into another terminal; the tour in README.md goes on from here:\n\
         curl -s http://{pools}/v1/pools -H \"Authorization: Bearer {publishable_key}\"; echo\n\
         curl -s http://{pools}/v1/pools/EUR-USDT/balance -H \"Authorization: Bearer {secret_key}\"; echo",
        rows.concat()
    )
}
