use super::tests::{KEY, environment};
use super::{Config, RailChoice, VerifierChoice};

// rule: config.engine-encrypted
#[test]
fn mode_live_refuses_plain_http_to_public_engine() {
    let load = |mode: &str, engine: &str| {
        Config::load(&environment(&[
            ("MODE", mode),
            ("MASTER_KEY", KEY),
            ("ENGINE", engine),
            ("ENGINE_SECRET", "hunter2-hunter2-hunter2"),
        ]))
    };
    for outside in [
        "203.0.113.9:9000",
        "engine.example",
        "localhost:9000",
        "[2001:db8::1]:9000",
        "[::ffff:203.0.113.9]",
        "172.32.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0:9000",
    ] {
        let faults = load("live", &format!("http:http://{outside}")).unwrap_err();
        assert_eq!(faults.len(), 1, "{outside}: {faults:?}");
        let line = faults[0].to_string();
        assert!(
            line.starts_with("PENSTOCK_ENGINE: expected http:https://"),
            "{line}"
        );
        assert!(
            load("live", &format!("http:https://{outside}")).is_ok(),
            "{outside}"
        );
        assert!(
            load("test", &format!("http:http://{outside}")).is_ok(),
            "{outside}"
        );
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
        assert!(
            load("live", &format!("http:http://{inside}")).is_ok(),
            "{inside}"
        );
    }
}

fn live_rail(rail: &str, secret: &str) -> Result<super::Loaded, Vec<super::ConfigError>> {
    Config::load(&environment(&[
        ("MODE", "live"),
        ("MASTER_KEY", KEY),
        ("RAIL", rail),
        ("RAIL_SECRET", secret),
    ]))
}

// rule: config.rail-encrypted
#[test]
fn mode_live_refuses_plain_http_to_public_rail() {
    let secret = "hunter2-hunter2-hunter2";
    for outside in ["203.0.113.9:9100", "rail.example", "localhost:9100"] {
        let faults = live_rail(&format!("http:http://{outside}"), secret).unwrap_err();
        assert_eq!(faults.len(), 1, "{outside}: {faults:?}");
        let line = faults[0].to_string();
        assert!(
            line.starts_with("PENSTOCK_RAIL: expected http:https://"),
            "{line}"
        );
    }
    for (inside, warnings) in [
        ("https://rail.example", 1),
        ("http://127.0.0.1:9100", 2),
        ("http://10.1.2.3/desk", 2),
    ] {
        let loaded = live_rail(&format!("http:{inside}"), secret).unwrap();
        assert!(matches!(loaded.config.rail, RailChoice::Http(_)));
        assert_eq!(loaded.serving_warnings.len(), warnings, "{inside}");
    }
    let test = Config::load(&environment(&[("RAIL", "http:http://rail.example")]));
    assert!(test.is_ok());
}

// rule: config.rail-secret
#[test]
fn rail_over_http_requires_secret_in_live_mode() {
    let secret = "hunter2-hunter2-hunter2";
    let loaded = live_rail("http:https://rail.example", secret).unwrap();
    let text = loaded.effective;
    assert!(!text.contains(secret), "{text}");
    assert!(text.contains("rail_secret = \"***\"\n"), "{text}");
    assert!(text.contains("rail = \"http:https://rail.example\"\n"));
    for (given, told) in [
        (
            "",
            "PENSTOCK_RAIL_SECRET: expected 16 to 256 visible ASCII characters: mode live",
        ),
        ("hunter2", "PENSTOCK_RAIL_SECRET: expected 16 to 256"),
    ] {
        let faults = live_rail("http:https://rail.example", given).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let line = faults[0].to_string();
        assert!(
            line.starts_with(told) && !line.contains("hunter2"),
            "{line}"
        );
    }
}

fn live_verifier(verifier: &str, secret: &str) -> Result<super::Loaded, Vec<super::ConfigError>> {
    Config::load(&environment(&[
        ("MODE", "live"),
        ("MASTER_KEY", KEY),
        ("VERIFIER", verifier),
        ("VERIFIER_SECRET", secret),
    ]))
}

// rule: config.verifier-encrypted
#[test]
fn mode_live_refuses_plain_http_to_public_verifier() {
    let secret = "hunter2-hunter2-hunter2";
    for outside in ["203.0.113.9:9200", "verifier.example", "localhost:9200"] {
        let faults = live_verifier(&format!("http:http://{outside}"), secret).unwrap_err();
        assert_eq!(faults.len(), 1, "{outside}: {faults:?}");
        let line = faults[0].to_string();
        assert!(
            line.starts_with("PENSTOCK_VERIFIER: expected http:https://"),
            "{line}"
        );
    }
    for (inside, warnings) in [
        ("https://verifier.example", 1),
        ("http://127.0.0.1:9200", 2),
        ("http://10.1.2.3/desk", 2),
    ] {
        let loaded = live_verifier(&format!("http:{inside}"), secret).unwrap();
        assert!(matches!(loaded.config.verifier, VerifierChoice::Http(_)));
        assert_eq!(loaded.serving_warnings.len(), warnings, "{inside}");
    }
    let test = Config::load(&environment(&[(
        "VERIFIER",
        "http:http://verifier.example",
    )]));
    assert!(test.is_ok());
}

// rule: config.verifier-secret
#[test]
fn verifier_over_http_requires_secret_in_live_mode() {
    let secret = "hunter2-hunter2-hunter2";
    let loaded = live_verifier("http:https://verifier.example", secret).unwrap();
    let text = loaded.effective;
    assert!(!text.contains(secret), "{text}");
    assert!(text.contains("verifier_secret = \"***\"\n"), "{text}");
    assert!(text.contains("verifier = \"http:https://verifier.example\"\n"));
    for (given, told) in [
        (
            "",
            "PENSTOCK_VERIFIER_SECRET: expected 16 to 256 visible ASCII characters: mode live",
        ),
        ("hunter2", "PENSTOCK_VERIFIER_SECRET: expected 16 to 256"),
    ] {
        let faults = live_verifier("http:https://verifier.example", given).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let line = faults[0].to_string();
        assert!(
            line.starts_with(told) && !line.contains("hunter2"),
            "{line}"
        );
    }
}
