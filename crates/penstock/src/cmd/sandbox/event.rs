//! What a partner does with a delivery: proves who sent it, and reads what it says.

use kernel::Timestamp;
use partner_core::events::Service;
use partner_core::webhooks::signing::{Message, SigningSecret};
use serde_json::Value;

use super::receiver::Delivery;

/// What the event of a settled trade is called.
const SETTLED: &str = "pool.transaction.settled";

/// Judges a delivery: both signatures, its id, and every field of the trade.
pub(super) fn judge(
    delivery: &Delivery,
    secret: &SigningSecret,
    trade: &Value,
    now: Timestamp,
) -> Result<String, String> {
    let id = header(delivery, "webhook-id")?;
    let message = Message {
        service: Service::Pools,
        event_id: id,
        body: &delivery.body,
    };
    if !message.verify(header(delivery, "pools-signature")?, secret, now) {
        return Err("Pools-Signature does not verify with the secret of the endpoint".to_owned());
    }
    let time = header(delivery, "webhook-timestamp")?;
    let signatures = header(delivery, "webhook-signature")?;
    if !message.verify_standard(time, signatures, secret, now) {
        return Err(
            "webhook-signature (Standard Webhooks) does not verify with the secret of the endpoint"
                .to_owned(),
        );
    }
    let event: Value = serde_json::from_slice(&delivery.body)
        .map_err(|fault| format!("the event is no JSON: {fault}"))?;
    if event != of_trade(id, trade) {
        return Err(format!(
            "expected the event {id} of {trade}, and it says {event}"
        ));
    }
    Ok(format!(
        "{SETTLED} {id}, {} bytes, both signatures verified",
        delivery.body.len()
    ))
}

/// The trade as the API shows it, and the event's id and type.
fn of_trade(id: &str, trade: &Value) -> Value {
    let mut event = trade.clone();
    if let Some(fields) = event.as_object_mut() {
        fields.insert("eventId".to_owned(), Value::from(id));
        fields.insert("type".to_owned(), Value::from(SETTLED));
    }
    event
}

fn header<'d>(delivery: &'d Delivery, name: &str) -> Result<&'d str, String> {
    let value = delivery.headers.get(name);
    let text = value.and_then(|value| value.to_str().ok());
    text.ok_or_else(|| format!("the delivery has no readable header {name}"))
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;
    use hyper::header::{HeaderName, HeaderValue};
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
        let body = of_trade("e1", &trade()).to_string();
        let message = Message {
            service: Service::Pools,
            event_id: "e1",
            body: body.as_bytes(),
        };
        let secret = SigningSecret::parse(secret).unwrap();
        let signed = message.sign(&[secret], now());
        let headers = signed.map(|(name, value)| {
            let name = HeaderName::from_bytes(name.to_lowercase().as_bytes()).unwrap();
            (name, HeaderValue::from_str(&value).unwrap())
        });
        Delivery {
            headers: headers.into_iter().collect(),
            body: Bytes::from(body),
        }
    }

    fn judged(delivery: &Delivery) -> Result<String, String> {
        judge(
            delivery,
            &SigningSecret::parse(SECRET).unwrap(),
            &trade(),
            now(),
        )
    }

    // rule: cli.sandbox.check-event
    #[test]
    fn a_delivery_is_believed_only_whole() {
        let good = delivery(SECRET);
        assert!(judged(&good).is_ok(), "{:?}", judged(&good));
        let refused = |planted: &Delivery, said: &str| {
            let fault = judged(planted).unwrap_err();
            assert!(fault.contains(said), "{fault}");
        };
        let forged = delivery(OTHER);
        refused(&forged, "Pools-Signature does not verify");
        // The other scheme is judged by itself: the one signature is good, the other is not.
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
        let secret = SigningSecret::parse(SECRET).unwrap();
        let other = json!({"transactId": "txn_2", "status": "settled"});
        assert!(
            judge(&good, &secret, &other, now()).is_err(),
            "another trade's"
        );
    }
}
