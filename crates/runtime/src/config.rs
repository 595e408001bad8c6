//! The configuration: every setting is read and validated before anything starts.
//!
//! All errors are reported together, one line per error. Cores receive plain values.

mod database;
mod path;
mod proxies;
mod setting;
mod source;
mod upstreams;
mod value;

use std::fmt::Write;
use std::iter;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use coordination::RedisUrl;
use gate_core::catalogue::Catalogue;
use gate_core::limits::{Group, Limits};
use ipnet::IpNet;
use kernel::Mode;
use partner_core::origin::Origin;
use partner_core::sealing::MasterKey;
use partner_core::throttle::Tier;
use partner_core::webhooks::target::AllowPrivate;

pub use database::{Database, ServerUrl};
pub use path::check_path;
use setting::{AnySetting, Setting, Visibility};
use source::RawSettings;
pub(crate) use source::nearest_of;
pub use source::{ConfigError, Sources};
pub use upstreams::UpstreamConfig;
use upstreams::{UPSTREAMS, UpstreamSettings};
pub(crate) use value::master_keys;
use value::without_credentials;
pub use value::{LogFormat, RatesChoice, TraceExport, TraceHeader, UpstreamChoice};

/// A signed quote that can be redeemed for longer than this is the subject of a warning.
const LONG_SIGNED_QUOTE: Duration = Duration::from_secs(5 * 60);

/// The effective settings of this version. A field has the name of its setting, and the table of the settings describes it.
#[derive(Debug)]
pub struct Config {
    pub mode: Mode,
    /// Whether the operator set the mode. Otherwise it is the default.
    pub is_mode_set: bool,
    pub database: Database,
    pub migrate_database: Database,
    pub auto_migrate: bool,
    pub database_pool: u32,
    pub database_connect_timeout: Duration,
    pub database_timeout: Duration,
    /// The Redis that replicas share their limits through; `None` if each process keeps its own.
    pub redis: Option<RedisUrl>,
    pub master_keys: Option<Vec<MasterKey>>,
    pub pools_listen: SocketAddr,
    pub gate_listen: SocketAddr,
    pub widget_listen: SocketAddr,
    /// Address of the metrics; `None` if metrics are neither served nor recorded.
    pub metrics_listen: Option<SocketAddr>,
    pub quote_ttl: Duration,
    pub session_ttl: Duration,
    pub embed_token_ttl: Duration,
    pub signed_quote_ttl: Duration,
    pub preview_ttl: Duration,
    /// Interval between sweeps of overdue gate sessions; `None` without sweeps.
    pub session_sweep: Option<Duration>,
    pub idempotency_ttl: Duration,
    pub quote_retention: Duration,
    pub velocity_window: Duration,
    /// Limits of the pools service per credential; `None` if throttles are off.
    pub pools_throttle: Option<Vec<Tier>>,
    /// Limits of the gate service; `None` if throttles are off.
    pub gate_limits: Option<Limits>,
    pub connections: usize,
    pub connections_per_address: usize,
    pub trusted_proxies: Vec<IpNet>,
    /// Public origin of the hosted widget; `None` for the address on which it listens.
    pub widget_origin: Option<Origin>,
    /// Public origin of the gate service; `None` for the address on which it listens.
    pub gate_origin: Option<Origin>,
    pub webhook_waits: Vec<Duration>,
    pub webhook_timeout: Duration,
    pub webhook_allow_private: AllowPrivate,
    pub rates: RatesChoice,
    pub engine: UpstreamConfig,
    pub engine_former: UpstreamConfig,
    pub engine_drain: bool,
    pub rail: UpstreamConfig,
    pub rail_former: UpstreamConfig,
    pub verifier: UpstreamConfig,
    pub verifier_former: UpstreamConfig,
    /// How long the sandbox's rail leaves a payment in the widget in progress; `None` for the program's default.
    pub sandbox_settles_after: Option<Duration>,
    /// The operator's catalogue of the gate; `None` for the built-in one.
    pub catalogue: Option<PathBuf>,
    /// The header in which the edge names a country; `None` if no edge is trusted.
    pub edge_country_header: Option<String>,
    pub log_format: LogFormat,
    /// The destination of traces; with `None`, the program makes no traces.
    pub traces: Option<TraceExport>,
}

/// A configuration with its warnings.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Warnings about settings that work differently than the operator may expect, one line each.
    pub warnings: Vec<String>,
    /// Warnings that concern only a program that serves.
    pub serving_warnings: Vec<String>,
    /// The effective configuration as text, secrets masked.
    pub effective: String,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Every error, in the order of the settings.
    pub fn load(sources: &Sources) -> Result<Loaded, Vec<ConfigError>> {
        let (given, warnings) = RawSettings::collect(sources)?;
        let faults = combination_errors(&given);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Loaded {
            config: Self::build(&given).map_err(|error| vec![error])?,
            warnings,
            serving_warnings: live_warnings(&given),
            effective: effective(&given),
        })
    }

    /// Whether the gate service serves the hosted widget: in mode live only at a configured origin.
    #[must_use]
    pub fn serves_widget(&self) -> bool {
        self.mode == Mode::Test || self.widget_origin.is_some()
    }

    /// Checks the settings that only the gate service requires.
    ///
    /// # Errors
    /// The public origin of the gate service is missing, which the widget calls in mode live.
    pub fn check_gate(&self) -> Result<(), Vec<ConfigError>> {
        let is_missing =
            self.mode == Mode::Live && self.serves_widget() && self.gate_origin.is_none();
        if !is_missing {
            return Ok(());
        }
        let setting = setting::GATE_ORIGIN.about();
        Err(vec![ConfigError::new(
            format!("PENSTOCK_{}", setting.name),
            format!(
                "expected the {}, such as https://gate.example: mode live requires it beside PENSTOCK_WIDGET_ORIGIN",
                setting.help
            ),
        )])
    }

    /// Warnings of mode live that concern only the gate service, one line each.
    #[must_use]
    pub fn gate_warnings(&self, catalogue: &Catalogue) -> Vec<&'static str> {
        let mut said = Vec::new();
        if self.mode == Mode::Test {
            return said;
        }
        if self.signed_quote_ttl > LONG_SIGNED_QUOTE {
            said.push("PENSTOCK_SIGNED_QUOTE_TTL is longer than 5m: a signed quote keeps its price although the market moves");
        }
        if !self.serves_widget() {
            said.push(
                "PENSTOCK_WIDGET_ORIGIN is not set: no widget is served, and `url` of sessions is null",
            );
            return said;
        }
        if self.rail.choice == UpstreamChoice::None {
            said.push("PENSTOCK_RAIL=none: every payment in the widget is refused with 501 rails_not_available");
        }
        // A user of an unknown country must always be verified.
        let requires = catalogue.requires_verification() || self.edge_country_header.is_none();
        if self.verifier.choice == UpstreamChoice::None && requires {
            said.push("PENSTOCK_VERIFIER=none: users whom the catalogue requires to be verified cannot pay in the widget");
        }
        said
    }

    /// Checks the settings that a program requires only to serve: in mode live the secrets of the upstreams over HTTP.
    ///
    /// # Errors
    /// Each missing secret.
    pub fn check_serving(&self) -> Result<(), Vec<ConfigError>> {
        if self.mode == Mode::Test {
            return Ok(());
        }
        let faults: Vec<ConfigError> = upstreams::UPSTREAMS
            .iter()
            .filter_map(|upstream| upstream.missing_secret(self))
            .collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    fn build(given: &RawSettings) -> Result<Self, ConfigError> {
        let throttled = given.value(&setting::THROTTLE)?;
        let tiers = given.value(&setting::THROTTLE_POOLS)?;
        let sweep = given.value(&setting::SESSION_SWEEP)?;
        let one_in = given.value(&setting::OTLP_ONE_IN)?;
        let collector = given.get(&setting::OTLP_ENDPOINT)?;
        let headers = given.get(&setting::OTLP_HEADERS)?;
        Ok(Self {
            mode: given.mode(),
            is_mode_set: given.is_set(&setting::MODE),
            database: given.value(&setting::DATABASE_URL)?,
            migrate_database: given.value(&setting::MIGRATE_DATABASE_URL)?,
            auto_migrate: given.value(&setting::AUTO_MIGRATE)?,
            database_pool: given.value(&setting::DATABASE_POOL)?,
            database_connect_timeout: given.value(&setting::DATABASE_CONNECT_TIMEOUT)?,
            database_timeout: given.value(&setting::DATABASE_TIMEOUT)?,
            redis: given.get(&setting::REDIS_URL)?,
            master_keys: given.get(&setting::MASTER_KEY)?,
            pools_listen: given.value(&setting::POOLS_LISTEN)?,
            gate_listen: given.value(&setting::GATE_LISTEN)?,
            widget_listen: given.value(&setting::WIDGET_LISTEN)?,
            metrics_listen: given.get(&setting::METRICS_LISTEN)?,
            quote_ttl: given.value(&setting::QUOTE_TTL)?,
            session_ttl: given.value(&setting::SESSION_TTL)?,
            embed_token_ttl: given.value(&setting::EMBED_TOKEN_TTL)?,
            signed_quote_ttl: given.value(&setting::SIGNED_QUOTE_TTL)?,
            preview_ttl: given.value(&setting::PREVIEW_TTL)?,
            session_sweep: Some(sweep).filter(|every| !every.is_zero()),
            idempotency_ttl: given.value(&setting::IDEMPOTENCY_TTL)?,
            quote_retention: given.value(&setting::QUOTE_RETENTION)?,
            velocity_window: given.value(&setting::VELOCITY_WINDOW)?,
            pools_throttle: throttled.then_some(tiers),
            gate_limits: Some(Limits::new(|group| given.value(limit_of(group)))?)
                .filter(|_| throttled),
            connections: given.value(&setting::CONNECTIONS)?,
            connections_per_address: given.value(&setting::CONNECTIONS_PER_ADDRESS)?,
            trusted_proxies: given.get(&setting::TRUSTED_PROXIES)?.unwrap_or_default(),
            widget_origin: public_origin(given, &setting::WIDGET_ORIGIN)?,
            gate_origin: public_origin(given, &setting::GATE_ORIGIN)?,
            webhook_waits: given.value(&setting::WEBHOOK_WAITS)?,
            webhook_timeout: given.value(&setting::WEBHOOK_TIMEOUT)?,
            webhook_allow_private: given.value(&setting::WEBHOOK_ALLOW_PRIVATE)?,
            rates: given.value(&setting::RATES)?,
            engine: upstreams::ENGINE.read(given)?,
            engine_former: upstreams::ENGINE_FORMER.read(given)?,
            engine_drain: given.value(&setting::ENGINE_DRAIN)?,
            rail: upstreams::RAIL.read(given)?,
            rail_former: upstreams::RAIL_FORMER.read(given)?,
            verifier: upstreams::VERIFIER.read(given)?,
            verifier_former: upstreams::VERIFIER_FORMER.read(given)?,
            sandbox_settles_after: given.get(&setting::SANDBOX_SETTLES_AFTER)?,
            catalogue: given.get(&setting::CATALOGUE)?,
            edge_country_header: given.value(&setting::EDGE_COUNTRY_HEADER)?,
            log_format: given.value(&setting::LOG_FORMAT)?,
            traces: collector.map(|collector| TraceExport {
                collector,
                headers: headers.unwrap_or_default(),
                one_in,
            }),
        })
    }
}

/// The setting of a group's limit.
fn limit_of(group: Group) -> &'static Setting<Vec<Tier>> {
    match group {
        Group::CreateSession => &setting::THROTTLE_CREATE_SESSION,
        Group::CancelSession => &setting::THROTTLE_CANCEL_SESSION,
        Group::ListSessions => &setting::THROTTLE_LIST_SESSIONS,
        Group::ListTransactions => &setting::THROTTLE_LIST_TRANSACTIONS,
        Group::Preview => &setting::THROTTLE_PREVIEW,
        Group::Capabilities => &setting::THROTTLE_CAPABILITIES,
        Group::Bootstrap => &setting::THROTTLE_BOOTSTRAP,
        Group::BootstrapCeiling => &setting::THROTTLE_BOOTSTRAP_CEILING,
        Group::Embed => &setting::THROTTLE_EMBED,
        Group::EmbedQuotes => &setting::THROTTLE_EMBED_QUOTES,
        Group::EmbedPayments => &setting::THROTTLE_EMBED_PAYMENTS,
        Group::Global => &setting::THROTTLE_GLOBAL,
    }
}

/// Checks an origin that browsers reach: https, or http on this machine in mode test. A content security policy names it.
fn public_origin(
    given: &RawSettings,
    setting: &Setting<()>,
) -> Result<Option<Origin>, ConfigError> {
    let Some(text) = given.text(setting) else {
        return Ok(None);
    };
    let origin = Origin::parse(text, given.mode());
    let origin = origin.filter(Origin::is_policy_source);
    let expected = "expected an https origin with a host name, such as https://pay.example; in mode test also http on this machine";
    origin
        .map(Some)
        .ok_or_else(|| given.refuse(setting, expected))
}

fn combination_errors(given: &RawSettings) -> Vec<ConfigError> {
    let mut faults = upstreams::name_errors(given);
    if given.mode() == Mode::Test {
        return faults;
    }
    if !given.is_set(&setting::DATABASE_URL) {
        let expected = format!(
            "expected {}: mode live has no default database; if a shell has set the variable, quote the URL, because a shell ends it at `&`",
            setting::DATABASE_URL.about().expected
        );
        faults.push(given.refuse(&setting::DATABASE_URL, &expected));
    }
    if given.text(&setting::MASTER_KEY).is_none() {
        let expected = "expected 32 bytes in base64: mode live does not create a key";
        faults.push(given.refuse(&setting::MASTER_KEY, expected));
    }
    let upstreams = UPSTREAMS.iter().map(|it| it.setting as &dyn AnySetting);
    for setting in iter::once(&setting::RATES as &dyn AnySetting).chain(upstreams) {
        if given.text(setting) == Some("sandbox") {
            faults.push(given.refuse(setting, "the sandbox serves mode test only"));
        }
    }
    faults.extend(UPSTREAMS.iter().filter_map(|it| it.live_error(given)));
    faults.extend(upstreams::shared_secrets(given));
    faults.extend(shared_origin(given));
    faults
}

/// The error of a widget whose origin is the gate's. An invalid origin has an error of its own.
fn shared_origin(given: &RawSettings) -> Option<ConfigError> {
    let origin = |setting| public_origin(given, setting).ok().flatten();
    let (widget, gate) = (
        origin(&setting::WIDGET_ORIGIN)?,
        origin(&setting::GATE_ORIGIN)?,
    );
    let expected = "expected another origin than that of PENSTOCK_GATE_ORIGIN, such as https://pay.example: the widget and the gate \
                    service have a listener each, and need a public name each";
    (widget == gate).then(|| given.refuse(&setting::WIDGET_ORIGIN, expected))
}

/// Warnings about valid settings with an unexpected effect in mode live.
fn live_warnings(given: &RawSettings) -> Vec<String> {
    let mut said = Vec::new();
    if given.mode() == Mode::Test {
        return said;
    }
    if given.text(&setting::REDIS_URL).is_none() {
        said.push("PENSTOCK_REDIS_URL is not set: each process counts limits alone".to_owned());
    }
    if given.text(&setting::THROTTLE) == Some("off") {
        said.push("PENSTOCK_THROTTLE=off: any client can send any number of requests".to_owned());
    }
    for UpstreamSettings { setting, .. } in UPSTREAMS {
        let text = given.text(*setting).unwrap_or_default();
        if text.starts_with("http:http://") {
            said.push(format!(
                "PENSTOCK_{} is not https: others on the network path can read its secret",
                setting.about().name
            ));
        }
    }
    said
}

/// The effective configuration in the form of the file. Unset settings are comments.
fn effective(given: &RawSettings) -> String {
    let mut text = String::new();
    for setting in setting::ALL {
        let key = setting.about().name.to_lowercase();
        let line = match (given.text(*setting), setting.about().shown) {
            (None, _) => format!("# {key} is not set"),
            (Some(_), Visibility::Masked) => format!("{key} = \"***\""),
            (Some(value), Visibility::WithoutCredentials) => {
                format!("{key} = {}", toml::Value::from(without_credentials(value)))
            }
            (Some(value), Visibility::Plainly) => format!("{key} = {}", toml::Value::from(value)),
        };
        let _ = writeln!(text, "# {}\n{line}", setting.about().help);
    }
    text
}

#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod tests;
