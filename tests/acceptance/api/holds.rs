//! Engine holds: only for affordable trades, and one at a time for a quote.

use std::sync::Arc;
use std::time::Duration;

use acceptance::{ACME, ACME_SECRET, ACME_SECRET_2, Answer, Asked, QueueFault, World};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// An engine's timeout after which no transact of a quote gives up on a busy machine.
const PATIENT: Duration = Duration::from_secs(60);

async fn funded(amount: &str) -> World {
    let world = World::new().await;
    world.operator().credit(ACME, amount, "EUR").await;
    world
}

/// Twenty concurrent transacts of a quote, each with its own key.
async fn twenty_at_once(world: &World, quote: &str) -> Vec<Answer> {
    world.engine().timeout_is(PATIENT);
    let clients = [world.client(ACME_SECRET), world.client(ACME_SECRET_2)];
    let calls = (0..20).map(|at| {
        let (client, quote) = (clients[at % 2].clone(), quote.to_owned());
        tokio::spawn(async move {
            let key = format!("{at}-{quote}");
            client.transact("EUR-USDT", &quote, &key).await
        })
    });
    let calls: Vec<_> = calls.collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}

/// The number of holds, confirmations and releases that the engine received.
fn counted(asked: &[Asked]) -> (usize, usize, usize) {
    let count = |of: fn(&Asked) -> bool| asked.iter().filter(|asked| of(asked)).count();
    (
        count(|asked| matches!(asked, Asked::Hold(..))),
        count(|asked| matches!(asked, Asked::Confirm(_))),
        count(|asked| matches!(asked, Asked::Release(_))),
    )
}

/// Maximum number of holds that were open at the same time.
fn most_open(asked: &[Asked]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for asked in asked {
        match asked {
            Asked::Hold(..) => open += 1,
            Asked::Confirm(_) | Asked::Release(_) => open -= 1,
            Asked::Depth(_) | Asked::Report(_) => {}
        }
        most = most.max(open);
    }
    most
}

// rule: pools.transact.hold-after-check
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unaffordable_quote_causes_no_hold_under_twenty_keys_at_once() {
    let world = funded("9900.00").await;
    let cap = |cap: i64| {
        world
            .operator()
            .change(ACME, move |profile| profile.velocity_cap = Some(cap))
    };
    cap(250_000 * 100_000_000).await;
    let operator = world.operator();
    operator
        .terms(ACME, "EUR-USDT", |terms| terms.max_order_usdt = None)
        .await;
    let acme = world.acme();
    for (amount, code) in [
        ("9000000.00", "velocity_cap_exceeded"),
        ("9900.01", "insufficient_balance"),
    ] {
        let quote = acme.buy("EUR-USDT", amount).await;
        world.engine().asked();
        for answer in twenty_at_once(&world, &quote).await {
            assert_eq!(answer["code"], code);
        }
        assert_eq!(world.engine().asked(), [], "{amount}");
        assert_eq!(acme.quote(&quote).await.ok()["status"], "active");
    }
    world.finish().await;
}

// rule: pools.transact.one-hold, pools.transact.once, pools.transact.idempotent
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn affordable_quote_causes_one_hold_and_one_trade_under_twenty_keys_at_once() {
    let world = funded("9900.00").await;
    for _ in 0..5 {
        let quote = world.acme().buy("EUR-USDT", "100.00").await;
        world.engine().asked();
        let answers = twenty_at_once(&world, &quote).await;
        let asked = world.engine().asked();
        assert_eq!(counted(&asked), (1, 1, 0), "{asked:?}");
        let first = answers[0]["transactId"].clone();
        let answers: Vec<_> = answers.into_iter().map(Answer::ok).collect();
        assert!(answers.iter().all(|ack| ack["transactId"] == first));
        let opened = answers.iter().filter(|ack| ack["idempotent"] == false);
        assert_eq!(opened.count(), 1);
        assert_eq!(world.trades_of(&quote).await, 1);
    }
    world.finish().await;
}

// rule: pools.transact.one-hold, pools.transact.reservation-failed
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refused_holds_of_a_quote_follow_each_other() {
    let world = funded("9900.00").await;
    let spender = world.acme().buy("EUR-USDT", "9900.00").await;
    let quote = world.acme().buy("EUR-USDT", "100.00").await;
    world.engine().asked();
    // The funds are spent before the first hold is answered.
    let (meddler, once) = (world.clone(), Arc::new(Mutex::new(true)));
    world.engine().meanwhile(move |asked| {
        let first = matches!(asked, Asked::Hold(..)) && std::mem::take(&mut *once.lock());
        let (meddler, spender) = (meddler.clone(), spender.clone());
        async move {
            if first {
                let spent = Box::pin(meddler.acme().transact("EUR-USDT", &spender, "spend")).await;
                spent.ok();
            }
        }
    });
    for answer in twenty_at_once(&world, &quote).await {
        answer.refused(402, "insufficient_balance");
    }
    world.engine().in_peace();
    let asked = world.engine().asked();
    // The spender's hold and confirmation, and the released hold.
    assert_eq!(counted(&asked), (2, 1, 1), "{asked:?}");
    assert!(most_open(&asked) <= 2, "{asked:?}");
    assert_eq!(world.acme().balance("EUR-USDT").await, "0.00");
    world.finish().await;
}

// rule: pools.transact.hold-after-check, pools.transact.balance
#[tokio::test]
async fn credit_counts_at_once_for_a_quote_that_was_refused() {
    let world = funded("150.00").await;
    let acme = world.acme();
    acme.trade("EUR-USDT", "100").await;
    let quotes = [
        acme.buy("EUR-USDT", "100").await,
        acme.buy("EUR-USDT", "100").await,
    ];
    for quote in &quotes {
        world.engine().asked();
        acme.transact("EUR-USDT", quote, quote)
            .await
            .refused(402, "insufficient_balance");
        assert_eq!(world.engine().asked(), []);
    }
    world.operator().credit(ACME, "150.00", "EUR").await;
    for quote in &quotes {
        acme.transact("EUR-USDT", quote, quote).await.ok();
        let asked = world.engine().asked();
        assert_eq!(counted(&asked), (1, 1, 0), "{asked:?}");
    }
    assert_eq!(acme.balance("EUR-USDT").await, "0.00");
    world.finish().await;
}

// rule: pools.transact.one-hold, pools.transact.idempotent
#[tokio::test]
async fn second_transact_of_a_quote_waits_for_the_first_and_names_its_trade() {
    let world = funded("1000.00").await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "100").await;
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (signal, held_up) = (reached.clone(), go_on.clone());
    world.engine().meanwhile(move |asked| {
        let (signal, held_up) = (signal.clone(), held_up.clone());
        async move {
            if let Asked::Hold(..) = asked {
                signal.notify_one();
                held_up.notified().await;
            }
        }
    });
    let transact = |key: &str| {
        let (client, quote, key) = (acme.clone(), quote.clone(), key.to_owned());
        tokio::spawn(async move { client.transact("EUR-USDT", &quote, &key).await })
    };
    world.engine().timeout_is(Duration::from_millis(1));
    let first = transact("first");
    reached.notified().await;
    let since = Instant::now();
    // The engine's timeout, and two seconds.
    let waited = transact("second").await.unwrap();
    waited.refused(409, "quote_in_progress");
    assert!(since.elapsed() >= Duration::from_secs(2));
    world.engine().timeout_is(PATIENT);
    let third = transact("third");
    tokio::time::sleep(Duration::from_millis(50)).await;
    // Another quote and reads are not delayed.
    assert_eq!(acme.quote(&quote).await.ok()["status"], "active");
    go_on.notify_one();
    let (first, third) = (first.await.unwrap().ok(), third.await.unwrap().ok());
    assert_eq!(
        (&first["idempotent"], &third["idempotent"]),
        (&false.into(), &true.into())
    );
    assert_eq!(first["transactId"], third["transactId"]);
    // The key of the abandoned transact is free.
    assert_eq!(transact("second").await.unwrap().ok()["idempotent"], true);
    world.engine().in_peace();
    world.finish().await;
}

// rule: pools.engine.confirm-own
#[tokio::test]
async fn every_hold_of_a_batch_is_confirmed_once_when_its_run_panics_after_the_commit() {
    let world = funded("10000.00").await;
    let acme = world.acme();
    let mut quotes = Vec::new();
    for _ in 0..16 {
        quotes.push(acme.buy("EUR-USDT", "10").await);
    }
    world.engine().asked();
    world.fail_next_commit(QueueFault::CommittedPanicked);
    let calls = quotes.iter().map(|quote| {
        let (client, quote) = (acme.clone(), quote.clone());
        tokio::spawn(async move { client.transact("EUR-USDT", &quote, &quote).await })
    });
    let calls: Vec<_> = calls.collect();
    for call in calls {
        assert_eq!(call.await.unwrap().ok()["idempotent"], false);
    }
    let asked = world.engine().asked();
    assert_eq!(counted(&asked), (16, 16, 0), "{asked:?}");
    assert_eq!(acme.balance("EUR-USDT").await, "9840.00");
    world.finish().await;
}

fn asked_about_trades(world: &World) -> usize {
    let asked = world.engine().asked();
    asked
        .iter()
        .filter(|one| !matches!(one, Asked::Depth(_)))
        .count()
}

// rule: pools.engine.which, pools.engine.drain
#[tokio::test]
async fn engine_is_never_asked_about_a_trade_of_another_engine() {
    let world = funded("1000.00").await;
    let acme = world.acme();
    world.engine().named("first");
    let (reserved, _) = acme.trade("EUR-USDT", "10.00").await;
    let (settled, trade) = acme.trade("EUR-USDT", "10.41").await;
    assert_eq!(acme.status(&settled).await, "settled");
    world.engine().named("second");
    world.engine().asked();
    for (quote, status) in [(&reserved, "reserved"), (&settled, "settled")] {
        for _ in 0..2 {
            assert_eq!(acme.status(quote).await, status);
        }
        acme.transact("EUR-USDT", quote, "again").await.ok();
    }
    assert_eq!(asked_about_trades(&world), 0);
    // New trades belong to the second engine, which is asked about them.
    let (newer, newest) = acme.trade("EUR-USDT", "20.00").await;
    assert_eq!(acme.status(&newer).await, "settled");
    let engines = "SELECT engine FROM trades ORDER BY created_at, id";
    let engines = world.database().texts(engines).await;
    assert_eq!(engines, ["first", "first", "second"]);
    // After its return the first engine continues its own trades.
    world.engine().named("first");
    assert_eq!(acme.status(&settled).await, "returned");
    assert_eq!(acme.status(&reserved).await, "settled");
    for trade in [&trade, &newest] {
        world.notice(ACME, trade).await;
    }
    world.notice_all().await;
    world.finish().await;
}

// rule: pools.engine.which
#[tokio::test]
async fn trade_that_names_no_engine_is_of_the_configured_one() {
    let world = funded("1000.00").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "10.00").await;
    world.damage("UPDATE trades SET engine = NULL").await;
    world.engine().named("second");
    assert_eq!(world.acme().status(&quote).await, "settled");
    world.notice(ACME, &trade).await;
    world.finish().await;
}
