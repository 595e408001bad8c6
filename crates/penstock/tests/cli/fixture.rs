//! An installation in its own folder, and runs of the program on it.

use std::ffi::OsString;
use std::process::{Command, Output};
use std::sync::Arc;

use kernel::Mode;
use partner_core::webhooks::target::AllowPrivate;
use partner_core::{PartnerId, Tenant};
use provisioning::apply::{ApplyDocument, ApplyError, ApplyMode, Loosening, Report};
use provisioning::{Document, Setting, parse_document};
use runtime::{Config, OpenedBase, Ports, Runtime, Sources};
use serde_json::Value;
use tempfile::TempDir;
use test_support::test_database::{Database, StoreKind};

/// The master key of databases on a server.
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A folder with an embedded database, or with the URL of a database on a server.
pub(crate) struct Installation {
    pub(crate) folder: TempDir,
    pub(crate) server: Option<Database>,
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).expect("stdout should be one JSON value")
    }

    /// The error of a run in JSON mode.
    pub(crate) fn error(&self) -> String {
        let value: Value =
            serde_json::from_str(&self.err).expect("stderr should be one JSON object");
        value["error"].as_str().expect("a text").to_owned()
    }
}

impl Installation {
    /// An installation on the store that this test run uses.
    pub(crate) fn new() -> Self {
        match StoreKind::of_run() {
            StoreKind::Sqlite => Self::in_a_file(),
            StoreKind::Postgres => Self::on_a_server(Database::make_now()),
        }
    }

    /// An installation on the embedded store in every test run, for properties of files.
    pub(crate) fn in_a_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = None;
        Self { folder, server }
    }

    /// An installation on a server, with the role for operator commands.
    pub(crate) fn on_a_server(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Some(database);
        Self { folder, server }
    }

    fn url_of_file(&self) -> String {
        format!("sqlite://{}/penstock.db", self.folder.path().display())
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let url = match &self.server {
            None => self.url_of_file(),
            Some(database) => database.operating(),
        };
        let key = self.server.as_ref().map(|_| ("PENSTOCK_MASTER_KEY", KEY));
        let given = [("PENSTOCK_DATABASE_URL", url.as_str())]
            .into_iter()
            .chain(key);
        given
            .map(|(name, text)| (name.into(), text.into()))
            .collect()
    }

    /// The program in an environment without this machine's settings.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command
            .args(words)
            .env_clear()
            .envs(self.environment())
            .current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Done {
        ended(self.program(words).output().unwrap())
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        self.run(&[words, &["--output", "json"]].concat()).json()
    }

    /// Writes a declarative file and applies it.
    pub(crate) fn apply(&self, text: &str, words: &[&str]) -> Done {
        std::fs::write(self.folder.path().join("file.toml"), text).unwrap();
        self.run(&[&["apply", "-f", "file.toml"], words].concat())
    }

    pub(crate) fn database_exists(&self) -> bool {
        self.folder.path().join("penstock.db").exists()
    }

    /// Opens the database in this process.
    pub(crate) async fn open(&self) -> OpenedBase {
        Self::opened(self.environment()).await
    }

    /// Opens the database in this process with these master keys.
    pub(crate) async fn open_with(&self, keys: &str) -> OpenedBase {
        let mut environment = self.environment();
        environment.retain(|(name, _)| name != "PENSTOCK_MASTER_KEY");
        environment.push(("PENSTOCK_MASTER_KEY".into(), keys.into()));
        Self::opened(environment).await
    }

    async fn opened(environment: Vec<(OsString, OsString)>) -> OpenedBase {
        let config = config(environment);
        OpenedBase::open(config, Ports::of_machine()).await.unwrap()
    }

    /// Opens the database in this process with these master keys as a service does, on a server under the role of services.
    pub(crate) async fn serve_with(&self, keys: &str) -> Runtime {
        let url = match &self.server {
            None => self.url_of_file(),
            Some(database) => database.serving(),
        };
        let given = [
            ("PENSTOCK_DATABASE_URL", url.as_str()),
            ("PENSTOCK_MASTER_KEY", keys),
            ("PENSTOCK_GATE_LISTEN", "127.0.0.1:0"),
            ("PENSTOCK_WIDGET_LISTEN", "127.0.0.1:0"),
        ];
        let variable = |(name, text): (&str, &str)| (OsString::from(name), OsString::from(text));
        let config = config(given.into_iter().map(variable).collect());
        Runtime::open(config, Ports::of_machine()).await.unwrap()
    }
}

fn config(environment: Vec<(OsString, OsString)>) -> Config {
    let sources = Sources {
        environment,
        ..Sources::default()
    };
    Config::load(&sources).unwrap().config
}

pub(crate) fn ended(output: Output) -> Done {
    Done {
        code: output
            .status
            .code()
            .expect("the program should not be killed by a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn read(text: &str) -> Document {
    let setting = Setting {
        mode: Mode::Test,
        allow_private: AllowPrivate::Loopback,
    };
    parse_document(text, setting).unwrap()
}

pub(crate) async fn apply(base: &OpenedBase, text: &str) -> Result<Report, ApplyError> {
    let provisioning = ApplyDocument {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
        mode: Mode::Test,
    };
    provisioning
        .apply(&read(text), ApplyMode::Commit, Loosening::Refuse)
        .await
}

pub(crate) fn acme() -> Tenant {
    Tenant {
        partner: PartnerId::parse("acme").unwrap(),
        mode: Mode::Test,
    }
}

pub(crate) const POOL: &str =
    "[[pools]]\nid = \"EUR-USDT\"\nnetworks = [\"tron\"]\navailable = true\n";
pub(crate) const ACME: &str = "[[partners]]\nid = \"acme\"\nname = \"Acme\"\n";
/// The product of a partner without keys, who must have one.
pub(crate) const SHOP: &str = "[partners.gate]\nenabled = true\n";
/// The balance gate, which a file must contain if it enables pools.
pub(crate) const GATED: &str = "balance_gate = true\n";
pub(crate) const KEYS: &str =
    "[[partners.keys]]\nkind = \"secret\"\n[[partners.keys]]\nkind = \"publishable\"\n";
