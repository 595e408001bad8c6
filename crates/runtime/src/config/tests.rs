use super::*;

pub(super) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The database that mode live requires to be named.
pub(super) const DATABASE: (&str, &str) = ("DATABASE_URL", "sqlite:///srv/penstock.db");

pub(super) fn environment(pairs: &[(&str, &str)]) -> Sources {
    let variable = |(name, text): &(&str, &str)| (format!("PENSTOCK_{name}").into(), text.into());
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
    faults.iter().map(ConfigError::to_string).collect()
}

// rule: webhook.schedule, webhook.timeout
#[test]
fn empty_configuration_is_complete_for_test() {
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
    assert_eq!(config.widget_listen.to_string(), "127.0.0.1:4030");
    assert_eq!((config.widget_origin, config.gate_origin), (None, None));
    assert_eq!(config.quote_ttl, Duration::from_secs(15));
    assert_eq!(config.rates, RatesChoice::Sandbox);
    assert_eq!(config.engine.choice, UpstreamChoice::Sandbox);
    assert_eq!(config.rail.choice, UpstreamChoice::Sandbox);
    assert_eq!(config.verifier.choice, UpstreamChoice::Sandbox);
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
fn gate_defaults_equal_documented_defaults() {
    let gate = |pairs: &[(&str, &str)]| {
        let config = Config::load(&environment(pairs)).unwrap().config;
        config.gate_limits
    };
    let text = |tiers: &[Tier]| {
        let tiers = tiers.iter();
        let tiers = tiers.map(|it| format!("{} {}/{}s", it.name, it.limit, it.per.as_secs()));
        tiers.collect::<Vec<_>>().join(", ")
    };
    let limits = gate(&[]).unwrap();
    for (group, expected) in [
        (Group::CreateSession, "short 10/60s"),
        (Group::CancelSession, "short 30/60s"),
        (Group::Bootstrap, "short 30/60s"),
        (Group::BootstrapCeiling, "medium 6000/60s"),
        (Group::Embed, "short 60/60s"),
        (Group::EmbedQuotes, "short 10/60s"),
        (Group::EmbedPayments, "short 5/60s"),
        (Group::ListSessions, "short 60/60s"),
        (Group::ListTransactions, "short 60/60s"),
        (Group::Preview, "short 30/60s"),
        (Group::Capabilities, "short 60/60s"),
        (Group::Global, "short 10/10s, medium 60/60s, long 300/3600s"),
    ] {
        assert_eq!(text(limits.of(group)), expected);
    }
    for (group, expected) in [
        (Group::Embed, "medium 180/60s"),
        (Group::EmbedQuotes, "medium 30/60s"),
        (Group::EmbedPayments, "medium 15/60s"),
    ] {
        assert_eq!(text(&limits.of_session(group)), expected);
    }
    let limits = gate(&[("THROTTLE_CREATE_SESSION", "7/1s")]).unwrap();
    assert_eq!(text(limits.of(Group::CreateSession)), "short 7/1s");
    assert!(gate(&[("THROTTLE", "off")]).is_none());
}

// rule: gate.session.sweep
#[test]
fn zero_sweep_disables_it_and_widget_requires_https() {
    let load = |pairs: &[(&str, &str)]| Config::load(&environment(pairs));
    let off = load(&[("SESSION_SWEEP", "0s")]).unwrap().config;
    assert_eq!(off.session_sweep, None);
    let widget = |mode: &str, origin: &str| {
        let pairs = [
            ("MODE", mode),
            ("MASTER_KEY", KEY),
            DATABASE,
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

// rule: gate.widget.live-origins
#[test]
fn mode_live_serves_widget_only_at_configured_origins() {
    let load = |mode: &str, settings: &[(&str, &str)]| {
        let mode = [("MODE", mode), ("MASTER_KEY", KEY), DATABASE];
        let loaded = Config::load(&environment(&[&mode, settings].concat())).unwrap();
        (loaded.config.serves_widget(), loaded.config.check_gate())
    };
    let (widget, gate) = (
        ("WIDGET_ORIGIN", "https://pay.example"),
        ("GATE_ORIGIN", "https://gate.example"),
    );
    assert_eq!(load("test", &[]), (true, Ok(())));
    assert_eq!(load("live", &[]), (false, Ok(())));
    assert_eq!(load("live", &[gate]), (false, Ok(())));
    assert_eq!(load("live", &[widget, gate]), (true, Ok(())));
    let (serves, checked) = load("live", &[widget]);
    let faults = checked.unwrap_err();
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        (serves, lines),
        (
            true,
            vec![
                "PENSTOCK_GATE_ORIGIN: expected the public origin of the gate service, which browsers call, such as https://gate.example: mode live requires it beside PENSTOCK_WIDGET_ORIGIN"
                    .to_owned()
            ]
        )
    );
}

#[test]
fn public_origin_that_no_policy_can_name_is_refused() {
    for name in ["WIDGET_ORIGIN", "GATE_ORIGIN"] {
        for bad in [
            "https://pay.example;x",
            "https://a,b",
            "https://[2001:db8::1]",
            "https://a'b",
        ] {
            let faults = Config::load(&environment(&[(name, bad)])).unwrap_err();
            let line = faults[0].to_string();
            assert!(
                line.starts_with(&format!("PENSTOCK_{name}: expected an ")),
                "{line}"
            );
        }
    }
}

// rule: config.live-master-key, config.live-has-no-sandbox, config.live-has-no-sandbox-rail, config.live-has-no-sandbox-verifier
#[test]
fn live_mode_refuses_sandbox_upstreams() {
    let live = [("MODE", "live"), ("MASTER_KEY", KEY), DATABASE];
    let loaded = Config::load(&environment(&live)).unwrap();
    assert_eq!(loaded.config.rates, RatesChoice::None);
    assert_eq!(loaded.config.engine.choice, UpstreamChoice::None);
    assert_eq!(loaded.config.rail.choice, UpstreamChoice::None);
    assert_eq!(loaded.config.verifier.choice, UpstreamChoice::None);
    assert_eq!(loaded.config.webhook_allow_private, AllowPrivate::None);
    assert!(loaded.warnings.is_empty());
    assert_eq!(loaded.serving_warnings.len(), 1);
    let sandbox = environment(&[
        ("MODE", "live"),
        DATABASE,
        ("RATES", "sandbox"),
        ("ENGINE", "sandbox"),
        ("RAIL", "sandbox"),
        ("VERIFIER", "sandbox"),
    ]);
    let faults = faults(&sandbox);
    assert_eq!(faults.len(), 5, "{faults:?}");
    assert!(faults[0].starts_with("PENSTOCK_MASTER_KEY: expected 32 bytes"));
    assert!(faults[1].starts_with("PENSTOCK_RATES: the sandbox"));
    assert!(faults[2].starts_with("PENSTOCK_ENGINE: the sandbox"));
    assert!(faults[3].starts_with("PENSTOCK_RAIL: the sandbox"));
    assert!(faults[4].starts_with("PENSTOCK_VERIFIER: the sandbox"));
}

// rule: config.environment-wins
#[test]
fn environment_overrides_file_and_command_line_overrides_both() {
    let text = "quote_ttl = \"7s\"\nvelocity_window = \"1h\"\ndatabase_pool = 4\nmode = \"live\"";
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
fn all_errors_are_reported_together() {
    let text = "quote_tll = \"7s\"\npreview_ttl = 1.5\nwebhook_waits = [\"5s\", \"1m\"]\nengine = \"http:http://u:hunter2@e\"";
    let (mut sources, _folder) = with_file(
        text,
        &[
            ("QUOTE_TTL", "7 seconds"),
            ("DATABASE_URL", "postgres://user:hunter2@host:port/db"),
            ("DATABASE_POOL", "0"),
            ("REDIS_URL", "redis://:hunter2@host:port"),
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
        "PENSTOCK_DATABASE_POOL: expected a number from 1 to 1000, got \"0\"".to_owned(),
        "PENSTOCK_REDIS_URL: expected redis:// or rediss:// and a host such as redis://user:password@host:6379/0".to_owned(),
        "PENSTOCK_MASTER_KEY: expected 32 bytes in base64".to_owned(),
        "PENSTOCK_POOLS_LISTEN: expected an address and a port such as 127.0.0.1:4010, got \"4010\"".to_owned(),
        "PENSTOCK_QUOTE_TTL: expected a span greater than zero such as 500ms, 15s, 5m or 24h, got \"7 seconds\"".to_owned(),
        format!("PENSTOCK_ENGINE (engine in {file}): expected http:<url> without credentials and query: its secret belongs in PENSTOCK_ENGINE_SECRET"),
    ];
    let (of_file, of_values) = expected.split_at(2);
    for line in of_file {
        assert!(faults[..2].contains(line), "{line}\nnot in {faults:#?}");
    }
    assert_eq!(&faults[2..], of_values, "in the order of the table");
}

// rule: config.unknown-variable
#[test]
fn unknown_variable_warns_and_broken_file_is_an_error() {
    let loaded = Config::load(&environment(&[("QUOTE_TLL", "7s"), ("ZZ", "")])).unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "PENSTOCK_QUOTE_TLL is not a variable of Penstock; the nearest is PENSTOCK_QUOTE_TTL",
            "PENSTOCK_ZZ is not a variable of Penstock",
        ]
    );
    let (sources, _folder) = with_file("mode = \"test\"\nmode =", &[]);
    let faults = faults(&sources);
    assert!(faults[0].contains("penstock.toml: line 2: "), "{faults:?}");
    let (sources, _folder) = with_file("mode = test", &[]);
    let faults = self::faults(&sources);
    let expected = "penstock.toml: line 1: a text needs quotes: mode = \"test\"";
    assert!(faults[0].contains(expected), "{faults:?}");
    let (sources, _folder) = with_file("[throttle]\npools = 1\n[modes]", &[]);
    assert_eq!(faults_count(&sources), 2);
}

fn faults_count(sources: &Sources) -> usize {
    faults(sources).len()
}

// rule: program.config-masked
#[test]
fn printed_configuration_masks_secrets_and_parses_again() {
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

// rule: config.trimmed
#[test]
fn white_space_at_either_end_of_a_value_is_ignored() {
    let key = format!("{KEY}\n");
    let pairs = [
        ("MODE", "test\n"),
        ("DATABASE_URL", " sqlite:///var/lib/penstock.db\r\n"),
        ("QUOTE_TTL", "\u{a0}7s\t"),
        ("MASTER_KEY", key.as_str()),
        ("ENGINE_SECRET", "hunter2-hunter2-hunter2\n"),
        ("RATES", "static:rates.toml "),
    ];
    let (mut sources, _folder) = with_file("session_ttl = \" 1h\\n\"", &pairs);
    sources
        .flags
        .push(("POOLS_LISTEN", " 127.0.0.1:0 ".to_owned()));
    let loaded = Config::load(&sources).unwrap();
    let config = loaded.config;
    let file = "/var/lib/penstock.db";
    assert_eq!(config.database, Database::Sqlite(file.into()));
    assert_eq!(config.quote_ttl, Duration::from_secs(7));
    assert_eq!(config.session_ttl, Duration::from_secs(3600));
    assert_eq!(config.rates, RatesChoice::Static("rates.toml".into()));
    assert_eq!(config.pools_listen.port(), 0);
    let shown = "database_url = \"sqlite:///var/lib/penstock.db\"\n";
    assert!(loaded.effective.contains(shown), "{}", loaded.effective);
}

// rule: config.trimmed
#[test]
fn value_of_white_space_alone_is_an_error_and_not_the_default() {
    for name in [
        "DATABASE_URL",
        "MODE",
        "QUOTE_TTL",
        "CATALOGUE",
        "RATES",
        "REDIS_URL",
        "MASTER_KEY",
        "ENGINE_NAME",
        "EDGE_COUNTRY_HEADER",
    ] {
        let faults = faults(&environment(&[(name, " \n")]));
        assert_eq!(faults.len(), 1, "{faults:?}");
        let line = &faults[0];
        assert!(
            line.starts_with(&format!("PENSTOCK_{name}: expected ")),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

// rule: config.trimmed
#[test]
fn control_character_inside_a_value_is_refused_and_shown() {
    for (name, value) in [
        ("DATABASE_URL", "postgres://u:hunter2@ho\nst/db"),
        ("DATABASE_URL", "sqlite:///srv/pen\nstock.db"),
        ("REDIS_URL", "redis://u:hunter2@ho\nst/0"),
        ("ENGINE", "http:http://eng\nine:9000"),
        ("RATES", "static:ra\ntes.toml"),
        ("OTLP_ENDPOINT", "http://col\nlector"),
    ] {
        let faults = faults(&environment(&[(name, value)]));
        let line = &faults[0];
        assert!(
            line.starts_with(&format!("PENSTOCK_{name}: expected ")),
            "{line}"
        );
        assert!(
            line.ends_with(", without the control character '\\n'"),
            "{line}"
        );
        assert!(!line.contains("hunter2"), "{line}");
    }
    let keys = format!("{KEY}\n{KEY}");
    let loaded = Config::load(&environment(&[("MASTER_KEY", &keys)])).unwrap();
    assert_eq!(loaded.config.master_keys.unwrap().len(), 2);
}

// rule: config.database-path
#[test]
fn path_that_another_program_would_change_is_refused_for_every_database_setting() {
    for name in ["DATABASE_URL", "MIGRATE_DATABASE_URL"] {
        for (value, shown) in [
            ("sqlite://~/penstock.db", "`~` in the path is not expanded"),
            ("sqlite://$HOME/penstock.db", "`$` in the path"),
            ("sqlite:///srv/a%20b/penstock.db", "`%` in the path"),
            ("sqlite:///srv/penstock.db\u{200b}", "'\\u{200b}'"),
            ("\u{feff}sqlite:///srv/penstock.db", "'\\u{feff}'"),
            ("sqlite://localhost/penstock.db", "`localhost`"),
            ("sqlite://:memory:", "`:memory:`"),
        ] {
            let faults = faults(&environment(&[(name, value)]));
            let line = &faults[0];
            let begin = format!("PENSTOCK_{name}: expected sqlite://<file>: ");
            assert!(line.starts_with(&begin), "{line}");
            assert!(line.contains(shown), "{line}");
        }
    }
}
