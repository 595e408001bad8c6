use super::Config;
use super::tests::{KEY, environment};

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
