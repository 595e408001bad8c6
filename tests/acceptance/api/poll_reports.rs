//! Effects of engine reports: an engine ahead of the polls, contradictions, and the interval of report requests.

use acceptance::{ACME, Logs, Reply};
use pools_core::ports::Confirmation;
use pools_core::trade::{EngineReport, TradeStatus};
use serde_json::json;

use crate::poll::{funded, report_requests};

// rule: pools.trade.contradiction
#[tokio::test]
async fn settled_trade_counts_and_logs_each_contradiction() {
    let (logs, _catching) = Logs::catch();
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    acme.poll(&quote).await.ok();
    assert_eq!(world.engine().contradictions(), []);
    let another = EngineReport::Delivered("another".into());
    for (report, said) in [
        (EngineReport::CannotComplete, "failed"),
        (EngineReport::Released, "released"),
        (another, "delivered under another fill id"),
        // A repeated contradiction counts again.
        (EngineReport::CannotComplete, "failed"),
    ] {
        world.engine().report(Reply::Says(report));
        let logged = errors(&logs, &trade);
        assert_eq!(acme.status(&quote).await, "settled");
        let found = world.engine().contradictions();
        let [contradiction] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(contradiction.trade.to_string(), trade);
        assert_eq!(contradiction.report, said);
        assert_eq!(errors(&logs, &trade), logged + 1);
    }
    world.engine().report(Reply::Sandbox);
    assert_eq!(acme.status(&quote).await, "settled");
    assert_eq!(world.engine().contradictions(), []);
    world.notice(ACME, &trade).await;
    world.finish().await;
}

/// The logged errors that name a trade.
fn errors(logs: &Logs, trade: &str) -> usize {
    let lines = logs.of(trade).into_iter();
    let errors = lines.filter(|line| line["level"] == "ERROR" && line["trade.id"] == trade);
    errors.count()
}

// rule: pools.trade.returned-unseen, pools.trade.return, pools.event.once
#[tokio::test]
async fn poll_settles_and_returns_trade_whose_delivery_was_never_seen() {
    for fill in [Some("fill-7"), None] {
        for buying in [true, false] {
            let world = funded().await;
            let acme = world.acme();
            let quote = match buying {
                true => acme.buy("EUR-USDT", "100").await,
                false => acme.sell("EUR-USDT", "100").await,
            };
            let paid = acme.quote(&quote).await.ok()["fiatAmount"].clone();
            let trade = acme.transact("EUR-USDT", &quote, "k").await.ok()["transactId"]
                .as_str()
                .unwrap()
                .to_owned();
            world.after(1_500);
            let returned = EngineReport::Reversed(fill.map(str::to_owned));
            world.engine().report(Reply::Says(returned));
            let view = acme.poll(&quote).await.ok();
            assert_eq!(view["status"], "returned");
            assert_eq!(view["settledAt"], "2026-05-25T12:00:01.500Z");
            let read = acme.read(&trade).await.ok();
            let shown = fill.map_or(format!("unknown:{trade}"), str::to_owned);
            assert_eq!(read["engineFillTxId"], shown);
            // The event shows the settled trade, before its return.
            let events = world.events(ACME, &trade).await;
            let [(kind, body)] = &events[..] else {
                panic!("{events:?}")
            };
            let mut settled = read.clone();
            settled["status"] = json!("settled");
            settled["eventId"] = body["eventId"].clone();
            settled["type"] = json!("pool.transaction.settled");
            assert_eq!(
                (kind.as_str(), body),
                ("pool.transaction.settled", &settled)
            );
            let ledger = acme.ledger("EUR").await;
            let entries = ledger["entries"].as_array().unwrap().iter();
            let own = entries.filter(|entry| entry["transactId"] == json!(trade));
            let deltas: Vec<String> = own
                .map(|entry| entry["delta"].as_str().unwrap().to_owned())
                .collect();
            let paid = paid.as_str().unwrap();
            let wanted = match buying {
                true => vec![paid.to_owned(), format!("-{paid}")],
                false => vec![paid.to_owned()],
            };
            assert_eq!(deltas, wanted);
            assert_eq!(world.engine().contradictions(), []);
            // The trade is final, and the engine is not asked again.
            world.engine().asked();
            let before = world.database().digest().await;
            assert_eq!(acme.status(&quote).await, "returned");
            assert_eq!(
                (world.database().digest().await, world.engine().asked()),
                (before, vec![])
            );
            world.finish().await;
        }
    }
}

// rule: pools.engine.lapse, pools.engine.lapsed-believed
#[tokio::test]
async fn poll_believes_lapsed_hold_only_if_report_agrees() {
    let delivered = EngineReport::Delivered("fill".into());
    for (report, status, balance) in [
        (Some(EngineReport::Released), "released", "1000.00"),
        (Some(delivered), "settled", "900.00"),
        (Some(EngineReport::Reversed(None)), "returned", "1000.00"),
        (Some(EngineReport::CannotComplete), "failed", "1000.00"),
        (Some(EngineReport::InProgress), "reserved", "900.00"),
        (None, "reserved", "900.00"),
    ] {
        let world = funded().await;
        let acme = world.acme();
        let (quote, _) = acme.trade("EUR-USDT", "100").await;
        world.engine().confirm(Reply::Says(Confirmation::Lapsed));
        world.engine().report(Reply::Then(vec![report.clone()]));
        assert_eq!(acme.status(&quote).await, status, "{report:?}");
        assert_eq!(acme.balance("EUR-USDT").await, balance, "{report:?}");
        assert_eq!(world.engine().contradictions(), [], "{report:?}");
        world.notice_all().await;
        world.finish().await;
    }
}

// rule: pools.poll.bounded
#[tokio::test]
async fn poll_of_settled_trade_skips_the_engine_for_a_minute_after_unchanged_report() {
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    assert_eq!(acme.status(&quote).await, "settled");
    // The settlement was a change, so the next poll asks the engine.
    world.engine().asked();
    assert_eq!(acme.status(&quote).await, "settled");
    assert_eq!(report_requests(&world), [(2, TradeStatus::Settled)]);
    let replica = world.replica().await;
    let before = world.database().digest().await;
    for wait in [0, 1, 58_000, 1_998] {
        world.after(wait);
        assert_eq!(acme.status(&quote).await, "settled");
        assert_eq!(replica.acme().status(&quote).await, "settled");
    }
    assert_eq!(
        (world.database().digest().await, world.engine().asked()),
        (before, vec![])
    );
    assert_eq!(report_requests(&replica), []);
    world.after(1);
    world
        .engine()
        .report(Reply::Then(vec![None, Some(EngineReport::Reversed(None))]));
    assert_eq!(acme.status(&quote).await, "settled", "silence is no report");
    assert_eq!(acme.status(&quote).await, "returned");
    assert_eq!(
        report_requests(&world),
        [(3, TradeStatus::Settled), (4, TradeStatus::Settled)]
    );
    replica.close().await;
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.poll.bounded, pools.trade.only-polls
#[tokio::test]
async fn poll_of_reserved_trade_asks_each_time_and_writes_its_attempt_only() {
    let world = funded().await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    let replica = world.replica().await;
    world.engine().asked();
    for engine in [world.engine(), replica.engine()] {
        engine.report(Reply::Then(vec![Some(EngineReport::InProgress), None]));
    }
    let sql = "SELECT count(*) FROM trade_transitions";
    let before = world.database().number(sql).await;
    for _ in 0..2 {
        assert_eq!(acme.status(&quote).await, "reserved");
        assert_eq!(replica.acme().status(&quote).await, "reserved");
    }
    let reserved = TradeStatus::Reserved;
    assert_eq!(report_requests(&world), [(1, reserved), (3, reserved)]);
    assert_eq!(report_requests(&replica), [(2, reserved), (4, reserved)]);
    assert_eq!(world.database().number(sql).await, before);
    assert_eq!(
        world
            .database()
            .number("SELECT max(attempts) FROM trades")
            .await,
        4
    );
    assert_eq!(replica.acme().status(&quote).await, "settled");
    replica.close().await;
    world.notice(ACME, &trade).await;
    world.finish().await;
}
