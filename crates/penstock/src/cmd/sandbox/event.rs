//! Verifies the sender of a delivery, and compares the event with the API.

use kernel::Timestamp;
use partner_core::events::Service;
use partner_core::webhooks::signing::{Message, SigningSecret};
use serde_json::{Value, json};

use super::receiver::Delivery;

/// The type of the event of a settled trade.
const SETTLED: &str = "pool.transaction.settled";
/// The types of the events of a session.
const CREATED: &str = "gate_session.created";
const COMPLETED: &str = "gate_session.completed";
/// The type of the event of a settled pay-in.
pub(super) const PAID_IN: &str = "rail.pay_in.settled";
/// The types of all events of a session that a pay-in completes.
pub(super) const OF_A_PAY_IN: [&str; 5] = [
    CREATED,
    "quote.consumed",
    "rail.pay_in.processing",
    PAID_IN,
    COMPLETED,
];

/// Checks deliveries with an endpoint's secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge<'j> {
    pub(super) secret: &'j SigningSecret,
    pub(super) now: Timestamp,
}

impl Judge<'_> {
    /// Checks the event of a settled trade: both signatures, the id, and every field of the trade.
    pub(super) fn of_trade(self, delivery: &Delivery, trade: &Value) -> Result<String, String> {
        let (id, event) = self.authentic(delivery, Service::Pools)?;
        let expected = event_of_trade(id, trade);
        compared(delivery, SETTLED, id, &expected, &event)
    }

    /// Checks the event of a created session.
    pub(super) fn of_created(self, delivery: &Delivery, session: &str) -> Result<(), String> {
        let (_, event) = self.authentic(delivery, Service::Gate)?;
        let created = event.get("type") == Some(&Value::from(CREATED))
            && event.pointer("/data/id") == Some(&Value::from(session));
        created
            .then_some(())
            .ok_or_else(|| format!("expected {CREATED} of {session}, got {event}"))
    }

    /// Checks the event of a completed session: both signatures, the envelope, and every field of the session.
    pub(super) fn of_completed(
        self,
        delivery: &Delivery,
        session: &Value,
    ) -> Result<String, String> {
        let (id, event) = self.authentic(delivery, Service::Gate)?;
        let expected = event_of_session(id, session, event.get("created_at"));
        compared(delivery, COMPLETED, id, &expected, &event)
    }

    /// Verifies both signatures of a delivery of the gate. Returns the event's type and object.
    pub(super) fn of_gate(self, delivery: &Delivery) -> Result<(String, Value), String> {
        let (_, event) = self.authentic(delivery, Service::Gate)?;
        let field_of = |field| event.get(field).cloned();
        match (field_of("type"), field_of("data")) {
            (Some(Value::String(kind)), Some(data)) => Ok((kind, data)),
            _ => Err(format!("expected a type and data, got {event}")),
        }
    }

    /// Verifies both signatures of a delivery. The name of the signature header identifies the service.
    pub(super) fn verify(self, delivery: &Delivery) -> Result<(), String> {
        let service = if delivery.headers.contains_key("gate-signature") {
            Service::Gate
        } else {
            Service::Pools
        };
        self.authentic(delivery, service).map(|_| ())
    }

    /// Verifies both signatures of a delivery. Returns its id and body.
    fn authentic(self, delivery: &Delivery, service: Service) -> Result<(&str, Value), String> {
        let id = header(delivery, "webhook-id")?;
        let message = Message {
            service,
            event_id: id,
            body: &delivery.body,
        };
        let (name, shown) = match service {
            Service::Pools => ("pools-signature", "Pools-Signature"),
            Service::Gate => ("gate-signature", "Gate-Signature"),
        };
        if !message.verify(header(delivery, name)?, self.secret, self.now) {
            return Err(format!(
                "{shown} does not verify with the secret of the endpoint"
            ));
        }
        let time = header(delivery, "webhook-timestamp")?;
        let signatures = header(delivery, "webhook-signature")?;
        if !message.verify_standard(time, signatures, self.secret, self.now) {
            return Err(
                "webhook-signature (Standard Webhooks) does not verify with the secret of the endpoint"
                    .to_owned(),
            );
        }
        let event = serde_json::from_slice(&delivery.body);
        let event = event.map_err(|error| format!("the event is not valid JSON: {error}"))?;
        Ok((id, event))
    }
}

fn compared(
    delivery: &Delivery,
    kind: &str,
    id: &str,
    expected: &Value,
    event: &Value,
) -> Result<String, String> {
    if event != expected {
        return Err(format!("expected the event {expected}, got {event}"));
    }
    Ok(format!(
        "{kind}: both signatures verified, {} bytes, id {id}",
        delivery.body.len()
    ))
}

/// The event of a trade: the trade as the API shows it, with the event's id and type.
fn event_of_trade(id: &str, trade: &Value) -> Value {
    let mut event = trade.clone();
    if let Some(fields) = event.as_object_mut() {
        fields.insert("eventId".to_owned(), Value::from(id));
        fields.insert("type".to_owned(), Value::from(SETTLED));
    }
    event
}

/// The event of a session: the session as the API shows it, in an envelope.
fn event_of_session(id: &str, session: &Value, at: Option<&Value>) -> Value {
    json!({ "id": id, "object": "event", "type": COMPLETED, "created_at": at, "data": session })
}

fn header<'d>(delivery: &'d Delivery, name: &str) -> Result<&'d str, String> {
    let value = delivery.headers.get(name);
    let text = value.and_then(|value| value.to_str().ok());
    text.ok_or_else(|| format!("the delivery has no readable header {name}"))
}

/// A delivery of `event` as the services send it.
#[cfg(test)]
pub(super) fn signed_delivery(
    service: Service,
    event: &Value,
    secret: &str,
    now: Timestamp,
) -> Delivery {
    use hyper::header::{HeaderName, HeaderValue};

    let body = event.to_string();
    let message = Message {
        service,
        event_id: "e1",
        body: body.as_bytes(),
    };
    let secret = SigningSecret::parse(secret).unwrap();
    let signed = message.sign(&[secret], now);
    let headers = signed.map(|(name, value)| {
        let name = HeaderName::from_bytes(name.to_lowercase().as_bytes()).unwrap();
        (name, HeaderValue::from_str(&value).unwrap())
    });
    Delivery {
        headers: headers.into_iter().collect(),
        body: body.into(),
        forwarded: None,
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;
    use hyper::header::HeaderValue;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    const OTHER: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

    fn now() -> Timestamp {
        Timestamp::from_millis(1_779_710_400_000).unwrap()
    }

    fn trade() -> Value {
        json!({"transactId": "txn_1", "status": "settled"})
    }

    fn delivery(secret: &str) -> Delivery {
        signed_delivery(
            Service::Pools,
            &event_of_trade("e1", &trade()),
            secret,
            now(),
        )
    }

    fn judged(delivery: &Delivery) -> Result<String, String> {
        judged_as(delivery, &trade())
    }

    fn judged_as(delivery: &Delivery, trade: &Value) -> Result<String, String> {
        let secret = SigningSecret::parse(SECRET).unwrap();
        let judge = Judge {
            secret: &secret,
            now: now(),
        };
        judge.of_trade(delivery, trade)
    }

    // rule: cli.sandbox.check-event
    #[test]
    fn delivery_needs_both_signatures_and_every_header() {
        let good = delivery(SECRET);
        assert!(judged(&good).is_ok(), "{:?}", judged(&good));
        let refused = |delivery: &Delivery, message: &str| {
            let error = judged(delivery).unwrap_err();
            assert!(error.contains(message), "{error}");
        };
        let forged = delivery(OTHER);
        refused(&forged, "Pools-Signature does not verify");
        // Each signature scheme is checked separately. In this delivery only one of the two is valid.
        let mut half = good.clone();
        half.headers.insert(
            "webhook-signature",
            forged.headers["webhook-signature"].clone(),
        );
        refused(
            &half,
            "webhook-signature (Standard Webhooks) does not verify",
        );
        let mut late = good.clone();
        late.headers
            .insert("webhook-timestamp", HeaderValue::from_static("1"));
        refused(
            &late,
            "webhook-signature (Standard Webhooks) does not verify",
        );
        let mut renamed = good.clone();
        renamed
            .headers
            .insert("webhook-id", HeaderValue::from_static("e2"));
        refused(
            &renamed,
            "webhook-signature (Standard Webhooks) does not verify",
        );
        let mut changed = good.clone();
        changed.body = Bytes::from(String::from_utf8(good.body.to_vec()).unwrap() + " ");
        refused(&changed, "Pools-Signature does not verify");
        for name in [
            "pools-signature",
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        ] {
            let mut without = good.clone();
            without.headers.remove(name);
            refused(&without, &format!("no readable header {name}"));
        }
        let other = json!({"transactId": "txn_2", "status": "settled"});
        assert!(
            judged_as(&good, &other).is_err(),
            "the event of another trade"
        );
    }

    // rule: cli.sandbox.check-event
    #[test]
    fn completed_session_needs_its_own_event() {
        let session = json!({"id": "gs_1", "status": "completed", "tx_refid": "test_tx_1"});
        let event = event_of_session("e1", &session, Some(&json!("2026-05-25T12:00:00.000Z")));
        let good = signed_delivery(Service::Gate, &event, SECRET, now());
        let secret = SigningSecret::parse(SECRET).unwrap();
        let judge = Judge {
            secret: &secret,
            now: now(),
        };
        assert!(judge.of_completed(&good, &session).is_ok());
        let mut other = session.clone();
        other["tx_refid"] = json!("test_tx_2");
        assert!(judge.of_completed(&good, &other).is_err());
        assert!(
            judge.of_trade(&good, &session).is_err(),
            "the signature header of the other service"
        );
        let forged = signed_delivery(Service::Gate, &event, OTHER, now());
        let error = judge.of_completed(&forged, &session);
        assert!(error.unwrap_err().starts_with("Gate-Signature does not"));
        assert!(
            judge.of_created(&good, "gs_1").is_err(),
            "an event of another type"
        );
        let created = json!({"type": CREATED, "data": {"id": "gs_1"}});
        let created = signed_delivery(Service::Gate, &created, SECRET, now());
        assert!(judge.of_created(&created, "gs_1").is_ok());
        assert!(judge.of_created(&created, "gs_2").is_err());
        let (kind, data) = judge.of_gate(&created).unwrap();
        assert_eq!((kind.as_str(), data), (CREATED, json!({"id": "gs_1"})));
        assert!(judge.of_gate(&forged).is_err());
        let bare = signed_delivery(Service::Gate, &json!({"type": CREATED}), SECRET, now());
        assert!(judge.of_gate(&bare).is_err(), "an event without an object");
    }
}
