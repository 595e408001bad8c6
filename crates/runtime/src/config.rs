//! The configuration: every setting, read and judged before anything starts.
//!
//! Whatever is wrong is said at once, one line a fault; cores receive plain values.

mod setting;
mod source;
mod value;

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use coordination::RedisUrl;
use ipnet::IpNet;
use kernel::Mode;
use partner_core::origin::Origin;
use partner_core::sealing::MasterKey;
use partner_core::throttle::Tier;
use partner_core::webhooks::target::AllowPrivate;
use providers::EngineSecret;

use setting::Shown;
use source::Given;
pub use source::{ConfigFault, Sources};
use value::without_credentials;
pub use value::{Database, EngineChoice, LogFormat, RatesChoice, ServerUrl, TraceExport};

/// Everything an operator can choose that this version acts on.
#[derive(Debug)]
pub struct Config {
    /// Whether money is real.
    pub mode: Mode,
    /// Where the data is kept.
    pub database: Database,
    /// What `migrate` works on: the owner's connection.
    pub migrate_database: Database,
    /// Whether a service migrates a server's database when it starts.
    pub auto_migrate: bool,
    /// Connections to a server.
    pub database_pool: u32,
    /// What replicas share their limits through; `None`: each process keeps its own.
    pub redis: Option<RedisUrl>,
    /// The master key, where it is given.
    pub master_key: Option<MasterKey>,
    /// Where the pools service listens.
    pub pools_listen: SocketAddr,
    /// Where the gate service listens.
    pub gate_listen: SocketAddr,
    /// Where metrics are served; `None`: nowhere, and none are recorded.
    pub metrics_listen: Option<SocketAddr>,
    /// How long a firm quote is executable.
    pub quote_ttl: Duration,
    /// How long a gate session is open.
    pub session_ttl: Duration,
    /// How long an embed token is good.
    pub embed_token_ttl: Duration,
    /// How long a signed quote can be redeemed.
    pub signed_quote_ttl: Duration,
    /// How long a locked preview can be used.
    pub preview_ttl: Duration,
    /// How often overdue gate sessions are swept; `None`: never.
    pub session_sweep: Option<Duration>,
    /// How long idempotency keys are kept.
    pub idempotency_ttl: Duration,
    /// The rolling window of the notional cap.
    pub velocity_window: Duration,
    /// Limits of the pools service per credential; `None` where throttles are off.
    pub pools_throttle: Option<Vec<Tier>>,
    /// Limits of the gate service; `None` where throttles are off.
    pub gate_throttle: Option<GateThrottle>,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Where the hosted widget is served from; `None`: the gate's own origin.
    pub widget_origin: Option<Origin>,
    /// The waits between attempts to deliver an event.
    pub webhook_waits: Vec<Duration>,
    /// How long one attempt may take.
    pub webhook_timeout: Duration,
    /// Which private addresses webhooks may reach.
    pub webhook_allow_private: AllowPrivate,
    /// Where rates come from.
    pub rates: RatesChoice,
    /// Which liquidity engine is asked.
    pub engine: EngineChoice,
    /// What an engine over HTTP is shown.
    pub engine_secret: Option<EngineSecret>,
    /// The operator's own catalogue of the gate; `None`: the built-in one.
    pub catalogue: Option<PathBuf>,
    /// The header in which the edge names a country; `None`: no edge is believed.
    pub edge_country_header: Option<String>,
    /// For whom logs are written.
    pub log_format: LogFormat,
    /// Where traces are sent; `None`: nowhere, and none are made.
    pub traces: Option<TraceExport>,
}

/// The limits of the gate service, each of one tier but the last.
#[derive(Debug, Clone)]
pub struct GateThrottle {
    /// `POST /gate_sessions`, per key.
    pub create_session: Vec<Tier>,
    /// `POST /gate_sessions/{id}/cancel`, per key.
    pub cancel_session: Vec<Tier>,
    /// `GET /gate_sessions`, per key.
    pub list_sessions: Vec<Tier>,
    /// `GET /transactions`, per key.
    pub list_transactions: Vec<Tier>,
    /// `POST /quotes/preview`, per key.
    pub preview: Vec<Tier>,
    /// `GET /capabilities/*`, per key, all of them together.
    pub capabilities: Vec<Tier>,
    /// `POST /embed/bootstrap`, per key.
    pub bootstrap: Vec<Tier>,
    /// Every other route, and every answer of 401, per address.
    pub global: Vec<Tier>,
}

impl GateThrottle {
    fn build(given: &Given) -> Result<Self, ConfigFault> {
        Ok(Self {
            create_session: given.value(&setting::THROTTLE_CREATE_SESSION)?,
            cancel_session: given.value(&setting::THROTTLE_CANCEL_SESSION)?,
            list_sessions: given.value(&setting::THROTTLE_LIST_SESSIONS)?,
            list_transactions: given.value(&setting::THROTTLE_LIST_TRANSACTIONS)?,
            preview: given.value(&setting::THROTTLE_PREVIEW)?,
            capabilities: given.value(&setting::THROTTLE_CAPABILITIES)?,
            bootstrap: given.value(&setting::THROTTLE_BOOTSTRAP)?,
            global: given.value(&setting::THROTTLE_GLOBAL)?,
        })
    }
}

/// A configuration that has been read, with what should be said about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What works differently than the operator may think; one line each.
    pub warnings: Vec<String>,
    /// The same of what only concerns a program that serves.
    pub serving_warnings: Vec<String>,
    /// The effective configuration as text, secrets masked.
    pub effective: String,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Every fault there is, in the order of the settings.
    pub fn load(sources: &Sources) -> Result<Loaded, Vec<ConfigFault>> {
        let (given, warnings) = Given::collect(sources)?;
        let faults = beside_each_other(&given);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Loaded {
            config: Self::build(&given).map_err(|fault| vec![fault])?,
            warnings,
            serving_warnings: worth_saying(&given),
            effective: effective(&given),
        })
    }

    fn build(given: &Given) -> Result<Self, ConfigFault> {
        let throttled = given.value(&setting::THROTTLE)?;
        let tiers = given.value(&setting::THROTTLE_POOLS)?;
        let sweep = given.value(&setting::SESSION_SWEEP)?;
        let one_in = given.value(&setting::OTLP_ONE_IN)?;
        let collector = given.get(&setting::OTLP_ENDPOINT)?;
        Ok(Self {
            mode: given.mode(),
            database: given.value(&setting::DATABASE_URL)?,
            migrate_database: given.value(&setting::MIGRATE_DATABASE_URL)?,
            auto_migrate: given.value(&setting::AUTO_MIGRATE)?,
            database_pool: given.value(&setting::DATABASE_POOL)?,
            redis: given.get(&setting::REDIS_URL)?,
            master_key: given.get(&setting::MASTER_KEY)?,
            pools_listen: given.value(&setting::POOLS_LISTEN)?,
            gate_listen: given.value(&setting::GATE_LISTEN)?,
            metrics_listen: given.get(&setting::METRICS_LISTEN)?,
            quote_ttl: given.value(&setting::QUOTE_TTL)?,
            session_ttl: given.value(&setting::SESSION_TTL)?,
            embed_token_ttl: given.value(&setting::EMBED_TOKEN_TTL)?,
            signed_quote_ttl: given.value(&setting::SIGNED_QUOTE_TTL)?,
            preview_ttl: given.value(&setting::PREVIEW_TTL)?,
            session_sweep: Some(sweep).filter(|every| !every.is_zero()),
            idempotency_ttl: given.value(&setting::IDEMPOTENCY_TTL)?,
            velocity_window: given.value(&setting::VELOCITY_WINDOW)?,
            pools_throttle: throttled.then_some(tiers),
            gate_throttle: Some(GateThrottle::build(given)?).filter(|_| throttled),
            trusted_proxies: given.get(&setting::TRUSTED_PROXIES)?.unwrap_or_default(),
            widget_origin: widget_origin(given)?,
            webhook_waits: given.value(&setting::WEBHOOK_WAITS)?,
            webhook_timeout: given.value(&setting::WEBHOOK_TIMEOUT)?,
            webhook_allow_private: given.value(&setting::WEBHOOK_ALLOW_PRIVATE)?,
            rates: given.value(&setting::RATES)?,
            engine: given.value(&setting::ENGINE)?,
            engine_secret: given.get(&setting::ENGINE_SECRET)?,
            catalogue: given.get(&setting::CATALOGUE)?,
            edge_country_header: given.value(&setting::EDGE_COUNTRY_HEADER)?,
            log_format: given.value(&setting::LOG_FORMAT)?,
            traces: collector.map(|collector| TraceExport { collector, one_in }),
        })
    }
}

/// Reads a master key as it stands in a variable or in its file.
pub(crate) fn read_master_key(text: &str) -> Option<MasterKey> {
    value::master_key(text).ok()
}

/// Pages are served over https, or in test mode by this machine.
fn widget_origin(given: &Given) -> Result<Option<Origin>, ConfigFault> {
    let Some(text) = given.text(&setting::WIDGET_ORIGIN) else {
        return Ok(None);
    };
    let origin = Origin::parse(text, given.mode());
    let expected = "expected an https origin such as https://widget.example; in mode test also http on this machine";
    origin
        .map(Some)
        .ok_or_else(|| given.refuse(&setting::WIDGET_ORIGIN, expected))
}

/// Faults that show only when settings are seen beside each other.
fn beside_each_other(given: &Given) -> Vec<ConfigFault> {
    let mut faults = Vec::new();
    if given.mode() == Mode::Test {
        return faults;
    }
    if given.text(&setting::MASTER_KEY).is_none() {
        let expected = "expected 32 bytes in base64: mode live makes no key by itself";
        faults.push(given.refuse(&setting::MASTER_KEY, expected));
    }
    for setting in [
        &setting::RATES as &dyn setting::AnySetting,
        &setting::ENGINE,
    ] {
        if given.text(setting) == Some("sandbox") {
            faults.push(given.refuse(setting, "the sandbox serves mode test only"));
        }
    }
    if is_http(given, &setting::ENGINE) && given.text(&setting::ENGINE_SECRET).is_none() {
        let expected = "expected 16 to 256 visible ASCII characters: mode live asks no engine that cannot tell who asks";
        faults.push(given.refuse(&setting::ENGINE_SECRET, expected));
    }
    faults
}

/// Is the setting something behind HTTP?
fn is_http(given: &Given, setting: &dyn setting::AnySetting) -> bool {
    given
        .text(setting)
        .is_some_and(|text| text.starts_with("http:"))
}

/// Settings that are right and yet do less than they seem to.
fn worth_saying(given: &Given) -> Vec<String> {
    let mut said = Vec::new();
    if given.mode() == Mode::Test {
        return said;
    }
    if given.text(&setting::REDIS_URL).is_none() {
        said.push("PENSTOCK_REDIS_URL is not set: limits are kept in the process".to_owned());
    }
    let engine = given.text(&setting::ENGINE).unwrap_or_default();
    if engine.starts_with("http:http://") {
        said.push("PENSTOCK_ENGINE is not https: whoever is between reads its secret".to_owned());
    }
    said
}

/// The effective configuration in the form of the file; what is not set is a comment.
fn effective(given: &Given) -> String {
    let mut text = String::new();
    for setting in setting::ALL {
        let key = setting.name().to_lowercase();
        let line = match (given.text(*setting), setting.shown()) {
            (None, _) => format!("# {key} is not set"),
            (Some(_), Shown::Masked) => format!("{key} = \"***\""),
            (Some(value), Shown::WithoutCredentials) => {
                format!("{key} = {}", toml::Value::from(without_credentials(value)))
            }
            (Some(value), Shown::Plainly) => format!("{key} = {}", toml::Value::from(value)),
        };
        let _ = writeln!(text, "# {}\n{line}", setting.help());
    }
    text
}

/// Reads a span as settings are written, digits and a unit such as `24h`; `None` for anything
/// else, and for a span of nothing.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    value::span(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn environment(pairs: &[(&str, &str)]) -> Sources {
        let variable =
            |(name, text): &(&str, &str)| (format!("PENSTOCK_{name}").into(), text.into());
        Sources {
            environment: pairs.iter().map(variable).collect(),
            ..Sources::default()
        }
    }

    fn with_file(text: &str, pairs: &[(&str, &str)]) -> (Sources, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("penstock.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources {
            file: Some(file),
            ..environment(pairs)
        };
        (sources, folder)
    }

    fn faults(sources: &Sources) -> Vec<String> {
        let faults = Config::load(sources).unwrap_err();
        faults.iter().map(ConfigFault::to_string).collect()
    }

    // rule: webhook.schedule, webhook.timeout
    #[test]
    fn nothing_given_is_a_whole_test_configuration() {
        let loaded = Config::load(&Sources::default()).unwrap();
        assert!(loaded.warnings.is_empty() && loaded.serving_warnings.is_empty());
        let config = loaded.config;
        assert_eq!(config.mode, Mode::Test);
        assert_eq!(config.database, config.migrate_database);
        assert_eq!(config.pools_listen.to_string(), "127.0.0.1:4010");
        assert_eq!(config.gate_listen.to_string(), "127.0.0.1:4020");
        let minute = Duration::from_secs(60);
        assert_eq!(config.session_ttl, 24 * 60 * minute);
        assert_eq!(config.embed_token_ttl, 60 * minute);
        assert_eq!(config.session_sweep, Some(minute));
        assert_eq!(config.widget_origin, None);
        assert_eq!(config.quote_ttl, Duration::from_secs(15));
        assert_eq!(config.rates, RatesChoice::Sandbox);
        assert_eq!(config.engine, EngineChoice::Sandbox);
        assert_eq!(config.log_format, LogFormat::Json);
        let waits = config.webhook_waits.iter().map(Duration::as_secs);
        let three_days = [
            5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400,
        ];
        assert_eq!(waits.collect::<Vec<u64>>(), three_days);
        assert_eq!(config.webhook_timeout, Duration::from_secs(10));
        assert_eq!(config.webhook_allow_private, AllowPrivate::Loopback);
        let tiers = config.pools_throttle.unwrap();
        let names: Vec<&str> = tiers.iter().map(|tier| tier.name).collect();
        assert_eq!(names, ["short", "medium"]);
    }

    // rule: throttle.gate-numbers
    #[test]
    fn the_gate_has_the_numbers_of_its_document() {
        let gate = |pairs: &[(&str, &str)]| {
            let config = Config::load(&environment(pairs)).unwrap().config;
            config.gate_throttle
        };
        let text = |tiers: &[Tier]| {
            let tiers = tiers.iter();
            let tiers = tiers.map(|it| format!("{} {}/{}s", it.name, it.limit, it.per.as_secs()));
            tiers.collect::<Vec<_>>().join(", ")
        };
        let limits = gate(&[]).unwrap();
        for (tiers, expected) in [
            (&limits.create_session, "short 10/60s"),
            (&limits.cancel_session, "short 30/60s"),
            (&limits.bootstrap, "short 30/60s"),
            (&limits.list_sessions, "short 60/60s"),
            (&limits.list_transactions, "short 60/60s"),
            (&limits.preview, "short 30/60s"),
            (&limits.capabilities, "short 60/60s"),
            (
                &limits.global,
                "short 10/10s, medium 60/60s, long 300/3600s",
            ),
        ] {
            assert_eq!(text(tiers), expected);
        }
        let limits = gate(&[("THROTTLE_CREATE_SESSION", "7/1s")]).unwrap();
        assert_eq!(text(&limits.create_session), "short 7/1s");
        assert!(gate(&[("THROTTLE", "off")]).is_none());
    }

    // rule: gate.session.sweep
    #[test]
    fn a_sweep_of_nothing_is_none_and_a_widget_is_served_over_https() {
        let load = |pairs: &[(&str, &str)]| Config::load(&environment(pairs));
        let off = load(&[("SESSION_SWEEP", "0s")]).unwrap().config;
        assert_eq!(off.session_sweep, None);
        let widget = |mode: &str, origin: &str| {
            let pairs = [
                ("MODE", mode),
                ("MASTER_KEY", KEY),
                ("WIDGET_ORIGIN", origin),
            ];
            load(&pairs).map(|loaded| loaded.config.widget_origin.unwrap().to_string())
        };
        let good = "https://widget.example";
        assert_eq!(widget("live", good).unwrap(), good);
        assert_eq!(
            widget("test", "http://127.0.0.1:1").unwrap(),
            "http://127.0.0.1:1"
        );
        for (mode, bad) in [
            ("live", "http://127.0.0.1:1"),
            ("test", "http://widget.example"),
        ] {
            let faults = widget(mode, bad).unwrap_err();
            assert!(
                faults[0]
                    .to_string()
                    .starts_with("PENSTOCK_WIDGET_ORIGIN: expected an https")
            );
        }
    }

    // rule: config.live-master-key, config.live-has-no-sandbox
    #[test]
    fn live_starts_with_nothing_that_is_not_real() {
        let loaded = Config::load(&environment(&[("MODE", "live"), ("MASTER_KEY", KEY)])).unwrap();
        assert_eq!(loaded.config.rates, RatesChoice::None);
        assert_eq!(loaded.config.engine, EngineChoice::None);
        assert_eq!(loaded.config.webhook_allow_private, AllowPrivate::None);
        assert!(loaded.warnings.is_empty());
        assert_eq!(loaded.serving_warnings.len(), 1);
        let sandbox = environment(&[
            ("MODE", "live"),
            ("RATES", "sandbox"),
            ("ENGINE", "sandbox"),
        ]);
        let faults = faults(&sandbox);
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].starts_with("PENSTOCK_MASTER_KEY: expected 32 bytes"));
        assert!(faults[1].starts_with("PENSTOCK_RATES: the sandbox"));
        assert!(faults[2].starts_with("PENSTOCK_ENGINE: the sandbox"));
    }

    // rule: config.engine-secret
    #[test]
    fn an_engine_over_http_is_shown_a_secret_in_mode_live() {
        let load = |engine: &str, secret: &str| {
            Config::load(&environment(&[
                ("MODE", "live"),
                ("MASTER_KEY", KEY),
                ("ENGINE", engine),
                ("ENGINE_SECRET", secret),
            ]))
        };
        let secret = "hunter2-hunter2-hunter2";
        let loaded = load("http:https://engine.example", secret).unwrap();
        assert!(matches!(loaded.config.engine, EngineChoice::Http(_)));
        assert!(!loaded.effective.contains(secret), "{}", loaded.effective);
        assert_eq!(loaded.serving_warnings.len(), 1);
        let loaded = load("http:http://engine.example", secret).unwrap();
        let warned = &loaded.serving_warnings[1];
        assert!(warned.starts_with("PENSTOCK_ENGINE is not https"));
        for (given, told) in [
            (
                "",
                "PENSTOCK_ENGINE_SECRET: expected 16 to 256 visible ASCII characters: mode live",
            ),
            ("hunter2", "PENSTOCK_ENGINE_SECRET: expected 16 to 256"),
        ] {
            let faults = load("http:https://engine.example", given).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            let line = faults[0].to_string();
            assert!(
                line.starts_with(told) && !line.contains("hunter2"),
                "{line}"
            );
        }
    }

    // rule: config.environment-wins
    #[test]
    fn the_environment_wins_over_the_file_and_the_command_line_over_both() {
        let text =
            "quote_ttl = \"7s\"\nvelocity_window = \"1h\"\ndatabase_pool = 4\nmode = \"live\"";
        let pairs = [
            ("QUOTE_TTL", "9s"),
            ("VELOCITY_WINDOW", ""),
            ("MODE", "live"),
        ];
        let (mut sources, _folder) = with_file(text, &pairs);
        sources.flags.push(("MODE", "test".to_owned()));
        let config = Config::load(&sources).unwrap().config;
        assert_eq!(config.quote_ttl, Duration::from_secs(9));
        assert_eq!(config.velocity_window, Duration::from_secs(3600));
        assert_eq!(config.mode, Mode::Test);
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let text = "quote_tll = \"7s\"\npreview_ttl = 1.5\nwebhook_waits = [\"5s\", \"1m\"]\nengine = \"http:http://u:hunter2@e\"";
        let (mut sources, _folder) = with_file(
            text,
            &[
                ("QUOTE_TTL", "7 seconds"),
                ("DATABASE_URL", "postgres://user:hunter2@host:port/db"),
                ("MASTER_KEY", "hunter2"),
                ("POOLS_LISTEN", "4010"),
            ],
        );
        sources.flags.push(("MODE", "prod".to_owned()));
        let faults = faults(&sources);
        let file = sources.file.unwrap().display().to_string();
        let expected = [
            format!("{file}: unknown key `quote_tll`; the nearest is `quote_ttl`"),
            format!("PENSTOCK_PREVIEW_TTL (preview_ttl in {file}): expected a span greater than zero such as 500ms, 15s, 5m or 24h, as a string"),
            "--mode: expected test or live, got \"prod\"".to_owned(),
            "PENSTOCK_DATABASE_URL: expected sqlite://<file> or postgres://user:password@host:5432/database".to_owned(),
            "PENSTOCK_MASTER_KEY: expected 32 bytes in base64".to_owned(),
            "PENSTOCK_POOLS_LISTEN: expected an address and a port such as 127.0.0.1:4010, got \"4010\"".to_owned(),
            "PENSTOCK_QUOTE_TTL: expected a span greater than zero such as 500ms, 15s, 5m or 24h, got \"7 seconds\"".to_owned(),
            format!("PENSTOCK_ENGINE (engine in {file}): expected http:<url> without credentials and query: what the engine is shown stands in PENSTOCK_ENGINE_SECRET"),
        ];
        let mut left = faults.clone();
        for line in &expected {
            assert!(left.contains(line), "{line}\nnot in {faults:#?}");
            left.retain(|fault| fault != line);
        }
        assert!(left.is_empty(), "{left:?}");
    }

    // rule: config.unknown-variable
    #[test]
    fn an_unknown_variable_warns_and_a_broken_file_is_a_fault() {
        let loaded = Config::load(&environment(&[("QUOTE_TLL", "7s"), ("ZZ", "")])).unwrap();
        assert_eq!(
            loaded.warnings,
            [
                "PENSTOCK_QUOTE_TLL is no variable of this program; the nearest is PENSTOCK_QUOTE_TTL",
                "PENSTOCK_ZZ is no variable of this program",
            ]
        );
        let (sources, _folder) = with_file("mode = \"test\"\nmode =", &[]);
        let faults = faults(&sources);
        assert!(faults[0].contains("penstock.toml: line 2: "), "{faults:?}");
        let (sources, _folder) = with_file("[throttle]\npools = 1\n[modes]", &[]);
        assert_eq!(faults_count(&sources), 2);
    }

    fn faults_count(sources: &Sources) -> usize {
        faults(sources).len()
    }

    // rule: program.config-masked
    #[test]
    fn what_is_printed_shows_no_secret_and_reads_back() {
        let loaded = Config::load(&environment(&[
            ("MASTER_KEY", KEY),
            (
                "REDIS_URL",
                "redis://user:hunter2@host:6379/0?token=hunter2",
            ),
            ("QUOTE_TTL", "7s"),
        ]))
        .unwrap();
        let text = loaded.effective;
        assert!(!text.contains("hunter2") && !text.contains(KEY), "{text}");
        assert!(
            text.contains("redis_url = \"redis://user:***@host:6379/0?***\""),
            "{text}"
        );
        assert!(text.contains("master_key = \"***\"\n"));
        assert!(text.contains("quote_ttl = \"7s\"\n"));
        assert!(text.contains("rates = \"sandbox\"\n"));
        assert!(text.contains("# metrics_listen is not set\n"));
        let (sources, _folder) = with_file(&text.replace("master_key = \"***\"", ""), &[]);
        let again = Config::load(&sources).unwrap();
        assert_eq!(again.config.quote_ttl, Duration::from_secs(7));
    }

    #[test]
    fn throttles_can_be_turned_off_and_changed() {
        let off = Config::load(&environment(&[("THROTTLE", "off")])).unwrap();
        assert!(off.config.pools_throttle.is_none());
        let other = Config::load(&environment(&[("THROTTLE_POOLS", "1/1s,2/2s,3/3s")])).unwrap();
        assert_eq!(other.config.pools_throttle.unwrap().len(), 3);
    }
}
