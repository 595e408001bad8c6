//! The tables of the declarative file and their keys.

use partner_core::tables::Shape;

pub(crate) const ROOT: Shape = shape("", &["pools", "partners"]);
pub(crate) const POOL: Shape = shape(
    "pools",
    &["id", "networks", "available", "native_addresses"],
);
pub(crate) const PARTNER: Shape = shape(
    "partners",
    &["id", "name", "status", "pools", "gate", "keys"],
);
pub(crate) const ACCESS: Shape = shape(
    "partners.pools",
    &[
        "enabled",
        "access",
        "kyc",
        "tier",
        "allowed",
        "balance_gate",
        "velocity_cap_usdt",
        "iban",
        "funding_reference",
        "terms",
        "webhook",
    ],
);
pub(crate) const TERMS: Shape = shape(
    "partners.pools.terms",
    &[
        "pool",
        "draw_fee_bps",
        "spread_cap_bps",
        "min_order_usdt",
        "max_order_usdt",
        "off_ramp",
        "crypto_deposit_address",
    ],
);
pub(crate) const WEBHOOK: Shape = shape("partners.pools.webhook", &["url", "secret"]);
pub(crate) const GATE: Shape = shape(
    "partners.gate",
    &[
        "enabled",
        "allowed_domains",
        "flow_sessions",
        "kyc_trusted",
        "rails",
        "preview_locks",
        "live_session_quota",
        "create_session_limit",
        "legal_name",
        "support_url",
        "terms_url",
        "privacy_url",
        "webhook",
    ],
);
pub(crate) const GATE_WEBHOOK: Shape = shape("partners.gate.webhook", &["url", "secret"]);
pub(crate) const KEY: Shape = shape("partners.keys", &["kind", "key", "label", "expires_at"]);

const fn shape(name: &'static str, keys: &'static [&'static str]) -> Shape {
    Shape { name, keys }
}

/// Every table of the file.
pub(crate) const SHAPES: [&Shape; 9] = [
    &ROOT,
    &POOL,
    &PARTNER,
    &ACCESS,
    &TERMS,
    &WEBHOOK,
    &GATE,
    &GATE_WEBHOOK,
    &KEY,
];
