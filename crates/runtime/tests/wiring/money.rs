//! Many partners execute many quotes concurrently; afterwards every balance is exact.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{Amount, Asset, Mode};
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};
use partner_core::key::{KeyKind, NewKey};
use partner_core::{Access, Partner, PartnerId, PartnerStatus};
use pools_core::batch::{Refusal, TransactOutcome};
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolsAccess, PoolsProfile};
use pools_core::usecases::create_quote::{CreateQuote, QuoteInput, QuoteResult};
use pools_core::usecases::credit_account::{Credit, CreditAccount};
use pools_core::usecases::poll_trade::PollTrade;
use pools_core::usecases::transact_quote::{Transact, TransactError, TransactQuote};
use runtime::{Config, Ports, Runtime, Sources};
use test_support::test_database::Database;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const PARTNERS: usize = 3;
/// Orders of each partner, and the number of orders that its balance covers.
const ORDERS: usize = 60;
const COVERED: usize = 40;

fn pool() -> Pool {
    Pool {
        id: PoolId::parse("EUR-USDT").unwrap(),
        networks: Network::ALL.to_vec(),
        available: true,
        native_addresses: false,
    }
}

async fn open(database: &str) -> Runtime {
    let given = [
        ("PENSTOCK_DATABASE_URL", database),
        ("PENSTOCK_MASTER_KEY", KEY),
        // No quote expires on a busy machine.
        ("PENSTOCK_QUOTE_TTL", "10m"),
    ];
    let sources = Sources {
        environment: given.map(|(name, text)| (name.into(), text.into())).into(),
        ..Sources::default()
    };
    let config = Config::load(&sources).unwrap().config;
    Runtime::open(config, Ports::of_machine()).await.unwrap()
}

/// Provisions a partner whose balance covers some of its orders.
async fn partner(runtime: &Runtime, name: &str) -> Arc<Access<PoolsProfile>> {
    let base = &runtime.base;
    let id = PartnerId::parse(name).unwrap();
    let partner = Partner {
        id: id.clone(),
        name: name.to_owned(),
        status: PartnerStatus::Active,
    };
    let profile = PoolsProfile {
        enabled: true,
        access: PoolsAccess::Active,
        kyc: Kyc::Approved,
        allowed: BTreeSet::from([pool().id]),
        balance_gate: true,
        ..PoolsProfile::absent(&id)
    };
    let now = base.clock.now();
    let (key, _) = NewKey::generate(KeyKind::Secret, Mode::Test, now, &*base.entropy);
    let access = Access::new(
        Mode::Test,
        key.record.clone(),
        partner.clone(),
        profile.clone(),
    );
    let mut tx = base.store.provision_begin("test").await.unwrap();
    tx.pool_put(Mode::Test, &pool()).await.unwrap();
    tx.partner_put(Mode::Test, &partner).await.unwrap();
    tx.pools_profile_put(&access.tenant, &profile)
        .await
        .unwrap();
    tx.key_insert(&access.tenant, &key).await.unwrap();
    tx.config_version_raise().await.unwrap();
    tx.commit().await.unwrap();
    let crediting = CreditAccount {
        store: base.store.clone(),
        entropy: base.entropy.clone(),
    };
    let covered = format!("{}.00", COVERED * 10);
    let credit = Credit {
        amount: Amount::parse(&covered, Asset::fiat("EUR").unwrap()).unwrap(),
        network: None,
        reference: "opening".to_owned(),
    };
    assert!(
        crediting
            .credit(&access.tenant, &credit)
            .await
            .unwrap()
            .applied
    );
    let found = runtime
        .pools_directory
        .access_find(Mode::Test, &key.hash)
        .await;
    found.unwrap().unwrap()
}

/// Creates a quote of 10 EUR and executes it three times concurrently: twice under one idempotency key, once under another.
/// Returns whether the balance covered it. If so, polls until the trade is settled.
async fn buy(runtime: Arc<Runtime>, access: Arc<Access<PoolsProfile>>, number: usize) -> bool {
    let base = &runtime.base;
    let quoting = CreateQuote {
        rates: runtime.rates.clone(),
        engine: runtime.engine.clone(),
        queue: runtime.quote_queues.clone(),
        clock: base.clock.clone(),
        entropy: base.entropy.clone(),
        ttl: base.config.quote_ttl,
    };
    let given = |text: &str| Some(text.to_owned());
    let ask = QuoteInput {
        side: given("on_ramp"),
        fiat_currency: given("EUR"),
        crypto_currency: given("USDT"),
        amount: given("10.00"),
        crypto_network: given("ethereum"),
        dest_address: given("0x52908400098527886E0F7030069857D2E4169EE7"),
        ..QuoteInput::default()
    };
    let QuoteResult::Firm(quote, _) = quoting.quote(&access, &pool(), &ask).await.unwrap() else {
        panic!("no firm quote");
    };
    let transacting = TransactQuote {
        preflight: runtime.preflight.clone(),
        queue: runtime.transact_queues.clone(),
        catch_up: runtime.catch_up(),
        engine: runtime.engine.clone(),
        in_flight: runtime.in_flight.clone(),
        clock: base.clock.clone(),
        entropy: base.entropy.clone(),
    };
    let request = |key: String| Transact {
        pool: pool().id,
        quote: quote.id,
        key: OperationKey {
            operation: Operation::new("POST", "/v1/pools/EUR-USDT/transact"),
            key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
        },
    };
    let (one, twin, other) = tokio::join!(
        transacting.transact(&access, request(format!("k{number}"))),
        transacting.transact(&access, request(format!("k{number}"))),
        transacting.transact(&access, request(format!("other{number}"))),
    );
    let ended = [one, twin, other];
    let opened = ended
        .iter()
        .filter(|one| matches!(one, Ok(TransactOutcome::Opened(_))))
        .count();
    for one in &ended {
        let expected = matches!(
            one,
            Ok(_)
                | Err(TransactError::InProgress
                    | TransactError::QuoteInProgress
                    | TransactError::Refused(Refusal::InsufficientBalance))
        );
        assert!(expected, "{one:?}");
    }
    assert!(opened <= 1, "{ended:?}");
    if opened == 1 {
        let polling = PollTrade::new(
            base.store.clone(),
            runtime.engines.clone(),
            base.sealer.clone(),
            base.entropy.clone(),
            pools_http::render_event,
        );
        let settled = polling.poll(&access.tenant, quote.id).await.unwrap();
        assert!(settled.state.settlement().is_some(), "{settled:?}");
    }
    opened == 1
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_orders_spend_exact_balance_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}/penstock.db", folder.path().display());
    spend_exact_balance(open(&database).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_orders_spend_exact_balance_on_postgres() {
    let database = Database::make().await;
    spend_exact_balance(open(&database.operating()).await).await;
}

async fn spend_exact_balance(runtime: Runtime) {
    let runtime = Arc::new(runtime);
    let mut orders = tokio::task::JoinSet::new();
    let mut partners = Vec::new();
    for number in 0..PARTNERS {
        partners.push(partner(&runtime, &format!("partner-{number}")).await);
    }
    for number in 0..ORDERS {
        for access in &partners {
            orders.spawn(buy(runtime.clone(), access.clone(), number));
        }
    }
    let bought = orders
        .join_all()
        .await
        .into_iter()
        .filter(|opened| *opened)
        .count();
    assert_eq!(bought, PARTNERS * COVERED);
    for access in &partners {
        let eur = Asset::fiat("EUR").unwrap();
        let account = runtime
            .base
            .store
            .account_get(&access.tenant, eur)
            .await
            .unwrap();
        assert!(account.unwrap().available.is_zero());
    }
    let (store, sealer) = (&runtime.base.store, &runtime.base.sealer);
    let audit = store.audit(sealer, |_| true, &|_| ()).await.unwrap();
    assert!(audit.clean(), "{:#?}", audit.findings);
    runtime.close().await;
}
