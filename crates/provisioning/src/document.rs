//! The declarative file as typed tables.

use std::collections::BTreeSet;

use kernel::{Bound, Mode, Timestamp};
use secrecy::SecretString;

use crate::written::WrittenProfile;
use crate::{gate_table, shapes, value};
use gate_core::profile::GateProfile;
use kernel::address::DepositAddress;
use kernel::rates::SPREAD_CEILING_BPS;
use partner_core::events::{self, Service};
use partner_core::key::{KeyHash, KeyKind, KeyTerms, LABEL_LENGTH, PresentedKey};
use partner_core::tables::{self, Faults, Field, Section, Sink};
use partner_core::webhooks::target::{AllowPrivate, Target};
use partner_core::{Partner, PartnerId, PartnerStatus};
use pools_core::deposits::DepositClaim;
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};

/// Maximum draw fee, in basis points.
const DRAW_FEE_LIMIT: u16 = 5_000;

/// The conditions that a file is validated under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The mode that it is applied in.
    pub mode: Mode,
    /// The allowed targets of webhooks.
    pub allow_private: AllowPrivate,
}

/// A valid declarative file. Its references to the database, such as a pool that the file does not define, are
/// checked when it is applied.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The pools of the file.
    pub pools: Vec<Pool>,
    /// The partners of the file, by id.
    pub partners: Vec<PartnerEntry>,
}

/// One `[[partners]]` table and the tables below it.
#[derive(Debug, Clone)]
pub struct PartnerEntry {
    /// The line of its table.
    pub line: usize,
    /// The partner itself, active if the table has no status.
    pub partner: Partner,
    /// Whether the table has a status.
    pub has_status: bool,
    /// The `[partners.pools]` table, if present. Its terms are in `terms`.
    pub profile: Option<WrittenProfile>,
    /// The `[[partners.pools.terms]]` tables.
    pub terms: Vec<(PoolId, PoolTerms)>,
    /// The `[partners.gate]` table, if present.
    pub gate: Option<GateProfile>,
    /// The `[partners.pools.webhook]` and `[partners.gate.webhook]` tables.
    pub webhooks: Vec<WebhookEntry>,
    /// The `[[partners.keys]]` tables.
    pub keys: Vec<KeyEntry>,
    /// The pools that the partner's tables name, which must exist when the file is applied.
    pub mentions: Vec<Mention>,
    /// The deposit addresses and funding references, with their lines.
    pub deposits: Vec<(usize, DepositClaim)>,
}

impl PartnerEntry {
    /// The partner after the file. Without a status in the file, the stored status stays.
    #[must_use]
    pub fn partner_over(&self, stored: Option<&Partner>) -> Partner {
        let mut after = self.partner.clone();
        if let Some(stored) = stored.filter(|_| !self.has_status) {
            after.status = stored.status;
        }
        after
    }

    /// The partner's profile after the file; `None` if the file does not change it.
    #[must_use]
    pub fn profile_over(&self, stored: Option<&PoolsProfile>) -> Option<PoolsProfile> {
        if self.profile.is_none() && self.terms.is_empty() {
            return None;
        }
        let stored = stored.cloned();
        let stored = stored.unwrap_or_else(|| PoolsProfile::absent(&self.partner.id));
        let mut after = match &self.profile {
            Some(written) => written.over(stored, &self.partner.id),
            None => stored,
        };
        after.terms.extend(self.terms.iter().cloned());
        Some(after)
    }
}

/// A pool named in an entitlement or in terms.
#[derive(Debug, Clone)]
pub struct Mention {
    pub line: usize,
    pub key: String,
    pub pool: PoolId,
}

/// A webhook endpoint of the file.
#[derive(Debug, Clone)]
pub struct WebhookEntry {
    /// The service whose events it receives.
    pub service: Service,
    /// The URL that receives the events.
    pub url: String,
    /// The signing secret; `None` keeps the present one or generates one.
    pub secret: Option<SecretString>,
}

/// An API key of the file.
#[derive(Debug, Clone)]
pub struct KeyEntry {
    /// The line of its table.
    pub line: usize,
    pub kind: KeyKind,
    /// The literal key. `None` requires any generated key of this kind, and of this label if the table has one.
    pub literal: Option<SecretString>,
    /// The label and the expiry of the table.
    pub terms: KeyTerms,
}

/// Parses a file.
///
/// # Errors
/// [`Faults`]: all errors of the file. If the syntax is broken, only the syntax errors.
pub fn parse(text: &str, setting: Setting) -> Result<Document, Faults> {
    let literals = BTreeSet::new();
    tables::read(text, &shapes::ROOT, &shapes::SHAPES, |sink, root| {
        Reading { setting, literals }.document(sink, root)
    })
}

struct Reading {
    setting: Setting,
    /// The literal keys so far. A key that occurs twice would have two partners.
    literals: BTreeSet<KeyHash>,
}

impl Reading {
    fn document(&mut self, sink: &mut Sink<'_>, root: &Section<'_, '_>) -> Document {
        let mut document = Document::default();
        for table in root.sections(sink, "pools", &shapes::POOL) {
            if let Some(pool) = pool(sink, &table, &document.pools) {
                document.pools.push(pool);
            }
        }
        for table in root.sections(sink, "partners", &shapes::PARTNER) {
            if let Some(entry) = self.partner(sink, &table, &document.partners) {
                document.partners.push(entry);
            }
        }
        document
            .partners
            .sort_by(|a, b| a.partner.id.cmp(&b.partner.id));
        document
    }

    fn partner(
        &mut self,
        sink: &mut Sink<'_>,
        table: &Section<'_, '_>,
        earlier: &[PartnerEntry],
    ) -> Option<PartnerEntry> {
        let id = partner_id(sink, table, earlier);
        let name = table
            .required(sink, "name", "the partner's name")
            .and_then(|field| field.label(sink, 128));
        let status = word(sink, table, "status", "active or suspended", |text| {
            PartnerStatus::parse(text)
        });
        // A partner with an invalid id is still read, so that the errors of its tables are reported.
        let subject = id.clone().or_else(|| PartnerId::parse("unreadable"))?;
        let mut entry = PartnerEntry {
            line: sink.line(table.at),
            partner: Partner {
                id: subject,
                name: name.unwrap_or_default(),
                status: status.unwrap_or(PartnerStatus::Active),
            },
            has_status: status.is_some(),
            profile: None,
            terms: Vec::new(),
            gate: None,
            webhooks: Vec::new(),
            keys: Vec::new(),
            mentions: Vec::new(),
            deposits: Vec::new(),
        };
        if let Some(pools) = table.section(sink, "pools", &shapes::ACCESS) {
            self.access(sink, &pools, &mut entry);
        }
        if let Some(gate) = table.section(sink, "gate", &shapes::GATE) {
            self.gate(sink, &gate, &mut entry);
        }
        for key in table.sections(sink, "keys", &shapes::KEY) {
            entry.keys.extend(self.key(sink, &key));
        }
        id.map(|_| entry)
    }

    fn access(&mut self, sink: &mut Sink<'_>, table: &Section<'_, '_>, entry: &mut PartnerEntry) {
        if table.is_written(sink, &["terms", "webhook"]) {
            entry.profile = Some(profile(sink, table, entry));
        }
        for table in table.sections(sink, "terms", &shapes::TERMS) {
            let Some((at, pool)) = terms_pool(sink, &table, &entry.terms) else {
                terms(sink, &table);
                continue;
            };
            mention(sink, entry, at, "partners.pools.terms.pool", pool);
            let terms = terms(sink, &table);
            if let (Some(field), Some(address)) = (
                table.field("crypto_deposit_address"),
                &terms.crypto_deposit_address,
            ) {
                let claim = DepositClaim::of_address(address);
                entry.deposits.push((sink.line(field.at), claim));
            }
            entry.terms.push((pool, terms));
        }
        if let Some(table) = table.section(sink, "webhook", &shapes::WEBHOOK) {
            let webhook = self.webhook(sink, Service::Pools, &table);
            entry.webhooks.extend(webhook);
        }
    }

    fn gate(&self, sink: &mut Sink<'_>, table: &Section<'_, '_>, entry: &mut PartnerEntry) {
        if table.is_written(sink, &["webhook"]) {
            entry.gate = Some(gate_table::profile(sink, table, self.setting.mode));
        }
        if let Some(table) = table.section(sink, "webhook", &shapes::GATE_WEBHOOK) {
            let webhook = self.webhook(sink, Service::Gate, &table);
            entry.webhooks.extend(webhook);
        }
    }

    fn webhook(
        &self,
        sink: &mut Sink<'_>,
        service: Service,
        table: &Section<'_, '_>,
    ) -> Option<WebhookEntry> {
        let Setting {
            mode,
            allow_private,
        } = self.setting;
        let field = table.required(sink, "url", "the URL events are sent to");
        let url = field.and_then(|field| {
            let text = field.read(sink, "a URL", Some)?;
            match Target::parse(text, mode, allow_private) {
                Ok(_) => Some(text.to_owned()),
                Err(problem) => {
                    // A URL may contain credentials.
                    field.refuse_unseen(sink, &problem);
                    None
                }
            }
        });
        let mut secret = None;
        if let Some(field) = table.field("secret") {
            let text = field.text().filter(|text| events::is_secret(text));
            secret = text.map(SecretString::from);
            if secret.is_none() {
                field.refuse_unseen(sink, "expected whsec_ and the base64 of 32 bytes");
            }
        }
        url.map(|url| WebhookEntry {
            service,
            url,
            secret,
        })
    }

    fn key(&mut self, sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Option<KeyEntry> {
        let expected = "secret or publishable";
        let kind = table
            .required(sink, "kind", expected)?
            .read(sink, expected, KeyKind::parse)?;
        let mut literal = None;
        if let Some(field) = table.field("key") {
            match self.literal(kind, &field) {
                Ok(text) => literal = Some(SecretString::from(text)),
                Err(problem) => field.refuse_unseen(sink, problem),
            }
        }
        let label = table.field("label");
        let expires_at = table.field("expires_at");
        let terms = KeyTerms {
            label: label.and_then(|field| field.unique_label(sink, LABEL_LENGTH)),
            expires_at: expires_at.and_then(|field| field.read(sink, INSTANT, instant)),
        };
        Some(KeyEntry {
            line: sink.line(table.at),
            kind,
            literal,
            terms,
        })
    }

    fn literal<'d>(
        &mut self,
        kind: KeyKind,
        field: &Field<'d, '_>,
    ) -> Result<&'d str, &'static str> {
        if self.setting.mode == Mode::Live {
            return Err(
                "a literal key is accepted in test mode only; leave it out and one is generated",
            );
        }
        let text = field.text().unwrap_or_default();
        let key = PresentedKey::parse(text).filter(|key| key.mode == Mode::Test);
        match (key, kind) {
            (Some(key), _) if key.kind == kind => {
                let fresh = self.literals.insert(key.hash);
                fresh
                    .then_some(text)
                    .ok_or("this key occurs twice in the file")
            }
            (_, KeyKind::Secret) => {
                Err("expected sk_test_ and 32 letters or digits, as the kind is secret")
            }
            (_, KeyKind::Publishable) => {
                Err("expected pk_test_ and 32 letters or digits, as the kind is publishable")
            }
        }
    }
}

fn pool(sink: &mut Sink<'_>, table: &Section<'_, '_>, earlier: &[Pool]) -> Option<Pool> {
    let field = table.required(sink, "id", POOL_ID);
    let id = field.and_then(|field| {
        let id = field.read(sink, POOL_ID, PoolId::parse)?;
        if earlier.iter().any(|pool| pool.id == id) {
            field.refuse(sink, "expected every pool once");
        }
        Some(id)
    });
    let field = table.required(sink, "networks", "a list of networks");
    let networks = field.map(|field| {
        let before = sink.count();
        let networks = field.list(sink, &network_names(), Network::parse);
        if networks.is_empty() && sink.count() == before {
            sink.add(field.at, &field.path, "expected at least one network");
        }
        networks
    });
    let available = table.flag(sink, "available");
    let native_addresses = table.flag(sink, "native_addresses");
    Some(Pool {
        id: id?,
        networks: networks?.into_iter().map(|(_, network)| network).collect(),
        available,
        native_addresses,
    })
}

const POOL_ID: &str = "a pool id <FIAT>-<CRYPTO> in upper case, such as EUR-USDT";

fn network_names() -> String {
    let names: Vec<&str> = Network::ALL
        .iter()
        .map(|network| network.as_str())
        .collect();
    format!("one of {}", names.join(", "))
}

fn partner_id(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    earlier: &[PartnerEntry],
) -> Option<PartnerId> {
    let expected = "1 to 64 of a-z, 0-9, _ and -";
    let field = table.required(sink, "id", expected)?;
    let id = field.read(sink, expected, PartnerId::parse)?;
    if earlier.iter().any(|entry| entry.partner.id == id) {
        field.refuse(sink, "expected every partner once");
    }
    Some(id)
}

/// The `[partners.pools]` table without its terms. Absent keys have defaults, except `access`, which keeps its stored
/// value, and `balance_gate` and `velocity_cap_usdt`: they protect money and are required while pools are enabled.
fn profile(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    entry: &mut PartnerEntry,
) -> WrittenProfile {
    let absent = PoolsProfile::absent(&entry.partner.id);
    let access = word(
        sink,
        table,
        "access",
        "active or suspended",
        PoolsAccess::parse,
    );
    let kyc = word(
        sink,
        table,
        "kyc",
        "approved, pending or revoked",
        Kyc::parse,
    );
    let tier = table.field("tier").and_then(|field| field.label(sink, 64));
    let reference = table.field("funding_reference");
    let has_reference = reference.is_some();
    let reference = reference.and_then(|field| {
        let reference = field.unique_label(sink, 140)?;
        let claim = DepositClaim::of_reference(&reference);
        entry.deposits.push((sink.line(field.at), claim));
        Some(reference)
    });
    let enabled = table.flag(sink, "enabled");
    let (gate, cap) = if enabled {
        let gate = table.required(sink, "balance_gate", BALANCE_GATE);
        let cap = table.required(sink, "velocity_cap_usdt", VELOCITY_CAP);
        (gate, cap)
    } else {
        let gate = table.field("balance_gate");
        (gate, table.field("velocity_cap_usdt"))
    };
    let iban = table.field("iban");
    let (has_balance_gate, has_velocity_cap) = (gate.is_some(), cap.is_some());
    let profile = PoolsProfile {
        enabled,
        access: access.unwrap_or(absent.access),
        kyc: kyc.unwrap_or(absent.kyc),
        tier: tier.unwrap_or(absent.tier),
        allowed: allowed(sink, table, entry),
        balance_gate: table.flag(sink, "balance_gate"),
        velocity_cap: cap.and_then(|field| velocity_cap(sink, &field)),
        iban: iban.and_then(|field| field.read(sink, "a valid IBAN", value::iban)),
        funding_reference: reference.unwrap_or(absent.funding_reference),
        terms: absent.terms,
    };
    WrittenProfile {
        profile,
        has_access: access.is_some(),
        has_balance_gate,
        has_velocity_cap,
        has_reference,
    }
}

const INSTANT: &str = "an instant such as \"2027-01-31T00:00:00Z\"";

fn instant(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text, Bound::Upper).ok()
}

const BALANCE_GATE: &str = "true, or false if purchases need no funds";
const VELOCITY_CAP: &str = "a decimal such as \"250000\", or \"none\" for no cap";

/// A cap, or the text for an unlimited one.
fn velocity_cap(sink: &mut Sink<'_>, field: &Field<'_, '_>) -> Option<i64> {
    if field.text() == Some("none") {
        return None;
    }
    let expected = format!("{}, or \"none\" for no cap", value::USDT);
    field.number(sink, &expected, value::usdt_units)
}

fn allowed(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    entry: &mut PartnerEntry,
) -> BTreeSet<PoolId> {
    let Some(field) = table.field("allowed") else {
        return BTreeSet::new();
    };
    let found = field.list(sink, POOL_ID, PoolId::parse);
    for (at, pool) in &found {
        mention(sink, entry, *at, &field.path, *pool);
    }
    found.into_iter().map(|(_, pool)| pool).collect()
}

fn mention(sink: &Sink<'_>, entry: &mut PartnerEntry, at: usize, key: &str, pool: PoolId) {
    entry.mentions.push(Mention {
        line: sink.line(at),
        key: key.to_owned(),
        pool,
    });
}

fn terms_pool(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    earlier: &[(PoolId, PoolTerms)],
) -> Option<(usize, PoolId)> {
    let field = table.required(sink, "pool", POOL_ID)?;
    let pool = field.read(sink, POOL_ID, PoolId::parse)?;
    if earlier.iter().any(|(other, _)| *other == pool) {
        field.refuse(sink, "expected the terms of a pool once");
    }
    Some((field.at, pool))
}

/// One `[[partners.pools.terms]]` table. Absent keys have defaults.
fn terms(sink: &mut Sink<'_>, table: &Section<'_, '_>) -> PoolTerms {
    let absent = PoolTerms::default();
    let fee = table.field("draw_fee_bps");
    let cap = table.field("spread_cap_bps");
    let minimum = table.field("min_order_usdt");
    let maximum = table.field("max_order_usdt");
    let address = table.field("crypto_deposit_address");
    let read = PoolTerms {
        draw_fee_bps: fee
            .and_then(|field| field.whole(sink, DRAW_FEE_LIMIT))
            .unwrap_or(absent.draw_fee_bps),
        spread_cap_bps: cap
            .and_then(|field| field.whole(sink, SPREAD_CEILING_BPS))
            .unwrap_or(absent.spread_cap_bps),
        min_order_usdt: minimum
            .and_then(|field| field.number(sink, value::USDT, value::usdt))
            .unwrap_or(absent.min_order_usdt),
        max_order_usdt: maximum
            .as_ref()
            .and_then(|field| field.number(sink, value::USDT, value::usdt)),
        off_ramp: table.flag(sink, "off_ramp"),
        crypto_deposit_address: address.and_then(|field| deposit_address(sink, &field)),
    };
    if let (Some(field), Some(most)) = (maximum, read.max_order_usdt)
        && most < read.min_order_usdt
    {
        let expected = format!("expected at least min_order_usdt, {}", read.min_order_usdt);
        field.refuse(sink, &expected);
    }
    read
}

fn deposit_address(sink: &mut Sink<'_>, field: &Field<'_, '_>) -> Option<String> {
    match DepositAddress::parse(field.text().unwrap_or_default()) {
        Ok(address) => Some(address.into_text()),
        Err(error) => {
            field.refuse(sink, &error.to_string());
            None
        }
    }
}

/// One of the allowed values; `None` if absent.
fn word<T>(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    key: &'static str,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    table.field(key)?.read(sink, expected, parse)
}

#[cfg(test)]
#[path = "document_tests.rs"]
pub(crate) mod tests;
