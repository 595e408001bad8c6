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
