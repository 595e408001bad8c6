//! `GET /v1/pools` and `GET /v1/pools/{id}/capabilities`.

use acceptance::{ACME, ACME_PUBLISHABLE, ADDRESS, World};
use kernel::Mode;
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolsAccess};
use rust_decimal::Decimal;
use serde_json::{Value, json};

const SEEN: [&str; 6] = [
    "EUR-BTC", "EUR-USDC", "EUR-USDT", "GBP-USDT", "JPY-USDC", "JPY-USDT",
];

fn ids(list: &Value) -> Vec<&str> {
    list["pools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pool| pool["id"].as_str().unwrap())
        .collect()
}

// rule: pools.list.shape, pools.list.only-entitled, pools.list.either-key
#[tokio::test]
async fn both_kinds_of_key_see_the_allowed_pools_and_no_other() {
    let world = World::new().await;
    let list = world.client(ACME_PUBLISHABLE).get("/v1/pools").await.ok();
    assert_eq!(
        ids(&list),
        SEEN,
        "USD-USDT exists but no partner is allowed in it"
    );
    assert_eq!(
        list["pools"][2],
        json!({
            "id": "EUR-USDT", "pair": "EUR/USDT", "fiatCurrency": "EUR", "cryptoCurrency": "USDT",
            "available": true,
        })
    );
    assert_eq!(world.acme().get("/v1/pools").await.ok(), list);
    assert_eq!(
        world.acme().get("/v1/pools?limit=0&x=%00").await.ok(),
        list,
        "the route ignores its query"
    );
    world.finish().await;
}

// rule: pools.list.empty
#[tokio::test]
async fn discovery_is_empty_without_provisioned_pools() {
    let world = World::new().await;
    let acme = world.acme();
    let operator = world.operator();
    let empty = json!({ "pools": [] });
    operator
        .change(ACME, |profile| profile.allowed.clear())
        .await;
    assert_eq!(acme.get("/v1/pools").await.ok(), empty);
    operator
        .change(ACME, |profile| {
            profile.allowed.extend(PoolId::parse("USD-USDT"))
        })
        .await;
    assert_eq!(ids(&acme.get("/v1/pools").await.ok()), ["USD-USDT"]);
    operator
        .change(ACME, |profile| profile.access = PoolsAccess::Suspended)
        .await;
    assert_eq!(acme.get("/v1/pools").await.ok(), empty);
    assert_eq!(
        world.client(ACME_PUBLISHABLE).get("/v1/pools").await.ok(),
        empty
    );
    operator
        .change(ACME, |profile| profile.access = PoolsAccess::Active)
        .await;
    operator
        .change(ACME, |profile| profile.enabled = false)
        .await;
    assert_eq!(acme.get("/v1/pools").await.ok(), empty);
    world.finish().await;
}

// rule: pools.list.kyc-hides-nothing
#[tokio::test]
async fn kyc_neither_hides_a_pool_nor_changes_it() {
    let world = World::new().await;
    let approved = world.acme().get("/v1/pools").await.ok();
    for kyc in [Kyc::Pending, Kyc::Revoked] {
        world
            .operator()
            .change(ACME, |profile| profile.kyc = kyc)
            .await;
        assert_eq!(world.acme().get("/v1/pools").await.ok(), approved);
    }
    world.finish().await;
}

// rule: pools.list.shape
#[tokio::test]
async fn availability_is_per_pool_and_current() {
    let world = World::new().await;
    for available in [false, true, false] {
        world.operator().set_available("EUR-USDC", available).await;
        let list = world.acme().get("/v1/pools").await.ok();
        assert_eq!(ids(&list), SEEN);
        assert_eq!(list["pools"][1]["available"], available);
        assert_eq!(list["pools"][2]["available"], true);
        assert_eq!(world.rival().get("/v1/pools").await.ok(), list);
    }
    world.finish().await;
}

// rule: pools.capabilities.shape, pools.capabilities.sides, pools.capabilities.spread-cap
#[tokio::test]
async fn capabilities_show_the_partners_terms() {
    let world = World::new().await;
    let found = world
        .acme()
        .get("/v1/pools/EUR-USDT/capabilities")
        .await
        .ok();
    assert_eq!(
        found,
        json!({
            "poolId": "EUR-USDT", "pair": "EUR/USDT", "fiatCurrency": "EUR", "cryptoCurrency": "USDT",
            "supportedNetworks": ["tron", "ethereum", "bsc", "polygon", "solana"],
            "sides": ["on_ramp", "off_ramp"], "tier": "standard", "drawFeeBps": 30,
            "spreadCapBps": 50, "minOrderUsdt": 10, "maxOrderUsdt": 100_000,
            "cryptoDepositAddress": ADDRESS,
        })
    );
    world
        .operator()
        .change(ACME, |profile| profile.tier = "gold".to_owned())
        .await;
    let terms = |terms: &mut pools_core::profile::PoolTerms| {
        terms.draw_fee_bps = 5_000;
        terms.spread_cap_bps = 7;
        terms.off_ramp = false;
    };
    world.operator().terms(ACME, "EUR-USDT", terms).await;
    let found = world
        .acme()
        .get("/v1/pools/EUR-USDT/capabilities")
        .await
        .ok();
    let changed = (
        &found["tier"],
        &found["drawFeeBps"],
        &found["spreadCapBps"],
        &found["sides"],
    );
    assert_eq!(
        changed,
        (&json!("gold"), &json!(5000), &json!(7), &json!(["on_ramp"]))
    );
    world.finish().await;
}

// rule: pools.capabilities.native-addresses
#[tokio::test]
async fn capabilities_name_native_addresses_only_of_pools_that_require_them() {
    let world = World::new().await;
    let capabilities = async || {
        let answer = world.acme().get("/v1/pools/EUR-USDT/capabilities").await;
        answer.ok()
    };
    assert_eq!(capabilities().await.get("nativeAddresses"), None);
    let pool = Pool {
        id: PoolId::parse("EUR-USDT").unwrap(),
        networks: Network::ALL.to_vec(),
        available: true,
        native_addresses: true,
    };
    world.operator().put_pool(&pool).await;
    assert_eq!(capabilities().await["nativeAddresses"], true);
    world.finish().await;
}

// rule: pools.capabilities.maximum, pools.capabilities.deposit-address, apply.terms-defaults
#[tokio::test]
async fn capabilities_show_defaults_without_terms() {
    let world = World::new().await;
    let found = world
        .rival()
        .get("/v1/pools/EUR-USDT/capabilities")
        .await
        .ok();
    assert_eq!(
        (
            &found["drawFeeBps"],
            &found["spreadCapBps"],
            &found["minOrderUsdt"],
            &found["sides"]
        ),
        (&json!(0), &json!(50), &json!(1), &json!(["on_ramp"]))
    );
    assert_eq!(
        (&found["maxOrderUsdt"], &found["cryptoDepositAddress"]),
        (&Value::Null, &Value::Null)
    );
    world.finish().await;
}

// rule: money.no-floats, response.money-as-strings
#[tokio::test]
async fn decimal_fields_keep_every_digit() {
    let world = World::new().await;
    let terms = |terms: &mut pools_core::profile::PoolTerms| {
        terms.min_order_usdt = Decimal::from_str_exact("0.10").unwrap();
        terms.max_order_usdt = Some(Decimal::from_str_exact("9007199254740993.00000001").unwrap());
    };
    world.operator().terms(ACME, "EUR-USDT", terms).await;
    for call in [
        world.acme().get("/v1/pools/EUR-USDT/capabilities").await,
        world
            .acme()
            .ask("EUR-USDT", &acceptance::purchase("EUR-USDT", "100"))
            .await,
    ] {
        let text = String::from_utf8(call.bytes.to_vec()).unwrap();
        assert!(text.contains("\"minOrderUsdt\":0.1,"), "{text}");
        assert!(
            text.contains("\"maxOrderUsdt\":9007199254740993.00000001"),
            "{text}"
        );
    }
    world.finish().await;
}

// rule: pools.capabilities.shape
#[tokio::test]
async fn networks_show_in_the_operators_order() {
    let world = World::new().await;
    let pool = Pool {
        id: PoolId::parse("GBP-USDT").unwrap(),
        networks: vec![Network::Solana, Network::Bsc],
        available: false,
        native_addresses: false,
    };
    world.operator().put_pool(&pool).await;
    let found = world
        .acme()
        .get("/v1/pools/GBP-USDT/capabilities")
        .await
        .ok();
    assert_eq!(found["supportedNetworks"], json!(["solana", "bsc"]));
    world.finish().await;
}

// rule: pools.capabilities.not-found, access.pool-not-allowed, id.malformed-path
#[tokio::test]
async fn unknown_pool_is_absent_and_disallowed_pool_is_denied() {
    let world = World::new().await;
    let acme = world.acme();
    let path = |pool: &str| format!("/v1/pools/{pool}/capabilities");
    acme.get(&path("USD-USDT"))
        .await
        .refused(403, "pool_not_allowed");
    for unknown in [
        "CHF-USDT",
        "EUR-DOGE",
        "eur-usdt",
        "EUR-usdt",
        "EUR",
        "EURUSDT",
        "EUR-USDT-X",
        "EUR%2FUSDT",
        "%00",
        "EUR-USDT%00",
        "%20EUR-USDT",
        "%ff",
        "quotes",
        "USDT-EUR",
        "XXX-USDT",
        "..",
    ] {
        acme.get(&path(unknown))
            .await
            .refused(404, "resource_not_found");
    }
    world.finish().await;
}

// rule: mode.one-per-process, mode.on-every-row, id.shape
#[tokio::test]
async fn live_process_serves_live_ids() {
    let world = World::with(|setup| setup.mode = Mode::Live).await;
    let acme = world.acme();
    world.operator().credit(ACME, "500.00", "EUR").await;
    assert_eq!(ids(&acme.get("/v1/pools").await.ok()), SEEN);
    let (quote, trade) = acme.trade("EUR-USDT", "100.00").await;
    assert!(
        quote.starts_with("pq_live_") && trade.starts_with("txn_live_"),
        "{quote} {trade}"
    );
    assert_eq!(acme.status(&quote).await, "settled");
    let entry = acme.ledger("EUR").await["entries"][0].clone();
    assert!(
        entry["id"].as_str().unwrap().starts_with("le_live_"),
        "{entry}"
    );
    let modes = "SELECT DISTINCT mode FROM quotes UNION SELECT mode FROM trades UNION SELECT mode FROM ledger_entries
        UNION SELECT mode FROM accounts UNION SELECT mode FROM idempotency_keys UNION SELECT mode FROM events";
    assert_eq!(world.database().texts(modes).await, ["live"]);
    world.notice(ACME, &trade).await;
    world.finish().await;
}
