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
use kernel::{Mode, UpstreamName};
use partner_core::sealing::MasterKey;
use partner_core::throttle::Tier;
use partner_core::webhooks::target::AllowPrivate;
use providers::UpstreamSecret;

use super::database::{self, Database};
use super::proxies;
use super::value::{self, InvalidSetting, LogFormat, RatesChoice, TraceHeader, UpstreamChoice};

pub(crate) struct Setting<T> {
    about: About,
    parse: fn(&str) -> Result<T, InvalidSetting>,
}

/// What is known about a setting of any type.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) default: Default,
    pub(crate) expected: &'static str,
    pub(crate) help: &'static str,
    pub(crate) shown: Visibility,
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

pub(crate) trait AnySetting: Sync {
    fn about(&self) -> &About;
    fn check(&self, text: &str) -> Result<(), InvalidSetting>;
}

impl<T> AnySetting for Setting<T> {
    fn about(&self) -> &About {
        &self.about
    }

    fn check(&self, text: &str) -> Result<(), InvalidSetting> {
        self.parse(text).map(drop)
    }
}

impl<T> Setting<T> {
    pub(crate) fn parse(&self, text: &str) -> Result<T, InvalidSetting> {
        (self.parse)(text)
    }

    /// A setting whose name the table adds.
    const fn new(
        default: Default,
        parse: fn(&str) -> Result<T, InvalidSetting>,
        expected: &'static str,
        help: &'static str,
    ) -> Self {
        let about = About {
            name: "",
            default,
            expected,
            help,
            shown: Visibility::Plainly,
        };
        Self { about, parse }
    }

    const fn named(mut self, name: &'static str) -> Self {
        self.about.name = name;
        self
    }

    const fn shown(mut self, shown: Visibility) -> Self {
        self.about.shown = shown;
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
const fn span(default: &'static str, help: &'static str) -> Setting<Duration> {
    Setting::new(Default::Is(default), value::span, SPAN_FORM, help)
}

const fn limit(default: &'static str, help: &'static str) -> Setting<Vec<Tier>> {
    Setting::new(Default::Is(default), value::limit, LIMIT_FORM, help)
}

/// An upstream that an operator may run.
const fn upstream(help: &'static str) -> Setting<UpstreamChoice> {
    let default = Default::ByMode("sandbox", "none");
    let form = "none, sandbox or http:<url>";
    Setting::new(default, value::upstream, form, help)
}

/// An upstream that new obligations no longer go to.
const fn former_upstream(help: &'static str) -> Setting<UpstreamChoice> {
    let form = "none, sandbox or http:<url>";
    Setting::new(Default::Is("none"), value::upstream, form, help)
}

const fn upstream_name(help: &'static str) -> Setting<UpstreamName> {
    let form = "1 to 2048 visible ASCII characters";
    let parse = |text: &str| UpstreamName::parse(text).ok_or(InvalidSetting::Form);
    Setting::new(Default::Unset, parse, form, help)
}

const fn upstream_secret(help: &'static str) -> Setting<UpstreamSecret> {
    let form = "16 to 256 visible ASCII characters";
    let parse = |text: &str| UpstreamSecret::parse(text).ok_or(InvalidSetting::Form);
    let setting = Setting::new(Default::Unset, parse, form, help);
    setting.shown(Visibility::Masked)
}

/// Declares the settings, each under the name of its constant, and the list of them.
macro_rules! settings {
    ($($name:ident: $value:ty = $setting:expr;)+) => {
        $(pub(crate) static $name: Setting<$value> = $setting.named(stringify!($name));)+

        /// Every setting.
        pub(crate) static ALL: &[&dyn AnySetting] = &[$(&$name),+];
    };
}

// In the order in which `config` prints them.
settings! {
    MODE: Mode = Setting::new(
        Default::Is("test"),
        |text| Mode::parse(text).ok_or(InvalidSetting::Form),
        "test or live",
        "test, or live with real money",
    );
    DATABASE_URL: Database = Setting::new(
        Default::Is("sqlite://penstock-data/penstock.db"),
        database::database,
        DATABASE_FORM,
        "the database",
    )
    .shown(Visibility::WithoutCredentials);
    MIGRATE_DATABASE_URL: Database = Setting::new(
        Default::SameAs("DATABASE_URL"),
        database::database,
        DATABASE_FORM,
        "the database for migrate, with the owner's connection",
    )
    .shown(Visibility::WithoutCredentials);
    AUTO_MIGRATE: bool = Setting::new(
        Default::Is("false"),
        value::flag,
        "true or false",
        "whether serve migrates a database server",
    );
    DATABASE_POOL: u32 = Setting::new(
        Default::Is("8"),
        value::connections,
        "a number from 1 to 1000",
        "connections to a database server",
    );
    DATABASE_CONNECT_TIMEOUT: Duration = Setting::new(
        Default::Is("2s"),
        value::timeout,
        TIMEOUT_FORM,
        "timeout of a connection to each host of a database server",
    );
    DATABASE_TIMEOUT: Duration = Setting::new(
        Default::Is("5s"),
        value::timeout,
        TIMEOUT_FORM,
        "timeout of a statement or a commit on a database server",
    );
    REDIS_URL: RedisUrl = Setting::new(
        Default::Unset,
        |text| RedisUrl::parse(text).map_err(|_| InvalidSetting::Form),
        "redis:// or rediss:// and a host such as redis://user:password@host:6379/0",
        "the Redis through which replicas share their limits",
    )
    .shown(Visibility::WithoutCredentials);
    MASTER_KEY: Vec<MasterKey> = Setting::new(
        Default::Unset,
        value::master_keys,
        "32 bytes in base64",
        "the key that encrypts data at rest",
    )
    .shown(Visibility::Masked);
    POOLS_LISTEN: SocketAddr = Setting::new(
        Default::Is("127.0.0.1:4010"),
        value::listen,
        LISTEN_FORM,
        "address of the pools service; port 0 selects a free port",
    );
    GATE_LISTEN: SocketAddr = Setting::new(
        Default::Is("127.0.0.1:4020"),
        value::listen,
        LISTEN_FORM,
        "address of the gate service; port 0 selects a free port",
    );
    WIDGET_LISTEN: SocketAddr = Setting::new(
        Default::Is("127.0.0.1:4030"),
        value::listen,
        LISTEN_FORM,
        "address of the hosted widget; port 0 selects a free port",
    );
    METRICS_LISTEN: SocketAddr = Setting::new(
        Default::Unset,
        value::listen,
        LISTEN_FORM,
        "address of the private listener for /metrics",
    );
    QUOTE_TTL: Duration = span("15s", "how long a firm quote is executable");
    SESSION_TTL: Duration = span("24h", "how long a gate session is open");
    EMBED_TOKEN_TTL: Duration = span("1h", "how long an embed token is valid");
    SIGNED_QUOTE_TTL: Duration = span("60s", "how long a signed quote can be redeemed");
    PREVIEW_TTL: Duration = span("5m", "how long a locked preview can be used");
    IDEMPOTENCY_TTL: Duration = span("24h", "how long idempotency keys are kept");
    QUOTE_RETENTION: Duration = span(
        "720h",
        "how long firm quotes that were never executed are kept after they expired",
    );
    VELOCITY_WINDOW: Duration = span("24h", "the rolling window of the notional cap");
    SESSION_SWEEP: Duration = Setting::new(
        Default::Is("60s"),
        value::span_or_zero,
        "a span such as 60s, or 0s for never",
        "how often expired gate sessions are swept",
    );
    WEBHOOK_WAITS: Vec<Duration> = Setting::new(
        Default::Is("5s,1m,5m,30m,2h,5h,10h,14h,20h,24h"),
        value::spans,
        "spans greater than zero such as 5s,1m,5m",
        "waits between attempts to deliver an event, in order",
    );
    WEBHOOK_TIMEOUT: Duration = span("10s", "timeout of one attempt to deliver an event");
    WEBHOOK_ALLOW_PRIVATE: AllowPrivate = Setting::new(
        Default::ByMode("loopback", "none"),
        |text| AllowPrivate::parse(text).ok_or(InvalidSetting::Form),
        "none, loopback or all",
        "private addresses to which events may be sent",
    );
    THROTTLE: bool = Setting::new(
        Default::Is("on"),
        value::switch,
        "on or off",
        "whether requests are limited",
    );
    THROTTLE_POOLS: Vec<Tier> = Setting::new(
        Default::Is("100/1s,3000/60s"),
        value::limits,
        LIMITS_FORM,
        "pools, per credential",
    );
    THROTTLE_GLOBAL: Vec<Tier> = Setting::new(
        Default::Is("10/10s,60/60s,300/1h"),
        value::limits,
        LIMITS_FORM,
        "gate routes without their own limit, and refused keys, per address",
    );
    THROTTLE_CREATE_SESSION: Vec<Tier> = limit("10/60s", "POST /gate_sessions");
    THROTTLE_CANCEL_SESSION: Vec<Tier> = limit("30/60s", "POST /gate_sessions/{id}/cancel");
    THROTTLE_BOOTSTRAP: Vec<Tier> = limit(
        "30/60s",
        "POST /embed/bootstrap and /embed/outcome, per publishable key and client address",
    );
    THROTTLE_BOOTSTRAP_CEILING: Vec<Tier> = Setting::new(
        Default::Is("6000/60s"),
        value::ceiling,
        LIMIT_FORM,
        "POST /embed/bootstrap and /embed/outcome, per publishable key, all addresses together",
    );
    THROTTLE_EMBED: Vec<Tier> = limit(
        "60/60s",
        "calls of a widget without their own limit, per token and client address",
    );
    THROTTLE_EMBED_QUOTES: Vec<Tier> = limit(
        "10/60s",
        "POST /embed/quotes, per token and client address",
    );
    THROTTLE_EMBED_PAYMENTS: Vec<Tier> = limit(
        "5/60s",
        "POST /embed/payments, per token and client address",
    );
    THROTTLE_PREVIEW: Vec<Tier> = limit("30/60s", "POST /quotes/preview");
    THROTTLE_LIST_SESSIONS: Vec<Tier> = limit("60/60s", "GET /gate_sessions");
    THROTTLE_LIST_TRANSACTIONS: Vec<Tier> = limit("60/60s", "GET /transactions");
    THROTTLE_CAPABILITIES: Vec<Tier> = limit("60/60s", "GET /capabilities/*");
    CONNECTIONS: usize = Setting::new(
        Default::Is("8192"),
        value::listener_connections,
        "a number from 1 to 1000000",
        "concurrent connections of a public listener",
    );
    CONNECTIONS_PER_ADDRESS: usize = Setting::new(
        Default::Is("256"),
        value::listener_connections,
        "a number from 1 to 1000000",
        "concurrent connections of one client address, IPv6 by /64; trusted proxies have no such limit",
    );
    TRUSTED_PROXIES: Vec<IpNet> = Setting::new(
        Default::Unset,
        proxies::proxies,
        "networks such as 10.0.0.0/8,192.0.2.1",
        "proxies whose X-Forwarded-For is trusted",
    );
    WIDGET_ORIGIN: () = Setting::new(
        Default::Unset,
        value::origin,
        "an origin such as https://widget.example",
        "public origin of the hosted widget",
    );
    GATE_ORIGIN: () = Setting::new(
        Default::Unset,
        value::origin,
        "an origin such as https://gate.example",
        "public origin of the gate service, which browsers call",
    );
    RATES: RatesChoice = Setting::new(
        Default::ByMode("sandbox", "none"),
        value::rates,
        "none, sandbox, static:<file> or http:<file>",
        "source of rates",
    );
    ENGINE: UpstreamChoice = upstream("the liquidity engine");
    ENGINE_SECRET: UpstreamSecret = upstream_secret(
        "the secret sent with every call to an engine over HTTP",
    );
    ENGINE_NAME: UpstreamName = upstream_name(
        "the name that trades record for an engine over HTTP; by default its URL",
    );
    ENGINE_FORMER: UpstreamChoice = former_upstream("the former engine, which is still asked about its own trades");
    ENGINE_FORMER_SECRET: UpstreamSecret = upstream_secret(
        "the secret sent with every call to a former engine over HTTP",
    );
    ENGINE_FORMER_NAME: UpstreamName = upstream_name(
        "the name of a former engine over HTTP; by default its URL",
    );
    ENGINE_DRAIN: bool = Setting::new(
        Default::Is("false"),
        value::flag,
        "true or false",
        "whether the pools service starts while another engine holds reserved trades",
    );
    RAIL: UpstreamChoice = upstream("the rail of pay-ins and pay-outs");
    RAIL_SECRET: UpstreamSecret = upstream_secret(
        "the secret sent with every call to a rail over HTTP",
    );
    RAIL_NAME: UpstreamName = upstream_name(
        "the name that payments record for a rail over HTTP; by default host and path of its URL",
    );
    RAIL_FORMER: UpstreamChoice = former_upstream("the former rail, which is still asked about its own payments");
    RAIL_FORMER_SECRET: UpstreamSecret = upstream_secret(
        "the secret sent with every call to a former rail over HTTP",
    );
    RAIL_FORMER_NAME: UpstreamName = upstream_name(
        "the name of a former rail over HTTP; by default host and path of its URL",
    );
    VERIFIER: UpstreamChoice = upstream("the verifier of sessions' users");
    VERIFIER_SECRET: UpstreamSecret = upstream_secret(
        "the secret sent with every call to a verifier over HTTP",
    );
    VERIFIER_NAME: UpstreamName = upstream_name(
        "the name that verifications record for a verifier over HTTP; by default host and path of its URL",
    );
    VERIFIER_FORMER: UpstreamChoice = former_upstream("the former verifier, which is still asked about its own verifications");
    VERIFIER_FORMER_SECRET: UpstreamSecret = upstream_secret(
        "the secret sent with every call to a former verifier over HTTP",
    );
    VERIFIER_FORMER_NAME: UpstreamName = upstream_name(
        "the name of a former verifier over HTTP; by default host and path of its URL",
    );
    SANDBOX_SETTLES_AFTER: Duration = Setting::new(
        Default::Unset,
        value::span_or_zero,
        "0s, or a span such as 3s",
        "how long the sandbox's rail leaves a payment in the widget in progress whose customer does not pretend to have paid; unset: 3s, in `penstock sandbox` 30s",
    );
    CATALOGUE: PathBuf = Setting::new(
        Default::Unset,
        value::file,
        "a TOML file",
        "the gate's countries, currencies, assets, networks and methods",
    );
    EDGE_COUNTRY_HEADER: Option<String> = Setting::new(
        Default::Is("CF-IPCountry"),
        value::header,
        "the name of a header, or none",
        "the header in which the edge sends the country of a request",
    );
    LOG_FORMAT: LogFormat = Setting::new(
        Default::Is("json"),
        |text| LogFormat::parse(text).ok_or(InvalidSetting::Form),
        "json or text",
        "format of logs: for machines or for people",
    );
    OTLP_ENDPOINT: url::Url = Setting::new(
        Default::Unset,
        value::collector,
        "the address of a collector such as http://127.0.0.1:4318 or https://collector.example",
        "the collector that receives traces, as OTLP over HTTP",
    )
    .shown(Visibility::WithoutCredentials);
    OTLP_HEADERS: Vec<TraceHeader> = Setting::new(
        Default::Unset,
        value::collector_headers,
        "name=value pairs with commas between, values percent-encoded, such as api-key=abc",
        "headers for the collector of traces, such as its key",
    )
    .shown(Visibility::Masked);
    OTLP_ONE_IN: u32 = Setting::new(
        Default::Is("1"),
        value::one_in,
        "a number from 1 to 1000000",
        "records one trace in N",
    );
}

pub(crate) fn find(name: &str) -> Option<&'static dyn AnySetting> {
    ALL.iter()
        .copied()
        .find(|setting| setting.about().name == name)
}

#[cfg(test)]
mod tests;
