//! The description of a configuration change: one line, with each value before and after.

use std::fmt::Display;

use kernel::Timestamp;
use rust_decimal::Decimal;

use gate_core::merchant::Merchant;
use gate_core::profile::GateProfile;
use partner_core::credential::masked;
use partner_core::key::{KeyRecord, KeyTerms};
use partner_core::text;
use partner_core::{Partner, PartnerStatus};
use pools_core::profile::{Kyc, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};

/// The lines about one subject, such as `partner acme`.
pub(crate) struct Changes {
    subject: String,
    /// Whether the subject is a partner that the file creates. It had no protection that the file could loosen.
    is_new: bool,
    lines: Vec<Line>,
}

/// One change.
struct Line {
    text: String,
    /// Whether the change loosens a protection of money, or ends a suspension.
    loosens: bool,
}

impl Changes {
    pub(crate) fn of(subject: impl Display) -> Self {
        Self {
            subject: masked(&subject.to_string()),
            is_new: false,
            lines: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, what: impl Display) {
        self.line(what, false);
    }

    fn line(&mut self, what: impl Display, loosens: bool) {
        let text = format!("{}: {what}", self.subject);
        self.lines.push(Line { text, loosens });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn loosens(&self) -> bool {
        self.lines.iter().any(|line| line.loosens)
    }

    /// The lines that loosen a protection, and the other lines.
    pub(crate) fn into_lines(self) -> (Vec<String>, Vec<String>) {
        let (loosened, other): (Vec<Line>, Vec<Line>) =
            self.lines.into_iter().partition(|line| line.loosens);
        let texts = |lines: Vec<Line>| lines.into_iter().map(|line| line.text).collect();
        (texts(loosened), texts(other))
    }

    /// Adds a line if the values differ. It compares the texts, so that values with the same text count as equal.
    pub(crate) fn value(&mut self, name: impl Display, before: &str, after: &str) {
        self.figure(name, before, after, false);
    }

    fn figure(&mut self, name: impl Display, before: &str, after: &str, loosens: bool) {
        if before != after {
            let (before, after) = (masked(before), masked(after));
            self.line(format_args!("{name} {before} -> {after}"), loosens);
        }
    }
}

/// The changes from the pool `before` to `after`.
pub(crate) fn of_pool(before: Option<&Pool>, after: &Pool) -> Changes {
    let mut changes = Changes::of(format_args!("pool {}", after.id));
    let Some(before) = before else {
        changes.note(match after.available {
            true => "created",
            false => "created, not available: every quote is `pool_dry` until the file says available = true",
        });
        return changes;
    };
    changes.value("networks", &networks(before), &networks(after));
    changes.value(
        "available",
        &before.available.to_string(),
        &after.available.to_string(),
    );
    changes.value(
        "native_addresses",
        &before.native_addresses.to_string(),
        &after.native_addresses.to_string(),
    );
    changes
}

fn networks(pool: &Pool) -> String {
    list(pool.networks.iter().map(|network| network.as_str()))
}

/// The changes from the partner `before` to `after`.
pub(crate) fn of_partner(before: Option<&Partner>, after: &Partner) -> Changes {
    let mut changes = Changes::of(format_args!("partner {}", after.id));
    let Some(before) = before else {
        changes.is_new = true;
        changes.note("created");
        return changes;
    };
    changes.value("name", &quoted(&before.name), &quoted(&after.name));
    let (old, new) = (before.status.as_str(), after.status.as_str());
    changes.figure(
        "status",
        old,
        new,
        before.status == PartnerStatus::Suspended,
    );
    changes
}

/// The changes from the access `before` to `after`, including terms. A partner without a profile had no access to pools.
pub(crate) fn of_profile(
    changes: &mut Changes,
    before: Option<&PoolsProfile>,
    after: &PoolsProfile,
) {
    match before {
        None => {
            changes.note("pools created");
            if after.enabled && is_unlimited(after) && !changes.is_new {
                changes.figure("pools.enabled", "false", "true", true);
            }
        }
        Some(before) => {
            let loosened = loosened_figures(before, after);
            for ((name, old), (_, new)) in figures(before).into_iter().zip(figures(after)) {
                let loosens = loosened.contains(&Some(name));
                changes.figure(format_args!("pools.{name}"), &old, &new, loosens);
            }
        }
    }
    for (pool, terms) in &after.terms {
        of_terms(changes, *pool, before, terms);
    }
}

/// The changes of the terms in a pool. A partner with a profile but without terms has the default terms, so new terms
/// are compared with those.
fn of_terms(changes: &mut Changes, pool: PoolId, before: Option<&PoolsProfile>, after: &PoolTerms) {
    let stored = before.and_then(|profile| profile.terms.get(&pool));
    if stored.is_none() {
        changes.note(format_args!("pools.terms {pool} created"));
    }
    let Some(before) = before.map(|profile| profile.terms_in(&pool)) else {
        return;
    };
    let loosened = loosened_terms(&before, after);
    for ((name, old), (_, new)) in terms(&before).into_iter().zip(terms(after)) {
        let loosens = loosened.contains(&Some(name));
        if stored.is_some() || loosens {
            changes.figure(
                format_args!("pools.terms {pool} {name}"),
                &old,
                &new,
                loosens,
            );
        }
    }
}

/// The names of the figures of a profile that `after` loosens.
fn loosened_figures(before: &PoolsProfile, after: &PoolsProfile) -> [Option<&'static str>; 5] {
    let enabled = !before.enabled && after.enabled && is_unlimited(after);
    let is_suspended = |profile: &PoolsProfile| profile.access == PoolsAccess::Suspended;
    let lifted = is_suspended(before) && !is_suspended(after);
    let gate_off = before.balance_gate && !after.balance_gate;
    let approved = before.kyc != Kyc::Approved && after.kyc == Kyc::Approved;
    let cap = is_raised(before.velocity_cap, after.velocity_cap);
    [
        enabled.then_some("enabled"),
        lifted.then_some("access"),
        gate_off.then_some("balance_gate"),
        cap.then_some("velocity_cap_usdt"),
        approved.then_some("kyc"),
    ]
}

/// Whether purchases need no funds, or the partner may trade any value.
fn is_unlimited(profile: &PoolsProfile) -> bool {
    !profile.balance_gate || profile.velocity_cap.is_none()
}

/// The names of the terms that `after` loosens.
fn loosened_terms(before: &PoolTerms, after: &PoolTerms) -> [Option<&'static str>; 2] {
    let most = is_raised(before.max_order_usdt, after.max_order_usdt);
    let sells = !before.off_ramp && after.off_ramp;
    [
        most.then_some("max_order_usdt"),
        sells.then_some("off_ramp"),
    ]
}

/// Whether a limit is raised or removed. `None` is no limit.
fn is_raised<T: PartialOrd>(before: Option<T>, after: Option<T>) -> bool {
    match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(before), Some(after)) => after > before,
    }
}

/// All values of a profile except its terms, with their names in the declarative file.
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

/// All values of a partner's terms, with their names in the declarative file.
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

/// The changes of a key's label and expiry.
pub(crate) fn of_key(changes: &mut Changes, before: &KeyRecord, after: &KeyTerms) {
    let KeyRecord {
        kind,
        prefix,
        last4,
        ..
    } = before;
    let name = format!("{} key {prefix}…{last4}", kind.as_str());
    let label = |label: &Option<String>| or_none(label.as_deref().map(quoted));
    let (old, new) = (label(&before.label), label(&after.label));
    changes.value(format_args!("{name} label"), &old, &new);
    let end = |instant: Option<Timestamp>| or_none(instant.map(|instant| instant.to_string()));
    let (old, new) = (end(before.expires_at), end(after.expires_at));
    changes.value(format_args!("{name} expires_at"), &old, &new);
}

/// Whether two keys have the same label, in any spelling, or neither has one.
pub(crate) fn same_label(one: &Option<String>, other: &Option<String>) -> bool {
    let form = |label: &Option<String>| label.as_deref().map(text::comparable);
    form(one) == form(other)
}

/// The changes from the gate access `before` to `after`. A partner without a profile was not trusted with KYC.
pub(crate) fn of_gate(changes: &mut Changes, before: Option<&GateProfile>, after: &GateProfile) {
    let Some(before) = before else {
        changes.note("gate created");
        if after.kyc_trusted && !changes.is_new {
            changes.figure("gate.kyc_trusted", "false", "true", true);
        }
        return;
    };
    let trusted = !before.kyc_trusted && after.kyc_trusted;
    let quota = is_raised(before.live_session_quota, after.live_session_quota);
    let loosened = [
        trusted.then_some("kyc_trusted"),
        quota.then_some("live_session_quota"),
    ];
    for ((name, old), (_, new)) in gate(before).into_iter().zip(gate(after)) {
        let loosens = loosened.contains(&Some(name));
        changes.figure(format_args!("gate.{name}"), &old, &new, loosens);
    }
}

/// All values of a partner's gate access, with their names in the declarative file.
fn gate(profile: &GateProfile) -> [(&'static str, String); 12] {
    let GateProfile {
        enabled,
        allowed_domains,
        flow_sessions,
        kyc_trusted,
        rails,
        preview_locks,
        live_session_quota,
        create_session_limit,
        merchant,
    } = profile;
    let Merchant {
        legal_name,
        support_url,
        terms_url,
        privacy_url,
    } = merchant;
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
        (
            "create_session_limit",
            or_none(create_session_limit.as_ref().map(ToString::to_string)),
        ),
        (
            "legal_name",
            or_none(legal_name.as_ref().map(|name| format!("{name:?}"))),
        ),
        ("support_url", or_none(support_url.clone())),
        ("terms_url", or_none(terms_url.clone())),
        ("privacy_url", or_none(privacy_url.clone())),
    ]
}

fn decimal(value: &Decimal) -> String {
    value.normalize().to_string()
}

/// A single word without quotes, any other text with quotes.
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
#[path = "changes_tests.rs"]
mod tests;
