//! The program's output, its listener and its shutdown.

use test_support::http::get;
use test_support::program::{Program, text};

/// The program of the gate.
pub(crate) const GATE: Program = Program {
    name: "gate-service",
    path: env!("CARGO_BIN_EXE_gate-service"),
    listeners: &["GATE_LISTEN", "WIDGET_LISTEN"],
};

fn assert_serves_widget(widget: &str, gate: &str) {
    assert!(get(widget, "/health").starts_with("HTTP/1.1 200"));
    let page = get(widget, "/checkout");
    assert!(
        page.contains(&format!("connect-src http://{gate};")),
        "{page}"
    );
    assert!(
        page.contains(&format!("content=\"http://{gate}\"")),
        "{page}"
    );
    assert!(get(widget, "/gate.js").contains(&format!("\"http://{widget}\"")));
    assert!(get(widget, "/v1/gate_sessions").starts_with("HTTP/1.1 404"));
}

// rule: program.serve-default, program.listening-line, program.logs, config.embedded-migrates
#[test]
fn gate_service_serves_from_empty_folder_and_shuts_down() {
    let folder = tempfile::tempdir().unwrap();
    let served = GATE.start(folder.path(), &[]);
    let widget = served.next_address("widget");
    assert_serves_widget(&widget, &served.address);
    assert!(served.get("/health").starts_with("HTTP/1.1 200"));
    assert!(served.get("/health/ready").contains(r#""database":"ok""#));
    assert!(
        served
            .get("/openapi/gate-v1.yaml")
            .contains("createSession")
    );
    let embedding = served.get("/openapi/gate-embed-v1.yaml");
    assert!(embedding.contains("X-Embed-Token"), "{embedding}");
    let refused = served.get("/v1/gate_sessions");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let page = format!("http://{}/docs#unauthorized", served.address);
    assert!(refused.contains(&page), "{refused}");
    assert!(served.get("/docs").contains(" id=\"quote_consumed\""));
    let (code, logged) = served.end("-INT");
    assert_eq!(code, Some(0), "{logged}");
    for line in logged.lines() {
        assert!(line.starts_with("{\"timestamp\":"), "{line}");
    }
    assert!(folder.path().join("penstock-data/master.key").exists());
}

// rule: program.bad-configuration
#[test]
fn gate_service_reports_every_configuration_error_and_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("GATE_LISTEN", "4020"),
        ("SESSION_SWEEP", "often"),
        ("THROTTLE_CREATE_SESSION", "10/60s,20/60s"),
    ];
    let ended = GATE.output(folder.path(), &["serve"], &variables);
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(text(&ended.stdout), "");
    for (name, _) in variables {
        let expected = format!("PENSTOCK_{name}: expected");
        assert!(text(&ended.stderr).contains(&expected), "{ended:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = GATE.output(folder.path(), &[], &[("GATE_LISTEN", &address)]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("PENSTOCK_GATE_LISTEN"));
}

// rule: program.openapi, program.migrate, rail.http.contract, verifier.http.contract
#[test]
fn gate_service_prints_contracts_and_configuration_and_migrates() {
    let folder = tempfile::tempdir().unwrap();
    let printed = GATE.output(folder.path(), &["openapi"], &[("MODE", "prod")]);
    assert_eq!(printed.status.code(), Some(0));
    let contract = text(&printed.stdout);
    assert!(contract.starts_with("openapi: ") && contract.contains("createSession"));
    for (name, published) in [
        (
            "rail-v1",
            include_str!("../../../../docs/openapi/rail-v1.yaml"),
        ),
        (
            "verifier-v1",
            include_str!("../../../../docs/openapi/verifier-v1.yaml"),
        ),
    ] {
        let printed = GATE.output(folder.path(), &["openapi", name], &[]);
        let stale = "the published file is stale: run `cargo xtask openapi`";
        assert!(text(&printed.stdout) == published, "{name}: {stale}");
    }
    let migrated = GATE.output(folder.path(), &["migrate"], &[]);
    assert_eq!(migrated.status.code(), Some(0));
    assert!(folder.path().join("penstock-data/penstock.db").exists());
    let shown = GATE.output(folder.path(), &["config"], &[("SESSION_TTL", "7s")]);
    assert!(text(&shown.stdout).contains("session_ttl = \"7s\"\n"));
    let named = GATE.output(folder.path(), &["--help"], &[]);
    assert!(text(&named.stdout).contains("Usage: gate-service"));
}

// rule: config.live-warnings
#[test]
fn gate_service_shows_and_logs_each_warning_of_mode_live_once() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("MODE", "live"),
        ("MASTER_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
        ("DATABASE_URL", "sqlite://penstock-data/penstock.db"),
        ("WIDGET_ORIGIN", "https://pay.example"),
        ("GATE_ORIGIN", "https://gate.example"),
        ("THROTTLE", "off"),
    ];
    let shown = GATE.output(folder.path(), &["config"], &variables);
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    let served = GATE.start(folder.path(), &variables);
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0), "{logged}");
    for warning in [
        "PENSTOCK_THROTTLE=off: ",
        "PENSTOCK_RAIL=none: ",
        "PENSTOCK_VERIFIER=none: ",
    ] {
        assert_eq!(logged.matches(warning).count(), 1, "{warning}: {logged}");
        assert_eq!(text(&shown.stderr).matches(warning).count(), 1, "{shown:?}");
    }
}
