//! The table of all settings: name, default, expected form and description.
//!
//! A setting `QUOTE_TTL` is the variable `PENSTOCK_QUOTE_TTL` and the key `quote_ttl` of the file.
//! The table has the settings of both services, because one file may configure both. Each service reports the errors of all
//! settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use coordination::RedisUrl;
use ipnet::IpNet;
use kernel::Mode;
use partner_core::sealing::MasterKey;
use partner_core::throttle::Tier;
use partner_core::webhooks::target::AllowPrivate;
use pools_core::engine::EngineName;
use providers::UpstreamSecret;

use super::database::{self, Database};
use super::proxies;
use super::value::{self, InvalidSetting, LogFormat, RatesChoice, TraceHeader, UpstreamChoice};

/// One setting.
pub(crate) struct Setting<T> {
    name: &'static str,
    default: Default,
    expected: &'static str,
    help: &'static str,
    shown: Visibility,
    parse: fn(&str) -> Result<T, InvalidSetting>,
}

/// The default of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Default {
    /// Not set.
    Unset,
    /// This text.
    Is(&'static str),
    /// One text in mode test, another in mode live.
    ByMode(&'static str, &'static str),
    /// The value of another setting.
    SameAs(&'static str),
}

/// How a setting is shown by `config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Unchanged.
    Plainly,
    /// A URL without its credentials.
    WithoutCredentials,
    Masked,
}

/// A setting of any type.
pub(crate) trait AnySetting: Sync {
    fn name(&self) -> &'static str;
    fn default(&self) -> Default;
    fn expected(&self) -> &'static str;
    fn help(&self) -> &'static str;
    fn shown(&self) -> Visibility;
    fn check(&self, text: &str) -> Result<(), InvalidSetting>;
}

impl<T> AnySetting for Setting<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn default(&self) -> Default {
        self.default
    }

    fn expected(&self) -> &'static str {
        self.expected
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn shown(&self) -> Visibility {
        self.shown
    }

    fn check(&self, text: &str) -> Result<(), InvalidSetting> {
        self.parse(text).map(drop)
    }
}

impl<T> Setting<T> {
    pub(crate) fn parse(&self, text: &str) -> Result<T, InvalidSetting> {
        (self.parse)(text)
    }

    pub(super) const fn new(
        name: &'static str,
        default: Default,
        parse: fn(&str) -> Result<T, InvalidSetting>,
        expected: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            default,
            expected,
            help,
            shown: Visibility::Plainly,
            parse,
        }
    }

    pub(super) const fn shown(mut self, shown: Visibility) -> Self {
        self.shown = shown;
        self
    }
}

const DATABASE_FORM: &str = "sqlite://<file> or postgres://user:password@host:5432/database";
const TIMEOUT_FORM: &str = "a span from 100ms to 60s such as 2s";
const SPAN_FORM: &str = "a span greater than zero such as 500ms, 15s, 5m or 24h";
const LISTEN_FORM: &str = "an address and a port such as 127.0.0.1:4010";
const LIMIT_FORM: &str = "one limit such as 10/60s";
const LIMITS_FORM: &str =
    "one to three limits, the shortest window first, such as 10/10s,60/60s,300/1h";

/// A span greater than zero.
const fn span(name: &'static str, default: &'static str, help: &'static str) -> Setting<Duration> {
    Setting::new(name, Default::Is(default), value::span, SPAN_FORM, help)
}

/// One limit of requests.
const fn limit(
    name: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting<Vec<Tier>> {
    Setting::new(name, Default::Is(default), value::limit, LIMIT_FORM, help)
}

/// An upstream that an operator may run.
const fn upstream(name: &'static str, help: &'static str) -> Setting<UpstreamChoice> {
    let default = Default::ByMode("sandbox", "none");
    let form = "none, sandbox or http:<url>";
    Setting::new(name, default, value::upstream, form, help)
}

/// The secret of an upstream.
const fn upstream_secret(name: &'static str, help: &'static str) -> Setting<UpstreamSecret> {
    let form = "16 to 256 visible ASCII characters";
    let parse = |text: &str| UpstreamSecret::parse(text).ok_or(InvalidSetting::Form);
    let setting = Setting::new(name, Default::Unset, parse, form, help);
    setting.shown(Visibility::Masked)
}

pub(crate) static MODE: Setting<Mode> = Setting::new(
    "MODE",
    Default::Is("test"),
    |text| Mode::parse(text).ok_or(InvalidSetting::Form),
    "test or live",
    "test, or live with real money",
);
pub(crate) static DATABASE_URL: Setting<Database> = Setting::new(
    "DATABASE_URL",
    Default::Is("sqlite://penstock-data/penstock.db"),
    database::database,
    DATABASE_FORM,
    "the database",
)
.shown(Visibility::WithoutCredentials);
pub(crate) static MIGRATE_DATABASE_URL: Setting<Database> = Setting::new(
    "MIGRATE_DATABASE_URL",
    Default::SameAs("DATABASE_URL"),
    database::database,
    DATABASE_FORM,
    "the database for migrate, with the owner's connection",
)
.shown(Visibility::WithoutCredentials);
pub(crate) static AUTO_MIGRATE: Setting<bool> = Setting::new(
    "AUTO_MIGRATE",
    Default::Is("false"),
    value::flag,
    "true or false",
    "whether serve migrates a database server",
);
pub(crate) static DATABASE_POOL: Setting<u32> = Setting::new(
    "DATABASE_POOL",
    Default::Is("8"),
    value::connections,
    "a number from 1 to 1000",
    "connections to a database server",
);
pub(crate) static DATABASE_CONNECT_TIMEOUT: Setting<Duration> = Setting::new(
    "DATABASE_CONNECT_TIMEOUT",
    Default::Is("2s"),
    value::timeout,
    TIMEOUT_FORM,
    "timeout of a connection to each host of a database server",
);
pub(crate) static DATABASE_TIMEOUT: Setting<Duration> = Setting::new(
    "DATABASE_TIMEOUT",
    Default::Is("5s"),
    value::timeout,
    TIMEOUT_FORM,
    "timeout of a statement or a commit on a database server",
);
pub(crate) static REDIS_URL: Setting<RedisUrl> = Setting::new(
    "REDIS_URL",
    Default::Unset,
    |text| RedisUrl::parse(text).map_err(|_| InvalidSetting::Form),
    "redis:// or rediss:// and a host such as redis://user:password@host:6379/0",
    "the Redis through which replicas share their limits",
)
.shown(Visibility::WithoutCredentials);
pub(crate) static MASTER_KEY: Setting<Vec<MasterKey>> = Setting::new(
    "MASTER_KEY",
    Default::Unset,
    value::master_keys,
    "32 bytes in base64",
    "the key that encrypts data at rest",
)
.shown(Visibility::Masked);
pub(crate) static POOLS_LISTEN: Setting<SocketAddr> = Setting::new(
    "POOLS_LISTEN",
    Default::Is("127.0.0.1:4010"),
    value::listen,
    LISTEN_FORM,
    "address of the pools service; port 0 selects a free port",
);
pub(crate) static GATE_LISTEN: Setting<SocketAddr> = Setting::new(
    "GATE_LISTEN",
    Default::Is("127.0.0.1:4020"),
    value::listen,
    LISTEN_FORM,
    "address of the gate service; port 0 selects a free port",
);
pub(crate) static WIDGET_LISTEN: Setting<SocketAddr> = Setting::new(
    "WIDGET_LISTEN",
    Default::Is("127.0.0.1:4030"),
    value::listen,
    LISTEN_FORM,
    "address of the hosted widget; port 0 selects a free port",
);
pub(crate) static METRICS_LISTEN: Setting<SocketAddr> = Setting::new(
    "METRICS_LISTEN",
    Default::Unset,
    value::listen,
    LISTEN_FORM,
    "address of the private listener for /metrics",
);
pub(crate) static QUOTE_TTL: Setting<Duration> =
    span("QUOTE_TTL", "15s", "how long a firm quote is executable");
pub(crate) static SESSION_TTL: Setting<Duration> =
    span("SESSION_TTL", "24h", "how long a gate session is open");
pub(crate) static EMBED_TOKEN_TTL: Setting<Duration> =
    span("EMBED_TOKEN_TTL", "1h", "how long an embed token is valid");
pub(crate) static SIGNED_QUOTE_TTL: Setting<Duration> = span(
    "SIGNED_QUOTE_TTL",
    "60s",
    "how long a signed quote can be redeemed",
);
pub(crate) static PREVIEW_TTL: Setting<Duration> =
    span("PREVIEW_TTL", "5m", "how long a locked preview can be used");
pub(crate) static IDEMPOTENCY_TTL: Setting<Duration> = span(
    "IDEMPOTENCY_TTL",
    "24h",
    "how long idempotency keys are kept",
);
pub(crate) static QUOTE_RETENTION: Setting<Duration> = span(
    "QUOTE_RETENTION",
    "720h",
    "how long firm quotes that were never executed are kept after they expired",
);
pub(crate) static VELOCITY_WINDOW: Setting<Duration> = span(
    "VELOCITY_WINDOW",
    "24h",
    "the rolling window of the notional cap",
);
pub(crate) static SESSION_SWEEP: Setting<Duration> = Setting::new(
    "SESSION_SWEEP",
    Default::Is("60s"),
    value::span_or_zero,
    "a span such as 60s, or 0s for never",
    "how often expired gate sessions are swept",
);
pub(crate) static WEBHOOK_WAITS: Setting<Vec<Duration>> = Setting::new(
    "WEBHOOK_WAITS",
    Default::Is("5s,1m,5m,30m,2h,5h,10h,14h,20h,24h"),
    value::spans,
    "spans greater than zero such as 5s,1m,5m",
    "waits between attempts to deliver an event, in order",
);
pub(crate) static WEBHOOK_TIMEOUT: Setting<Duration> = span(
    "WEBHOOK_TIMEOUT",
    "10s",
    "timeout of one attempt to deliver an event",
);
pub(crate) static WEBHOOK_ALLOW_PRIVATE: Setting<AllowPrivate> = Setting::new(
    "WEBHOOK_ALLOW_PRIVATE",
    Default::ByMode("loopback", "none"),
    |text| AllowPrivate::parse(text).ok_or(InvalidSetting::Form),
    "none, loopback or all",
    "private addresses to which events may be sent",
);
pub(crate) static THROTTLE: Setting<bool> = Setting::new(
    "THROTTLE",
    Default::Is("on"),
    value::switch,
    "on or off",
    "whether requests are limited",
);
pub(crate) static THROTTLE_POOLS: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_POOLS",
    Default::Is("100/1s,3000/60s"),
    value::limits,
    LIMITS_FORM,
    "pools, per credential",
);
pub(crate) static THROTTLE_GLOBAL: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_GLOBAL",
    Default::Is("10/10s,60/60s,300/1h"),
    value::limits,
    LIMITS_FORM,
    "gate routes without their own limit, and refused keys, per address",
);
pub(crate) static THROTTLE_CREATE_SESSION: Setting<Vec<Tier>> =
    limit("THROTTLE_CREATE_SESSION", "10/60s", "POST /gate_sessions");
pub(crate) static THROTTLE_CANCEL_SESSION: Setting<Vec<Tier>> = limit(
    "THROTTLE_CANCEL_SESSION",
    "30/60s",
    "POST /gate_sessions/{id}/cancel",
);
pub(crate) static THROTTLE_PREVIEW: Setting<Vec<Tier>> =
    limit("THROTTLE_PREVIEW", "30/60s", "POST /quotes/preview");
pub(crate) static THROTTLE_LIST_SESSIONS: Setting<Vec<Tier>> =
    limit("THROTTLE_LIST_SESSIONS", "60/60s", "GET /gate_sessions");
pub(crate) static THROTTLE_LIST_TRANSACTIONS: Setting<Vec<Tier>> =
    limit("THROTTLE_LIST_TRANSACTIONS", "60/60s", "GET /transactions");
pub(crate) static THROTTLE_CAPABILITIES: Setting<Vec<Tier>> =
    limit("THROTTLE_CAPABILITIES", "60/60s", "GET /capabilities/*");
pub(crate) static THROTTLE_BOOTSTRAP: Setting<Vec<Tier>> = limit(
    "THROTTLE_BOOTSTRAP",
    "30/60s",
    "POST /embed/bootstrap, per publishable key and client address",
);
pub(crate) static THROTTLE_BOOTSTRAP_CEILING: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_BOOTSTRAP_CEILING",
    Default::Is("6000/60s"),
    value::ceiling,
    LIMIT_FORM,
    "POST /embed/bootstrap, per publishable key, all addresses together",
);
pub(crate) static THROTTLE_EMBED: Setting<Vec<Tier>> = limit(
    "THROTTLE_EMBED",
    "60/60s",
    "calls of a widget without their own limit, per token and client address",
);
pub(crate) static THROTTLE_EMBED_QUOTES: Setting<Vec<Tier>> = limit(
    "THROTTLE_EMBED_QUOTES",
    "10/60s",
    "POST /embed/quotes, per token and client address",
);
pub(crate) static THROTTLE_EMBED_PAYMENTS: Setting<Vec<Tier>> = limit(
    "THROTTLE_EMBED_PAYMENTS",
    "5/60s",
    "POST /embed/payments, per token and client address",
);
pub(crate) static CONNECTIONS: Setting<usize> = Setting::new(
    "CONNECTIONS",
    Default::Is("8192"),
    value::listener_connections,
    "a number from 1 to 1000000",
    "concurrent connections of a public listener",
);
pub(crate) static CONNECTIONS_PER_ADDRESS: Setting<usize> = Setting::new(
    "CONNECTIONS_PER_ADDRESS",
    Default::Is("256"),
    value::listener_connections,
    "a number from 1 to 1000000",
    "concurrent connections of one client address, IPv6 by /64; trusted proxies have no such limit",
);
pub(crate) static TRUSTED_PROXIES: Setting<Vec<IpNet>> = Setting::new(
    "TRUSTED_PROXIES",
    Default::Unset,
    proxies::proxies,
    "networks such as 10.0.0.0/8,192.0.2.1",
    "proxies whose X-Forwarded-For is trusted",
);
pub(crate) static WIDGET_ORIGIN: Setting<()> = Setting::new(
    "WIDGET_ORIGIN",
    Default::Unset,
    value::origin,
    "an origin such as https://widget.example",
    "public origin of the hosted widget",
);
pub(crate) static GATE_ORIGIN: Setting<()> = Setting::new(
    "GATE_ORIGIN",
    Default::Unset,
    value::origin,
    "an origin such as https://gate.example",
    "public origin of the gate service, which browsers call",
);
pub(crate) static RATES: Setting<RatesChoice> = Setting::new(
    "RATES",
    Default::ByMode("sandbox", "none"),
    value::rates,
    "none, sandbox, static:<file> or http:<file>",
    "source of rates",
);
pub(crate) static ENGINE: Setting<UpstreamChoice> = upstream("ENGINE", "the liquidity engine");
pub(crate) static ENGINE_SECRET: Setting<UpstreamSecret> = upstream_secret(
    "ENGINE_SECRET",
    "the secret sent with every call to an engine over HTTP",
);
pub(crate) static ENGINE_NAME: Setting<EngineName> = Setting::new(
    "ENGINE_NAME",
    Default::Unset,
    |text| EngineName::parse(text).ok_or(InvalidSetting::Form),
    "1 to 2048 visible ASCII characters",
    "the name that trades record for an engine over HTTP; by default its URL",
);
pub(crate) static ENGINE_DRAIN: Setting<bool> = Setting::new(
    "ENGINE_DRAIN",
    Default::Is("false"),
    value::flag,
    "true or false",
    "whether the pools service starts while another engine holds reserved trades",
);
pub(crate) static RAIL: Setting<UpstreamChoice> =
    upstream("RAIL", "the rail of pay-ins and pay-outs");
pub(crate) static RAIL_SECRET: Setting<UpstreamSecret> = upstream_secret(
    "RAIL_SECRET",
    "the secret sent with every call to a rail over HTTP",
);
pub(crate) static VERIFIER: Setting<UpstreamChoice> =
    upstream("VERIFIER", "the verifier of sessions' users");
pub(crate) static VERIFIER_SECRET: Setting<UpstreamSecret> = upstream_secret(
    "VERIFIER_SECRET",
    "the secret sent with every call to a verifier over HTTP",
);
pub(crate) static CATALOGUE: Setting<PathBuf> = Setting::new(
    "CATALOGUE",
    Default::Unset,
    value::file,
    "a TOML file",
    "the gate's countries, currencies, assets, networks and methods",
);
pub(crate) static EDGE_COUNTRY_HEADER: Setting<Option<String>> = Setting::new(
    "EDGE_COUNTRY_HEADER",
    Default::Is("CF-IPCountry"),
    value::header,
    "the name of a header, or none",
    "the header in which the edge sends the country of a request",
);
pub(crate) static LOG_FORMAT: Setting<LogFormat> = Setting::new(
    "LOG_FORMAT",
    Default::Is("json"),
    value::log_format,
    "json or text",
    "format of logs: for machines or for people",
);

pub(crate) static OTLP_ENDPOINT: Setting<url::Url> = Setting::new(
    "OTLP_ENDPOINT",
    Default::Unset,
    value::collector,
    "the address of a collector such as http://127.0.0.1:4318 or https://collector.example",
    "the collector that receives traces, as OTLP over HTTP",
)
.shown(Visibility::WithoutCredentials);
pub(crate) static OTLP_HEADERS: Setting<Vec<TraceHeader>> = Setting::new(
    "OTLP_HEADERS",
    Default::Unset,
    value::collector_headers,
    "name=value pairs with commas between, values percent-encoded, such as api-key=abc",
    "headers for the collector of traces, such as its key",
)
.shown(Visibility::Masked);
pub(crate) static OTLP_ONE_IN: Setting<u32> = Setting::new(
    "OTLP_ONE_IN",
    Default::Is("1"),
    value::one_in,
    "a number from 1 to 1000000",
    "records one trace in N",
);

/// Every setting, in the order `config` prints them.
pub(crate) static ALL: &[&dyn AnySetting] = &[
    &MODE,
    &DATABASE_URL,
    &MIGRATE_DATABASE_URL,
    &AUTO_MIGRATE,
    &DATABASE_POOL,
    &DATABASE_CONNECT_TIMEOUT,
    &DATABASE_TIMEOUT,
    &REDIS_URL,
    &MASTER_KEY,
    &POOLS_LISTEN,
    &GATE_LISTEN,
    &WIDGET_LISTEN,
    &METRICS_LISTEN,
    &QUOTE_TTL,
    &SESSION_TTL,
    &EMBED_TOKEN_TTL,
    &SIGNED_QUOTE_TTL,
    &PREVIEW_TTL,
    &IDEMPOTENCY_TTL,
    &QUOTE_RETENTION,
    &VELOCITY_WINDOW,
    &SESSION_SWEEP,
    &WEBHOOK_WAITS,
    &WEBHOOK_TIMEOUT,
    &WEBHOOK_ALLOW_PRIVATE,
    &THROTTLE,
    &THROTTLE_POOLS,
    &THROTTLE_GLOBAL,
    &THROTTLE_CREATE_SESSION,
    &THROTTLE_CANCEL_SESSION,
    &THROTTLE_BOOTSTRAP,
    &THROTTLE_BOOTSTRAP_CEILING,
    &THROTTLE_EMBED,
    &THROTTLE_EMBED_QUOTES,
    &THROTTLE_EMBED_PAYMENTS,
    &THROTTLE_PREVIEW,
    &THROTTLE_LIST_SESSIONS,
    &THROTTLE_LIST_TRANSACTIONS,
    &THROTTLE_CAPABILITIES,
    &CONNECTIONS,
    &CONNECTIONS_PER_ADDRESS,
    &TRUSTED_PROXIES,
    &WIDGET_ORIGIN,
    &GATE_ORIGIN,
    &RATES,
    &ENGINE,
    &ENGINE_SECRET,
    &ENGINE_NAME,
    &ENGINE_DRAIN,
    &RAIL,
    &RAIL_SECRET,
    &VERIFIER,
    &VERIFIER_SECRET,
    &CATALOGUE,
    &EDGE_COUNTRY_HEADER,
    &LOG_FORMAT,
    &OTLP_ENDPOINT,
    &OTLP_HEADERS,
    &OTLP_ONE_IN,
];

/// The setting of a name.
pub(crate) fn find(name: &str) -> Option<&'static dyn AnySetting> {
    ALL.iter().copied().find(|setting| setting.name() == name)
}

#[cfg(test)]
mod tests;
