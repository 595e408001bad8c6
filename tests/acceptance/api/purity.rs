//! Reads that change nothing: every row of every table is the same before and after.

use acceptance::{ACME, ACME_PUBLISHABLE, World};

/// Acme with a row in every table.
async fn full() -> (World, Vec<String>) {
    let world = World::new().await;
    let acme = world.acme();
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world.operator().credit(ACME, "500", "USDT").await;
    let mut paths: Vec<String> = [
        "/v1/pools",
        "/v1/pools/EUR-USDT/capabilities",
        "/v1/pools/EUR-USDT/balance",
        "/v1/pools/funding",
        "/v1/pools/trades",
        "/v1/pools/trades?status=reserved&limit=1",
        "/v1/pools/ledger",
        "/v1/pools/ledger?currency=USDT&limit=1",
    ]
    .map(str::to_owned)
    .to_vec();
    let open = acme.buy("EUR-USDT", "10").await;
    let rejected = acme.buy("EUR-USDT", "10").await;
    acme.reject(&rejected).await.ok();
    let mut quotes = vec![open, rejected];
    for amount in ["10", "10.21", "10.31", "10.32", "10.33", "10.41", "10.99"] {
        let (quote, trade) = acme.trade("EUR-USDT", amount).await;
        acme.poll(&quote).await.ok();
        world.notice(ACME, &trade).await;
        paths.push(format!("/v1/pools/trades/{trade}"));
        paths.push(format!("/v1/pools/trades?cursor={trade}"));
        quotes.push(quote);
    }
    let (quote, trade) = acme.trade("EUR-USDT", "12").await;
    paths.push(format!("/v1/pools/trades/{trade}"));
    quotes.push(quote);
    paths.extend(
        quotes
            .iter()
            .map(|quote| format!("/v1/pools/quotes/{quote}")),
    );
    (world, paths)
}

// rule: pools.list.pure, pools.quote-record.pure, pools.trades.pure, pools.ledger.pure, pools.trade.only-polls
#[tokio::test]
async fn reads_change_no_row_and_ask_no_engine() {
    let (world, paths) = full().await;
    world.engine().asked();
    world.rates().asked();
    let before = world.database().digest().await;
    // After every expiry and every cleanup deadline.
    for wait in [0, 20_000, 3 * 86_400_000, 365 * 86_400_000] {
        world.after(wait);
        for path in &paths {
            world.acme().get(path).await.ok();
            world.rival().get(path).await;
            world.client(ACME_PUBLISHABLE).get(path).await;
        }
    }
    assert_eq!(world.database().digest().await, before);
    assert_eq!(
        (world.engine().asked(), world.rates().asked()),
        (vec![], vec![])
    );
    world.finish().await;
}

// rule: pools.trade.terminal, pools.trade.return-window
#[tokio::test]
async fn polling_what_is_over_writes_nothing_either() {
    let (world, _) = full().await;
    let over =
        "SELECT ulid(quote_id) FROM trades WHERE status IN ('failed', 'released', 'returned')";
    let over = world.database().texts(over).await;
    assert_eq!(over.len(), 2);
    let before = world.database().digest().await;
    world.engine().asked();
    for quote in over {
        world.acme().poll(&format!("pq_test_{quote}")).await.ok();
    }
    assert_eq!(world.database().digest().await, before);
    assert_eq!(world.engine().asked(), [], "the engine is not asked");
    world.finish().await;
}

// rule: error.six-fields, pools.transact.refusal-leaves-nothing
#[tokio::test]
async fn refusals_of_every_kind_change_no_row() {
    let (world, paths) = full().await;
    let before = world.database().digest().await;
    let acme = world.acme();
    for path in &paths {
        let path = path.split('?').next().unwrap();
        world
            .send(acceptance::Call::new("DELETE", path))
            .await
            .refused(405, "method_not_allowed");
        world
            .send(acceptance::Call::get(path))
            .await
            .refused(401, "unauthorized");
    }
    acme.transact("EUR-USDT", "x", "k")
        .await
        .refused(400, "invalid_request");
    acme.ask("EUR-USDT", &serde_json::json!({}))
        .await
        .refused(400, "invalid_request");
    acme.get("/v1/pools/trades?limit=0")
        .await
        .refused(400, "invalid_request");
    assert_eq!(world.database().digest().await, before);
    world.finish().await;
}
