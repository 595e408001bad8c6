//! Concurrent polls of one trade: leases and late responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acceptance::{ACME, Asked, Reply};
use pools_core::trade::{EngineReport, TradeStatus};
use serde_json::json;
use tokio::sync::Notify;

use crate::poll::{funded, report_requests};

fn fill(reference: &str) -> Option<EngineReport> {
    Some(EngineReport::Delivered(reference.into()))
}

// rule: pools.trade.second-poller, pools.trade.converge
#[tokio::test]
async fn second_poller_does_not_wait() {
    let world = funded().await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    world.engine().asked();
    let (second, id) = (world.acme(), quote.clone());
    world.engine().meanwhile(move |asked| {
        let (second, id) = (second.clone(), id.clone());
        async move {
            if matches!(asked, Asked::Report(_)) {
                assert_eq!(second.status(&id).await, "reserved");
            }
        }
    });
    assert_eq!(world.acme().status(&quote).await, "settled");
    world.engine().in_peace();
    assert_eq!(
        report_requests(&world),
        [(1, TradeStatus::Reserved)],
        "the second poll made no engine request"
    );
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.trade.lease
#[tokio::test]
async fn dead_poller_blocks_no_other_after_its_lease() {
    let world = funded().await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    let reached = Arc::new(Notify::new());
    let signal = reached.clone();
    world.engine().meanwhile(move |asked| {
        let signal = signal.clone();
        async move {
            if matches!(asked, Asked::Report(_)) {
                signal.notify_one();
                std::future::pending::<()>().await;
            }
        }
    });
    let (poller, id) = (world.acme(), quote.clone());
    let dead = tokio::spawn(async move { poller.poll(&id).await });
    reached.notified().await;
    dead.abort();
    assert!(dead.await.is_err());
    world.engine().in_peace();
    world.engine().asked();
    // The engine's timeout of one second, plus two.
    for _ in 0..2 {
        assert_eq!(world.acme().status(&quote).await, "reserved");
        world.after(1_499);
    }
    world.after(1);
    assert_eq!(
        world.acme().status(&quote).await,
        "reserved",
        "one millisecond to go"
    );
    assert_eq!(report_requests(&world), []);
    world.after(1);
    assert_eq!(world.acme().status(&quote).await, "settled");
    assert_eq!(report_requests(&world), [(2, TradeStatus::Reserved)]);
    world.notice(ACME, &trade).await;
    world.finish().await;
}

// rule: pools.trade.converge, pools.trade.lease, pools.trade.terminal
#[tokio::test]
async fn response_after_the_lease_changes_nothing() {
    let world = funded().await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    world.engine().report(Reply::Then(vec![
        fill("second"),
        Some(EngineReport::CannotComplete),
    ]));
    let (meddler, id) = (world.clone(), quote.clone());
    let first = Arc::new(AtomicBool::new(true));
    world.engine().meanwhile(move |asked| {
        let (meddler, id) = (meddler.clone(), id.clone());
        let first = matches!(asked, Asked::Report(_)) && first.swap(false, Ordering::SeqCst);
        async move {
            if first {
                meddler.after(3_000);
                // The second poll gets the first response of the script.
                assert_eq!(Box::pin(meddler.acme().status(&id)).await, "settled");
            }
        }
    });
    assert_eq!(
        world.acme().status(&quote).await,
        "settled",
        "the late `failed` is not applied"
    );
    world.engine().in_peace();
    let read = world.acme().read(&trade).await.ok();
    assert_eq!(
        (&read["status"], &read["engineFillTxId"]),
        (&json!("settled"), &json!("second"))
    );
    assert_eq!(world.acme().balance("EUR-USDT").await, "900.00");
    assert_eq!(
        world.notice(ACME, &trade).await,
        ["pool.transaction.settled"]
    );
    world.finish().await;
}

// rule: pools.trade.lease, pools.trade.converge
#[tokio::test]
async fn response_under_an_expired_lease_is_not_applied_during_another_poll() {
    let world = funded().await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    world.engine().report(Reply::Then(vec![
        Some(EngineReport::CannotComplete),
        fill("second"),
    ]));
    // The first poll asks; its lease expires; the second asks too, and waits until the
    // first has its response.
    let (second_asks, first_is_done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let asked = Arc::new(AtomicBool::new(false));
    let (meddler, id) = (world.clone(), quote.clone());
    let (asks, done) = (second_asks.clone(), first_is_done.clone());
    let (send, receive) = tokio::sync::oneshot::channel();
    let send = Arc::new(parking_lot::Mutex::new(Some(send)));
    world.engine().meanwhile(move |question| {
        let (meddler, id, asks, done, send) = (
            meddler.clone(),
            id.clone(),
            asks.clone(),
            done.clone(),
            send.clone(),
        );
        let reporting = matches!(question, Asked::Report(_));
        let first = reporting && !asked.swap(true, Ordering::SeqCst);
        async move {
            if first {
                meddler.after(3_000);
                let client = meddler.acme();
                let second = tokio::spawn(async move { client.status(&id).await });
                send.lock().take().unwrap().send(second).unwrap();
                asks.notified().await;
            } else if reporting {
                asks.notify_one();
                done.notified().await;
            }
        }
    });
    assert_eq!(
        world.acme().status(&quote).await,
        "reserved",
        "the late `failed` is not applied"
    );
    assert_eq!(world.acme().balance("EUR-USDT").await, "900.00");
    first_is_done.notify_one();
    assert_eq!(receive.await.unwrap().await.unwrap(), "settled");
    world.engine().in_peace();
    assert_eq!(
        world.acme().read(&trade).await.ok()["engineFillTxId"],
        json!("second")
    );
    assert_eq!(
        world.notice(ACME, &trade).await,
        ["pool.transaction.settled"]
    );
    world.finish().await;
}
