//! The tables of the declarative file and their keys.

use partner_core::tables::Shape;

pub(crate) const ROOT: Shape = Shape {
    name: "",
    keys: &["pools", "partners"],
};
pub(crate) const POOL: Shape = Shape {
    name: "pools",
    keys: &["id", "networks", "available", "native_addresses"],
};
pub(crate) const PARTNER: Shape = Shape {
    name: "partners",
    keys: &["id", "name", "status", "pools", "gate", "keys"],
};
pub(crate) const ACCESS: Shape = Shape {
    name: "partners.pools",
    keys: &[
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
};
pub(crate) const TERMS: Shape = Shape {
    name: "partners.pools.terms",
    keys: &[
        "pool",
        "draw_fee_bps",
        "spread_cap_bps",
        "min_order_usdt",
        "max_order_usdt",
        "off_ramp",
        "crypto_deposit_address",
    ],
};
pub(crate) const WEBHOOK: Shape = Shape {
    name: "partners.pools.webhook",
    keys: &["url", "secret"],
};
pub(crate) const GATE: Shape = Shape {
    name: "partners.gate",
    keys: &[
        "enabled",
        "allowed_domains",
        "flow_sessions",
        "kyc_trusted",
        "rails",
        "preview_locks",
        "live_session_quota",
        "create_session_limit",
        "webhook",
    ],
};
pub(crate) const GATE_WEBHOOK: Shape = Shape {
    name: "partners.gate.webhook",
    keys: &["url", "secret"],
};
pub(crate) const KEY: Shape = Shape {
    name: "partners.keys",
    keys: &["kind", "key", "label", "expires_at"],
};

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
