//! Reading and rejecting firm quotes.

use acceptance::{ACME, Call, World, purchase};
use serde_json::{Value, json};

async fn status(world: &World, quote: &str) -> Value {
    world.acme().quote(quote).await.ok()["status"].clone()
}

// rule: pools.quote-record.shape, time.output
#[tokio::test]
async fn quote_record_has_fifteen_fields() {
    let world = World::new().await;
    let mut body = purchase("EUR-USDT", "100");
    body["cryptoNetwork"] = json!("ethereum");
    let quote = world.acme().ask("EUR-USDT", &body).await.ok();
    let id = quote["quoteId"].as_str().unwrap();
    let record = world.acme().quote(id).await.ok();
    assert_eq!(
        record,
        json!({
            "quoteId": id, "poolId": "EUR-USDT", "pair": "EUR/USDT", "side": "on_ramp", "cryptoNetwork": "ethereum",
            "fiatAmount": "100.00", "cryptoAmount": "107.90325", "rate": "1.0790325", "spreadBps": 25, "feeBps": 30,
            "status": "active", "expiresAt": "2026-05-25T12:00:15.000Z", "consumedAt": null, "rejectedAt": null,
            "createdAt": "2026-05-25T12:00:00.000Z",
        })
    );
    world.finish().await;
}

// rule: pools.quote-record.derived, time.deadline-exclusive
#[tokio::test]
async fn quote_is_active_until_the_last_millisecond_before_it_expires() {
    let world = World::new().await;
    let quote = world.acme().buy("EUR-USDT", "100").await;
    for (millis, wanted) in [
        (0, "active"),
        (14_999, "active"),
        (1, "expired"),
        (1, "expired"),
        (86_400_000, "expired"),
    ] {
        world.after(millis);
        assert_eq!(status(&world, &quote).await, wanted);
    }
    world.finish().await;
}

// rule: pools.quote-record.derived, pools.quote.retention
#[tokio::test]
async fn quote_outcome_outlives_the_expiry() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "100.00", "EUR").await;
    let rejected = acme.buy("EUR-USDT", "100").await;
    acme.reject(&rejected).await.ok();
    let (consumed, trade) = acme.trade("EUR-USDT", "100").await;
    for wait in [0, 15_000, 31_536_000_000] {
        world.after(wait);
        assert_eq!(status(&world, &rejected).await, "rejected");
        let record = acme.quote(&consumed).await.ok();
        assert_eq!(record["status"], "consumed");
        assert_eq!(
            record["consumedAt"],
            acme.read(&trade).await.ok()["createdAt"]
        );
        assert_eq!(record["rejectedAt"], Value::Null);
    }
    world.finish().await;
}

// rule: pools.quote-record.pure, pools.quote-record.locked
#[tokio::test]
async fn read_neither_extends_nor_reprices_a_quote() {
    let world = World::new().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    let first = acme.quote(&quote).await.ok();
    world.rates().set("EUR-USDT", "2", 0);
    world
        .operator()
        .terms(ACME, "EUR-USDT", |terms| terms.draw_fee_bps = 900)
        .await;
    world.engine().asked();
    let before = world.database().digest().await;
    world.after(10_000);
    for _ in 0..3 {
        assert_eq!(acme.quote(&quote).await.ok(), first);
    }
    assert_eq!(world.database().digest().await, before);
    assert_eq!(world.engine().asked(), []);
    world.after(5_000);
    assert_eq!(status(&world, &quote).await, "expired");
    world.finish().await;
}

// rule: id.malformed-path, id.kinds-differ, id.other-mode, pools.trades.not-found
#[tokio::test]
async fn malformed_or_unknown_id_of_quote_or_trade_is_absent() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "100.00", "EUR").await;
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    let live = quote.replace("_test_", "_live_");
    let lower = quote.to_lowercase();
    let unknown = "pq_test_01HF7YAT00408104G208104081";
    for absent in [
        unknown,
        &live,
        &lower,
        &trade,
        &quote[..33],
        "pq_test_",
        "x",
        "%00",
        &format!("{quote}%00"),
        "%ff",
        "pq_test_%E2%82%AC",
        "pq_prod_01HF7YAT00408104G208104081",
        "pq_test_81HF7YAT00408104G208104081",
        "txn_test_01HF7YAT00408104G208104081",
        "le_test_01HF7YAT00408104G208104081",
    ] {
        acme.quote(absent).await.refused(404, "resource_not_found");
        acme.reject(absent).await.refused(404, "resource_not_found");
        acme.poll(absent).await.refused(404, "resource_not_found");
        if absent != trade {
            acme.read(absent).await.refused(404, "resource_not_found");
        }
    }
    for absent in [&trade[..30], &quote, &trade.replace("_test_", "_live_")] {
        acme.read(absent).await.refused(404, "resource_not_found");
    }
    world.finish().await;
}

// rule: pools.reject.effect, pools.event.none-else
#[tokio::test]
async fn reject_returns_the_whole_record_and_moves_no_money() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "100.00", "EUR").await;
    let quote = acme.buy("EUR-USDT", "100").await;
    let active = acme.quote(&quote).await.ok();
    world.engine().asked();
    world.after(1_234);
    let rejected = acme.reject(&quote).await.ok();
    let mut wanted = active;
    wanted["status"] = json!("rejected");
    wanted["rejectedAt"] = json!("2026-05-25T12:00:01.234Z");
    assert_eq!(rejected, wanted);
    assert_eq!(acme.quote(&quote).await.ok(), wanted);
    assert_eq!(acme.balance("EUR-USDT").await, "100.00");
    assert_eq!(
        acme.ledger("EUR").await["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        (
            world.database().count("events").await,
            world.database().count("trades").await
        ),
        (0, 0)
    );
    assert_eq!(world.engine().asked(), []);
    world.finish().await;
}

// rule: pools.reject.once, pools.reject.rejected, pools.reject.consumed, pools.reject.expired
#[tokio::test]
async fn only_an_active_quote_can_be_rejected() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "100.00", "EUR").await;
    let quote = acme.buy("EUR-USDT", "100").await;
    acme.reject(&quote).await.ok();
    let at = acme.quote(&quote).await.ok()["rejectedAt"].clone();
    acme.reject(&quote).await.refused(409, "quote_rejected");
    let (consumed, _) = acme.trade("EUR-USDT", "100").await;
    acme.reject(&consumed).await.refused(409, "quote_consumed");
    let expired = acme.buy("EUR-USDT", "100").await;
    world.after(15_000);
    acme.reject(&expired).await.refused(409, "quote_expired");
    // After the expiry each refusal still names the quote's outcome.
    acme.reject(&quote).await.refused(409, "quote_rejected");
    acme.reject(&consumed).await.refused(409, "quote_consumed");
    assert_eq!(acme.quote(&quote).await.ok()["rejectedAt"], at);
    assert_eq!(acme.quote(&expired).await.ok()["rejectedAt"], Value::Null);
    world.finish().await;
}

// rule: idempotency.ignored-elsewhere, pools.reject.effect
#[tokio::test]
async fn reject_reads_neither_a_body_nor_an_idempotency_key() {
    let world = World::new().await;
    for call in [
        |call: Call| call.key("same"),
        |call: Call| call.key("same").body("{not json"),
        |call: Call| call.key("").header("content-type", "text/plain").body("x"),
        |call: Call| call.json(&json!({ "quoteId": "another" })),
    ] {
        let quote = world.acme().buy("EUR-USDT", "100").await;
        let path = format!("/v1/pools/quotes/{quote}/reject");
        assert_eq!(
            world.acme().send(call(Call::post(&path))).await.ok()["quoteId"],
            json!(quote)
        );
    }
    assert_eq!(world.database().count("idempotency_keys").await, 0);
    world.finish().await;
}

// rule: base.clock-forward, pools.quote-record.monotone
#[tokio::test]
async fn clock_set_back_revives_no_quote() {
    let world = World::new().await;
    let quote = world.acme().buy("EUR-USDT", "100").await;
    world.after(15_000);
    assert_eq!(status(&world, &quote).await, "expired");
    world
        .clock()
        .set(kernel::Timestamp::from_millis(acceptance::START).unwrap());
    assert_eq!(status(&world, &quote).await, "expired");
    world
        .acme()
        .reject(&quote)
        .await
        .refused(409, "quote_expired");
    world
        .acme()
        .transact("EUR-USDT", &quote, "k")
        .await
        .refused(409, "quote_expired");
    world.finish().await;
}
