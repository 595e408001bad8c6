//! The program, its database and calls of its API.

use std::path::Path;
use std::sync::Arc;

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
use test_support::program::{Program, variable};
pub(crate) use test_support::program::{Served, eventually, text};

/// The program of the pools.
pub(crate) const POOLS: Program = Program {
    name: "pools-service",
    path: env!("CARGO_BIN_EXE_pools-service"),
    listeners: &["POOLS_LISTEN"],
};

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

/// Polls the trade of a quote.
pub(crate) fn poll(served: &Served, headers: &[(&str, &str)], quote: &str) -> Value {
    let line = format!("GET /v1/pools/transactions/{quote}");
    json(&served.send(&line, headers, ""))
}
