//! Notifications of the rail: they prove where they come from, tell nothing about payments, and only make the next poll due.

use acceptance::{Call, FORMER_RAIL_SECRET, FarRail, Gate, RAIL_SECRET};
use kernel::{Timestamp, Upstreams};
use partner_core::webhooks::notification::NotificationSecret;
use serde_json::json;
use tokio::task::JoinSet;

use super::rails::id;
use super::widget_payments::{Widget, purchase};

const PATH: &str = "/v1/rail_notifications";
/// An amount whose payment stays in progress for several polls.
const SLOW: &str = "100.33";
const MINUTE: i64 = 60_000;

/// A notification that is signed with this secret.
fn signed_with(secret: &'static str, at: Timestamp, body: &str) -> Call {
    let secret = NotificationSecret::new(secret.into());
    let signature = secret.sign(body.as_bytes(), at);
    Call::post(PATH)
        .body(body.to_owned())
        .header("rail-signature", &signature)
}

fn signed_at(at: Timestamp, body: &str) -> Call {
    signed_with(RAIL_SECRET, at, body)
}

pub(super) fn signed(gate: &Gate, body: &str) -> Call {
    signed_at(gate.now(), body)
}

pub(super) fn about(id: &str) -> String {
    json!({ "id": id }).to_string()
}

/// A widget with a payment, and the id by which the rail knows it.
async fn payment(gate: &Gate) -> (Widget, String) {
    let widget = Widget::of_amount(gate, SLOW).await;
    let quote = widget.quote().await;
    let paid = widget.pay("k", purchase(&quote)).await.created();
    (widget, id(&paid).replace("pay_", "pi_"))
}

// rule: rail.notification.wakes, rail.notification.believes-nothing
#[tokio::test]
async fn notification_makes_next_poll_due_and_decides_nothing() {
    let gate = Gate::new().await;
    let (widget, rail_id) = payment(&gate).await;
    gate.settle_rails().await;
    assert_eq!(gate.polls(&rail_id).await, 1);
    // Without a notification the next poll waits.
    gate.settle_rails().await;
    assert_eq!(gate.polls(&rail_id).await, 1);
    let mut body = json!({ "id": rail_id, "status": "settled", "reference": "e2e-1" });
    for polls in 2..4 {
        for _ in 0..3 {
            // A repeated notification adds no poll.
            let notified = gate.notify(signed(&gate, &body.to_string())).await;
            assert_eq!((notified.status, notified.bytes.len()), (202, 0));
        }
        gate.settle_rails().await;
        gate.settle_rails().await;
        assert_eq!(gate.polls(&rail_id).await, polls);
        // The rail still says `processing` when it is asked.
        assert_eq!(widget.payment().await["status"], "processing");
        body["status"] = json!("failed");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.notification.wakes
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn flood_of_notifications_on_two_replicas_adds_one_poll() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    let (_, rail_id) = payment(&gate).await;
    gate.settle_rails().await;
    let mut flood = JoinSet::new();
    for number in 0..40 {
        let to = if number % 2 == 0 { &gate } else { &replica }.clone();
        let call = signed(&gate, &about(&rail_id));
        flood.spawn(async move { to.notify(call).await.status });
    }
    let statuses = flood.join_all().await;
    assert!(statuses.iter().all(|status| *status == 202), "{statuses:?}");
    replica.settle_rails().await;
    gate.settle_rails().await;
    assert_eq!(gate.polls(&rail_id).await, 2);
    gate.world().notice_all().await;
    replica.world().notice_all().await;
    replica.finish().await;
    gate.finish().await;
}

/// A payment that is processing at the present rail, which was asked about it once; the id by which the rail knows it.
async fn payment_at(gate: &Gate, rail: &FarRail, amount: &str) -> String {
    let widget = Widget::of_amount(gate, amount).await;
    let paid = widget.buy("k").await;
    gate.settle_rails().await;
    assert_eq!(rail.calls(), ["instructions", "begin", "report"]);
    id(&paid).replace("pay_", "pi_")
}

// rule: rail.notifications-of-holder, rail.elsewhere
#[tokio::test]
async fn notification_counts_only_for_payments_of_the_rail_that_signed_it() {
    let gate = Gate::new().await;
    let (a, b) = (FarRail::start(), FarRail::start());
    gate.rail().becomes(a.adapter());
    let of_a = payment_at(&gate, &a, "100.00").await;
    // Both rails are configured, the present one alone, or the former one alone.
    let (present, former) = (Some(b.adapter()), Some(a.adapter()));
    let both = gate
        .with_rails(Upstreams {
            present: present.clone(),
            former: former.clone(),
        })
        .await;
    let of_b = payment_at(&both, &b, "200.00").await;
    let only_b = gate.with_rails(Upstreams {
        present,
        former: None,
    });
    let only_b = only_b.await;
    let without = gate.with_rails(Upstreams {
        present: None,
        former,
    });
    let without = without.await;
    for (gate, secret, payment, asked) in [
        (&both, RAIL_SECRET, &of_a, [0, 0]),
        (&both, FORMER_RAIL_SECRET, &of_b, [0, 0]),
        (&only_b, RAIL_SECRET, &of_a, [0, 0]),
        (&without, FORMER_RAIL_SECRET, &of_b, [0, 0]),
        (&both, RAIL_SECRET, &of_b, [0, 1]),
        (&both, FORMER_RAIL_SECRET, &of_a, [1, 0]),
        (&only_b, RAIL_SECRET, &of_b, [0, 1]),
        (&without, FORMER_RAIL_SECRET, &of_a, [1, 0]),
    ] {
        let call = signed_with(secret, gate.now(), &about(payment));
        let notified = gate.notify(call).await;
        assert_eq!((notified.status, notified.bytes.len()), (202, 0));
        both.settle_rails().await;
        let calls = [&a, &b].map(|rail| rail.calls().len());
        assert_eq!(calls, asked, "{payment} with {secret}");
    }
    // The secret of a rail that is not configured signs nothing.
    for (gate, secret) in [
        (&only_b, FORMER_RAIL_SECRET),
        (&without, RAIL_SECRET),
        (&gate, FORMER_RAIL_SECRET),
    ] {
        let call = signed_with(secret, gate.now(), &about(&of_a));
        gate.notify(call).await.refused(401, "unauthorized");
    }
    gate.world().notice_all().await;
    for replica in [both, only_b, without] {
        replica.close().await;
    }
    gate.finish().await;
}

// rule: rail.notification.same-for-every-id
#[tokio::test]
async fn response_tells_nothing_about_payments() {
    let gate = Gate::new().await;
    let (_, rail_id) = payment(&gate).await;
    for id in [
        rail_id.as_str(),
        "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        "pi_live_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        &rail_id.replace("pi_", "po_"),
        &rail_id.replace("_test_", "_live_"),
    ] {
        let notified = gate.notify(signed(&gate, &about(id))).await;
        assert_eq!((notified.status, notified.bytes.len()), (202, 0), "{id}");
    }
    gate.settle_rails().await;
    assert_eq!(gate.polls(&rail_id).await, 1);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.notification.signature
#[tokio::test]
async fn notification_without_recent_signature_is_refused() {
    let gate = Gate::new().await;
    let (_, rail_id) = payment(&gate).await;
    gate.settle_rails().await;
    let (body, now) = (about(&rail_id), gate.now());
    let at = |shift: i64| Timestamp::from_millis(now.millis() + shift).unwrap();
    let bare = |body: &str| Call::post(PATH).body(body.to_owned());
    let other = NotificationSecret::new("another-secret-of-the-rail".into());
    for refused in [
        bare(&body),
        bare(&body).bearer(RAIL_SECRET),
        bare(&body).header("rail-signature", "sha256=00"),
        bare(&body).header("rail-signature", &other.sign(body.as_bytes(), now)),
        signed(&gate, "{}").body(about(&rail_id)),
        signed(&gate, &body).header("rail-signature", "t=1,v1=00"),
        signed_at(at(-6 * MINUTE), &body),
        signed_at(at(6 * MINUTE), &body),
    ] {
        let answer = gate.notify(refused).await;
        answer.refused(401, "unauthorized");
    }
    gate.settle_rails().await;
    assert_eq!(gate.polls(&rail_id).await, 1);
    for allowed in [
        signed_at(at(-4 * MINUTE), &body),
        signed_at(at(4 * MINUTE), &body),
    ] {
        assert_eq!(gate.notify(allowed).await.status, 202);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: rail.notification.bounded, error.content-encoding
#[tokio::test]
async fn malformed_and_oversized_notifications_are_refused() {
    let gate = Gate::new().await;
    for (body, code) in [
        ("", "invalid_json"),
        ("pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK", "invalid_json"),
        ("{}", "invalid_request"),
        (r#"{"id":7}"#, "invalid_request"),
        (
            r#"{"id":"pay_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"}"#,
            "invalid_request",
        ),
        (r#"{"id":"pi_test_1"}"#, "invalid_request"),
    ] {
        gate.notify(signed(&gate, body)).await.refused(400, code);
    }
    let padded = |length: usize| {
        let empty = about("pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK");
        format!("{empty}{}", " ".repeat(length - empty.len()))
    };
    assert_eq!(gate.notify(signed(&gate, &padded(4096))).await.status, 202);
    for length in [4097, 65537] {
        let large = gate.notify(signed(&gate, &padded(length))).await;
        large.refused(413, "body_too_large");
    }
    let encoded = signed(&gate, &padded(4096)).header("content-encoding", "gzip");
    let answer = gate.notify(encoded).await;
    answer.refused(415, "unsupported_media_type").saying("gzip");
    gate.finish().await;
}
