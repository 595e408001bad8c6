//! Balance, funding instructions and the ledger.

use acceptance::{ACME, Client, RIVAL, World};
use serde_json::{Value, json};

// rule: pools.balance.shape, pools.balance.account
#[tokio::test]
async fn balance_shows_its_fields() {
    let world = World::new().await;
    let acme = world.acme();
    let view = |pool: &str, balance: &str| {
        let pair = pool.replace('-', "/");
        json!({
            "poolId": pool, "pair": pair, "available": true, "tier": "standard", "balance": balance,
            "allowedPools": ["EUR-BTC", "EUR-USDC", "EUR-USDT", "GBP-USDT", "JPY-USDC", "JPY-USDT"],
        })
    };
    assert_eq!(
        acme.get("/v1/pools/EUR-USDT/balance").await.ok(),
        view("EUR-USDT", "0.00")
    );
    world.operator().credit(ACME, "1234.5", "EUR").await;
    world.operator().credit(ACME, "777", "JPY").await;
    world.operator().credit(RIVAL, "9.99", "EUR").await;
    for (pool, balance) in [
        ("EUR-USDT", "1234.50"),
        ("EUR-USDC", "1234.50"),
        ("EUR-BTC", "1234.50"),
        ("GBP-USDT", "0.00"),
        ("JPY-USDT", "777"),
    ] {
        assert_eq!(
            acme.get(&format!("/v1/pools/{pool}/balance")).await.ok(),
            view(pool, balance)
        );
    }
    world.operator().set_available("EUR-USDT", false).await;
    assert_eq!(
        acme.get("/v1/pools/EUR-USDT/balance").await.ok()["available"],
        false
    );
    world.finish().await;
}

// rule: pools.balance.gate-off, pools.balance.not-found, access.pool-not-allowed
#[tokio::test]
async fn balance_of_unfunded_partner_and_unknown_pool() {
    let world = World::new().await;
    world.operator().credit(ACME, "10.00", "EUR").await;
    world
        .operator()
        .change(ACME, |profile| profile.balance_gate = false)
        .await;
    let view = world.acme().get("/v1/pools/EUR-USDT/balance").await.ok();
    assert_eq!(view["balance"], Value::Null);
    for absent in ["CHF-USDT", "x", "eur-usdt", "%00"] {
        world
            .acme()
            .get(&format!("/v1/pools/{absent}/balance"))
            .await
            .refused(404, "resource_not_found");
    }
    world
        .acme()
        .get("/v1/pools/USD-USDT/balance")
        .await
        .refused(403, "pool_not_allowed");
    world.finish().await;
}

// rule: pools.funding.shape, pools.funding.gate-off, pools.funding.currency
#[tokio::test]
async fn funding() {
    let world = World::new().await;
    let acme = world.acme();
    let found = acme.get("/v1/pools/funding").await.ok();
    let named = (&found["currency"], &found["iban"], &found["reference"]);
    assert_eq!(
        named,
        (
            &json!("EUR"),
            &json!("DE89370400440532013000"),
            &json!("ACME-7F3K")
        )
    );
    assert!(!found["instructions"].as_str().unwrap().is_empty());
    assert_eq!(
        acme.get("/v1/pools/funding?currency=EUR&x=1").await.ok(),
        found
    );
    for bad in ["GBP", "USDT", "", "XYZ", "EUR%00"] {
        acme.get(&format!("/v1/pools/funding?currency={bad}"))
            .await
            .refused(400, "invalid_request")
            .saying("currency");
    }
    acme.get("/v1/pools/funding?currency=EUR&currency=EUR")
        .await
        .refused(400, "invalid_request");
    world
        .operator()
        .change(ACME, |profile| profile.iban = None)
        .await;
    assert_eq!(
        acme.get("/v1/pools/funding").await.ok()["iban"],
        Value::Null
    );
    world
        .operator()
        .change(ACME, |profile| profile.balance_gate = false)
        .await;
    acme.get("/v1/pools/funding")
        .await
        .refused(404, "funding_not_enabled");
    world.finish().await;
}

async fn ledger(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/pools/ledger?{query}")).await.ok()
}

fn column(page: &Value, field: &str) -> Vec<String> {
    let entries = page["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry[field].as_str().unwrap_or("null").to_owned())
        .collect()
}

// rule: pools.ledger.answer, pools.ledger.entry, pools.ledger.default-currency, pools.ledger.buy, pools.ledger.buy-refund
#[tokio::test]
async fn entries_and_their_fields() {
    let world = World::new().await;
    let acme = world.acme();
    let empty = json!({ "currency": "EUR", "available": "0.00", "entries": [], "nextCursor": null, "hasMore": false });
    assert_eq!(ledger(&acme, "").await, empty);
    assert_eq!(ledger(&acme, "currency=EUR").await, empty);
    world.operator().credit(ACME, "1000", "EUR").await;
    world.after(10);
    let (quote, trade) = acme.trade("EUR-USDT", "100.31").await;
    world.after(10);
    acme.poll(&quote).await.ok();
    let page = ledger(&acme, "").await;
    assert_eq!(
        (&page["available"], &page["hasMore"], &page["nextCursor"]),
        (&json!("1000.00"), &json!(false), &Value::Null)
    );
    assert_eq!(column(&page, "delta"), ["100.31", "-100.31", "1000.00"]);
    assert_eq!(
        column(&page, "balanceAfter"),
        ["1000.00", "899.69", "1000.00"]
    );
    assert_eq!(
        column(&page, "reason"),
        ["buy_refund", "buy_debit", "payin_credit"]
    );
    assert_eq!(column(&page, "transactId"), [&trade, &trade, "null"]);
    assert_eq!(column(&page, "ref")[..2], [quote.clone(), quote]);
    let at = |millis: &str| format!("2026-05-25T12:00:00.{millis}Z");
    assert_eq!(
        column(&page, "createdAt"),
        [at("020"), at("010"), at("000")]
    );
    for entry in page["entries"].as_array().unwrap() {
        let id = entry["id"].as_str().unwrap();
        assert!(
            pools_core::ledger::EntryId::parse(id).is_some() && id.starts_with("le_test_"),
            "{id}"
        );
    }
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.ledger.other-currency, pools.ledger.default-currency, money.print-crypto
#[tokio::test]
async fn currencies() {
    let world = World::new().await;
    let acme = world.acme();
    let refuse = async |currency: &str| {
        let answer = acme
            .get(&format!("/v1/pools/ledger?currency={currency}"))
            .await;
        answer.refused(400, "invalid_request").saying("currency");
    };
    for none in ["GBP", "USDT", "BTC", "XYZ", "", "%00", "EURO"] {
        refuse(none).await;
    }
    world.operator().credit(ACME, "12.50", "GBP").await;
    world.operator().credit(ACME, "0.10000000", "BTC").await;
    world.operator().credit(RIVAL, "7", "USDT").await;
    for (currency, available) in [("EUR", "0.00"), ("GBP", "12.50"), ("BTC", "0.1")] {
        let page = ledger(&acme, &format!("currency={currency}")).await;
        assert_eq!(
            (&page["currency"], &page["available"]),
            (&json!(currency), &json!(available))
        );
    }
    let receipt = ledger(&acme, "currency=BTC").await;
    assert_eq!(
        (column(&receipt, "reason"), column(&receipt, "delta")),
        (vec!["crypto_receipt".into()], vec!["0.1".into()])
    );
    refuse("USDT").await;
    world.finish().await;
}

/// A ledger of 60 entries: a deposit, purchases that are returned, and more deposits.
async fn busy() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "100000.00", "EUR").await;
    let acme = world.acme();
    for round in 0..10_u64 {
        let (quote, _) = acme.trade("EUR-USDT", "100.31").await;
        acme.poll(&quote).await.ok();
        world.after(u64::from(round % 7 == 0));
    }
    for _ in 0..39 {
        world.operator().credit(ACME, "0.01", "EUR").await;
    }
    world
}

// rule: pools.ledger.limit, pools.ledger.chain, pools.ledger.order, list.no-loss
#[tokio::test]
async fn pages_chain_and_lose_nothing() {
    let world = busy().await;
    let acme = world.acme();
    assert_eq!(column(&ledger(&acme, "").await, "id").len(), 50);
    let whole = ledger(&acme, "limit=200").await;
    let all = column(&whole, "id");
    assert_eq!(all.len(), 60);
    for (limit, size) in [
        ("0", 1),
        ("-7", 1),
        ("1", 1),
        ("201", 60),
        ("99999999999999999999", 60),
        ("-99999999999999999999", 1),
    ] {
        assert_eq!(
            column(&ledger(&acme, &format!("limit={limit}")).await, "id").len(),
            size,
            "{limit}"
        );
    }
    for limit in [7, 59, 60, 61] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = ledger(&acme, &format!("limit={limit}{cursor}")).await;
            seen.extend(column(&page, "id"));
            assert_eq!(page["available"], whole["available"]);
            assert_eq!(page["hasMore"], page["nextCursor"].is_string());
            let Some(next) = page["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, all, "{limit}");
    }
    let cents = |text: &String| text.replace('.', "").parse::<i64>().unwrap();
    let after: Vec<i64> = column(&whole, "balanceAfter").iter().map(cents).collect();
    let delta: Vec<i64> = column(&whole, "delta").iter().map(cents).collect();
    assert_eq!(whole["available"], json!(column(&whole, "balanceAfter")[0]));
    for at in 0..after.len() {
        let before = after.get(at + 1).copied().unwrap_or(0);
        assert_eq!(before + delta[at], after[at]);
    }
    let created = column(&whole, "createdAt");
    assert!(created.is_sorted_by(|newer, older| newer >= older));
    world.notice_all().await;
    world.finish().await;
}

// rule: pools.ledger.filters, pools.ledger.chain
#[tokio::test]
async fn dates_narrow_the_entries() {
    let world = World::new().await;
    let acme = world.acme();
    for amount in ["1", "2", "3", "4"] {
        world.operator().credit(ACME, amount, "EUR").await;
        world.after(1_000);
    }
    for (query, deltas) in [
        (
            "created_after=2026-05-25T12:00:01Z",
            &["4.00", "3.00", "2.00"][..],
        ),
        ("created_after=2026-05-25T12:00:01.001Z", &["4.00", "3.00"]),
        ("created_before=2026-05-25T12:00:01Z", &["2.00", "1.00"]),
        (
            "created_after=2026-05-25T12:00:01Z&created_before=2026-05-25T14:00:02%2B02:00",
            &["3.00", "2.00"],
        ),
        (
            "created_after=2026-05-25",
            &["4.00", "3.00", "2.00", "1.00"],
        ),
        ("created_before=2026-05-25", &[]),
    ] {
        let page = ledger(&acme, query).await;
        assert_eq!(column(&page, "delta"), deltas, "{query}");
        assert_eq!(page["available"], "10.00");
    }
    let first = ledger(&acme, "limit=2&created_before=2026-05-25T12:00:02Z").await;
    assert_eq!(column(&first, "delta"), ["3.00", "2.00"]);
    let next = first["nextCursor"].as_str().unwrap();
    let second = ledger(
        &acme,
        &format!("limit=2&created_before=2026-05-25T12:00:02Z&cursor={next}"),
    )
    .await;
    assert_eq!(
        (column(&second, "delta"), &second["hasMore"]),
        (vec!["1.00".to_owned()], &json!(false))
    );
    world.finish().await;
}

// rule: pools.ledger.limit, list.malformed-cursor, request.repeated-query, time.input-plus, time.input-zone
#[tokio::test]
async fn malformed_ledger_queries_are_refused() {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1", "EUR").await;
    for (query, words) in [
        ("limit=ten", "limit"),
        ("limit=1.5", "limit"),
        ("limit=", "limit"),
        ("limit=1e2", "limit"),
        ("limit=%2B5", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=", "cursor"),
        ("cursor=txn_test_01HF7YAT00408104G208104081", "cursor"),
        ("created_after=soon", "created_after"),
        ("created_after=2026-05-25T12:00:00", "2026-05-25T12:00:00Z"),
        ("created_before=2026-05-25T12:00", "2026-05-25T12:00:00Z"),
        ("created_before=2026-13-01", "created_before"),
        ("created_after=2026-05-25T12:00:00+02:00", "%2B"),
        ("limit=5&limit=5", "limit"),
        ("currency=EUR&currency=EUR", "currency"),
        ("cursor=x&cursor=x", "cursor"),
    ] {
        acme.get(&format!("/v1/pools/ledger?{query}"))
            .await
            .refused(400, "invalid_request")
            .saying(words);
    }
    assert_eq!(
        ledger(&acme, "page=2&offset=1&x=1&x=2").await["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    world.finish().await;
}

// rule: list.foreign-cursor, list.malformed-cursor, id.other-mode
#[tokio::test]
async fn cursor_is_valid_in_its_own_account_only() {
    let world = World::new().await;
    let acme = world.acme();
    for asset in ["EUR", "USDT"] {
        for _ in 0..4 {
            world.operator().credit(ACME, "1", asset).await;
        }
    }
    let first = ledger(&acme, "limit=2").await;
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let next = ledger(&acme, &format!("limit=2&cursor={cursor}")).await;
    assert_eq!(column(&next, "balanceAfter"), ["2.00", "1.00"]);
    let changed = |place: &str| cursor.replacen("lc_3", place, 1);
    for (currency, cursor) in [
        ("USDT", cursor.clone()),
        ("EUR", cursor.replace("_test_", "_live_")),
        ("EUR", changed("lc_2")),
        ("EUR", changed("lc_9")),
        ("USDT", changed("lc_9")),
    ] {
        let page = ledger(&acme, &format!("currency={currency}&cursor={cursor}")).await;
        assert_eq!(page["entries"], json!([]), "{currency} {cursor}");
        assert_eq!(
            (&page["nextCursor"], &page["hasMore"]),
            (&Value::Null, &json!(false))
        );
    }
    for bad in [
        changed("lc_0"),
        changed("lc_03"),
        changed("lc_-3"),
        changed("lc_99999999999999999999"),
        cursor.to_lowercase(),
        cursor[..20].to_owned(),
        "lc_3".to_owned(),
    ] {
        let answer = acme.get(&format!("/v1/pools/ledger?cursor={bad}")).await;
        answer.refused(400, "invalid_request").saying("cursor");
    }
    world.finish().await;
}
