//! `sandbox`: the first command that a developer runs.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::Receiver;

use kernel::Mode;
use partner_core::events::Service;
use partner_core::{PartnerId, Tenant};
use serde_json::Value;
use test_support::http::{Reply, Upstream, json, nowhere, send, try_send};
use test_support::program::{PATIENCE, eventually, full_pipe, lines_of, signal};

use crate::fixture::{Installation, POOL};

/// The demo partner's endpoint belongs to the developer: a check keeps its URL, and the demo partner's events still go there.
// rule: cli.sandbox.check-event
#[tokio::test]
async fn check_leaves_endpoint_of_demo_partner_unchanged() {
    let installation = Installation::in_a_file();
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    own.set_nonblocking(true).unwrap();
    let words = ["sandbox", "--dir", ".", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let webhook = format!(
        "[[partners]]\nid = \"demo\"\nname = \"Demo\"\n[partners.pools.webhook]\nurl = \"http://{}/mine\"\n",
        own.local_addr().unwrap()
    );
    assert_eq!(installation.apply(&webhook, &[]).code, 0);
    assert_eq!(installation.run(&words).code, 0);
    assert!(
        own.accept().is_ok(),
        "the demo partner's events still go to its endpoint"
    );
    let again = installation.apply(&webhook, &[]);
    assert!(again.out.starts_with("nothing to change"), "{again:?}");
}

// rule: cli.sandbox.check, cli.json
#[test]
fn failed_check_names_step_and_exits_1() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", "s", "--check"];
    let first = installation.json(&words);
    assert_eq!(first["ok"], true, "{first}");
    assert_eq!(first["steps"].as_array().unwrap().len(), 18);
    let suspended = "[[partners]]\nid = \"demo\"\nname = \"Demo\"\nstatus = \"suspended\"\n";
    let done = installation.apply(suspended, &["--database-url", "sqlite://s/penstock.db"]);
    assert_eq!(done.code, 0, "{done:?}");
    let failed = installation.run(&words);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("✗ discover"), "{failed:?}");
    assert!(failed.out.contains("organization_suspended"), "{failed:?}");
}

/// A sandbox on free ports, and the lines that it prints.
pub(crate) struct Sandbox {
    process: Child,
    lines: Receiver<String>,
    log: Receiver<String>,
    printed: Vec<String>,
}

impl Sandbox {
    /// Starts a sandbox in the folder `s` and waits until both services listen. Its receiver of events gets a port of its own, because
    /// other sandboxes of these tests would take the usual one while this one is stopped.
    pub(crate) fn start(installation: &Installation, more: &[&str]) -> Self {
        Self::start_with(installation, more, &[])
    }

    fn start_with(installation: &Installation, more: &[&str], settings: &[(&str, &str)]) -> Self {
        static USUAL: OnceLock<Option<TcpListener>> = OnceLock::new();
        USUAL.get_or_init(|| TcpListener::bind("127.0.0.1:9999").ok());
        let words = [
            "sandbox",
            "--dir",
            "s",
            "--pools-port",
            "0",
            "--gate-port",
            "0",
            "--widget-port",
            "0",
            "--demo-port",
            "0",
        ];
        let mut process = installation
            .program(&[&words, more].concat())
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        let log = lines_of(process.stderr.take().unwrap());
        let printed = Vec::new();
        let mut started = Self {
            process,
            lines,
            log,
            printed,
        };
        started.read_until("pools-service listening on http://127.0.0.1:");
        started
    }

    /// Reads lines until one contains `text`, and returns that line.
    pub(crate) fn read_until(&mut self, text: &str) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .expect("the sandbox should print this line");
            self.printed.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Reads the log until a line contains `text`, and returns that line.
    fn logged(&self, text: &str) -> String {
        let mut lines = std::iter::from_fn(|| self.log.recv_timeout(PATIENCE).ok());
        let found = lines.find(|line| line.contains(text));
        found.expect("the sandbox should log this line")
    }

    /// The gate's address.
    pub(crate) fn gate(&self) -> &str {
        let line = |line: &'_ String| line.starts_with("gate-service listening on ");
        let line = self.printed.iter().find(|printed| line(printed));
        line.and_then(|line| line.rsplit('/').next()).unwrap()
    }

    /// The origin of the demo shop.
    fn shop(&self) -> &str {
        let mut words = self.printed.iter().flat_map(|line| line.split(' '));
        words.find_map(|word| word.strip_suffix("/demo")).unwrap()
    }

    pub(crate) fn stop(mut self) {
        signal(self.process.id(), "-TERM");
        let status = eventually(|| self.process.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // A process that has ended cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn demo_of(installation: &Installation) -> Value {
    let kept = std::fs::read_to_string(installation.folder.path().join("s/demo.json")).unwrap();
    serde_json::from_str(&kept).unwrap()
}

/// One start, which prints and serves everything that a developer needs.
// rule: cli.sandbox.start, cli.sandbox.demo-shop, cli.sandbox.events, cli.sandbox.loopback, openapi.examples, throttle.create-session-of-partner
#[test]
fn sandbox_prints_credentials_and_serves_shop_services_and_events() {
    let installation = Installation::in_a_file();
    let mut sandbox = Sandbox::start(&installation, &[]);
    let demo = demo_of(&installation);
    assert_prints_credentials_and_calls(&sandbox, &demo);
    assert_shop_serves_no_secret(&sandbox, &demo);
    assert_takes_example_order(&sandbox, &demo);
    assert_allows_every_port_of_this_machine(&sandbox, &demo);
    let session = create_sessions_up_to_limit(&sandbox, &demo);
    let line = sandbox.read_until(&session);
    let shown = format!("event gate_session.created {session} both signatures verified");
    assert!(line.ends_with(&shown), "{line}");
    sandbox.stop();
    // The partner keeps its port, so events that were not delivered arrive after a restart.
    assert!(demo["events_port"].as_u64().unwrap() > 0);
    let raised = [("PENSTOCK_THROTTLE_CREATE_SESSION", "250/60s")];
    let sandbox = Sandbox::start_with(&installation, &[], &raised);
    let created = create_session(&sandbox, &demo, "raised");
    assert!(
        created.contains("x-ratelimit-limit-short: 250\r\n"),
        "{created}"
    );
    sandbox.stop();
}

/// The start prints at most twelve lines.
fn assert_prints_credentials_and_calls(sandbox: &Sandbox, demo: &Value) {
    let printed = &sandbox.printed;
    assert!(printed.len() <= 12, "{printed:#?}");
    // The page that a newcomer opens first.
    assert!(printed[1].starts_with("  demo shop "), "{printed:#?}");
    let text = printed.join("\n");
    for credential in ["secret_key", "publishable_key", "webhook_secret"] {
        assert!(text.contains(demo[credential].as_str().unwrap()), "{text}");
    }
    assert!(text.contains("/docs"), "{text}");
    let calls = printed.iter().filter(|line| line.starts_with("curl "));
    assert_eq!(calls.count(), 2, "{text}");
    assert!(printed[printed.len() - 2].starts_with("gate-service listening on http://127.0.0.1:"));
}

fn assert_shop_serves_no_secret(sandbox: &Sandbox, demo: &Value) {
    let page = sandbox.shop();
    let order = r#"{"amount": "100.00", "currency": "EUR"}"#;
    let order = ["-d", order, "-H", "Content-Type: application/json"];
    let served: String = [
        ("", &[][..]),
        ("/sessions", &order),
        ("/events?wait=5", &[]),
    ]
    .into_iter()
    .map(|(path, more)| {
        let address = format!("{page}/demo{path}");
        let mut curl = Command::new("curl");
        let run = curl.args(["-sS", &address]).args(more).output().unwrap();
        String::from_utf8(run.stdout).unwrap()
    })
    .collect();
    let text = |name: &str| demo[name].as_str().unwrap();
    assert!(served.contains("<!doctype html>"), "{served}");
    assert!(served.contains(text("publishable_key")), "{served}");
    assert!(served.contains("gs_test_"), "{served}");
    for name in ["secret_key", "webhook_secret"] {
        assert!(!served.contains(text(name)), "{name}: {served}");
    }
}

/// Orders what the published document shows as an example.
fn assert_takes_example_order(sandbox: &Sandbox, demo: &Value) {
    let last = sandbox.printed.last();
    let address = last.and_then(|line| line.rsplit('/').next()).unwrap();
    let (_, document) = exchange(address, "GET /openapi/pools-v1.json", &[], "");
    let operation = &document["paths"]["/v1/pools/{id}/quote"]["post"];
    let example = &operation["requestBody"]["content"]["application/json"]["example"];
    let pool = operation["parameters"][0]["example"].as_str().unwrap();
    let bearer = format!("Bearer {}", demo["secret_key"].as_str().unwrap());
    let headers = [("Authorization", bearer.as_str())];
    let line = format!("POST /v1/pools/{pool}/quote");
    let (status, quote) = exchange(address, &line, &headers, &example.to_string());
    assert_eq!(status, 200, "{example}: {quote}");
    assert_eq!(quote["available"], true, "{quote}");
    assert_eq!(quote["executable"], true, "{quote}");
    assert_eq!(
        example["cryptoNetwork"], example["destNetwork"],
        "the example's network is one of the pool's networks"
    );
}

/// A developer's own page on any port may start the widget, and sessions may lead back to it.
fn assert_allows_every_port_of_this_machine(sandbox: &Sandbox, demo: &Value) {
    let bearer = format!("Bearer {}", demo["secret_key"].as_str().unwrap());
    for (page, allowed) in [
        ("http://127.0.0.1:49300", true),
        ("http://localhost:5173", true),
        ("https://localhost:8443", true),
        ("http://127.0.0.2:49300", false),
        ("https://other.example", false),
    ] {
        let (started, created) = if allowed { (200, 201) } else { (403, 400) };
        assert_eq!(started_from(sandbox, demo, page), started, "{page}");
        let body = format!(r#"{{"amount":"1","currency":"EUR","return_url":"{page}/done"}}"#);
        let headers = [("Authorization", &*bearer), ("Idempotency-Key", page)];
        let (status, session) = exchange(sandbox.gate(), "POST /v1/gate_sessions", &headers, &body);
        assert_eq!(status, created, "{page}: {session}");
    }
}

fn create_session(sandbox: &Sandbox, demo: &Value, key: &str) -> String {
    let bearer = format!("Bearer {}", demo["secret_key"].as_str().unwrap());
    let body = r#"{"amount":"1","currency":"EUR","return_url":"https://shop.example/done"}"#;
    let headers = [("Authorization", &*bearer), ("Idempotency-Key", key)];
    send(sandbox.gate(), "POST /v1/gate_sessions", &headers, body)
}

/// Creates sessions until the documented limit refuses one, and returns the id of the last one. A new window may open meanwhile.
fn create_sessions_up_to_limit(sandbox: &Sandbox, demo: &Value) -> String {
    let mut last = String::new();
    for number in 0..30 {
        let created = create_session(sandbox, demo, &format!("key-{number}"));
        assert!(
            created.contains("x-ratelimit-limit-short: 10\r\n"),
            "{created}"
        );
        if created.starts_with("HTTP/1.1 429 ") {
            assert!(created.contains("\r\nretry-after-short: "), "{created}");
            return last;
        }
        assert!(created.starts_with("HTTP/1.1 201 "), "{created}");
        json(&created)["id"].as_str().unwrap().clone_into(&mut last);
    }
    panic!("the sandbox does not limit creates");
}

// rule: cli.sandbox.warnings
#[test]
fn sandbox_logs_each_kind_of_warning() {
    let installation = Installation::in_a_file();
    let sandbox = Sandbox::start(&installation, &[]);
    let demo = demo_of(&installation);
    let bearer = format!("Bearer {}", demo["secret_key"].as_str().unwrap());
    let headers = [("Authorization", &*bearer), ("Idempotency-Key", "k")];
    let create = |amount: &str| {
        let body = format!(
            r#"{{"amount":"{amount}","currency":"EUR","return_url":"https://shop.example/done"}}"#
        );
        exchange(sandbox.gate(), "POST /v1/gate_sessions", &headers, &body)
    };
    assert_eq!(create("100.101").0, 201);
    let line = sandbox.logged("warning.code=amount_precision");
    assert!(line.contains("WARN A response carries a warning"), "{line}");
    assert_eq!(create("100.10").0, 201);
    sandbox.logged("warning.code=idempotency_body_ignored");
    let list = "GET /v1/gate_sessions?from=2026-05-25";
    assert_eq!(exchange(sandbox.gate(), list, &headers[..1], "").0, 200);
    sandbox.logged("warning.code=unknown_parameter");
    sandbox.stop();
}

/// Orders in the demo shop. Returns what its page gets.
fn order(sandbox: &Sandbox) -> Value {
    let address = sandbox.shop().rsplit('/').next().unwrap();
    let body = r#"{"amount": "100.00", "currency": "EUR"}"#;
    let (status, created) = exchange(address, "POST /demo/sessions", &[], body);
    assert_eq!(status, 201, "{created}");
    created
}

/// The demo shop gets the events as well.
// rule: cli.sandbox.events-to
#[test]
fn events_are_sent_on_to_the_developers_server_which_decides_about_them() {
    let installation = Installation::in_a_file();
    let again = [("Retry-After", "1")];
    let own = Upstream::giving(&[Reply::with(503, &again, ""), Reply::with(200, &[], "")]);
    let url = format!("{}/webhooks?shop=1", own.url());
    let mut sandbox = Sandbox::start(&installation, &["--events-to", &url]);
    let created = order(&sandbox);
    assert_eq!(created["events_to"], Value::Null);
    let session = created["session_id"].as_str().unwrap();
    for status in [503, 200] {
        let line = sandbox.read_until(session);
        let shown = format!("both signatures verified, {status} from {url}");
        assert!(line.ends_with(&shown), "{line}");
    }
    let received = own.take();
    let [first, second] = received.as_slice() else {
        panic!("{received:?}");
    };
    assert_eq!(first.line(), "POST /webhooks?shop=1");
    assert_eq!(first.body, second.body);
    for name in [
        "webhook-id",
        "gate-signature",
        "webhook-signature",
        "traceparent",
    ] {
        assert!(!first.header(name).is_empty(), "{name}: {}", first.head);
    }
    sandbox.stop();
    let refused = installation.run(&["sandbox", "--events-to", "https://127.0.0.1:1/"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

// rule: cli.sandbox.demo-shop
#[test]
fn demo_shop_names_the_endpoint_that_gets_the_events_in_its_place() {
    let installation = Installation::in_a_file();
    let sandbox = Sandbox::start(&installation, &[]);
    assert_eq!(order(&sandbox)["events_to"], Value::Null);
    let url = format!("http://{}/mine", nowhere());
    let webhook = format!(
        "[[partners]]\nid = \"demo\"\nname = \"Demo Wallet\"\n[partners.gate.webhook]\nurl = \"{url}\"\n"
    );
    let applied = installation.apply(&webhook, &["--database-url", "sqlite://s/penstock.db"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(order(&sandbox)["events_to"], url);
    let address = sandbox.shop().rsplit('/').next().unwrap();
    let (status, read) = exchange(address, "GET /demo/events?after=0&wait=0", &[], "");
    assert_eq!((status, &read["events_to"]), (200, &Value::from(url)));
    sandbox.stop();
}

// rule: cli.sandbox.start
#[test]
fn port_in_use_is_reported_with_its_flag() {
    let installation = Installation::in_a_file();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (flag, other) in [
        ("--pools-port", "--gate-port"),
        ("--gate-port", "--pools-port"),
    ] {
        let refused = installation.run(&["sandbox", flag, &port, other, "0"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        let remedy = format!("choose another port with {flag}\n");
        assert!(refused.err.ends_with(&remedy), "{refused:?}");
    }
    let unknown = installation.run(&["sandbox", "--port", "5000"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    let flags = "--pools-port and --gate-port";
    assert!(unknown.err.contains(flags), "{unknown:?}");
}

// rule: cli.sandbox.check
#[test]
fn check_without_folder_removes_its_files() {
    let installation = Installation::in_a_file();
    let temporary = installation.folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let run = installation
        .program(&["sandbox", "--check"])
        .env("TMPDIR", &temporary)
        .output();
    let done = crate::fixture::ended(run.unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(!installation.folder.path().join("penstock-data").exists());
}

// rule: program.log-never-blocks, program.shutdown
#[test]
fn sandbox_serves_and_stops_although_its_output_is_full_from_the_start() {
    let installation = Installation::in_a_file();
    let address = nowhere();
    let (_reader, out, err) = full_pipe();
    let mut words = vec!["sandbox", "--dir", "s"];
    for flag in ["--gate-port", "--widget-port", "--demo-port"] {
        words.extend([flag, "0"]);
    }
    let mut program = installation.program(&words);
    program.env("PENSTOCK_POOLS_LISTEN", address.to_string());
    let mut process = program.stdout(out).stderr(err).spawn().unwrap();
    eventually(|| TcpStream::connect(address).ok().map(drop));
    // A sandbox that waits for its reader never responds.
    let response = try_send(&address.to_string(), "GET /health", &[], "");
    if response.is_err() {
        process.kill().unwrap();
    }
    let response = response.expect("a response although the output is full");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    signal(process.id(), "-TERM");
    let status = eventually(|| process.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

/// Sends one request on its own connection. Returns the status and the JSON body of the response.
fn exchange(address: &str, line: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let response = send(address, line, headers, body);
    let status = response.get(9..12).unwrap().parse().unwrap();
    (status, json(&response))
}

/// The developer's changes to the partner are kept.
// rule: cli.sandbox.demo-kept
#[tokio::test]
async fn older_demo_partner_gets_only_the_gate() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", ".", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let kept = std::fs::read_to_string(installation.folder.path().join("demo.json")).unwrap();
    let demo: Value = serde_json::from_str(&kept).unwrap();
    std::fs::remove_file(installation.folder.path().join("penstock.db")).unwrap();
    let pool = POOL.replace("[\"tron\"]", "[\"tron\", \"ethereum\"]");
    let older = format!(
        "{pool}[[partners]]\nid = \"demo\"\nname = \"Mine\"\n\
         [partners.pools]\nenabled = true\nkyc = \"approved\"\ntier = \"gold\"\nbalance_gate = true\nvelocity_cap_usdt = \"none\"\nallowed = [\"EUR-USDT\"]\n\
         [[partners.keys]]\nkind = \"secret\"\nkey = {}\n[[partners.keys]]\nkind = \"publishable\"\nkey = {}\n",
        demo["secret_key"], demo["publishable_key"]
    );
    assert_eq!(installation.apply(&older, &[]).code, 0);
    let done = installation.run(&words);
    assert_eq!(done.code, 0, "{done:?}");
    let again = installation.apply(&older, &["--dry-run"]);
    assert!(again.out.starts_with("nothing to change"), "{again:?}");
    let base = installation.open().await;
    let mut tx = base.store.provision_begin("look").await.unwrap();
    let who = Tenant {
        partner: PartnerId::parse("demo").unwrap(),
        mode: Mode::Test,
    };
    assert!(tx.gate_profile_get(&who).await.unwrap().unwrap().enabled);
    assert!(
        tx.endpoint_get(&who, Service::Gate)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        tx.endpoint_get(&who, Service::Pools)
            .await
            .unwrap()
            .is_none()
    );
}

// rule: cli.sandbox.demo-kept
#[test]
fn lost_demo_credentials_are_replaced() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", "s", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    let folder = installation.folder.path().join("s");
    std::fs::remove_file(folder.join("demo.json")).unwrap();
    assert_eq!(
        installation.run(&words).code,
        0,
        "the same partner has new keys"
    );
    std::fs::remove_file(folder.join("penstock.db")).unwrap();
    assert_eq!(
        installation.run(&words).code,
        0,
        "a new database gets the same keys"
    );
    std::fs::write(folder.join("demo.json"), "{}").unwrap();
    let done = installation.run(&words);
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("demo.json: no valid demo credentials"),
        "{done:?}"
    );
}

/// The status of a start of the widget from a page.
fn started_from(sandbox: &Sandbox, demo: &Value, page: &str) -> u16 {
    let bearer = format!("Bearer {}", demo["publishable_key"].as_str().unwrap());
    let headers = [("Authorization", &*bearer), ("Origin", page)];
    exchange(sandbox.gate(), "POST /v1/embed/bootstrap", &headers, "").0
}

// rule: cli.sandbox.demo-kept
#[test]
fn page_of_earlier_start_is_no_longer_allowed() {
    let installation = Installation::in_a_file();
    let words = ["sandbox", "--dir", "s", "--check"];
    assert_eq!(installation.run(&words).code, 0);
    // The developer's own list does not allow every port of this machine.
    let own = "[[partners]]\nid = \"demo\"\nname = \"Demo Wallet\"\n\
        [partners.gate]\nenabled = true\nallowed_domains = [\"https://shop.example\"]\n";
    let done = installation.apply(own, &["--database-url", "sqlite://s/penstock.db"]);
    assert_eq!(done.code, 0, "{done:?}");
    let first = Sandbox::start(&installation, &[]);
    let demo = demo_of(&installation);
    let earlier = first.shop().to_owned();
    assert_eq!(started_from(&first, &demo, &earlier), 200);
    // The next sandbox cannot get this port: it is taken here, unless another program has taken it already.
    let port = earlier.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    first.stop();
    let _taken = TcpListener::bind(("127.0.0.1", port)).ok();
    let second = Sandbox::start(&installation, &[]);
    assert_eq!(started_from(&second, &demo, second.shop()), 200);
    assert_eq!(started_from(&second, &demo, &earlier), 403);
    assert_eq!(started_from(&second, &demo, "https://shop.example"), 200);
    second.stop();
}
