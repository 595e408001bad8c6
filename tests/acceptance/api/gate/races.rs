//! Concurrent requests about one object, through two processes on one database.

use std::collections::BTreeMap;
use std::time::Duration;

use acceptance::{ACME, Answer, Call, Gate, SHOP, session};
use kernel::Mode;
use partner_core::events::Service;
use partner_core::webhooks::delivery::AttemptOutcome;
use serde_json::Value;
use tokio::task::JoinSet;

const PATH: &str = "/v1/gate_sessions";
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Sends all requests concurrently, alternating between the processes; returns the responses in order.
pub(super) async fn at_once(
    gates: [&Gate; 2],
    calls: impl IntoIterator<Item = Call>,
) -> Vec<Answer> {
    let both = gates.map(Gate::acme);
    let clients = both.iter().cycle();
    let tasks: Vec<_> = calls
        .into_iter()
        .zip(clients)
        .map(|(call, client)| {
            let client = client.clone();
            tokio::spawn(async move { client.send(call).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

/// Sends requests concurrently. Expects that one of them creates an object and the others are refused with this status and code;
/// returns the object.
pub(super) async fn one_winner<F>(
    requests: impl IntoIterator<Item = F>,
    status: u16,
    code: &str,
) -> Value
where
    F: Future<Output = Answer> + Send + 'static,
{
    let racing: JoinSet<Answer> = requests.into_iter().collect();
    let answers = racing.join_all().await.into_iter();
    let (won, lost): (Vec<Answer>, Vec<Answer>) = answers.partition(|it| it.status == 201);
    for answer in lost {
        answer.refused(status, code);
    }
    let [winner] = won.try_into().unwrap();
    winner.created()
}

/// Number of responses by status and code.
fn tally(answers: &[Answer]) -> BTreeMap<(u16, String), usize> {
    let mut tally = BTreeMap::new();
    for answer in answers {
        let code = match answer.status {
            400.. => answer["code"].as_str().unwrap().to_owned(),
            _ => String::new(),
        };
        *tally.entry((answer.status, code)).or_default() += 1;
    }
    tally
}

fn times(tally: &BTreeMap<(u16, String), usize>, status: u16, code: &str) -> usize {
    let place = (status, code.to_owned());
    tally.get(&place).copied().unwrap_or_default()
}

pub(super) fn act(id: &str, act: &str) -> Call {
    Call::post(&match act {
        "cancel" => format!("{PATH}/{id}/cancel"),
        helper => format!("/v1/test_helpers/sessions/{id}/{helper}"),
    })
}

// rule: gate.session.one-end, gate.session.not-open, gate.event.once, idempotency.gate-optional
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_ends_of_a_session_have_one_winner() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    for (round, pair) in [
        ["cancel", "cancel"],
        ["complete", "complete"],
        ["cancel", "complete"],
        ["complete", "cancel"],
    ]
    .iter()
    .cycle()
    .take(8)
    .enumerate()
    {
        let id = gate.acme().open_id(&format!("round-{round}")).await;
        let calls = pair.iter().cycle().take(8).map(|end| act(&id, end));
        let told = tally(&at_once([&gate, &replica], calls).await);
        assert_eq!(times(&told, 200, "") + times(&told, 201, ""), 1, "{told:?}");
        assert_eq!(times(&told, 409, "session_not_open"), 7, "{told:?}");
        let status = gate.acme().status(&id).await;
        assert_eq!(replica.acme().status(&id).await, status);
        let end = format!("gate_session.{status}");
        assert_eq!(gate.notice(ACME, &id).await, ["gate_session.created", &end]);
        let path = format!("/v1/transactions?session_id={id}");
        let paid = gate.acme().get(&path).await.ok();
        let paid = paid["data"].as_array().unwrap().len();
        assert_eq!(paid, usize::from(status == "completed"));
    }
    replica.close().await;
    gate.finish().await;
}

// rule: gate.session.lazy-expiry, gate.event.once, gate.session.sweep
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_readers_emit_one_expiry_event() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    for round in 0..2 {
        let id = gate.acme().open_id(&format!("round-{round}")).await;
        gate.world().after(DAY);
        let reads = (0..40).map(|_| Call::get(&format!("{PATH}/{id}")));
        let lists = (0..4).map(|_| Call::get(&format!("{PATH}?status=open")));
        let ends = ["cancel", "complete", "fail", "cancel"].map(|end| act(&id, end));
        let sweeping = {
            let sweeping = replica.clone();
            tokio::spawn(async move { sweeping.sweep(Mode::Test).await })
        };
        let answers = at_once([&gate, &replica], reads.chain(lists).chain(ends)).await;
        sweeping.await.unwrap().unwrap();
        for answer in &answers[..40] {
            assert_eq!((answer.status, &answer["status"]), (200, &"expired".into()));
        }
        for answer in &answers[40..44] {
            assert_eq!(answer["data"].as_array().unwrap().len(), 0);
        }
        assert_eq!(times(&tally(&answers[44..]), 409, "session_not_open"), 4);
        let told = gate.notice(ACME, &id).await;
        assert_eq!(told, ["gate_session.created", "gate_session.expired"]);
    }
    replica.close().await;
    gate.finish().await;
}

// rule: idempotency.gate-twin, idempotency.gate-any-body, idempotency.gate-replay
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn key_has_one_effect_while_it_expires_and_is_swept() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    let first = gate.acme().open_id("k").await;
    let create = |_| Call::post(PATH).json(&session(SHOP)).key("k");
    for (after, sessions) in [(DAY - 1, 1), (1, 2)] {
        gate.world().after(after);
        let swept = {
            let world = gate.world().clone();
            tokio::spawn(async move {
                let day = Duration::from_millis(DAY);
                let operator = world.operator();
                operator.sweep_keys(Service::Gate, Mode::Test, day).await;
            })
        };
        let answers = at_once([&gate, &replica], (0..10).map(create)).await;
        swept.await.unwrap();
        let told = tally(&answers);
        assert_eq!(
            times(&told, 201, "") + times(&told, 409, "idempotency_in_progress"),
            10
        );
        let again = gate.acme().open_id("k").await;
        assert_eq!(again == first, sessions == 1);
        for answer in answers.iter().filter(|answer| answer.status == 201) {
            assert_eq!(answer["id"], again.as_str());
        }
        assert_eq!(gate.world().database().count("sessions").await, sessions);
        gate.notice(ACME, &again).await;
    }
    replica.close().await;
    gate.finish().await;
}

// rule: gate.quota.exact
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_processes_stay_within_the_quota() {
    let gate = Gate::with(|setup| setup.mode = Mode::Live).await;
    let operator = gate.world().operator();
    operator
        .change_gate(ACME, |gate| gate.live_session_quota = Some(7))
        .await;
    let replica = gate.replica().await;
    let create = |number: u32| {
        Call::post(PATH)
            .json(&session(SHOP))
            .key(&format!("k{number}"))
    };
    let told = tally(&at_once([&gate, &replica], (0..20).map(create)).await);
    assert_eq!(times(&told, 201, ""), 7, "{told:?}");
    assert_eq!(times(&told, 403, "quota_exhausted"), 13, "{told:?}");
    assert_eq!(gate.world().database().count("sessions").await, 7);
    replica.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.webhook-tools.replay, webhook.one-holder
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn delivery_is_replayed_once_under_concurrent_replays_and_workers() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    for _ in 0..3 {
        let sent = gate.acme().send(Call::post("/v1/webhooks/test")).await.ok();
        let (id, event) = (
            sent["id"].as_str().unwrap(),
            sent["event_id"].as_str().unwrap(),
        );
        gate.conclude(AttemptOutcome::GivenUp, Some(500), None)
            .await;
        let delivering = {
            let other = replica.clone();
            tokio::spawn(async move {
                other
                    .conclude(AttemptOutcome::Delivered, Some(200), None)
                    .await
            })
        };
        let replay = |_| Call::post(&format!("/v1/webhooks/deliveries/{id}/replay"));
        let told = tally(&at_once([&gate, &replica], (0..6).map(replay)).await);
        delivering.await.unwrap();
        assert_eq!(times(&told, 200, ""), 1, "{told:?}");
        assert_eq!(
            times(&told, 400, "delivery_not_dead_lettered"),
            5,
            "{told:?}"
        );
        gate.conclude(AttemptOutcome::Delivered, Some(200), None)
            .await;
        let listed = gate
            .acme()
            .get("/v1/webhooks/deliveries?limit=1")
            .await
            .ok();
        let (status, attempts) = (&listed["data"][0]["status"], &listed["data"][0]["attempts"]);
        assert_eq!((status, attempts), (&"succeeded".into(), &1.into()));
        gate.notice(ACME, event).await;
    }
    replica.close().await;
    gate.finish().await;
}
