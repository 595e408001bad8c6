use gate_core::catalogue::Catalogue;

use super::tests::{DATABASE, KEY, environment};
use super::{Config, ConfigError, Loaded};

/// The upstreams that an operator may run over HTTP.
const UPSTREAMS: [&str; 3] = ["ENGINE", "RAIL", "VERIFIER"];
const SECRET: &str = "hunter2-hunter2-hunter2";

/// Loads a configuration with this upstream and its secret.
fn load(mode: &str, name: &str, url: &str, secret: &str) -> Result<Loaded, Vec<ConfigError>> {
    let upstream = format!("http:{url}");
    let secret_name = format!("{name}_SECRET");
    Config::load(&environment(&[
        ("MODE", mode),
        ("MASTER_KEY", KEY),
        DATABASE,
        (name, &upstream),
        (&secret_name, secret),
    ]))
}

/// The only error of a configuration.
fn refusal(loaded: Result<Loaded, Vec<ConfigError>>) -> String {
    let faults = loaded.unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].to_string()
}

// rule: config.engine-encrypted, config.rail-encrypted, config.verifier-encrypted
#[test]
fn mode_live_refuses_plain_http_to_public_upstream() {
    for name in UPSTREAMS {
        let begin = format!("PENSTOCK_{name}: expected http:https://");
        for outside in [
            "203.0.113.9:9000",
            "desk.example",
            "localhost:9000",
            "[2001:db8::1]:9000",
            "[::ffff:203.0.113.9]",
            "172.32.0.1",
            "100.64.0.1",
            "169.254.169.254",
            "0.0.0.0:9000",
        ] {
            let (plain, encrypted) = (format!("http://{outside}"), format!("https://{outside}"));
            let line = refusal(load("live", name, &plain, SECRET));
            assert!(line.starts_with(&begin), "{outside}: {line}");
            let loaded = load("live", name, &encrypted, SECRET).unwrap();
            assert_eq!(loaded.serving_warnings.len(), 1, "{name}: {outside}");
            assert!(load("test", name, &plain, SECRET).is_ok(), "{outside}");
        }
        for inside in [
            "127.0.0.1:9000",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1:80/engine",
            "[::1]:9000",
            "[fd00::1]",
            "[::ffff:10.0.0.1]:9000",
        ] {
            let loaded = load("live", name, &format!("http://{inside}"), SECRET).unwrap();
            let warned = &loaded.serving_warnings[1];
            assert!(warned.starts_with(&format!("PENSTOCK_{name} is not https")));
        }
    }
}

// rule: config.engine-secret, config.rail-secret, config.verifier-secret, config.serving-secrets, program.config-masked
#[test]
fn upstream_over_http_requires_secret_in_live_mode() {
    let url = "https://desk.example";
    for name in UPSTREAMS {
        let key = name.to_lowercase();
        let text = load("live", name, url, SECRET).unwrap().effective;
        assert!(!text.contains(SECRET), "{text}");
        assert!(
            text.contains(&format!("{key}_secret = \"***\"\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("{key} = \"http:{url}\"\n")),
            "{text}"
        );
        let form = format!("PENSTOCK_{name}_SECRET: expected 16 to 256 visible ASCII characters");
        let operating = load("live", name, url, "").unwrap().config;
        let required =
            format!("{form}: mode live requires a secret that authenticates Penstock to the {key}");
        let missing = operating.check_serving().unwrap_err();
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        assert_eq!(missing, [required]);
        assert_eq!(refusal(load("live", name, url, "hunter2")), form);
    }
}

/// Loads a configuration of this mode with these settings.
fn load_with(mode: &str, settings: &[(&str, &str)]) -> Result<Loaded, Vec<ConfigError>> {
    let common = [("MODE", mode), ("MASTER_KEY", KEY), DATABASE];
    Config::load(&environment(&[&common, settings].concat()))
}

// rule: config.live-secrets-differ
#[test]
fn mode_live_refuses_one_secret_for_two_upstreams() {
    let names = ["ENGINE_SECRET", "RAIL_SECRET", "VERIFIER_SECRET"];
    let others = [
        "the-secret-of-the-engine",
        "the-secret-of-the-rail",
        "the-secret-of-the-verifier",
    ];
    let with = |given: [&'static str; 3]| names.into_iter().zip(given).collect::<Vec<_>>();
    assert!(load_with("live", &with(others)).is_ok());
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        let mut given = others;
        (given[first], given[second]) = (SECRET, SECRET);
        assert!(load_with("test", &with(given)).is_ok());
        let line = refusal(load_with("live", &with(given)));
        let begin = format!(
            "PENSTOCK_{}: expected another secret than that of PENSTOCK_{}: ",
            names[second], names[first]
        );
        assert!(line.starts_with(&begin), "{line}");
        assert!(!line.contains(SECRET), "{line}");
    }
    assert_eq!(load_with("live", &with([SECRET; 3])).unwrap_err().len(), 2);
}

// rule: config.live-widget-origin
#[test]
fn mode_live_refuses_the_gates_origin_for_the_widget() {
    let load = |mode: &str, widget: &str, gate: &str| {
        load_with(mode, &[("WIDGET_ORIGIN", widget), ("GATE_ORIGIN", gate)])
    };
    let begin = "PENSTOCK_WIDGET_ORIGIN: expected another origin than that of PENSTOCK_GATE_ORIGIN";
    for (widget, gate) in [
        ("https://gate.example", "https://gate.example"),
        ("https://Gate.example", "https://gate.EXAMPLE"),
        ("https://gate.example:443", "https://gate.example"),
        ("https://gate.example:8443", "https://gate.example:8443"),
    ] {
        let line = refusal(load("live", widget, gate));
        assert!(line.starts_with(begin), "{line}");
        assert!(load("test", widget, gate).is_ok());
    }
    for widget in ["https://pay.example", "https://gate.example:8443"] {
        assert!(load("live", widget, "https://gate.example").is_ok());
    }
}

// rule: config.live-warnings
#[test]
fn mode_live_warns_of_settings_with_unexpected_effect() {
    let built_in = include_str!("../../../gate-core/src/catalogue/built_in.toml");
    let unverified = built_in.replace("verification = \"always\"", "verification = \"never\"");
    let [verified, unverified] =
        [built_in, unverified.as_str()].map(|text| Catalogue::parse(text).unwrap());
    let warned = |mode: &str, settings: &[(&str, &str)], catalogue: &Catalogue| {
        let loaded = load_with(mode, settings).unwrap();
        let of_gate = loaded.config.gate_warnings(catalogue);
        let name = |line: &str| {
            let name = line.split([' ', '=']).next().unwrap();
            name.replace("PENSTOCK_", "")
        };
        let both: Vec<String> = loaded.serving_warnings.iter().map(|it| name(it)).collect();
        let of_gate: Vec<String> = of_gate.into_iter().map(name).collect();
        (both.join(" "), of_gate.join(" "))
    };
    let expect = |both: &str, of_gate: &str| (both.to_owned(), of_gate.to_owned());
    let redis = ("REDIS_URL", "redis://redis.internal:6379");
    let widget = [
        redis,
        ("WIDGET_ORIGIN", "https://pay.example"),
        ("GATE_ORIGIN", "https://gate.example"),
    ];
    let rail = ("RAIL", "http:https://rail.example");
    let verifier = ("VERIFIER", "http:https://verifier.example");
    for (settings, catalogue, both, of_gate) in [
        (&[redis, rail][..], &verified, "", "WIDGET_ORIGIN"),
        (&[], &verified, "REDIS_URL", "WIDGET_ORIGIN"),
        (
            &[redis, ("THROTTLE", "off"), ("SIGNED_QUOTE_TTL", "301s")],
            &verified,
            "THROTTLE",
            "SIGNED_QUOTE_TTL WIDGET_ORIGIN",
        ),
        (&widget, &verified, "", "RAIL VERIFIER"),
        (&widget, &unverified, "", "RAIL"),
        (
            &[&widget[..], &[("EDGE_COUNTRY_HEADER", "none")]].concat(),
            &unverified,
            "",
            "RAIL VERIFIER",
        ),
        (&[&widget[..], &[rail]].concat(), &verified, "", "VERIFIER"),
        (&[&widget[..], &[verifier]].concat(), &verified, "", "RAIL"),
        (
            &[&widget[..], &[rail, verifier, ("SIGNED_QUOTE_TTL", "5m")]].concat(),
            &verified,
            "",
            "",
        ),
    ] {
        assert_eq!(warned("live", settings, catalogue), expect(both, of_gate));
        assert_eq!(warned("test", settings, catalogue), expect("", ""));
    }
}
