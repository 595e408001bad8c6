//! The trace parent that calls to the rail and to the verifier carry, and that of events.

use std::sync::Arc;
use std::time::Duration;

use acceptance::{Call, Gate, SHOP};
use providers::{HttpRail, HttpVerifier, UpstreamUrl};
use serde_json::json;
use test_support::http::{Reply, Request, Upstream};

use super::rails::{self, PAY_INS, id};
use super::widget_payments::{Widget, purchase};
use crate::trace_parents::{HEADERS, expected, with_header};

/// Generous timeout for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A rail and a verifier in one server. It cancels every payment and approves every user.
fn played() -> Upstream {
    Upstream::start(|request| {
        let mut segments = request.path().split('/').skip(3);
        let id = segments.next().unwrap();
        let answer = match segments.next() {
            Some("instructions") => json!({ "id": id, "instructions": { "reference": "r-1" } }),
            Some("cancel") => json!({ "id": id, "status": "cancelled" }),
            _ => json!({ "id": id, "status": "approved" }),
        };
        Reply::json(200, &answer.to_string())
    })
}

// rule: upstream.http.traceparent, upstream.http.trace-source
#[tokio::test]
async fn call_to_rail_or_verifier_carries_the_trace_parent_of_its_request() {
    let gate = Gate::new().await;
    let far = played();
    let url = UpstreamUrl::parse(&far.url()).unwrap();
    let rail = HttpRail::new(url.clone(), None, TIMEOUT).unwrap();
    gate.rail().becomes(Arc::new(rail));
    let verifier = HttpVerifier::new(url, None, TIMEOUT).unwrap();
    gate.verifier().becomes(Arc::new(verifier));
    for (number, header) in HEADERS.into_iter().enumerate() {
        let widget = Widget::of_amount(&gate, &format!("10{number}.61")).await;
        let send = async |call: Call, path: &str| {
            let answer = widget.send(with_header(call, header)).await;
            let [call]: [Request; 1] = far.take().try_into().unwrap();
            assert!(call.path().starts_with(path), "{}", call.head);
            assert_eq!(call.header("traceparent"), expected(header, &answer));
            answer
        };
        let start = Call::post("/v1/embed/verification");
        let started = send(start, "/v1/verifications/ver_").await.ok();
        assert_eq!(started["status"], "approved");
        let quote = widget.quote().await;
        let pay = Call::post("/v1/embed/payments").json(&purchase(&quote));
        let pay = pay.key(&format!("k-{number}"));
        let paid = send(pay, "/v1/payments/pi_").await.created();
        let cancel = Call::post(&format!("/v1/embed/payments/{}/cancel", id(&paid)));
        send(cancel, "/v1/payments/pi_").await.ok();
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

/// The trace parents of the events about an object, by the types of the events.
async fn of_events(gate: &Gate, object: &str) -> Vec<String> {
    let asked =
        format!("SELECT trace_parent FROM events WHERE object_id = '{object}' ORDER BY type");
    gate.world().database().texts(&asked).await
}

/// The payment is settled in the background, by the request that made it.
// rule: webhook.traceparent
#[tokio::test]
async fn event_has_the_trace_parent_of_the_request_that_caused_it() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (number, header) in HEADERS.into_iter().enumerate() {
        let order =
            json!({ "amount": "100.00", "currency": "EUR", "return_url": format!("{SHOP}/done") });
        let create = Call::post("/v1/gate_sessions").json(&order);
        let create = create.key(&format!("s-{number}"));
        let created = acme.send(with_header(create, header)).await;
        let of_session = expected(header, &created);
        let session = id(&created.created());
        let quote = id(&rails::purchase(&acme, &format!("q-{number}"), "100.00").await);
        let pay = json!({ "quote_id": quote, "session_id": session });
        let pay = Call::post(PAY_INS).json(&pay).key(&format!("p-{number}"));
        let paid = acme.send(with_header(pay, header)).await;
        let of_payment = expected(header, &paid);
        let payment = id(&paid.created());
        gate.settle_rails().await;
        let (processing, settled) = (of_payment.clone(), of_payment.clone());
        assert_eq!(of_events(&gate, &payment).await, [processing, settled]);
        let (completed, created) = (of_payment, of_session);
        assert_eq!(of_events(&gate, &session).await, [completed, created]);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
