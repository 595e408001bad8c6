//! Execution of a quote: its effects, its refusals, and that a refusal leaves no change.

use acceptance::{ACME, Answer, Call, RIVAL, World};
use serde_json::{Value, json};

const PATH: &str = "/v1/pools/EUR-USDT/transact";

async fn funded(amount: &str) -> World {
    let world = World::new().await;
    world.operator().credit(ACME, amount, "EUR").await;
    world
}

/// Sends a transact with any body under a new key.
async fn send(world: &World, body: &Value) -> Answer {
    world
        .acme()
        .send(Call::post(PATH).json(body).key("k"))
        .await
}

// rule: pools.transact.effect, pools.ledger.buy, pools.quote-record.derived
#[tokio::test]
async fn first_transact_reserves_the_amount() {
    let world = funded("100.00").await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100.00").await;
    world.after(700);
    let ack = acme.transact("EUR-USDT", &quote, "k").await.ok();
    let trade = ack["transactId"].as_str().unwrap();
    assert!(
        pools_core::trade::TradeId::parse(trade).is_some(),
        "{trade}"
    );
    assert_eq!(
        (&ack["status"], &ack["quoteId"], &ack["idempotent"]),
        (&json!("reserved"), &json!(quote), &json!(false))
    );
    let record = acme.quote(&quote).await.ok();
    assert_eq!(
        (&record["status"], &record["consumedAt"]),
        (&json!("consumed"), &json!("2026-05-25T12:00:00.700Z"))
    );
    let ledger = acme.ledger("EUR").await;
    let entry = &ledger["entries"][0];
    let found = (
        &entry["delta"],
        &entry["balanceAfter"],
        &entry["reason"],
        &entry["ref"],
        &entry["transactId"],
    );
    assert_eq!(
        found,
        (
            &json!("-100.00"),
            &json!("0.00"),
            &json!("buy_debit"),
            &json!(quote),
            &json!(trade)
        )
    );
    assert_eq!(entry["createdAt"], record["consumedAt"]);
    assert_eq!(acme.balance("EUR-USDT").await, "0.00");
    for (table, rows) in [
        ("trades", 1),
        ("ledger_entries", 2),
        ("idempotency_keys", 1),
        ("events", 0),
    ] {
        assert_eq!(world.database().count(table).await, rows, "{table}");
    }
    world.finish().await;
}

// rule: pools.transact.body-ignored, pools.trades.equals-quote, pools.trade.delivers-to-quote, request.unknown-fields
#[tokio::test]
async fn trade_terms_come_from_the_quote() {
    let world = funded("100.00").await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100.00").await;
    let record = acme.quote(&quote).await.ok();
    world.rates().set("EUR-USDT", "3", 0);
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| terms.draw_fee_bps = 1)
        .await;
    let body = json!({
        "quoteId": quote, "side": "off_ramp", "amount": "0.01", "fiatAmount": "0.01", "cryptoAmount": "9000",
        "rate": "99", "destAddress": "0x52908400098527886E0F7030069857D2E4169EE7", "destNetwork": "bsc",
        "cryptoNetwork": "solana", "status": "settled", "partnerId": RIVAL, "poolId": "EUR-USDC", "feeBps": 0,
        "transactId": "txn_test_01HF7YAT00408104G208104081", "nested": { "quoteId": [1.5] },
    });
    let ack = send(&world, &body).await.ok();
    let trade = acme.read(ack["transactId"].as_str().unwrap()).await.ok();
    for (of_trade, of_quote) in [
        ("quoteId", "quoteId"),
        ("poolId", "poolId"),
        ("pair", "pair"),
        ("side", "side"),
        ("cryptoNetwork", "cryptoNetwork"),
        ("fiatAmount", "fiatAmount"),
        ("cryptoAmount", "cryptoAmount"),
        ("quotedRate", "rate"),
        ("spreadBps", "spreadBps"),
        ("feeBps", "feeBps"),
    ] {
        assert_eq!(trade[of_trade], record[of_quote], "{of_trade}");
    }
    let delivery = "SELECT dest_address || ' ' || dest_network FROM trades";
    let of_quote = "SELECT dest_address || ' ' || dest_network FROM quotes";
    assert_eq!(
        world.database().texts(delivery).await,
        world.database().texts(of_quote).await
    );
    world.finish().await;
}

// rule: pools.transact.quote-id
#[tokio::test]
async fn transact_rejects_malformed_quote_id() {
    let world = funded("100.00").await;
    let quote = world.acme().buy("EUR-USDT", "100.00").await;
    for body in [
        json!({}),
        json!({ "quoteId": null }),
        json!({ "quoteId": 1 }),
        json!({ "quoteId": [quote] }),
        json!({ "quoteId": "" }),
        json!({ "quoteId": "x" }),
        json!({ "quoteId": quote.to_lowercase() }),
        json!({ "quoteId": format!(" {quote}") }),
        json!({ "quoteId": "txn_test_01HF7YAT00408104G208104081" }),
        json!({ "quoteId": "pq_prod_01HF7YAT00408104G208104081" }),
        json!({ "quote_id": quote }),
        json!({ "quoteId": format!("{quote}\u{1}") }),
        json!({ "QuoteId": quote }),
    ] {
        send(&world, &body)
            .await
            .refused(400, "invalid_request")
            .saying("quoteId");
    }
    world.acme().transact("EUR-USDT", &quote, "k").await.ok();
    world.finish().await;
}

// rule: pools.transact.not-found, id.other-mode, tenancy.foreign-is-absent
#[tokio::test]
async fn transact_of_unknown_or_foreign_quote_is_absent() {
    let world = funded("100.00").await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100.00").await;
    let foreign = world.rival().buy("EUR-USDT", "100.00").await;
    let unknown = acme
        .transact("EUR-USDT", "pq_test_01HF7YAT00408104G208104081", "k")
        .await;
    let unknown = unknown.refused(404, "resource_not_found").anonymous();
    for id in [&foreign, &quote.replace("_test_", "_live_")] {
        assert_eq!(
            acme.transact("EUR-USDT", id, "k").await.anonymous(),
            unknown
        );
    }
    // In another pool's path, before and after execution.
    assert_eq!(
        acme.transact("EUR-USDC", &quote, "k").await.anonymous(),
        unknown
    );
    acme.transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(
        acme.transact("EUR-USDC", &quote, "k2").await.anonymous(),
        unknown
    );
    acme.transact("USD-USDT", &quote, "k3")
        .await
        .refused(403, "pool_not_allowed");
    acme.transact("CHF-USDT", &quote, "k3")
        .await
        .refused(404, "resource_not_found");
    world.finish().await;
}

// rule: pools.transact.balance, money.accounts
#[tokio::test]
async fn each_currency_has_an_account_of_its_own() {
    let world = funded("1000.00").await;
    let acme = world.acme();
    let pounds = acme.buy("GBP-USDT", "100.00").await;
    acme.transact("GBP-USDT", &pounds, "k")
        .await
        .refused(402, "insufficient_balance");
    world.operator().credit(ACME, "100.00", "GBP").await;
    acme.transact("GBP-USDT", &pounds, "k").await.ok();
    // Both EUR pools use the same account.
    acme.trade("EUR-USDC", "400.00").await;
    assert_eq!(
        (
            acme.balance("EUR-USDT").await,
            acme.balance("GBP-USDT").await
        ),
        (json!("600.00"), json!("0.00"))
    );
    world.finish().await;
}

// rule: pools.transact.side
#[tokio::test]
async fn selling_needs_to_be_enabled_for_partner_and_pool() {
    let world = World::new().await;
    world.operator().credit(ACME, "500", "USDT").await;
    world.operator().credit(RIVAL, "500", "USDT").await;
    let (acme, rival) = (world.acme(), world.rival());
    let quote = rival.sell("EUR-USDT", "100").await;
    rival
        .transact("EUR-USDT", &quote, "k")
        .await
        .refused(501, "side_not_enabled");
    let elsewhere = acme.sell("EUR-USDC", "100").await;
    acme.transact("EUR-USDC", &elsewhere, "k")
        .await
        .refused(501, "side_not_enabled");
    let quote = acme.sell("EUR-USDT", "100").await;
    acme.transact("EUR-USDT", &quote, "k").await.ok();
    world.finish().await;
}

// rule: pools.transact.sale-needs-receipt, pools.ledger.sell
#[tokio::test]
async fn sale_debits_the_credited_crypto() {
    let world = funded("1000.00").await;
    let acme = world.acme();
    let quote = acme.sell("EUR-USDT", "100.000001").await;
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(402, "insufficient_balance");
    world.operator().credit(ACME, "100", "USDT").await;
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(402, "insufficient_balance");
    world.operator().credit(ACME, "0.000001", "USDT").await;
    acme.transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(acme.balance("EUR-USDT").await, "1000.00");
    let ledger = acme.ledger("USDT").await;
    assert_eq!(ledger["available"], "0");
    let entry = &ledger["entries"][0];
    assert_eq!(
        (&entry["delta"], &entry["reason"], &entry["ref"]),
        (&json!("-100.000001"), &json!("sell_debit"), &json!(quote))
    );
    world.finish().await;
}

// rule: pools.transact.refusal-leaves-nothing, pools.transact.reservation-failed, idempotency.only-success, sandbox.reservation
#[tokio::test]
async fn refusal_leaves_quote_balance_and_key_unchanged() {
    let world = funded("50.00").await;
    let acme = world.acme();
    let dear = acme.buy("EUR-USDT", "100.00").await;
    let refused = acme.buy("EUR-USDT", "10.51").await;
    let rejected = acme.buy("EUR-USDT", "10.00").await;
    acme.reject(&rejected).await.ok();
    let sale = acme.sell("EUR-USDC", "10").await;
    let before = world.database().digest().await;
    for (pool, quote, status, code) in [
        ("EUR-USDT", &dear, 402, "insufficient_balance"),
        ("EUR-USDT", &refused, 409, "reservation_failed"),
        ("EUR-USDT", &rejected, 409, "quote_rejected"),
        ("EUR-USDC", &sale, 501, "side_not_enabled"),
    ] {
        for _ in 0..2 {
            acme.transact(pool, quote, "k").await.refused(status, code);
        }
    }
    assert_eq!(world.database().digest().await, before);
    for quote in [&dear, &refused, &sale] {
        assert_eq!(acme.quote(quote).await.ok()["status"], "active");
    }
    world.finish().await;
}
