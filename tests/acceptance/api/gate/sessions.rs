//! Sessions after their creation: read, list, cancel and expiry.

use acceptance::{ACME, ACME_SECRET, Gate, GateClient, RIVAL, SHOP, session};
use kernel::Mode;
use partner_core::PartnerStatus;
use serde_json::{Value, json};

use super::races::act;

const PATH: &str = "/v1/gate_sessions";
const DAY: u64 = 24 * 60 * 60 * 1000;

fn ids(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().unwrap();
    data.iter().map(|it| it["id"].as_str().unwrap()).collect()
}

// rule: gate.session.cancel, gate.session.not-open, gate.event.data, gate.event.envelope
#[tokio::test]
async fn open_session_is_cancelled_once() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let id = acme.open_id("k").await;
    let cancelled = acme.cancel(&id).await.created();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(acme.read(&id).await.ok(), cancelled);
    for answer in [
        acme.cancel(&id).await,
        acme.complete(&id).await,
        acme.fail(&id).await,
    ] {
        answer.refused(409, "session_not_open").saying("cancelled");
    }
    let events = gate.events(ACME, &id).await;
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["gate_session.created", "gate_session.cancelled"]);
    assert_eq!(events[1].1, cancelled);
    gate.finish().await;
}

// rule: gate.session.lazy-expiry, gate.session.expires, gate.event.once
#[tokio::test]
async fn first_reader_applies_an_overdue_expiry() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for by in ["retrieve", "list", "cancel", "complete", "fail", "filter"] {
        let id = acme.open_id(by).await;
        gate.world().after(DAY - 1);
        assert_eq!(acme.status(&id).await, "open");
        gate.world().after(1);
        match by {
            "retrieve" => assert_eq!(acme.status(&id).await, "expired"),
            "list" => {
                let list = acme.get(PATH).await.ok();
                assert_eq!(list["data"][0]["status"], "expired");
            }
            "filter" => {
                let open = acme.get(&format!("{PATH}?status=open")).await.ok();
                assert_eq!(open["data"], json!([]));
            }
            end => {
                let answer = acme.send(act(&id, end)).await;
                answer.refused(409, "session_not_open").saying("expired");
            }
        }
        for _ in 0..2 {
            assert_eq!(acme.status(&id).await, "expired");
            acme.get(PATH).await.ok();
        }
        acme.cancel(&id).await.refused(409, "session_not_open");
        assert_eq!(gate.world().database().count("transactions").await, 0);
        let kinds = gate.notice(ACME, &id).await;
        let expected = ["gate_session.created", "gate_session.expired"];
        assert_eq!(kinds, expected, "{by}");
    }
    gate.finish().await;
}

// rule: gate.session.sweep, gate.event.once
#[tokio::test]
async fn sweep_expires_unread_sessions() {
    let gate = Gate::with(|setup| setup.session_ttl = std::time::Duration::from_secs(60)).await;
    let (acme, rival) = (gate.acme(), gate.rival());
    let mine = acme.open_id("k").await;
    let foreign = rival.open_id("k").await;
    let cancelled = acme.open_id("l").await;
    acme.cancel(&cancelled).await.created();
    gate.world().after(59_999);
    assert_eq!(gate.sweep(Mode::Test).await.unwrap(), 0);
    gate.world().after(1);
    assert_eq!(gate.sweep(Mode::Live).await.unwrap(), 0);
    assert_eq!(gate.sweep(Mode::Test).await.unwrap(), 2);
    assert_eq!(gate.sweep(Mode::Test).await.unwrap(), 0);
    let expired = ["gate_session.created", "gate_session.expired"];
    assert_eq!(gate.notice(ACME, &mine).await, expired);
    assert_eq!(gate.notice(RIVAL, &foreign).await, expired);
    assert_eq!(acme.status(&mine).await, "expired");
    gate.notice(ACME, &cancelled).await;
    gate.finish().await;
}

// rule: gate.session.sweep, gate.session.list, gate.session.lazy-expiry
#[tokio::test]
async fn list_expires_more_sessions_than_one_sweep() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for number in 0..201 {
        acme.open_id(&format!("k{number}")).await;
    }
    gate.world().after(DAY - 1);
    let young = acme.open_id("young").await;
    gate.world().after(1);
    assert_eq!(gate.sweep(Mode::Test).await.unwrap(), 100);
    let open = acme.get(&format!("{PATH}?status=open")).await.ok();
    assert_eq!(ids(&open), [young.as_str()]);
    let told = gate.world().notice_all().await;
    assert_eq!(told.get("gate_session.expired"), Some(&201));
    gate.finish().await;
}

// rule: gate.session.sweep
#[tokio::test]
async fn failed_expiry_delays_no_other_session() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let broken = acme.open_id("k").await;
    gate.world().after(1);
    let whole = acme.open_id("l").await;
    let (id, damage) = (
        broken.replace("gs_test_", ""),
        "UPDATE sessions SET currency",
    );
    let spoil = async |currency: &str| {
        let sql = format!("{damage} = '{currency}' WHERE id = '{id}'");
        gate.world().damage(&sql).await;
    };
    spoil("XXX").await;
    gate.world().after(DAY);
    gate.sweep(Mode::Test).await.unwrap_err();
    let expired = ["gate_session.created", "gate_session.expired"];
    assert_eq!(gate.notice(ACME, &whole).await, expired);
    acme.read(&broken).await.refused(500, "internal_error");
    spoil("EUR").await;
    assert_eq!(gate.sweep(Mode::Test).await.unwrap(), 1);
    assert_eq!(gate.notice(ACME, &broken).await, expired);
    gate.finish().await;
}

/// The ids of a list in this field, by pages of two.
pub(super) async fn walk(client: &GateClient, list: &str, field: &str) -> Vec<String> {
    let join = if list.contains('?') { '&' } else { '?' };
    let mut walked: Vec<String> = Vec::new();
    let mut after = String::new();
    loop {
        let page = client.get(&format!("{list}{join}limit=2{after}")).await;
        let page = page.ok();
        let data = page["data"].as_array().unwrap();
        walked.extend(data.iter().map(|it| it[field].as_str().unwrap().to_owned()));
        if page["has_more"] == false {
            return walked;
        }
        after = format!("&starting_after={}", walked.last().unwrap());
    }
}

/// Sessions expire one after the other, by their deadline, a sweep or a read, and others are cancelled and completed.
// rule: list.no-loss
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn walk_beside_ends_visits_each_session_once() {
    const SESSIONS: usize = 24;
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    let mut made = Vec::new();
    for at in 0..SESSIONS {
        gate.world().after(1_000);
        made.push(gate.acme().open_id(&format!("k{at}")).await);
    }
    let newest_first: Vec<String> = made.iter().rev().cloned().collect();
    gate.world().after(DAY - 1_000 * SESSIONS as u64);
    let ending = {
        let (gate, replica, made) = (gate.clone(), replica.clone(), made.clone());
        tokio::spawn(async move {
            for (at, id) in made.iter().enumerate() {
                let status = match at % 3 {
                    0 => replica.acme().cancel(id).await.status,
                    1 => gate.acme().complete(id).await.status,
                    _ => replica.sweep(Mode::Test).await.map(|_| 200).unwrap(),
                };
                assert!([200, 201, 409].contains(&status), "{status}");
                gate.world().after(1_000);
            }
        })
    };
    let all_open = format!("{PATH}?status=open");
    while !ending.is_finished() {
        assert_eq!(walk(&gate.acme(), PATH, "id").await, newest_first);
        let open = walk(&replica.acme(), &all_open, "id").await;
        let still_open = walk(&gate.acme(), &all_open, "id").await;
        for id in &still_open {
            assert_eq!(open.iter().filter(|it| *it == id).count(), 1, "{id}");
        }
    }
    ending.await.unwrap();
    gate.world().after(DAY);
    let mut ended = Vec::new();
    for status in ["expired", "cancelled", "completed"] {
        ended.extend(walk(&gate.acme(), &format!("{PATH}?status={status}"), "id").await);
    }
    ended.sort_unstable();
    made.sort_unstable();
    assert_eq!(ended, made);
    for id in &made {
        assert_eq!(gate.notice(ACME, id).await.len(), 2, "made and ended");
    }
    replica.close().await;
    gate.finish().await;
}

// rule: gate.session.one-end, gate.event.once
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn complete_cancel_and_expiry_have_one_winner() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    for round in 0..6 {
        let id = gate.acme().open_id(&format!("round-{round}")).await;
        gate.world().after(DAY - 1);
        let acts = (0..9).map(|at| {
            let (gate, replica, id) = (gate.clone(), replica.clone(), id.clone());
            tokio::spawn(async move {
                if at == round {
                    gate.world().after(1);
                }
                let client = if at % 2 == 0 {
                    gate.acme()
                } else {
                    replica.acme()
                };
                match at % 3 {
                    0 => client.cancel(&id).await.status,
                    1 => client.complete(&id).await.status,
                    _ => client.read(&id).await.status,
                }
            })
        });
        let mut done = 0;
        for status in acts.collect::<Vec<_>>() {
            match status.await.unwrap() {
                201 => done += 1,
                200 | 409 => {}
                other => panic!("{other}"),
            }
        }
        let status = gate.acme().status(&id).await;
        assert!(done <= 1);
        assert_eq!(status == "cancelled", done == 1);
        let kinds = gate.notice(ACME, &id).await;
        let ended = format!("gate_session.{status}");
        assert_eq!(kinds, ["gate_session.created".to_owned(), ended]);
        let paid = format!("/v1/transactions?session_id={id}");
        let paid = gate.acme().get(&paid).await.ok();
        let paid = paid["data"].as_array().unwrap().len();
        assert_eq!(paid, usize::from(status == "completed"));
    }
    replica.close().await;
    gate.finish().await;
}

// rule: gate.session.list, list.order, list.no-loss
#[tokio::test]
async fn list_is_newest_first_and_pages_without_loss() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut made = Vec::new();
    for at in 0..5 {
        // Two pairs of sessions, each pair at one instant.
        gate.world().after(at % 2);
        made.push(acme.open_id(&format!("k{at}")).await);
    }
    acme.cancel(&made[1]).await.created();
    let whole = acme.get(PATH).await.ok();
    let all = ids(&whole);
    let envelope = (&whole["object"], &whole["has_more"], &whole["url"]);
    assert_eq!(
        envelope,
        (&json!("list"), &json!(false), &json!("/v1/gate_sessions"))
    );
    let place = |it: &Value| (it["created_at"].to_string(), it["id"].to_string());
    let places: Vec<_> = whole["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(place)
        .collect();
    assert!(places.is_sorted_by(|one, next| one > next), "{places:?}");
    assert_eq!(all.len(), 5);
    assert_eq!(walk(&acme, PATH, "id").await, all);
    let open = acme.get(&format!("{PATH}?status=open&limit=4")).await.ok();
    assert!(!ids(&open).contains(&made[1].as_str()) && open["has_more"] == false);
    let cancelled = acme.get(&format!("{PATH}?status=cancelled")).await.ok();
    assert_eq!(ids(&cancelled), [made[1].as_str()]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.session.list, list.foreign-cursor, list.malformed-cursor, warning.unknown-parameter
#[tokio::test]
async fn list_query_is_validated() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mine = acme.open_id("k").await;
    let foreign = gate.rival().open_id("k").await;
    for query in [
        "limit=0",
        "limit=101",
        "limit=ten",
        "limit=",
        "limit=1&limit=1",
        "status=failed",
        "status=OPEN",
        "status=",
        "starting_after=",
        "starting_after=gs_test_1",
        "starting_after=pq_test_01HF7YAT00408104G208104081",
        "starting_after=%00",
    ] {
        let answer = acme.get(&format!("{PATH}?{query}")).await;
        let name = query.split('=').next().unwrap();
        answer.refused(400, "invalid_request").saying(name);
    }
    let unknown = "gs_test_01HF7YAT00408104G208104081";
    for cursor in [unknown, &foreign, &mine.replace("_test_", "_live_"), &mine] {
        let page = acme
            .get(&format!("{PATH}?starting_after={cursor}"))
            .await
            .ok();
        let expected = json!({ "object": "list", "data": [], "has_more": false, "url": PATH });
        assert_eq!(page, expected, "{cursor}");
    }
    let page = acme.get(&format!("{PATH}?limit=100&other=1&other=2")).await;
    assert_eq!(
        page.header("penstock-warning"),
        Some("unknown_parameter; other")
    );
    let page = page.ok();
    assert_eq!(ids(&page), [mine.as_str()]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.session.access-again
#[tokio::test]
async fn access_withdrawn_by_another_process_creates_nothing() {
    for code in ["key_revoked", "organization_suspended", "gate_not_enabled"] {
        let gate = Gate::new().await;
        let replica = gate.replica().await;
        // From now on the replica's cache holds the access as granted.
        let first = replica.acme().open("k").await;
        let operator = gate.world().operator();
        match code {
            "key_revoked" => operator.revoke(ACME_SECRET).await,
            "organization_suspended" => operator.put_partner(ACME, PartnerStatus::Suspended).await,
            _ => operator.change_gate(ACME, |it| it.enabled = false).await,
        }
        let refused = replica.acme().create(&session(SHOP), "l").await;
        refused.refused(403, code);
        // A repeat creates nothing, so it gets its response.
        assert_eq!(replica.acme().open("k").await, first);
        assert_eq!(gate.world().database().count("sessions").await, 1);
        replica.close().await;
        gate.notice(ACME, first["id"].as_str().unwrap()).await;
        gate.finish().await;
    }
}
