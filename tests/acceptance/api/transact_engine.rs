//! Engine calls of a transact, and their order.

use std::sync::Arc;

use acceptance::{ACME, Asked, Reply, World};
use pools_core::ports::Confirmation;
use pools_core::trade::TradeId;

async fn funded() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world
}

fn id(text: &str) -> TradeId {
    TradeId::parse(text).unwrap()
}

// rule: pools.transact.engine-silent
#[tokio::test]
async fn engine_silence_is_503_and_the_same_key_may_retry() {
    let world = funded().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    let before = world.database().digest().await;
    world.engine().hold(Reply::Then(vec![None, None]));
    for _ in 0..2 {
        let answer = acme
            .transact("EUR-USDT", &quote, "k")
            .await
            .refused(503, "engine_unavailable");
        assert!(answer.number("retry-after") >= 1);
    }
    assert_eq!(world.database().digest().await, before);
    assert_eq!(
        acme.transact("EUR-USDT", &quote, "k").await.ok()["status"],
        "reserved"
    );
    world.finish().await;
}

// rule: pools.engine.confirm, pools.engine.one-key
#[tokio::test]
async fn lost_confirmation_is_repeated_by_the_poll() {
    let world = funded().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    world
        .engine()
        .confirm(Reply::Then(vec![None, None, Some(Confirmation::Confirmed)]));
    let ack = acme.transact("EUR-USDT", &quote, "k").await.ok();
    let trade = ack["transactId"].as_str().unwrap();
    world.engine().asked();
    // Still unconfirmed: no report is requested and the trade does not move.
    assert_eq!(acme.status(&quote).await, "reserved");
    assert_eq!(world.engine().asked(), [Asked::Confirm(id(trade))]);
    assert_eq!(acme.status(&quote).await, "settled");
    let asked = world.engine().asked();
    let [Asked::Confirm(confirmed), Asked::Report(request)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((*confirmed, request.trade), (id(trade), id(trade)));
    world.notice(ACME, trade).await;
    world.finish().await;
}

// rule: pools.transact.atomic, pools.engine.confirm
#[tokio::test]
async fn dropped_request_has_done_all_or_nothing() {
    for (during_hold, made) in [(true, 0), (false, 1)] {
        let world = funded().await;
        let acme = world.acme();
        let quote = acme.buy("EUR-USDT", "100").await;
        let reached = Arc::new(tokio::sync::Notify::new());
        let signal = reached.clone();
        world.engine().meanwhile(move |asked| {
            let (signal, here) = (
                signal.clone(),
                matches!(asked, Asked::Hold(..)) == during_hold,
            );
            async move {
                if here {
                    signal.notify_one();
                    std::future::pending::<()>().await;
                }
            }
        });
        let (client, id) = (acme.clone(), quote.clone());
        let dropped = tokio::spawn(async move { client.transact("EUR-USDT", &id, "k").await });
        reached.notified().await;
        dropped.abort();
        assert!(dropped.await.is_err());
        world.engine().in_peace();
        for table in ["trades", "idempotency_keys"] {
            assert_eq!(world.database().count(table).await, made, "{table}");
        }
        // The key is no longer in flight, and the retry finds the outcome.
        let ack = acme.transact("EUR-USDT", &quote, "k").await.ok();
        assert_eq!(ack["idempotent"], made == 1);
        assert_eq!(acme.balance("EUR-USDT").await, "900.00");
        world.finish().await;
    }
}
