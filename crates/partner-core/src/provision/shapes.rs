//! The tables of the declarative file and their keys.

use crate::tables::Shape;

pub(super) const ROOT: Shape = Shape {
    name: "",
    keys: &["pools", "partners"],
};
pub(super) const POOL: Shape = Shape {
    name: "pools",
    keys: &["id", "networks", "available", "native_addresses"],
};
pub(super) const PARTNER: Shape = Shape {
    name: "partners",
    keys: &["id", "name", "status", "pools", "gate", "keys"],
};
pub(super) const ACCESS: Shape = Shape {
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
pub(super) const TERMS: Shape = Shape {
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
pub(super) const WEBHOOK: Shape = Shape {
    name: "partners.pools.webhook",
    keys: &["url", "secret"],
};
pub(super) const GATE: Shape = Shape {
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
pub(super) const GATE_WEBHOOK: Shape = Shape {
    name: "partners.gate.webhook",
    keys: &["url", "secret"],
};
pub(super) const KEY: Shape = Shape {
    name: "partners.keys",
    keys: &["kind", "key", "label", "expires_at"],
};

/// Every table of the file.
pub(super) const SHAPES: [&Shape; 9] = [
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
