//! `GET /v1/pools/trades` and `GET /v1/pools/trades/{transactId}`.

use acceptance::{ACME, Client, World};
use serde_json::{Value, json};

async fn funded() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "100000.00", "EUR").await;
    world.operator().credit(ACME, "1000", "USDT").await;
    world
}

async fn page(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/pools/trades?{query}")).await.ok()
}

fn ids(page: &Value) -> Vec<String> {
    let data = page["data"].as_array().unwrap().iter();
    data.map(|trade| trade["transactId"].as_str().unwrap().to_owned())
        .collect()
}

/// All pages from first to last.
async fn walk(client: &Client, query: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = page(client, &format!("{query}{cursor}")).await;
        let found = ids(&page);
        all.extend(found.clone());
        assert_eq!(
            page["hasMore"].as_bool().unwrap(),
            page["nextCursor"].is_string()
        );
        let Some(next) = page["nextCursor"].as_str() else {
            return all;
        };
        assert_eq!(
            Some(next),
            found.last().map(String::as_str),
            "the cursor is the page's last id"
        );
        cursor = format!("&cursor={next}");
    }
}

// rule: pools.trades.shape, pools.trades.equals-quote
#[tokio::test]
async fn trade_has_eighteen_fields() {
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    let mut wanted = json!({
        "transactId": trade, "quoteId": quote, "poolId": "EUR-USDT", "pair": "EUR/USDT", "side": "on_ramp",
        "status": "reserved", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "cryptoNetwork": "tron",
        "fiatAmount": "100.00", "cryptoAmount": "107.90325", "quotedRate": "1.0790325", "spreadBps": 25, "feeBps": 30,
        "totalBps": 55, "engineFillTxId": null, "createdAt": "2026-05-25T12:00:00.000Z", "settledAt": null,
    });
    let read = acme.read(&trade).await.ok();
    assert_eq!(read, wanted);
    world.after(2_000);
    acme.poll(&quote).await.ok();
    let read = acme.read(&trade).await.ok();
    wanted["status"] = json!("settled");
    wanted["settledAt"] = json!("2026-05-25T12:00:02.000Z");
    wanted["engineFillTxId"] = read["engineFillTxId"].clone();
    assert_eq!(read, wanted);
    assert_eq!(
        page(&acme, "").await,
        json!({ "data": [read], "nextCursor": null, "hasMore": false })
    );
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.trades.page
#[tokio::test]
async fn list_without_trades_is_an_empty_page() {
    let world = World::new().await;
    let empty = json!({ "data": [], "nextCursor": null, "hasMore": false });
    assert_eq!(page(&world.acme(), "").await, empty);
    assert_eq!(
        page(&world.acme(), "limit=1&side=on_ramp&status=settled").await,
        empty
    );
    world.finish().await;
}

// rule: list.order, list.no-loss, pools.trades.limit, pools.trades.page
#[tokio::test]
async fn pages_neither_lose_nor_repeat_although_instants_are_equal() {
    let world = funded().await;
    let acme = world.acme();
    let mut made = Vec::new();
    for round in 0..53_u64 {
        made.push(acme.trade("EUR-USDT", "10").await.1);
        // Groups of trades at one instant, and of trades a millisecond apart.
        world.after(u64::from(round % 9 == 0));
    }
    let first = page(&acme, "").await;
    assert_eq!(
        (first["data"].as_array().unwrap().len(), &first["hasMore"]),
        (50, &json!(true))
    );
    let all = walk(&acme, "limit=100").await;
    let mut sorted = all.clone();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(
        (all.len(), &all),
        (53, &sorted),
        "newest first, and by id where instants are equal"
    );
    made.sort_unstable();
    sorted.reverse();
    assert_eq!(made, sorted);
    for query in ["", "limit=7", "limit=52", "limit=53", "limit=54"] {
        assert_eq!(walk(&acme, query).await, all, "{query}");
    }
    let exact = page(&acme, "limit=53").await;
    assert_eq!(
        (&exact["nextCursor"], &exact["hasMore"]),
        (&Value::Null, &json!(false))
    );
    world.finish().await;
}

// rule: pools.trades.limit, request.repeated-query
#[tokio::test]
async fn list_limit_is_validated() {
    let world = World::new().await;
    let acme = world.acme();
    for bad in [
        "0",
        "101",
        "-1",
        "1.0",
        "",
        "ten",
        "%205",
        "99999999999999999999",
    ] {
        let answer = acme.get(&format!("/v1/pools/trades?limit={bad}")).await;
        answer.refused(400, "invalid_request").saying("limit");
    }
    for good in ["1", "100", "050", "1&x=1&x=2"] {
        page(&acme, &format!("limit={good}")).await;
    }
    for (name, value) in [
        ("limit", "5"),
        ("cursor", "txn_test_01HF7YAT00408104G208104081"),
        ("side", "on_ramp"),
        ("status", "settled"),
        ("created_after", "2026-05-25"),
        ("created_before", "2026-05-25"),
    ] {
        let answer = acme
            .get(&format!("/v1/pools/trades?{name}={value}&{name}={value}"))
            .await;
        answer.refused(400, "invalid_request").saying(name);
    }
    world.finish().await;
}

// rule: pools.trades.filters, pools.trades.quoted, pools.trades.unknown-filter
#[tokio::test]
async fn filters_combine() {
    let world = funded().await;
    let acme = world.acme();
    let mut made = Vec::new();
    for (amount, selling) in [
        ("10", false),
        ("20.31", false),
        ("30.32", false),
        ("40.41", false),
        ("50", true),
        ("60.31", true),
        ("70", true),
    ] {
        world.after(1_000);
        let quote = if selling {
            acme.sell("EUR-USDT", amount).await
        } else {
            acme.buy("EUR-USDT", amount).await
        };
        let ack = acme.transact("EUR-USDT", &quote, &quote).await.ok();
        made.push(ack["transactId"].as_str().unwrap().to_owned());
        if amount != "70" {
            acme.poll(&quote).await.ok();
            acme.poll(&quote).await.ok();
        }
    }
    let pick = |places: &[usize]| -> Vec<String> {
        places.iter().map(|place| made[*place].clone()).collect()
    };
    for (query, places) in [
        ("", &[6, 5, 4, 3, 2, 1, 0][..]),
        ("side=on_ramp", &[3, 2, 1, 0]),
        ("side=off_ramp", &[6, 5, 4]),
        ("status=settled", &[4, 0]),
        ("status=failed", &[5, 1]),
        ("status=released", &[2]),
        ("status=returned", &[3]),
        ("status=reserved", &[6]),
        ("status=quoted", &[]),
        ("side=off_ramp&status=failed", &[5]),
        ("side=off_ramp&status=returned", &[]),
        ("side=on_ramp&created_after=2026-05-25T12:00:03Z", &[3, 2]),
        ("status=failed&created_before=2026-05-25T12:00:02Z", &[1]),
        (
            "status=settled&created_after=2026-05-25T12:00:02Z&created_before=2026-05-25T12:00:05Z&side=off_ramp",
            &[4],
        ),
    ] {
        assert_eq!(ids(&page(&acme, query).await), pick(places), "{query}");
        assert_eq!(
            walk(&acme, &format!("limit=1&{query}")).await,
            pick(places),
            "{query}"
        );
    }
    for bad in [
        "side=buy",
        "side=",
        "side=ON_RAMP",
        "status=",
        "status=done",
        "status=Settled",
        "status=settled,failed",
    ] {
        acme.get(&format!("/v1/pools/trades?{bad}"))
            .await
            .refused(400, "invalid_request")
            .saying(&bad[..4]);
    }
    acme.get("/v1/pools/trades?status=quoted&limit=0")
        .await
        .refused(400, "invalid_request");
    world.notice_all().await;
    world.finish().await;
}

// rule: pools.trades.bounds, time.input-offset, time.input-seconds, time.input-date, time.input-leap
#[tokio::test]
async fn bounds_include_their_instant_in_every_form() {
    let world = funded().await;
    let acme = world.acme();
    world.after(1_500);
    let (_, trade) = acme.trade("EUR-USDT", "10").await;
    // The trade was created at 2026-05-25T12:00:01.500Z.
    for (query, found) in [
        ("created_after=2026-05-25T12:00:01.500Z", true),
        ("created_after=2026-05-25T12:00:01.501Z", false),
        ("created_before=2026-05-25T12:00:01.500Z", true),
        ("created_before=2026-05-25T12:00:01.499Z", false),
        ("created_after=2026-05-25T12:00:01.5Z", true),
        ("created_after=2026-05-25T12:00:01.5000001Z", false),
        ("created_before=2026-05-25T12:00:01.4999999Z", false),
        ("created_before=2026-05-25T12:00:01.5009999Z", true),
        ("created_after=2026-05-25T12:00Z", true),
        ("created_after=2026-05-25T14:01%2B02:00", false),
        ("created_after=2026-05-25T14:00:01.500%2B02:00", true),
        ("created_after=2026-05-25T14:00:01.501%2B02:00", false),
        ("created_before=2026-05-25T07:00:01.500-05:00", true),
        ("created_before=2026-05-25t12:00:02z", true),
        ("created_after=2026-05-25", true),
        ("created_after=2026-05-26", false),
        ("created_before=2026-05-25", false),
        ("created_before=2026-05-26", true),
        ("created_after=2026-05-25T11:59:60Z", true),
        ("created_before=2026-05-25T11:59:60Z", false),
        ("created_after=2026-05-26&created_before=2026-05-24", false),
        ("created_after=0001-01-01&created_before=9999-12-31", true),
    ] {
        let wanted: &[String] = if found {
            std::slice::from_ref(&trade)
        } else {
            &[]
        };
        assert_eq!(ids(&page(&acme, query).await), wanted, "{query}");
    }
    world.finish().await;
}

// rule: pools.trades.unknown-filter, time.input-plus
#[tokio::test]
async fn malformed_dates_are_refused() {
    let world = World::new().await;
    for name in ["created_after", "created_before"] {
        for bad in ["", "yesterday", "2026-02-30", "2026-05-25T12:00:00", "%00"] {
            let answer = world
                .acme()
                .get(&format!("/v1/pools/trades?{name}={bad}"))
                .await;
            answer.refused(400, "invalid_request").saying(name);
        }
        let answer = world
            .acme()
            .get(&format!(
                "/v1/pools/trades?{name}=2026-05-25T12:00:00+02:00"
            ))
            .await;
        answer
            .refused(400, "invalid_request")
            .saying("%2B")
            .saying(name);
    }
    world.finish().await;
}

// rule: list.foreign-cursor, list.malformed-cursor, id.other-mode
#[tokio::test]
async fn foreign_and_unknown_cursors_return_an_empty_page() {
    let world = funded().await;
    let acme = world.acme();
    world
        .operator()
        .credit(acceptance::RIVAL, "100.00", "EUR")
        .await;
    let (quote, trade) = acme.trade("EUR-USDT", "10").await;
    let (_, foreign) = world.rival().trade("EUR-USDT", "10").await;
    let empty = json!({ "data": [], "nextCursor": null, "hasMore": false });
    let live = trade.replace("_test_", "_live_");
    for cursor in [
        &*foreign,
        &live,
        "txn_test_01HF7YAT00408104G208104081",
        "txn_test_7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    ] {
        assert_eq!(
            page(&acme, &format!("cursor={cursor}")).await,
            empty,
            "{cursor}"
        );
        assert_eq!(
            page(&acme, &format!("cursor={cursor}&status=reserved")).await,
            empty,
            "{cursor}"
        );
    }
    let lower = trade.to_lowercase();
    for bad in [
        "",
        "x",
        &quote,
        &lower,
        &trade[..30],
        "txn_prod_01HF7YAT00408104G208104081",
        "%00",
        "1",
        "null",
    ] {
        let answer = acme.get(&format!("/v1/pools/trades?cursor={bad}")).await;
        answer.refused(400, "invalid_request").saying("cursor");
    }
    assert_eq!(ids(&page(&acme, "").await), [trade]);
    world.finish().await;
}
