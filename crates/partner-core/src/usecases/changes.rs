//! What a change of configuration is called: one line for people, each value before and after.

use std::fmt::Display;

use rust_decimal::Decimal;

use crate::Partner;
use crate::credential::masked;
use crate::gate::GateProfile;
use crate::pools::{Pool, PoolId, PoolTerms, PoolsProfile};

/// The lines about one subject, such as `partner acme`.
pub(super) struct Changes {
    subject: String,
    lines: Vec<String>,
}

impl Changes {
    pub(super) fn of(subject: impl Display) -> Self {
        Self {
            subject: masked(&subject.to_string()),
            lines: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, what: impl Display) {
        self.lines.push(format!("{}: {what}", self.subject));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }

    /// Notes a value that differs. Judged by its text, so that values shown equal are equal.
    pub(super) fn value(&mut self, name: impl Display, before: &str, after: &str) {
        if before != after {
            let (before, after) = (masked(before), masked(after));
            self.note(format_args!("{name} {before} -> {after}"));
        }
    }
}

/// What makes `before` the pool `after`.
pub(super) fn of_pool(before: Option<&Pool>, after: &Pool) -> Changes {
    let mut changes = Changes::of(format_args!("pool {}", after.id));
    let Some(before) = before else {
        changes.note("created");
        return changes;
    };
    changes.value("networks", &networks(before), &networks(after));
    changes.value(
        "available",
        &before.available.to_string(),
        &after.available.to_string(),
    );
    changes
}

fn networks(pool: &Pool) -> String {
    list(pool.networks.iter().map(|network| network.as_str()))
}

/// What makes `before` the partner `after`.
pub(super) fn of_partner(before: Option<&Partner>, after: &Partner) -> Changes {
    let mut changes = Changes::of(format_args!("partner {}", after.id));
    let Some(before) = before else {
        changes.note("created");
        return changes;
    };
    changes.value("name", &quoted(&before.name), &quoted(&after.name));
    let (old, new) = (before.status.as_str(), after.status.as_str());
    changes.value("status", old, new);
    changes
}

/// What makes `before` the access `after`, terms included.
pub(super) fn of_profile(
    changes: &mut Changes,
    before: Option<&PoolsProfile>,
    after: &PoolsProfile,
) {
    match before {
        None => changes.note("pools created"),
        Some(before) => {
            for ((name, old), (_, new)) in figures(before).into_iter().zip(figures(after)) {
                changes.value(format_args!("pools.{name}"), &old, &new);
            }
        }
    }
    for (pool, terms) in &after.terms {
        of_terms(
            changes,
            *pool,
            before.and_then(|it| it.terms.get(pool)),
            terms,
        );
    }
}

fn of_terms(changes: &mut Changes, pool: PoolId, before: Option<&PoolTerms>, after: &PoolTerms) {
    let Some(before) = before else {
        changes.note(format_args!("pools.terms {pool} created"));
        return;
    };
    for ((name, old), (_, new)) in terms(before).into_iter().zip(terms(after)) {
        changes.value(format_args!("pools.terms {pool} {name}"), &old, &new);
    }
}

/// Every value of a profile but its terms, under its name in the declarative file.
fn figures(profile: &PoolsProfile) -> [(&'static str, String); 9] {
    let PoolsProfile {
        enabled,
        access,
        kyc,
        tier,
        allowed,
        balance_gate,
        velocity_cap,
        iban,
        funding_reference,
        terms: _,
    } = profile;
    let cap = velocity_cap.map(|units| decimal(&Decimal::new(units, kernel::UNITS_SCALE.into())));
    [
        ("enabled", enabled.to_string()),
        ("access", access.as_str().to_owned()),
        ("kyc", kyc.as_str().to_owned()),
        ("tier", quoted(tier)),
        ("allowed", list(allowed.iter())),
        ("balance_gate", balance_gate.to_string()),
        ("velocity_cap_usdt", or_none(cap)),
        ("iban", or_none(iban.clone())),
        ("funding_reference", quoted(funding_reference)),
    ]
}

/// Every value of a partner's terms, under its name in the declarative file.
fn terms(terms: &PoolTerms) -> [(&'static str, String); 6] {
    let PoolTerms {
        draw_fee_bps,
        spread_cap_bps,
        min_order_usdt,
        max_order_usdt,
        off_ramp,
        crypto_deposit_address,
    } = terms;
    [
        ("draw_fee_bps", draw_fee_bps.to_string()),
        ("spread_cap_bps", spread_cap_bps.to_string()),
        ("min_order_usdt", decimal(min_order_usdt)),
        (
            "max_order_usdt",
            or_none(max_order_usdt.as_ref().map(decimal)),
        ),
        ("off_ramp", off_ramp.to_string()),
        (
            "crypto_deposit_address",
            or_none(crypto_deposit_address.clone()),
        ),
    ]
}

/// What makes `before` the access `after` to the gate.
pub(super) fn of_gate(changes: &mut Changes, before: Option<&GateProfile>, after: &GateProfile) {
    let Some(before) = before else {
        changes.note("gate created");
        return;
    };
    for ((name, old), (_, new)) in gate(before).into_iter().zip(gate(after)) {
        changes.value(format_args!("gate.{name}"), &old, &new);
    }
}

/// Every value of a partner's access to the gate, under its name in the declarative file.
fn gate(profile: &GateProfile) -> [(&'static str, String); 7] {
    let GateProfile {
        enabled,
        allowed_domains,
        flow_sessions,
        kyc_trusted,
        rails,
        preview_locks,
        live_session_quota,
    } = profile;
    [
        ("enabled", enabled.to_string()),
        ("allowed_domains", list(allowed_domains.iter())),
        ("flow_sessions", flow_sessions.to_string()),
        ("kyc_trusted", kyc_trusted.to_string()),
        ("rails", rails.to_string()),
        ("preview_locks", preview_locks.to_string()),
        (
            "live_session_quota",
            or_none(live_session_quota.map(|quota| quota.to_string())),
        ),
    ]
}

fn decimal(value: &Decimal) -> String {
    value.normalize().to_string()
}

/// A word stands bare, anything else in quotes.
fn quoted(text: &str) -> String {
    let bare = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if bare && !text.is_empty() {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".to_owned())
}

fn list<T: ToString>(items: impl Iterator<Item = T>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartnerId;
    use crate::pools::{Kyc, Network};

    #[test]
    fn only_what_differs_is_called_a_change() {
        let partner = PartnerId::parse("acme").unwrap();
        let pool = PoolId::parse("EUR-USDT").unwrap();
        let mut before = PoolsProfile::absent(&partner);
        before.terms.insert(pool, PoolTerms::default());
        let mut after = before.clone();
        let mut changes = Changes::of("partner acme");
        of_profile(&mut changes, Some(&before), &after);
        assert!(changes.is_empty());
        after.kyc = Kyc::Approved;
        after.tier = "gold plus".to_owned();
        after.velocity_cap = Some(25_000_050_000_000);
        after.allowed.insert(pool);
        after.terms.entry(pool).or_default().min_order_usdt = Decimal::new(250, 1);
        of_profile(&mut changes, Some(&before), &after);
        assert_eq!(
            changes.into_lines(),
            [
                "partner acme: pools.kyc pending -> approved",
                "partner acme: pools.tier standard -> \"gold plus\"",
                "partner acme: pools.allowed [] -> [EUR-USDT]",
                "partner acme: pools.velocity_cap_usdt none -> 250000.5",
                "partner acme: pools.terms EUR-USDT min_order_usdt 1 -> 25",
            ]
        );
    }

    #[test]
    fn a_pool_is_compared_by_what_it_offers() {
        let mut pool = Pool {
            id: PoolId::parse("EUR-USDT").unwrap(),
            networks: vec![Network::Tron, Network::Bsc],
            available: true,
        };
        let before = pool.clone();
        assert_eq!(
            of_pool(None, &pool).into_lines(),
            ["pool EUR-USDT: created"]
        );
        assert!(of_pool(Some(&before), &pool).is_empty());
        pool.networks.pop();
        pool.available = false;
        assert_eq!(
            of_pool(Some(&before), &pool).into_lines(),
            [
                "pool EUR-USDT: networks [tron, bsc] -> [tron]",
                "pool EUR-USDT: available true -> false",
            ]
        );
    }
}
