//! The status poll: the only call that moves a trade.

use acceptance::{ACME, ADDRESS, Asked, RIVAL, Reply, World, money, purchase, sale};
use pools_core::trade::{EngineReport, TradeStatus};
use serde_json::{Value, json};

const DAY: u64 = 24 * 60 * 60 * 1000;

pub(crate) async fn funded() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world.operator().credit(ACME, "1000", "USDT").await;
    world
}

/// The engine's report requests: attempt number and known state of each.
pub(crate) fn report_requests(world: &World) -> Vec<(u32, TradeStatus)> {
    let asked = world.engine().asked().into_iter();
    asked
        .filter_map(|asked| match asked {
            Asked::Report(request) => Some((request.attempt, request.known)),
            _ => None,
        })
        .collect()
}

// rule: pools.status.shape
#[tokio::test]
async fn poll_view_has_seven_fields_and_no_amounts() {
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100.21").await;
    world.after(2_000);
    let mut wanted = json!({
        "transactId": trade, "quoteId": quote, "status": "reserved", "poolId": "EUR-USDT", "side": "on_ramp",
        "createdAt": "2026-05-25T12:00:00.000Z", "settledAt": null,
    });
    assert_eq!(acme.poll(&quote).await.ok(), wanted);
    world.after(2_500);
    wanted["status"] = json!("settled");
    wanted["settledAt"] = json!("2026-05-25T12:00:04.500Z");
    assert_eq!(acme.poll(&quote).await.ok(), wanted);
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: sandbox.settles, sandbox.second-poll, sandbox.failed, sandbox.released, sandbox.silent, sandbox.returned, sandbox.by-value, pools.trade.settle, pools.trade.fail, pools.trade.release, pools.trade.return, pools.event.once, pools.event.none-else, pools.ledger.buy-refund, pools.ledger.sell-refund, pools.ledger.sell-returned
#[tokio::test]
async fn sandbox_table_holds_on_both_sides() {
    for (fraction, statuses) in [
        (".00", ["settled", "settled", "settled"]),
        (".99", ["settled", "settled", "settled"]),
        (".21", ["reserved", "settled", "settled"]),
        (".31", ["failed", "failed", "failed"]),
        (".32", ["released", "released", "released"]),
        (".33", ["reserved", "settled", "settled"]),
        (".41", ["settled", "returned", "returned"]),
    ] {
        for buying in [true, false] {
            path(fraction, buying, statuses).await;
        }
    }
}

async fn path(fraction: &str, buying: bool, statuses: [&str; 3]) {
    let world = funded().await;
    let acme = world.acme();
    let amount = format!("100{fraction}");
    let quote = if buying {
        acme.buy("EUR-USDT", &amount).await
    } else {
        acme.sell("EUR-USDT", &amount).await
    };
    let trade = acme.transact("EUR-USDT", &quote, "k").await.ok()["transactId"]
        .as_str()
        .unwrap()
        .to_owned();
    let fiat = acme.quote(&quote).await.ok()["fiatAmount"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut settled_at = Value::Null;
    for status in statuses {
        world.after(1_000);
        assert_eq!(acme.status(&quote).await, status, "{amount}");
        let read = acme.read(&trade).await.ok();
        let settled = matches!(status, "settled" | "returned");
        assert_eq!(read["status"], status);
        assert_eq!(
            (
                read["settledAt"].is_string(),
                read["engineFillTxId"].is_string()
            ),
            (settled, settled)
        );
        if settled_at.is_string() {
            assert_eq!(
                read["settledAt"], settled_at,
                "the final status never changes"
            );
        }
        settled_at = read["settledAt"].clone();
    }
    let last = statuses[2];
    let (bought, sold) = (acme.ledger("EUR").await, acme.ledger("USDT").await);
    let moves = |ledger: &Value| -> Vec<String> {
        let entries = ledger["entries"].as_array().unwrap().iter();
        let of_trade = entries
            .filter(|entry| entry["transactId"] == json!(trade) && entry["ref"] == json!(quote));
        of_trade
            .map(|entry| {
                format!(
                    "{} {}",
                    entry["reason"].as_str().unwrap(),
                    entry["delta"].as_str().unwrap()
                )
            })
            .collect()
    };
    let given_back = last != "settled";
    let wanted = |reserve: String, back: String| {
        let mut entries = vec![reserve];
        if given_back {
            entries.insert(0, back);
        }
        entries
    };
    if buying {
        assert_eq!(
            moves(&bought),
            wanted(
                format!("buy_debit -{amount}"),
                format!("buy_refund {amount}")
            )
        );
        assert_eq!(moves(&sold), Vec::<String>::new());
    } else {
        let crypto = amount.trim_end_matches('0').trim_end_matches('.');
        let debit = format!("sell_debit -{crypto}");
        let (crypto_moves, fiat_moves) = if last == "returned" {
            (vec![debit], vec![format!("buy_refund {fiat}")])
        } else {
            (wanted(debit, format!("sell_refund {crypto}")), vec![])
        };
        assert_eq!((moves(&sold), moves(&bought)), (crypto_moves, fiat_moves));
    }
    let event = if last == "returned" { "settled" } else { last };
    assert_eq!(
        world.notice(ACME, &trade).await,
        [format!("pool.transaction.{event}")]
    );
    world.finish().await;
}

// rule: pools.trade.only-polls, pools.trades.pure
#[tokio::test]
async fn trade_moves_only_by_a_poll() {
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    world.engine().asked();
    let before = world.database().digest().await;
    world.after(40 * DAY);
    for path in [
        format!("/v1/pools/trades/{trade}"),
        "/v1/pools/trades".to_owned(),
        "/v1/pools/ledger".to_owned(),
        "/v1/pools/EUR-USDT/balance".to_owned(),
        format!("/v1/pools/quotes/{quote}"),
        "/v1/pools/funding".to_owned(),
    ] {
        acme.get(&path).await.ok();
    }
    assert_eq!(acme.read(&trade).await.ok()["status"], "reserved");
    assert_eq!(
        (world.database().digest().await, world.engine().asked()),
        (before, vec![])
    );
    world.finish().await;
}

// rule: pools.event.once, pools.event.same-transaction, pools.trades.equals-quote
#[tokio::test]
async fn event_body_equals_the_trade_resource() {
    let world = funded().await;
    world.operator().credit(RIVAL, "100.00", "EUR").await;
    for (client, partner, amount) in [
        (world.acme(), ACME, "100"),
        (world.acme(), ACME, "100.31"),
        (world.acme(), ACME, "100.32"),
        (world.rival(), RIVAL, "100"),
    ] {
        let (quote, trade) = client.trade("EUR-USDT", amount).await;
        world.after(1_500);
        client.poll(&quote).await.ok();
        let mut read = client.read(&trade).await.ok();
        let events = world.events(partner, &trade).await;
        let [(kind, body)] = &events[..] else {
            panic!("{events:?}")
        };
        read["eventId"] = body["eventId"].clone();
        read["type"] = json!(kind);
        assert_eq!(*body, read);
        assert_eq!(
            *kind,
            format!("pool.transaction.{}", read["status"].as_str().unwrap())
        );
    }
    let (events, deliveries) = (
        world.database().count("events").await,
        world.database().count("deliveries").await,
    );
    assert_eq!(
        (events, deliveries),
        (4, 3),
        "rival has no endpoint, but its event is still written"
    );
    world.finish().await;
}

// rule: pools.trade.silent-engine, pools.trade.no-timeout-decides, pools.engine.one-key
#[tokio::test]
async fn engine_silence_never_ends_a_trade() {
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    world.engine().asked();
    world.engine().report(Reply::Silent);
    for _ in 0..4 {
        assert_eq!(acme.status(&quote).await, "reserved");
        world.after(10 * DAY);
    }
    world.engine().report(Reply::Sandbox);
    assert_eq!(acme.status(&quote).await, "settled");
    let asked = world.engine().asked().into_iter();
    let named: Vec<_> = asked
        .map(|asked| match asked {
            Asked::Confirm(trade) => trade,
            Asked::Report(request) => request.trade,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        named.len() == 10 && named.iter().all(|named| named.to_string() == trade),
        "{named:?}"
    );
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.trade.return-window
#[tokio::test]
async fn settled_trade_is_polled_for_thirty_days() {
    for (wait, returned) in [(30 * DAY - 1, true), (30 * DAY, false)] {
        let world = funded().await;
        let acme = world.acme();
        let (quote, trade) = acme.trade("EUR-USDT", "100").await;
        world.after(5_000);
        assert_eq!(acme.status(&quote).await, "settled");
        world.engine().asked();
        world
            .engine()
            .report(Reply::Says(EngineReport::Reversed(None)));
        world.after(wait);
        assert_eq!(
            acme.status(&quote).await,
            if returned { "returned" } else { "settled" }
        );
        assert_eq!(report_requests(&world).len(), usize::from(returned));
        world.notice(ACME, &trade).await;
        world.finish().await;
    }
}

// rule: pools.trade.delivers-to-quote, pools.quote.amount-side, pools.engine.confirm
#[tokio::test]
async fn engine_receives_the_order_of_the_quote() {
    let world = funded().await;
    let acme = world.acme();
    let mut bought = purchase("EUR-USDT", "100.21");
    bought["cryptoNetwork"] = json!("bsc");
    bought["destNetwork"] = json!("arbitrum");
    for (body, amount, delivered) in [
        (bought, money("100.21", "EUR"), Some(("arbitrum", ADDRESS))),
        (sale("EUR-USDT", "100.21"), money("100.21", "USDT"), None),
    ] {
        let quote = acme.ask("EUR-USDT", &body).await.ok()["quoteId"]
            .as_str()
            .unwrap()
            .to_owned();
        acme.transact("EUR-USDT", &quote, &quote).await.ok();
        acme.poll(&quote).await.ok();
        let asked = world.engine().asked();
        let [
            Asked::Depth(quoted),
            Asked::Hold(_, held),
            Asked::Confirm(_),
            Asked::Confirm(_),
            Asked::Report(request),
        ] = &asked[..]
        else {
            panic!("{asked:?}")
        };
        let order = &request.order;
        assert_eq!((quoted, held), (order, order));
        assert_eq!(order.amount, amount);
        let destination = order.destination.as_ref();
        let destination = destination.map(|it| (it.network.as_str(), it.address.as_str()));
        assert_eq!(destination, delivered);
    }
    world.finish().await;
}

// rule: pools.status.not-found
#[tokio::test]
async fn quote_without_trade_has_no_status() {
    let world = funded().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    acme.poll(&quote).await.refused(404, "resource_not_found");
    let (traded, trade) = acme.trade("EUR-USDT", "100").await;
    world
        .rival()
        .poll(&traded)
        .await
        .refused(404, "resource_not_found");
    acme.poll(&trade).await.refused(404, "resource_not_found");
    assert_eq!(acme.read(&trade).await.ok()["status"], "reserved");
    world.finish().await;
}
