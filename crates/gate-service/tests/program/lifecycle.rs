//! The program's output, its listener and its shutdown.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use test_support::http::get;

/// The program in a folder of its own, with these variables as its whole environment.
pub(crate) fn program(folder: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gate-service"));
    command.current_dir(folder).env_clear();
    for (name, text) in variables {
        command.env(format!("PENSTOCK_{name}"), text);
    }
    command
}

pub(crate) fn output(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut program = program(folder, variables);
    program.args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

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
    for signal in ["-TERM", "-INT"] {
        let free = [
            ("GATE_LISTEN", "127.0.0.1:0"),
            ("WIDGET_LISTEN", "127.0.0.1:0"),
        ];
        let mut program = program(folder.path(), &free);
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = program.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.strip_prefix("gate-service listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line:?}")).trim_end();
        let mut second = String::new();
        out.read_line(&mut second).unwrap();
        let widget = second.strip_prefix("gate-service widget on http://");
        let widget = widget.unwrap_or_else(|| panic!("{second:?}")).trim_end();
        assert_serves_widget(widget, address);
        assert!(get(address, "/health").starts_with("HTTP/1.1 200"));
        assert!(get(address, "/health/ready").contains(r#""database":"ok""#));
        assert!(get(address, "/openapi/gate-v1.yaml").contains("createSession"));
        assert!(get(address, "/openapi/gate-embed-v1.yaml").contains("X-Embed-Token"));
        let refused = get(address, "/v1/gate_sessions");
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        let page = format!("http://{address}/docs#unauthorized");
        assert!(refused.contains(&page), "{refused}");
        let reference = get(address, "/docs");
        assert!(reference.contains(" id=\"quote_consumed\""));
        assert_ids_are_unique(&reference);
        let id = process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        let ended = process.wait_with_output().unwrap();
        let logged = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{logged}");
        for line in logged.lines() {
            assert!(line.starts_with("{\"timestamp\":"), "{line}");
        }
    }
    assert!(folder.path().join("penstock-data/master.key").exists());
}

/// Asserts that the ids of a page are unique.
fn assert_ids_are_unique(page: &str) {
    let ids = page.split(" id=\"").skip(1);
    let mut seen = std::collections::BTreeSet::new();
    for id in ids.filter_map(|rest| rest.split('"').next()) {
        assert!(seen.insert(id), "id={id:?} occurs twice");
    }
    assert!(seen.len() > 50, "{seen:?}");
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
    let ended = output(folder.path(), &["serve"], &variables);
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(text(&ended.stdout), "");
    for (name, _) in variables {
        let expected = format!("PENSTOCK_{name}: expected");
        assert!(text(&ended.stderr).contains(&expected), "{ended:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = output(folder.path(), &[], &[("GATE_LISTEN", &address)]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("PENSTOCK_GATE_LISTEN"));
}

// rule: program.openapi, program.migrate, program.config-masked, verifier.http.contract
#[test]
fn gate_service_prints_contract_and_configuration_and_migrates() {
    let folder = tempfile::tempdir().unwrap();
    let printed = output(folder.path(), &["openapi"], &[("MODE", "prod")]);
    assert_eq!(printed.status.code(), Some(0));
    let contract = text(&printed.stdout);
    assert!(contract.starts_with("openapi: ") && contract.contains("createSession"));
    let printed = output(folder.path(), &["openapi", "verifier-v1"], &[]);
    let published = include_str!("../../../../docs/openapi/verifier-v1.yaml");
    let stale = "docs/openapi/verifier-v1.yaml is stale: run `cargo xtask openapi`";
    assert!(text(&printed.stdout) == published, "{stale}");
    let migrated = output(folder.path(), &["migrate"], &[]);
    assert_eq!(migrated.status.code(), Some(0));
    assert!(folder.path().join("penstock-data/penstock.db").exists());
    let shown = output(folder.path(), &["config"], &[("SESSION_TTL", "7s")]);
    assert!(text(&shown.stdout).contains("session_ttl = \"7s\"\n"));
    let named = output(folder.path(), &["--help"], &[]);
    assert!(text(&named.stdout).contains("Usage: gate-service"));
}
