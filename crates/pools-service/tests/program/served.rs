//! The program as a child process in its own folder: starts, provisions, calls and ends it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use kernel::{Amount, Asset, Mode, Timestamp};
use partner_core::usecases::keys::Keys;
use partner_core::{PartnerId, Tenant};
use pools_core::usecases::credit_account::{Credit, CreditAccount};
use provisioning::apply::{ApplyDocument, ApplyMode, Loosening};
use provisioning::{Setting, parse_document};
use runtime::{Config, OpenedBase, Ports, Sources};
use secrecy::ExposeSecret;
use serde_json::Value;
pub(crate) use test_support::http::{get, json};

/// The program in a folder of its own, with these variables as its whole environment.
pub(crate) fn program(folder: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pools-service"));
    command.current_dir(folder).env_clear();
    for (name, text) in variables {
        command.env(variable(name), text);
    }
    command
}

fn variable(name: &str) -> String {
    if name == "RUST_LOG" {
        return name.to_owned();
    }
    format!("PENSTOCK_{name}")
}

pub(crate) fn output(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut program = program(folder, variables);
    program.args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A running service and its address.
pub(crate) struct Served {
    process: Child,
    pub(crate) address: String,
    /// The log so far. It is read continuously, so that the program never blocks on a full pipe.
    logged: Arc<Mutex<String>>,
    reading: JoinHandle<()>,
}

impl Served {
    pub(crate) fn start(folder: &Path, variables: &[(&str, &str)]) -> Self {
        Self::start_program(program(folder, variables))
    }

    /// Starts a service that survives failed writes. Its writes fail after its files are limited, as on a broken disk.
    pub(crate) fn start_to_be_limited(folder: &Path) -> Self {
        Self::start_after(folder, "trap '' XFSZ", &[])
    }

    /// Starts a service after a command of the shell, which changes what the service may use.
    pub(crate) fn start_after(folder: &Path, command: &str, variables: &[(&str, &str)]) -> Self {
        let script = format!("{command}; exec \"$0\"");
        let mut shell = Command::new("sh");
        let words = ["-c", &script, env!("CARGO_BIN_EXE_pools-service")];
        shell.args(words).current_dir(folder).env_clear();
        for (name, text) in variables {
            shell.env(variable(name), text);
        }
        Self::start_program(shell)
    }

    /// Limits the size of the files that the service can write: in bytes, or `unlimited`.
    pub(crate) fn limit_files(&self, bytes: &str) {
        self.limit(&format!("--fsize={bytes}:"));
    }

    /// Changes a soft limit of the service, as the program `prlimit` writes it.
    pub(crate) fn limit(&self, limit: &str) {
        let process = self.id();
        let limiting = Command::new("prlimit")
            .args(["--pid", &process, limit])
            .status();
        assert!(limiting.unwrap().success());
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> String {
        self.process.id().to_string()
    }

    fn start_program(mut program: Command) -> Self {
        program.env("PENSTOCK_POOLS_LISTEN", "127.0.0.1:0");
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = program.spawn().unwrap();
        let logged = Arc::new(Mutex::new(String::new()));
        let reading = read(process.stderr.take().unwrap(), Arc::clone(&logged));
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("pools-service listening on http://")
            .unwrap_or_else(|| panic!("{line:?}: {}", logged.lock().unwrap()));
        Self {
            process,
            address: address.trim_end().to_owned(),
            logged,
            reading,
        }
    }

    pub(crate) fn logged(&self) -> String {
        self.logged.lock().unwrap().clone()
    }

    pub(crate) fn get(&self, path: &str) -> String {
        get(&self.address, path)
    }

    /// Sends a request with these headers and this body.
    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        test_support::http::send(&self.address, line, headers, body)
    }

    /// The address of the metrics, taken from the log.
    pub(crate) fn metrics_address(&self) -> String {
        let found = || {
            let logged = self.logged();
            let line = logged
                .lines()
                .find(|line| line.contains("Serving metrics"))?;
            let line: Value = serde_json::from_str(line).unwrap();
            Some(line["metrics.address"].as_str().unwrap().to_owned())
        };
        eventually(found)
    }

    /// Sends a signal. Returns the exit code and the log.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.id();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        let code = self.process.wait().unwrap().code();
        self.reading.join().unwrap();
        (code, self.logged.lock().unwrap().clone())
    }
}

fn read(mut from: ChildStderr, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut part = [0; 8192];
        while let Ok(length @ 1..) = from.read(&mut part) {
            let part = String::from_utf8_lossy(&part[..length]);
            into.lock().unwrap().push_str(&part);
        }
    })
}

/// Repeats `ask` for at least a minute until it returns a value. A debug build on a busy machine is slow.
pub(crate) fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = ask() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no value after a minute");
}

fn configured(variables: &[(&str, &str)]) -> Config {
    let environment = variables
        .iter()
        .map(|(name, text)| (variable(name).into(), (*text).into()));
    let sources = Sources {
        environment: environment.collect(),
        ..Sources::default()
    };
    Config::load(&sources).unwrap().config
}

/// Opens a database in this process.
pub(crate) async fn open(variables: &[(&str, &str)]) -> OpenedBase {
    let config = configured(variables);
    OpenedBase::open(config, Ports::of_machine()).await.unwrap()
}

/// Applies a declarative file to the database of the folder or of `variables`, and credits the partner `acme`. Returns the
/// generated keys.
pub(crate) fn provision(folder: &Path, variables: &[(&str, &str)], file: &str) -> Vec<String> {
    let database = format!("sqlite://{}/penstock-data/penstock.db", folder.display());
    let given = [&[("DATABASE_URL", &*database)], variables].concat();
    let config = configured(&given);
    let (mode, allow_private) = (config.mode, config.webhook_allow_private);
    let document = parse_document(
        file,
        Setting {
            mode,
            allow_private,
        },
    )
    .unwrap();
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(async {
        let base = OpenedBase::open(config, Ports::of_machine()).await.unwrap();
        let provisioning = ApplyDocument {
            store: base.store.clone(),
            sealer: Arc::clone(&base.sealer),
            entropy: Arc::clone(&base.entropy),
            mode,
        };
        let applied = provisioning
            .apply(&document, ApplyMode::Commit, Loosening::Refuse)
            .await
            .unwrap();
        let crediting = CreditAccount {
            store: base.store.clone(),
            entropy: Arc::clone(&base.entropy),
        };
        let partner = PartnerId::parse("acme").unwrap();
        let credit = Credit {
            amount: Amount::parse("100000.00", Asset::parse("EUR").unwrap()).unwrap(),
            network: None,
            reference: "deposit".to_owned(),
        };
        let who = Tenant { partner, mode };
        crediting.credit(&who, &credit).await.unwrap();
        base.store.close().await;
        let keys = applied.created_keys.into_iter();
        keys.map(|created| created.key.expose_secret().to_owned())
            .collect()
    })
}

/// The last uses of the keys of the partner `acme`, as an operator sees them.
pub(crate) fn last_uses(folder: &Path) -> Vec<Option<Timestamp>> {
    let database = format!("sqlite://{}/penstock-data/penstock.db", folder.display());
    let tokio = tokio::runtime::Runtime::new().unwrap();
    tokio.block_on(async {
        let base = open(&[("DATABASE_URL", &database)]).await;
        let keys = Keys {
            store: base.store.clone(),
            sealer: Arc::clone(&base.sealer),
            entropy: Arc::clone(&base.entropy),
            mode: Mode::Test,
        };
        let partner = PartnerId::parse("acme").unwrap();
        let listed = keys.list(&partner).await.unwrap();
        base.store.close().await;
        listed.into_iter().map(|key| key.last_used).collect()
    })
}

/// A declarative file for the partner `acme` with this key and, optionally, this webhook.
pub(crate) fn file_for_acme(key: &str, webhook: Option<(&str, &str)>) -> String {
    let webhook = webhook.map_or(String::new(), |(url, secret)| {
        format!("[partners.pools.webhook]\nurl = \"{url}\"\nsecret = \"{secret}\"\n")
    });
    format!(
        r#"
        [[pools]]
        id = "EUR-USDT"
        networks = ["tron", "ethereum"]
        available = true

        [[partners]]
        id = "acme"
        name = "Acme"
        status = "active"

        [partners.pools]
        enabled = true
        access = "active"
        kyc = "approved"
        tier = "standard"
        allowed = ["EUR-USDT"]
        balance_gate = true
        velocity_cap_usdt = "5000"

        {webhook}

        [[partners.keys]]
        kind = "secret"
        key = "{key}"
        "#
    )
}

/// Creates a quote for a purchase of this many euros, and returns its id.
pub(crate) fn quote(served: &Served, headers: &[(&str, &str)], euros: &str) -> String {
    let body = format!(
        r#"{{"side":"on_ramp","fiatCurrency":"EUR","cryptoCurrency":"USDT","amount":"{euros}","destAddress":"0x52908400098527886E0F7030069857D2E4169EE7"}}"#
    );
    eventually(|| {
        let response = served.send("POST /v1/pools/EUR-USDT/quote", headers, &body);
        // On a busy machine the rates or the engine may respond too late.
        if response.starts_with("HTTP/1.1 503") {
            return None;
        }
        let quote = json(&response)["quoteId"].as_str().map(str::to_owned);
        Some(quote.unwrap_or_else(|| panic!("{response}")))
    })
}

/// Executes a quote.
pub(crate) fn transact(served: &Served, headers: &[(&str, &str)], quote: &str) -> Value {
    let key = format!("key-of-{quote}");
    let with_key = [headers, &[("Idempotency-Key", &*key)]].concat();
    let body = format!(r#"{{"quoteId":"{quote}"}}"#);
    json(&served.send("POST /v1/pools/EUR-USDT/transact", &with_key, &body))
}
