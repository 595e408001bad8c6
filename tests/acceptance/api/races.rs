//! Concurrent requests through the real batch queues on several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use acceptance::{ACME, ACME_SECRET, ACME_SECRET_2, Answer, Client, World};
use serde_json::{Value, json};
use tokio::sync::watch;

const ROUNDS: usize = 200;

/// Runs all futures concurrently on the runtime's threads; returns the results in order.
async fn at_once<F>(calls: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let tasks: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

fn transact(
    client: &Client,
    quote: &str,
    key: &str,
) -> impl Future<Output = Answer> + Send + use<> {
    let (client, quote, key) = (client.clone(), quote.to_owned(), key.to_owned());
    async move { client.transact("EUR-USDT", &quote, &key).await }
}

fn poll(client: &Client, quote: &str) -> impl Future<Output = Answer> + Send + use<> {
    let (client, quote) = (client.clone(), quote.to_owned());
    async move { client.poll(&quote).await }
}

async fn rich() -> World {
    let world = World::new().await;
    world.operator().credit(ACME, "10000000.00", "EUR").await;
    world
}

fn code(answer: &Answer) -> &str {
    answer["code"].as_str().unwrap_or("ok")
}

// rule: pools.reject.or-consume, pools.transact.once, pools.quote-record.monotone
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transact_and_reject_have_one_winner() {
    let world = rich().await;
    let acme = world.acme();
    let mut wins = BTreeMap::<&str, usize>::new();
    for round in 0..ROUNDS / 2 {
        let quote = acme.buy("EUR-USDT", "10").await;
        if round % 50 == 25 {
            transact(&acme, &quote, &quote).await.ok();
        }
        let rejecting = {
            let (client, quote) = (acme.clone(), quote.clone());
            tokio::spawn(async move { client.reject(&quote).await })
        };
        // Mostly concurrent; sometimes one request gets a head start, so that both win sometimes
        // on any machine.
        let (executed, rejected) = match round % 50 {
            0 => {
                let rejected = rejecting.await.unwrap();
                (transact(&acme, &quote, &quote).await, rejected)
            }
            _ => {
                let executed = transact(&acme, &quote, &quote).await;
                (executed, rejecting.await.unwrap())
            }
        };
        let outcome = match (code(&executed), code(&rejected)) {
            ("ok", "quote_consumed") => "consumed",
            ("quote_rejected", "ok") => "rejected",
            other => panic!("{other:?}"),
        };
        *wins.entry(outcome).or_default() += 1;
        assert_eq!(acme.quote(&quote).await.ok()["status"], outcome);
        assert_eq!(
            acme.poll(&quote).await.status,
            if outcome == "consumed" { 200 } else { 404 }
        );
    }
    let consumed = wins.get("consumed").copied().unwrap_or_default();
    assert_eq!(
        world.database().count("trades").await,
        i64::try_from(consumed).unwrap()
    );
    assert!(wins.len() == 2, "each side has won at least once: {wins:?}");
    world.notice_all().await;
    world.finish().await;
}

// rule: pools.transact.expired, pools.quote-record.monotone, time.read-after-lock
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transact_and_the_instant_of_expiry_have_one_winner() {
    let world = rich().await;
    let acme = world.acme();
    let (mut consumed, mut expired) = (0, 0);
    // Delay before the clock moves: shorter after a transact that won, longer after one that
    // lost, so that the race stays close on any machine.
    let mut head_start = 0_usize;
    for round in 0..ROUNDS {
        let quote = acme.buy("EUR-USDT", "10").await;
        world.after(14_999);
        let executing = tokio::spawn(transact(&acme, &quote, &quote));
        for _ in 0..head_start {
            tokio::task::yield_now().await;
        }
        world.after(1);
        // From now on the quote may read as expired, but only if it can no longer be consumed.
        let mut seen = acme.quote(&quote).await.ok()["status"].clone();
        if round % 2 == 0 {
            seen = acme.quote(&quote).await.ok()["status"].clone();
        }
        let executed = executing.await.unwrap();
        let last = acme.quote(&quote).await.ok();
        match code(&executed) {
            "ok" => {
                assert_eq!(last["status"], "consumed");
                assert!(last["consumedAt"].as_str() < last["expiresAt"].as_str());
                assert_ne!(seen, "expired", "no reader saw the quote expired");
                consumed += 1;
                head_start -= head_start.div_ceil(8);
            }
            "quote_expired" => {
                assert_eq!(
                    (&last["status"], &last["consumedAt"]),
                    (&json!("expired"), &Value::Null)
                );
                expired += 1;
                head_start += 1 + head_start / 8;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(world.database().count("trades").await, consumed);
    let often = i64::try_from(ROUNDS / 20).unwrap();
    assert!(
        consumed > often && expired > often,
        "each side has won at least once: {consumed} consumed, {expired} expired"
    );
    world.finish().await;
}

// rule: pools.trade.converge, pools.event.once, pools.trade.return, pools.trade.second-poller
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn polls_of_one_trade_converge() {
    let world = rich().await;
    let acme = world.acme();
    let mut ends = BTreeMap::<&str, usize>::new();
    for round in 0..ROUNDS / 5 {
        let (amount, end) = [
            ("10", "settled"),
            ("10.31", "failed"),
            ("10.32", "released"),
            ("10.41", "returned"),
        ][round % 4];
        let (quote, _) = acme.trade("EUR-USDT", amount).await;
        for _ in 0..2 {
            let statuses = at_once((0..4).map(|_| poll(&acme, &quote))).await;
            for answer in statuses {
                let status = answer.ok()["status"].as_str().unwrap().to_owned();
                assert!(
                    status == "reserved" || status == "settled" || status == end,
                    "{status}"
                );
            }
        }
        assert_eq!(acme.status(&quote).await, end);
        *ends.entry(end).or_default() += 1;
    }
    let counts = world.notice_all().await;
    assert_eq!(
        counts["pool.transaction.settled"],
        ends["settled"] + ends["returned"]
    );
    assert_eq!(
        (
            counts["pool.transaction.failed"],
            counts["pool.transaction.released"]
        ),
        (ends["failed"], ends["released"])
    );
    assert!(ends.values().all(|count| *count == ROUNDS / 20));
    let refunds = world
        .database()
        .number("SELECT count(*) FROM ledger_entries WHERE reason = 'buy_refund'")
        .await;
    assert_eq!(
        refunds,
        i64::try_from(ends["failed"] + ends["released"] + ends["returned"]).unwrap()
    );
    world.finish().await;
}

// rule: pools.transact.once, idempotency.in-flight, idempotency.scope
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_transacts_of_one_quote_make_one_trade_and_one_debit() {
    for same_key in [true, false] {
        let world = World::new().await;
        world.operator().credit(ACME, "1000.00", "EUR").await;
        let clients = [world.client(ACME_SECRET), world.client(ACME_SECRET_2)];
        let quote = clients[0].buy("EUR-USDT", "100").await;
        let key = |at: usize| {
            if same_key {
                "k".to_owned()
            } else {
                format!("k{at}")
            }
        };
        let answers = at_once((0..50).map(|at| transact(&clients[at % 2], &quote, &key(at)))).await;
        let mut first = 0;
        let mut trades = BTreeSet::new();
        for answer in answers {
            match code(&answer) {
                "ok" => {
                    first += usize::from(answer["idempotent"] == false);
                    trades.insert(answer["transactId"].to_string());
                }
                other => assert!(same_key && other == "idempotency_in_progress", "{other}"),
            }
        }
        assert_eq!((first, trades.len()), (1, 1));
        assert_eq!(clients[0].balance("EUR-USDT").await, "900.00");
        assert_eq!(
            (
                world.database().count("trades").await,
                world.database().count("ledger_entries").await
            ),
            (1, 2)
        );
        world.finish().await;
    }
}

// rule: money.never-negative, pools.transact.balance, pools.transact.batch-equals-single, pools.ledger.chain
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_trades_with_funds_for_one_hundred() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let acme = world.acme();
    let mut quotes = Vec::new();
    for _ in 0..200 {
        quotes.push(acme.buy("EUR-USDT", "10").await);
    }
    let (stop, stopped) = watch::channel(false);
    let (pages, mut first) = watch::channel(0);
    let reader = tokio::spawn(watch_ledger(acme.clone(), stopped, pages));
    first.changed().await.unwrap();
    let answers = at_once(quotes.iter().map(|quote| transact(&acme, quote, quote))).await;
    stop.send(true).unwrap();
    let seen = reader.await.expect("every page chained");
    assert_eq!(
        (seen.first(), seen.last()),
        (Some(&0), Some(&100_000)),
        "pages were read before, during and after"
    );
    let mut outcomes = BTreeMap::<String, usize>::new();
    for answer in &answers {
        *outcomes.entry(code(answer).to_owned()).or_default() += 1;
    }
    assert_eq!(
        outcomes,
        BTreeMap::from([
            ("insufficient_balance".to_owned(), 100),
            ("ok".to_owned(), 100)
        ])
    );
    assert_eq!(acme.balance("EUR-USDT").await, "0.00");
    let active = quotes.len() - 100;
    let still = "SELECT count(*) FROM quotes WHERE consumed_at IS NULL AND rejected_at IS NULL";
    assert_eq!(
        world.database().number(still).await,
        i64::try_from(active).unwrap()
    );
    world.finish().await;
}

/// Reads the ledger repeatedly, and once more after the stop signal: each page's balances add up, and none is negative.
/// Returns the observed balances in cents.
async fn watch_ledger(
    client: Client,
    stopped: watch::Receiver<bool>,
    pages: watch::Sender<usize>,
) -> BTreeSet<i64> {
    let mut seen = BTreeSet::new();
    loop {
        let last = *stopped.borrow();
        let page = client.ledger("EUR").await;
        let cents = |value: &Value| {
            value
                .as_str()
                .unwrap()
                .replace('.', "")
                .parse::<i64>()
                .unwrap()
        };
        let mut balance = cents(&page["available"]);
        seen.insert(balance);
        for entry in page["entries"].as_array().unwrap() {
            assert_eq!(cents(&entry["balanceAfter"]), balance);
            assert!(balance >= 0);
            balance -= cents(&entry["delta"]);
        }
        assert_eq!(balance, 0, "the page goes back to the first entry");
        pages.send_modify(|pages| *pages += 1);
        if last {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

// rule: pools.velocity.exact, pools.velocity.boundary
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn velocity_cap_is_exact_under_64_clients() {
    let world = rich().await;
    // 100 EUR are 108.5 USDT: the cap admits exactly 20 trades.
    world
        .operator()
        .change(ACME, |profile| {
            profile.velocity_cap = Some(2_170 * 100_000_000)
        })
        .await;
    let acme = world.acme();
    for round in 1..=3_u64 {
        let mut quotes = Vec::new();
        for _ in 0..64 {
            quotes.push(acme.buy("EUR-USDT", "100").await);
        }
        let answers = at_once(quotes.iter().map(|quote| transact(&acme, quote, quote))).await;
        let made = answers.iter().filter(|answer| answer.status == 200).count();
        let refused = answers
            .iter()
            .filter(|answer| code(answer) == "velocity_cap_exceeded")
            .count();
        assert_eq!((made, refused), (20, 44), "round {round}");
        world.after(24 * 60 * 60 * 1000);
    }
    world.finish().await;
}

// rule: idempotency.reused, idempotency.in-flight
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_key_for_two_quotes_has_one_effect() {
    let world = rich().await;
    let acme = world.acme();
    for round in 0..ROUNDS / 4 {
        let (one, other) = (
            acme.buy("EUR-USDT", "10").await,
            acme.buy("EUR-USDT", "20").await,
        );
        let key = format!("round-{round}");
        let answers = at_once([transact(&acme, &one, &key), transact(&acme, &other, &key)]).await;
        let mut codes: Vec<&str> = answers.iter().map(code).collect();
        codes.sort_unstable();
        assert!(
            matches!(
                codes[..],
                ["idempotency_in_progress" | "idempotency_key_reused", "ok"]
            ),
            "{codes:?}"
        );
        let made = world.database().count("trades").await;
        assert_eq!(made, i64::try_from(round + 1).unwrap());
    }
    world.finish().await;
}

// rule: pools.transact.once, pools.trade.converge, idempotency.cache-decides-nothing, pools.velocity.exact
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_on_one_database_agree() {
    let world = rich().await;
    let replica = world.replica().await;
    let (here, there) = (world.acme(), replica.acme());
    for round in 0..ROUNDS / 10 {
        let quote = here.buy("EUR-USDT", "10.41").await;
        let key = |side: &str| {
            if round % 2 == 0 {
                quote.clone()
            } else {
                format!("{side}-{quote}")
            }
        };
        let answers = at_once([
            transact(&here, &quote, &key("here")),
            transact(&there, &quote, &key("there")),
        ])
        .await;
        let acks: Vec<Value> = answers.into_iter().map(Answer::ok).collect();
        assert_eq!(acks[0]["transactId"], acks[1]["transactId"]);
        let repeats = acks.iter().filter(|ack| ack["idempotent"] == true).count();
        assert_eq!(repeats, 1);
        for _ in 0..2 {
            at_once([
                poll(&here, &quote),
                poll(&there, &quote),
                poll(&here, &quote),
            ])
            .await;
        }
        assert_eq!(there.status(&quote).await, "returned");
    }
    assert_eq!(here.balance("EUR-USDT").await, "10000000.00");
    let counts = world.notice_all().await;
    assert_eq!(
        counts,
        BTreeMap::from([("pool.transaction.settled".to_owned(), ROUNDS / 10)])
    );
    replica.close().await;
    world.finish().await;
}

// rule: money.never-negative, money.zero-sum
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_credits_and_trades_lose_no_cent() {
    let world = World::new().await;
    world.operator().credit(ACME, "0.01", "EUR").await;
    let acme = world.acme();
    let mut quotes = Vec::new();
    for _ in 0..60 {
        quotes.push(acme.buy("EUR-USDT", "10").await);
    }
    // Few at a time, because the operator has two connections.
    let crediting = (0..6).map(|_| {
        let world = world.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                world.operator().credit(ACME, "10.00", "EUR").await;
            }
        })
    });
    let crediting: Vec<_> = crediting.collect();
    let answers = at_once(quotes.iter().map(|quote| transact(&acme, quote, quote))).await;
    for credit in crediting {
        credit.await.unwrap();
    }
    let made = i64::try_from(answers.iter().filter(|answer| answer.status == 200).count()).unwrap();
    let left = (60 - made) * 1000 + 1;
    assert_eq!(
        acme.balance("EUR-USDT").await,
        json!(format!("{}.{:02}", left / 100, left % 100))
    );
    world.finish().await;
}

// rule: pools.reject.once
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_concurrent_rejects_succeeds() {
    let world = World::new().await;
    let acme = world.acme();
    for _ in 0..ROUNDS / 10 {
        let quote = acme.buy("EUR-USDT", "10").await;
        let rejecting = (0..5).map(|_| {
            let (client, quote) = (acme.clone(), quote.clone());
            async move { client.reject(&quote).await }
        });
        let answers = at_once(rejecting).await;
        let won = answers.iter().filter(|answer| answer.status == 200).count();
        let lost = answers
            .iter()
            .filter(|answer| code(answer) == "quote_rejected")
            .count();
        assert_eq!((won, lost), (1, 4));
    }
    world.finish().await;
}

// rule: auth.revocation-beats-money
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transact_never_commits_after_the_revocation() {
    for round in 0..4_usize {
        let world = rich().await;
        let (acme, second) = (world.acme(), world.client(ACME_SECRET_2));
        let mut quotes = Vec::new();
        for _ in 0..24 {
            quotes.push(acme.buy("EUR-USDT", "10").await);
        }
        let storm: Vec<_> = quotes
            .iter()
            .map(|quote| tokio::spawn(transact(&second, quote, quote)))
            .collect();
        for _ in 0..7 * round {
            tokio::task::yield_now().await;
        }
        world.operator().revoke(ACME_SECRET_2).await;
        let made = world.database().count("trades").await;
        let mut answered = 0;
        for answer in storm {
            let answer = answer.await.unwrap();
            match code(&answer) {
                "ok" => answered += 1,
                // On a busy machine a transact may be refused without being made.
                "service_unavailable" => {}
                other => assert_eq!(other, "key_revoked"),
            }
        }
        assert_eq!(
            (world.database().count("trades").await, answered),
            (made, made)
        );
        world.finish().await;
    }
}
