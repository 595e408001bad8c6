//! Engine calls of a transact, and their order.

use std::sync::Arc;

use acceptance::{ACME, Asked, QueueFault, Reply, World, money};
use parking_lot::Mutex;
use pools_core::ports::Confirmation;
use pools_core::trade::{EngineReport, TradeId};

async fn funded() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    world
}

fn id(text: &str) -> TradeId {
    TradeId::parse(text).unwrap()
}

// rule: pools.engine.one-key, pools.engine.confirm
#[tokio::test]
async fn hold_under_the_trades_id_is_confirmed_after_the_commit() {
    let world = funded().await;
    let quote = world.acme().buy("EUR-USDT", "100").await;
    world.engine().asked();
    let rows = Arc::new(Mutex::new(Vec::new()));
    let (notes, database) = (rows.clone(), world.database().clone());
    world.engine().meanwhile(move |asked| {
        let (notes, database) = (notes.clone(), database.clone());
        async move {
            let count = database.count("trades").await;
            notes
                .lock()
                .push((matches!(asked, Asked::Confirm(_)), count));
        }
    });
    let ack = world.acme().transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(*rows.lock(), [(false, 0), (true, 1)]);
    let trade = id(ack["transactId"].as_str().unwrap());
    let asked = world.engine().asked();
    let [Asked::Hold(held, order), Asked::Confirm(confirmed)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (*held, *confirmed, order.amount),
        (trade, trade, money("100", "EUR"))
    );
    world.engine().in_peace();
    world.finish().await;
}

// rule: pools.engine.no-second-ask
#[tokio::test]
async fn repeat_makes_no_engine_request() {
    let world = funded().await;
    let (quote, _) = world.acme().trade("EUR-USDT", "100").await;
    world.engine().asked();
    for key in ["a", "b", "a"] {
        world.acme().transact("EUR-USDT", &quote, key).await.ok();
    }
    assert_eq!(world.engine().asked(), []);
    world.finish().await;
}

// rule: pools.transact.refusal-leaves-nothing, pools.transact.expired, time.read-after-lock
#[tokio::test]
async fn quote_that_ends_during_the_engine_request_is_not_executed() {
    for reject in [true, false] {
        let world = funded().await;
        let acme = world.acme();
        let quote = acme.buy("EUR-USDT", "100").await;
        world.after(14_999);
        world.engine().asked();
        let (meddler, id) = (world.clone(), quote.clone());
        world.engine().meanwhile(move |asked| {
            let (meddler, id) = (meddler.clone(), id.clone());
            async move {
                match asked {
                    Asked::Hold(..) if reject => drop(meddler.acme().reject(&id).await.ok()),
                    Asked::Hold(..) => meddler.after(1),
                    _ => {}
                }
            }
        });
        let code = if reject {
            "quote_rejected"
        } else {
            "quote_expired"
        };
        acme.transact("EUR-USDT", &quote, "k")
            .await
            .refused(409, code);
        world.engine().in_peace();
        assert!(matches!(
            world.engine().asked()[..],
            [Asked::Hold(..), Asked::Release(_)]
        ));
        assert_eq!(
            (
                acme.balance("EUR-USDT").await,
                world.database().count("trades").await
            ),
            ("1000.00".into(), 0)
        );
        world.finish().await;
    }
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

// rule: pools.engine.lapse, pools.ledger.buy-refund
#[tokio::test]
async fn lapsed_hold_is_reported_released() {
    let world = funded().await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    world
        .engine()
        .confirm(Reply::Then(vec![None, Some(Confirmation::Lapsed)]));
    world.engine().report(Reply::Says(EngineReport::Released));
    let ack = acme.transact("EUR-USDT", &quote, "k").await.ok();
    assert_eq!(acme.balance("EUR-USDT").await, "900.00");
    assert_eq!(acme.status(&quote).await, "released");
    assert_eq!(acme.balance("EUR-USDT").await, "1000.00");
    let events = world
        .notice(ACME, ack["transactId"].as_str().unwrap())
        .await;
    assert_eq!(events, ["pool.transaction.released"]);
    world.finish().await;
}

// rule: pools.engine.confirm, idempotency.unknown-commit
#[tokio::test]
async fn unknown_commit_leaves_the_hold_unreleased() {
    for (fault, later) in [
        (QueueFault::CommittedUnheard, 0),
        (QueueFault::Away, 1),
        (QueueFault::Full, 1),
    ] {
        let world = funded().await;
        let quote = world.acme().buy("EUR-USDT", "100").await;
        world.engine().asked();
        world.fail_next_commit(fault);
        assert_eq!(
            world.acme().transact("EUR-USDT", &quote, "k").await.status,
            503
        );
        let asked = world.engine().asked();
        let told = asked
            .iter()
            .filter(|asked| matches!(asked, Asked::Release(_) | Asked::Confirm(_)))
            .count();
        assert_eq!(told, later, "{fault:?}: {asked:?}");
        world.finish().await;
    }
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
