//! An engine and sources of rates over HTTP, named in the environment.

use std::path::Path;
use std::sync::{Arc, Mutex};

use test_support::http::{Reply, Upstream};

use crate::served::{
    POOLS, Served, eventually, file_for_acme, get, poll, provision, quote, text, transact,
};

const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECRET: &str = "a-secret-of-the-engine";
const RETURNABLE: &str = "Settled trades of another engine can still be returned";

/// A server on this machine. It responds by the last segment of the path.
pub(crate) struct UpstreamServer {
    url: String,
    played: Upstream,
    report: Arc<Mutex<String>>,
}

impl UpstreamServer {
    pub(crate) fn start() -> Self {
        let delivered = r#"{"status":"delivered","fillTxId":"fill-1"}"#.to_owned();
        let report = Arc::new(Mutex::new(delivered));
        let current_report = Arc::clone(&report);
        let played = Upstream::start(move |request| {
            let report = current_report.lock().unwrap().clone();
            let body = match request.path().rsplit('/').next().unwrap() {
                "rates" => r#"{"mid":1.0850}"#,
                "depth" => r#"{"status":"enough"}"#,
                "hold" => r#"{"status":"held"}"#,
                "confirm" => r#"{"status":"confirmed"}"#,
                _ => report.as_str(),
            };
            Reply::json(200, body)
        });
        Self {
            url: played.url(),
            played,
            report,
        }
    }

    /// Sets the report of every trade from now on.
    pub(crate) fn reports(&self, body: &str) {
        body.clone_into(&mut self.report.lock().unwrap());
    }

    /// The value of `PENSTOCK_ENGINE`.
    pub(crate) fn engine(&self) -> String {
        format!("http:{}", self.url)
    }

    /// The heads of the requests since the last call of this method.
    pub(crate) fn heads(&self) -> Vec<String> {
        let received = self.played.take().into_iter();
        received.map(|request| request.head).collect()
    }
}

/// Writes `rates.toml` with one source.
pub(crate) fn name_source(folder: &Path, rates: &UpstreamServer) {
    std::fs::write(folder.join("token"), "t0ken\n").unwrap();
    let sources = format!(
        r#"
        max_age_ms = 60000
        max_spread_bps = 50
        min_sources = 1
        refresh_ms = 20000
        timeout_ms = 20000
        [[pairs]]
        pair = "EUR-USDT"
        spread_bps = 25
        [[sources]]
        name = "alpha"
        url = "{}/rates"
        headers = [{{ name = "X-Api-Key", file = "token" }}, {{ name = "User-Agent", value = "desk/1" }}]
        prices = [{{ pair = "EUR-USDT", mid = "/mid" }}]
        "#,
        rates.url
    );
    std::fs::write(folder.join("rates.toml"), sources).unwrap();
}

// rule: config.engine-http, config.engine-secret, config.rates-http, engine.http.secret, rates.http.sources
#[test]
fn mode_live_trades_with_upstreams_of_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let database = ("DATABASE_URL", "sqlite://penstock-data/penstock.db");
    let live = [("MODE", "live"), ("MASTER_KEY", MASTER_KEY)];
    let file = file_for_acme("", None).replace("key = \"\"", "");
    let keys = provision(folder.path(), &live, &file);
    let (engine, rates) = (UpstreamServer::start(), UpstreamServer::start());
    name_source(folder.path(), &rates);
    let engine_url = engine.engine();
    let far_ends = [
        ("RATES", "http:rates.toml"),
        ("ENGINE", engine_url.as_str()),
        ("ENGINE_SECRET", SECRET),
        ("METRICS_LISTEN", "127.0.0.1:0"),
    ];
    let variables = [&live[..], &[database], &far_ends].concat();
    let served = POOLS.start(folder.path(), &variables);
    let bearer = format!("Bearer {}", keys[0]);
    let headers = [("Authorization", bearer.as_str())];
    let bought = quote(&served, &headers, "100.00");
    assert_eq!(transact(&served, &headers, &bought)["status"], "reserved");
    let view = poll(&served, &headers, &bought);
    assert_eq!(view["status"], "settled", "{view}");
    let asked = engine.heads();
    assert_eq!(asked.len(), 5, "{asked:#?}");
    let shown = format!("authorization: Bearer {SECRET}\r\n");
    assert!(asked.iter().all(|head| head.contains(&shown)), "{asked:#?}");
    let asked = rates.heads();
    for header in ["x-api-key: t0ken\r\n", "user-agent: desk/1\r\n"] {
        assert!(asked[0].contains(header), "{header} in {asked:#?}");
    }
    let metrics = get(&served.metrics_address(), "/metrics");
    for series in [
        "penstock_rate_sources{state=\"answering\"} 1\n",
        "penstock_rate_sources{state=\"failing\"} 0\n",
        "penstock_rate_source_answers_total{answer=\"late\"} 0\n",
        "penstock_rates_withheld_total{reason=\"too_few\"} 0\n",
        "penstock_rates_withheld_total{reason=\"moved_too_far\"} 0\n",
        "penstock_rate_pairs{state=\"priced\"} 1\n",
        "penstock_rate_pairs{state=\"moved_too_far\"} 0\n",
    ] {
        assert!(metrics.contains(series), "{series} in\n{metrics}");
    }
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(
        !logged.contains(SECRET) && !logged.contains("t0ken"),
        "{logged}"
    );
}

// rule: config.engine-drain, config.engine-name, pools.engine.which, pools.engine.drain, pools.engine.returnable
#[test]
fn service_refuses_another_engine_while_the_former_has_open_trades() {
    let folder = tempfile::tempdir().unwrap();
    let keys = provision(
        folder.path(),
        &[],
        &file_for_acme("", None).replace("key = \"\"", ""),
    );
    let (first, second) = (UpstreamServer::start(), UpstreamServer::start());
    let of = |far: &UpstreamServer| format!("http:{}/desk/", far.url);
    let (first_url, second_url) = (of(&first), of(&second));
    let bearer = format!("Bearer {}", keys[0]);
    let headers = [("Authorization", bearer.as_str())];
    let served = POOLS.start(folder.path(), &[("ENGINE", first_url.as_str())]);
    let bought = quote(&served, &headers, "100.00");
    transact(&served, &headers, &bought);
    served.end("-TERM");

    let ended = POOLS.output(folder.path(), &[], &[("ENGINE", &second_url)]);
    assert_eq!(ended.status.code(), Some(2));
    let stderr = text(&ended.stderr);
    let line = stderr
        .lines()
        .find(|line| line.starts_with("PENSTOCK_ENGINE: "));
    let line = line.unwrap_or_else(|| panic!("{stderr}"));
    for part in [
        &*format!("{}/desk (1 open trade)", first.url),
        &*format!("{}/desk", second.url),
        "PENSTOCK_ENGINE_DRAIN=true",
        "PENSTOCK_ENGINE_NAME",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(text(&ended.stdout).is_empty());
    let sandbox = POOLS.output(folder.path(), &[], &[]);
    assert_eq!(sandbox.status.code(), Some(2), "{}", text(&sandbox.stderr));
    assert_eq!(second.heads(), [""; 0]);

    // With `ENGINE_DRAIN` the service starts and asks the second engine only about new trades.
    let draining = [("ENGINE", second_url.as_str()), ("ENGINE_DRAIN", "true")];
    let served = POOLS.start(folder.path(), &draining);
    let status = |served: &Served, quote: &str| poll(served, &headers, quote)["status"].clone();
    assert_eq!(status(&served, &bought), "reserved");
    assert_eq!(second.heads(), [""; 0]);
    let newer = quote(&served, &headers, "10.00");
    transact(&served, &headers, &newer);
    assert_eq!(status(&served, &newer), "settled");
    served.end("-TERM");

    // The engine keeps its name at another address.
    let name = format!("{}/desk", first.url);
    let moved = [
        ("ENGINE", second_url.as_str()),
        ("ENGINE_NAME", name.as_str()),
    ];
    let served = POOLS.start(folder.path(), &moved);
    assert_eq!(status(&served, &bought), "settled");
    served.end("-TERM");
    // Neither engine has an open trade, and both have trades that can still be returned.
    let served = POOLS.start(folder.path(), &[]);
    eventually(|| served.logged().contains(RETURNABLE).then_some(()));
    served.end("-TERM");
}

// rule: pools.engine.former
#[test]
fn former_engine_is_asked_about_its_own_trades_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_for_acme("", None).replace("key = \"\"", "");
    let keys = provision(folder.path(), &[], &file);
    let (first, second) = (UpstreamServer::start(), UpstreamServer::start());
    let (first_url, second_url) = (first.engine(), second.engine());
    let bearer = format!("Bearer {}", keys[0]);
    let headers = [("Authorization", bearer.as_str())];
    let status = |served: &Served, quote: &str| poll(served, &headers, quote)["status"].clone();
    let served = POOLS.start(folder.path(), &[("ENGINE", first_url.as_str())]);
    let bought = quote(&served, &headers, "100.00");
    transact(&served, &headers, &bought);
    served.end("-TERM");
    first.heads();

    let both = [
        ("ENGINE", second_url.as_str()),
        ("ENGINE_FORMER", first_url.as_str()),
    ];
    let served = POOLS.start(folder.path(), &both);
    eventually(|| (status(&served, &bought) == "settled").then_some(()));
    assert_eq!(second.heads(), [""; 0]);
    assert!(!first.heads().is_empty());
    let newer = quote(&served, &headers, "10.00");
    transact(&served, &headers, &newer);
    eventually(|| (status(&served, &newer) == "settled").then_some(()));
    assert_eq!(first.heads(), [""; 0]);
    let (_, logged) = served.end("-TERM");
    assert!(!logged.contains(RETURNABLE), "{logged}");
}

// rule: pools.engine.drain, pools.engine.returnable
#[test]
fn start_without_an_engine_warns_of_open_trades_and_of_those_that_can_still_be_returned() {
    let folder = tempfile::tempdir().unwrap();
    let file = file_for_acme("", None).replace("key = \"\"", "");
    let keys = provision(folder.path(), &[], &file);
    let former = UpstreamServer::start();
    let former_url = former.engine();
    let bearer = format!("Bearer {}", keys[0]);
    let headers = [("Authorization", bearer.as_str())];
    let status = |served: &Served, quote: &str| poll(served, &headers, quote)["status"].clone();
    let served = POOLS.start(folder.path(), &[("ENGINE", former_url.as_str())]);
    let [settled, open] = ["100.00", "10.00"].map(|amount| {
        let quote = quote(&served, &headers, amount);
        transact(&served, &headers, &quote);
        quote
    });
    eventually(|| (status(&served, &settled) == "settled").then_some(()));
    served.end("-TERM");
    former.heads();

    let without = [("ENGINE", "none"), ("METRICS_LISTEN", "127.0.0.1:0")];
    let served = POOLS.start(folder.path(), &without);
    let private = served.metrics_address();
    eventually(|| {
        let metrics = get(&private, "/metrics");
        let counted = metrics.contains("\npenstock_trades_returnable_elsewhere 1\n");
        counted.then_some(())
    });
    assert_eq!(status(&served, &open), "reserved");
    let (code, logged) = served.end("-TERM");
    assert_eq!(code, Some(0));
    assert_eq!(former.heads(), [""; 0]);
    for warning in ["Another engine holds reserved trades", RETURNABLE] {
        let lines: Vec<&str> = logged
            .lines()
            .filter(|line| line.contains(warning))
            .collect();
        assert_eq!(lines.len(), 1, "{warning} in {logged}");
        for part in [former.url.as_str(), r#""engine.trades":1"#] {
            assert!(lines[0].contains(part), "{part} in {}", lines[0]);
        }
    }
}

// rule: config.rates-http, rates.http.faults
#[test]
fn service_creates_nothing_when_file_of_sources_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("rates.toml"),
        "max_age_ms = 1\nmax_age = 2\n",
    )
    .unwrap();
    let ended = POOLS.output(folder.path(), &[], &[("RATES", "http:rates.toml")]);
    assert_eq!(ended.status.code(), Some(2));
    let stderr = text(&ended.stderr);
    for line in [
        "PENSTOCK_RATES: rates.toml:1: max_spread_bps: missing",
        "PENSTOCK_RATES: rates.toml:2: max_age: unknown key; the nearest known one is `max_age_ms`",
    ] {
        assert!(
            stderr.lines().any(|found| found.starts_with(line)),
            "{line} in\n{stderr}"
        );
    }
    assert!(!folder.path().join("penstock-data").exists());
}

#[test]
fn config_command_reports_errors_of_files_that_serving_needs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[[rate]]\n").unwrap();
    for (name, value) in [
        ("RATES", "static:nowhere.toml"),
        ("RATES", "static:bad.toml"),
        ("RATES", "http:nope"),
        ("CATALOGUE", "nowhere.toml"),
    ] {
        let ended = POOLS.output(folder.path(), &["config"], &[(name, value)]);
        let stderr = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{value}: {stderr}");
        let named = format!("PENSTOCK_{name}: ");
        let is_named = stderr.lines().any(|line| line.starts_with(&named));
        assert!(is_named, "{stderr}");
    }
    assert!(!folder.path().join("penstock-data").exists());
}
