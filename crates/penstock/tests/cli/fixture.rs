//! An installation in a folder of its own, and the program that works on it.

use std::ffi::OsString;
use std::process::{Command, Output};
use std::sync::Arc;

use kernel::Mode;
use partner_core::webhooks::target::AllowPrivate;
use partner_core::{PartnerId, Tenant};
use provisioning::apply::{ApplyDocument, ApplyError, ApplyMode, Loosening, Report};
use provisioning::{Document, Setting, parse_document};
use runtime::{Config, OpenedBase, Ports, Sources};
use serde_json::Value;
use tempfile::TempDir;
use test_support::test_database::{Database, StoreKind};

/// The master key of a server's databases.
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A folder, with a database in it or on a server.
pub(crate) struct Installation {
    pub(crate) folder: TempDir,
    pub(crate) server: Option<Database>,
}

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).expect("one JSON value on stdout")
    }

    /// The error of a run in JSON mode.
    pub(crate) fn error(&self) -> String {
        let value: Value = serde_json::from_str(&self.err).expect("one JSON object on stderr");
        value["error"].as_str().expect("a text").to_owned()
    }
}

impl Installation {
    /// On the store of this run.
    pub(crate) fn new() -> Self {
        match StoreKind::of_run() {
            StoreKind::Sqlite => Self::in_a_file(),
            StoreKind::Postgres => Self::on_a_server(Database::make_now()),
        }
    }

    /// On the embedded store, whatever the run's: for what is true of files alone.
    pub(crate) fn in_a_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = None;
        Self { folder, server }
    }

    /// On a database of a server, as the role that operates.
    pub(crate) fn on_a_server(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Some(database);
        Self { folder, server }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let url = match &self.server {
            None => format!("sqlite://{}/penstock.db", self.folder.path().display()),
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

    /// The program, in an environment that knows nothing of this machine's settings.
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

    /// The same with these master keys.
    pub(crate) async fn open_with(&self, keys: &str) -> OpenedBase {
        let mut environment = self.environment();
        environment.retain(|(name, _)| name != "PENSTOCK_MASTER_KEY");
        environment.push(("PENSTOCK_MASTER_KEY".into(), keys.into()));
        Self::opened(environment).await
    }

    async fn opened(environment: Vec<(OsString, OsString)>) -> OpenedBase {
        let sources = Sources {
            environment,
            ..Sources::default()
        };
        let config = Config::load(&sources).unwrap().config;
        OpenedBase::open(config, Ports::of_machine()).await.unwrap()
    }
}

pub(crate) fn ended(output: Output) -> Done {
    Done {
        code: output.status.code().expect("not killed"),
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
/// The balance gate, which must be written while pools are enabled.
pub(crate) const GATED: &str = "balance_gate = true\n";
pub(crate) const KEYS: &str =
    "[[partners.keys]]\nkind = \"secret\"\n[[partners.keys]]\nkind = \"publishable\"\n";
