//! The operator's engine over HTTP: the requests it receives, the effect of its responses, and that
//! a missing response decides nothing.

use std::time::Duration;

use acceptance::{ACME, ADDRESS, Asked, FarEngine, FarFault, RIVAL, World, purchase};
use serde_json::{Value, json};
use test_support::engine::Stage;

const SECRET: &str = "a-secret-of-the-engine";

async fn far() -> (World, FarEngine) {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world.operator().credit(ACME, "1000", "USDT").await;
    let far = FarEngine::start();
    world.engine().becomes(far.adapter(SECRET));
    (world, far)
}

/// Responses that violate the contract of an operation.
fn faults() -> Vec<FarFault> {
    let mut faults = vec![FarFault::Broken];
    for (status, body) in [
        (500, r#"{"status":"refused"}"#),
        (503, ""),
        (404, r#"{"status":"lapsed"}"#),
        (409, r#"{"status":"refused"}"#),
        (302, r#"{"status":"held"}"#),
        (204, ""),
        (200, ""),
        (200, "<html>held</html>"),
        (200, r#"{"status":"heldd"}"#),
        (200, r#"{"state":"held"}"#),
        (200, r#"["held"]"#),
        (200, r#"{"status":{"enough":null}}"#),
        (200, r#"{"status":{"held":null}}"#),
        (200, r#"{"status":{"lapsed":null}}"#),
        (200, r#"{"status":{"failed":null}}"#),
        (200, r#"{"status":"held","status":"refused"}"#),
        (200, r#"{"status":"delivered"}"#),
        (200, r#"{"status":"delivered","fillTxId":""}"#),
        (200, r#"{"status":"delivered","fillTxId":"a b"}"#),
        (200, r#"{"status":"returned","fillTxId":"a b"}"#),
        (200, r#"{"status":"returned","fillTxId":7}"#),
    ] {
        faults.push(FarFault::Says(status, body.to_owned()));
    }
    let long = format!(r#"{{"status":"held","pad":"{}"}}"#, "x".repeat(70_000));
    faults.push(FarFault::Says(200, long));
    faults
}

// rule: engine.http.calls, engine.http.secret, engine.http.contract
#[tokio::test]
async fn purchase_is_held_confirmed_and_delivered_under_the_trades_id() {
    let (world, far) = far().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100.00").await;
    let view = acme.poll(&quote).await.ok();
    assert_eq!(view["status"], "settled");
    let fill = format!("fill-{trade}");
    assert_eq!(acme.read(&trade).await["engineFillTxId"], fill);
    let calls = far.calls();
    let operations: Vec<&str> = calls.iter().map(|call| &*call.operation).collect();
    let wanted = ["depth", "hold", "confirm", "confirm", "report"];
    assert_eq!(operations, wanted);
    assert!(calls[1..].iter().all(|call| call.trade == trade));
    assert!(
        calls
            .iter()
            .all(|call| call.authorization == format!("Bearer {SECRET}"))
    );
    let order = json!({
        "pool": "EUR-USDT", "side": "on_ramp", "input": { "amount": "100.00", "asset": "EUR" }, "network": "tron",
        "destination": { "address": ADDRESS, "network": "tron" },
    });
    assert_eq!(calls[0].body, order);
    let output = json!({ "amount": "107.90325", "asset": "USDT" });
    assert_eq!(calls[1].body, json!({ "order": order, "output": output }));
    assert_eq!(far.book().into_values().collect::<Vec<_>>(), [Some(1)]);
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: engine.http.reports
#[tokio::test]
async fn each_report_moves_the_trade_to_its_status() {
    let (world, far) = far().await;
    let acme = world.acme();
    let delivered = json!({ "status": "delivered", "fillTxId": "f" });
    for (reports, statuses) in [
        (
            [json!({ "status": "in_progress" }), delivered.clone()],
            ["reserved", "settled"],
        ),
        (
            [json!({ "status": "failed" }), delivered.clone()],
            ["failed", "failed"],
        ),
        (
            [json!({ "status": "released" }), delivered.clone()],
            ["released", "released"],
        ),
        (
            [delivered.clone(), json!({ "status": "returned" })],
            ["settled", "returned"],
        ),
        (
            [
                json!({ "status": "returned" }),
                json!({ "status": "returned" }),
            ],
            ["returned", "returned"],
        ),
    ] {
        let (quote, _) = acme.trade("EUR-USDT", "10.00").await;
        for (report, status) in reports.iter().zip(statuses) {
            far.reports(Some(report.clone()));
            assert_eq!(acme.status(&quote).await, status, "{report}");
        }
    }
    far.reports(None);
    // The engine lets unconfirmed holds expire, and the partner gets the money back.
    far.fails("confirm", FarFault::Says(503, String::new()));
    let (quote, _) = acme.trade("EUR-USDT", "10.00").await;
    far.lapse();
    assert_eq!(acme.status(&quote).await, "reserved");
    far.mended();
    assert_eq!(acme.status(&quote).await, "released");
    let (quote, _) = sold(&world).await;
    assert_eq!(acme.status(&quote).await, "settled");
    world.notice_all().await;
    world.finish().await;
}

// rule: pools.trade.returned-unseen, engine.http.reports
#[tokio::test]
async fn poll_returns_trade_that_came_back_before_any_poll() {
    let (world, far) = far().await;
    let acme = world.acme();
    far.course(&[Stage::Delivered, Stage::Returned]);
    for (report, names_fill) in [(None, true), (Some(json!({ "status": "returned" })), false)] {
        let (quote, trade) = acme.trade("EUR-USDT", "100.00").await;
        far.reports(report);
        assert_eq!(acme.status(&quote).await, "returned");
        let fill = match names_fill {
            true => format!("fill-{trade}"),
            false => format!("unknown:{trade}"),
        };
        assert_eq!(acme.read(&trade).await["engineFillTxId"], fill);
        assert_eq!(acme.balance("EUR-USDT").await, "1000.00");
        assert_eq!(
            world.notice(ACME, &trade).await,
            ["pool.transaction.settled"]
        );
    }
    world.finish().await;
}

// rule: pools.trade.returned-unseen, pools.trade.converge, engine.http.once
#[tokio::test]
async fn engine_ahead_of_polls_ends_trade_with_its_final_report() {
    use Stage::{Delivered, Failed, Released, Returned};
    let (world, far) = far().await;
    let acme = world.acme();
    far.course(&[]);
    for (steps, end, costs) in [
        (vec![Delivered], "settled", true),
        (vec![Delivered, Returned], "returned", false),
        (vec![Failed], "failed", false),
        (vec![Released], "released", false),
    ] {
        for fault in [FarFault::Broken, FarFault::Repeated] {
            let before = acme.balance("EUR-USDT").await;
            let (quote, trade) = acme.trade("EUR-USDT", "10.00").await;
            let debited = acme.balance("EUR-USDT").await;
            assert_eq!(acme.status(&quote).await, "reserved");
            far.goes(&trade, &steps);
            // The engine has finished the trade, but its responses are lost or repeat earlier ones.
            for operation in ["confirm", "report"] {
                far.fails(operation, FarFault::Broken);
                assert_eq!(acme.status(&quote).await, "reserved");
            }
            far.fails("report", fault);
            assert_eq!(acme.status(&quote).await, "reserved");
            far.mended();
            assert_eq!(acme.status(&quote).await, end);
            let wanted = if costs { debited } else { before };
            assert_eq!(acme.balance("EUR-USDT").await, wanted);
            world.notice(ACME, &trade).await;
        }
    }
    assert_eq!(world.engine().contradictions(), []);
    world.finish().await;
}

async fn sold(world: &World) -> (String, String) {
    let acme = world.acme();
    let quote = acme.sell("EUR-USDT", "20").await;
    let sold = acme
        .transact("EUR-USDT", &quote, &format!("key-{quote}"))
        .await;
    let trade = sold.ok()["transactId"].as_str().unwrap().to_owned();
    (quote, trade)
}

// rule: engine.http.silence
#[tokio::test]
async fn invalid_engine_response_neither_prices_nor_holds() {
    let (world, far) = far().await;
    let acme = world.acme();
    let order = purchase("EUR-USDT", "100.00");
    let quote = acme.buy("EUR-USDT", "100.00").await;
    for fault in faults() {
        far.fails("depth", fault.clone());
        let unavailable = acme.ask("EUR-USDT", &order).await.ok();
        assert_eq!(
            unavailable["unavailableReason"], "engine_unavailable",
            "{fault:?}"
        );
        far.fails("hold", fault.clone());
        let refused = acme.transact("EUR-USDT", &quote, "k").await;
        refused.refused(503, "engine_unavailable");
    }
    world.engine().becomes(FarEngine::nowhere());
    let unavailable = acme.ask("EUR-USDT", &order).await.ok();
    assert_eq!(unavailable["unavailableReason"], "engine_unavailable");
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(503, "engine_unavailable");
    assert_eq!(world.database().count("trades").await, 0);
    // Any hold was released, and the same key works once the engine responds.
    assert!(far.book().values().all(Option::is_none), "{:?}", far.book());
    far.mended();
    world.engine().becomes(far.adapter(SECRET));
    far.dry(true);
    assert_eq!(
        acme.ask("EUR-USDT", &order).await["unavailableReason"],
        "pool_dry"
    );
    far.refuses(true);
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(409, "reservation_failed");
    far.refuses(false);
    acme.transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(world.database().count("trades").await, 1);
    world.finish().await;
}

// rule: engine.http.silence
#[tokio::test]
async fn invalid_engine_response_leaves_the_trade_unchanged() {
    let (world, far) = far().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100.00").await;
    let before = acme.balance("EUR-USDT").await;
    for operation in ["confirm", "report"] {
        for fault in faults() {
            far.fails(operation, fault.clone());
            assert_eq!(
                acme.status(&quote).await,
                "reserved",
                "{operation}: {fault:?}"
            );
        }
    }
    world.engine().becomes(FarEngine::nowhere());
    assert_eq!(acme.status(&quote).await, "reserved");
    assert_eq!(acme.balance("EUR-USDT").await, before);
    far.mended();
    world.engine().becomes(far.adapter(SECRET));
    assert_eq!(acme.status(&quote).await, "settled");
    assert_eq!(far.book().get(&trade), Some(&Some(1)));
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: engine.http.once
#[tokio::test]
async fn lost_engine_response_is_requested_again_and_acts_once() {
    let (world, far) = far().await;
    let acme = world.acme();
    let soon = |millis| far.adapter_with_timeout(SECRET, Duration::from_millis(millis));
    // The first confirmation delivers, but its response is lost.
    for (operation, fault) in [
        ("confirm", FarFault::Broken),
        ("confirm", FarFault::Late),
        ("report", FarFault::Late),
    ] {
        let late = matches!(fault, FarFault::Late);
        let quote = acme.buy("EUR-USDT", "10.00").await;
        far.fails(operation, fault);
        if late {
            world.engine().becomes(soon(3_000));
        }
        let opened = acme.transact("EUR-USDT", &quote, &quote).await.ok();
        let trade = opened["transactId"].as_str().unwrap();
        if late {
            // A poll that a slow machine ends too early leaves the trade as a late response does.
            world.engine().becomes(soon(500));
        }
        assert_eq!(acme.status(&quote).await, "reserved");
        far.mended();
        world.engine().becomes(far.adapter(SECRET));
        assert_eq!(acme.status(&quote).await, "settled", "{operation}");
        assert_eq!(far.book().get(trade), Some(&Some(1)), "{operation}");
        world.notice(ACME, trade).await;
    }
    // The hold succeeds, but its response is lost: the quote stays open and the hold is released.
    let quote = acme.buy("EUR-USDT", "10.00").await;
    let debited = acme.balance("EUR-USDT").await;
    far.calls();
    far.fails("hold", FarFault::Late);
    world.engine().becomes(soon(3_000));
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(503, "engine_unavailable");
    assert_eq!(far.operations(), ["hold", "release"]);
    assert_eq!(acme.balance("EUR-USDT").await, debited);
    far.mended();
    world.engine().becomes(far.adapter(SECRET));
    acme.transact("EUR-USDT", &quote, "k").await.ok();
    let acted: Vec<Option<u32>> = far.book().into_values().collect();
    assert_eq!(
        acted.iter().filter(|acted| **acted == Some(1)).count(),
        4,
        "{acted:?}"
    );
    assert_eq!(
        acted.iter().filter(|acted| acted.is_none()).count(),
        1,
        "{acted:?}"
    );
    assert_eq!(acme.status(&quote).await, "settled");
    world.notice_all().await;
    world.finish().await;
}

/// Waits until the engine has received this many calls of an operation since the last call of [`FarEngine::calls`].
async fn wait_for(far: &FarEngine, operation: &str, count: usize) {
    let mut found = 0;
    for _ in 0..2_000 {
        let operations = far.operations();
        found += operations.iter().filter(|one| *one == operation).count();
        if found >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{found} of {count} calls of {operation}");
}

/// More polls of one partner wait for the engine than it makes at the same time.
// rule: pools.poll.even-share, pools.trade.silent-engine
#[tokio::test]
async fn slow_reports_of_one_partner_delay_no_other_call() {
    let (world, far) = far().await;
    world.operator().credit(RIVAL, "1000.00", "EUR").await;
    let (acme, rival) = (world.acme(), world.rival());
    let mut trades = Vec::new();
    for _ in 0..33 {
        trades.push(acme.trade("EUR-USDT", "10.00").await);
    }
    let stalled: Vec<String> = trades.iter().map(|(_, trade)| trade.clone()).collect();
    far.stalls(&stalled);
    far.calls();
    let (last, _) = trades.pop().unwrap();
    let waiting: Vec<_> = trades
        .into_iter()
        .map(|(quote, _)| {
            let acme = acme.clone();
            tokio::spawn(async move { acme.status(&quote).await })
        })
        .collect();
    wait_for(&far, "report", 32).await;
    // A further poll of the partner does not ask the engine and writes nothing.
    let before = world.database().digest().await;
    assert_eq!(acme.status(&last).await, "reserved");
    assert_eq!(far.operations(), [""; 0]);
    assert_eq!(world.database().digest().await, before);
    // Quotes and transacts of the partner, and all calls of another one, continue.
    acme.trade("EUR-USDT", "10.00").await;
    let (quote, _) = rival.trade("EUR-USDT", "10.00").await;
    assert_eq!(rival.status(&quote).await, "settled");
    assert!(waiting.iter().all(|poll| !poll.is_finished()));
    far.stalls(&[]);
    for poll in waiting {
        assert_eq!(poll.await.unwrap(), "settled");
    }
    assert_eq!(acme.status(&last).await, "settled");
    world.notice_all().await;
    world.finish().await;
}

/// More quotes of one partner wait for the engine than calls are made at the same time.
// rule: pools.engine.even-share
#[tokio::test]
async fn orders_of_one_partner_that_hang_delay_no_other_partner() {
    let (world, far) = far().await;
    let patient = far.adapter_with_timeout(SECRET, Duration::from_secs(120));
    world.engine().becomes(patient);
    world.operator().credit(RIVAL, "1000.00", "EUR").await;
    let (acme, rival) = (world.acme(), world.rival());
    far.stalls_depth(Some("66.66"));
    let waiting: Vec<_> = (0..260)
        .map(|_| {
            let acme = acme.clone();
            tokio::spawn(async move { acme.buy("EUR-USDT", "66.66").await })
        })
        .collect();
    wait_for(&far, "depth", 128).await;
    let (quote, _) = rival.trade("EUR-USDT", "10.00").await;
    assert_eq!(rival.status(&quote).await, "settled");
    let each_once = ["depth", "hold", "confirm", "confirm", "report"];
    assert_eq!(far.operations(), each_once);
    assert!(waiting.iter().all(|quote| !quote.is_finished()));
    far.stalls_depth(None);
    for quote in waiting {
        quote.await.unwrap();
    }
    world.notice_all().await;
    world.finish().await;
}

// rule: pools.engine.unsent
#[tokio::test]
async fn hold_that_was_not_sent_is_not_released() {
    let (world, far) = far().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "10.00").await;
    world.engine().becomes(FarEngine::nowhere());
    world.engine().asked();
    acme.transact("EUR-USDT", &quote, "k")
        .await
        .refused(503, "engine_unavailable");
    let asked = world.engine().asked();
    assert!(matches!(asked[..], [Asked::Hold(..)]), "{asked:?}");
    world.engine().becomes(far.adapter(SECRET));
    acme.transact("EUR-USDT", &quote, "k").await.ok();
    world.finish().await;
}

// rule: upstream.http.kept-connection
#[tokio::test]
async fn kept_connection_that_ends_under_a_request_costs_no_call() {
    let (world, far) = far().await;
    let (relay, engine) = far.behind_relay(SECRET).await;
    world.engine().becomes(engine);
    relay.end_kept(usize::MAX);
    let acme = world.acme();
    for _ in 0..3 {
        let (quote, trade) = acme.trade("EUR-USDT", "10.00").await;
        assert_eq!(acme.status(&quote).await, "settled");
        let each_once = ["depth", "hold", "confirm", "confirm", "report"];
        assert_eq!(far.operations(), each_once);
        world.notice(ACME, &trade).await;
    }
    assert!(relay.ended() > 0, "no connection was reused");
    world.finish().await;
}

// rule: upstream.http.head
#[tokio::test]
async fn engine_response_with_hundreds_of_header_lines_counts() {
    let (world, far) = far().await;
    far.adds_lines(300);
    let (quote, trade) = world.acme().trade("EUR-USDT", "10.00").await;
    assert_eq!(world.acme().status(&quote).await, "settled");
    world.notice(ACME, &trade).await;
    world.finish().await;
}

/// Mid rate and fill rate of a trade, as stored.
async fn rates(world: &World, trade: &str) -> String {
    let id = pools_core::trade::TradeId::parse(trade).unwrap().ulid();
    let rates = format!(
        "SELECT coalesce(mid, 'none') || ' ' || coalesce(fill_rate, 'none') FROM trades WHERE id = '{id}'"
    );
    world.database().texts(&rates).await.remove(0)
}

// rule: engine.http.fill-rate, engine.http.silence
#[tokio::test]
async fn delivered_report_may_carry_a_fill_rate_and_never_a_bad_one() {
    let (world, far) = far().await;
    let acme = world.acme();
    let delivered =
        |rate: &Value| json!({ "status": "delivered", "fillTxId": "f", "fillRate": rate });
    let (quote, trade) = acme.trade("EUR-USDT", "10.00").await;
    let texts = "-1 +1 0 0.000 1e3 1,5 .5 5. NaN".split(' ').chain([""]);
    let long = json!("1".repeat(40));
    for bad in texts
        .map(Value::from)
        .chain([json!(1.0849), json!(["1"]), long])
    {
        far.fails("report", FarFault::Says(200, delivered(&bad).to_string()));
        assert_eq!(acme.status(&quote).await, "reserved", "{bad}");
    }
    far.mended();
    assert_eq!(rates(&world, &trade).await, "1.085 none");
    for (rate, stored) in [
        (json!("1.0849"), "1.085 1.0849"),
        (json!("1"), "1.085 1"),
        (
            json!("0.000000000000000000000001"),
            "1.085 0.000000000000000000000001",
        ),
        (json!("2.50"), "1.085 2.5"),
        (json!(null), "1.085 none"),
    ] {
        let (quote, trade) = acme.trade("EUR-USDT", "10.00").await;
        assert_eq!(rates(&world, &trade).await, "1.085 none");
        far.reports(Some(delivered(&rate)));
        assert_eq!(acme.status(&quote).await, "settled", "{rate}");
        assert_eq!(rates(&world, &trade).await, stored, "{rate}");
        // A return keeps the fill rate.
        far.reports(Some(json!({ "status": "returned" })));
        assert_eq!(acme.status(&quote).await, "returned");
        assert_eq!(rates(&world, &trade).await, stored, "{rate}");
    }
    far.reports(None);
    world.notice_all().await;
    world.finish().await;
}
