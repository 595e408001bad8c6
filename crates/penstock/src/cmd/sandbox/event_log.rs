//! The events of the gate that the demo partner received, for the demo shop.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kernel::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::receiver::Delivery;

/// Longest text of a header that is kept. Signatures are shorter.
const MAX_HEADER: usize = 1024;
/// Maximum number of events that are kept.
const MAX_KEPT: usize = 500;
/// The headers that a partner's server reads.
const SHOWN_HEADERS: [&str; 4] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "gate-signature",
];

/// The newest events, numbered from 1.
#[derive(Debug)]
pub(super) struct EventLog {
    kept: Mutex<VecDeque<(u64, Value)>>,
    last: watch::Sender<u64>,
}

impl EventLog {
    pub(super) fn new() -> Self {
        Self {
            kept: Mutex::default(),
            last: watch::Sender::new(0),
        }
    }

    /// Records a delivery. Ignores other posts than events of the gate, and an event that was sent again.
    pub(super) fn record(&self, delivery: &Delivery, verified: bool, at: Timestamp) {
        let body: Value = serde_json::from_slice(&delivery.body).unwrap_or_default();
        if body.get("object") != Some(&Value::from("event")) {
            return;
        }
        let shown = SHOWN_HEADERS.iter().filter_map(|name| {
            let text = delivery.headers.get(*name)?.to_str().ok()?;
            let shown = text.get(..MAX_HEADER).unwrap_or(text);
            Some(((*name).to_owned(), Value::from(shown)))
        });
        let headers: Map<String, Value> = shown.collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept
            .iter()
            .any(|(_, event)| event.get("id") == body.get("id"))
        {
            return;
        }
        let sequence = *self.last.borrow() + 1;
        let event = json!({
            "sequence": sequence,
            "received_at": at.to_string(),
            "type": body.get("type"),
            "id": body.get("id"),
            "verified": verified,
            "headers": headers,
            "body": body,
        });
        kept.push_back((sequence, event));
        if kept.len() > MAX_KEPT {
            kept.pop_front();
        }
        self.last.send_replace(sequence);
    }

    /// The events after a number, and the number of the last one. Waits if no event is newer.
    pub(super) async fn read(&self, after: u64, wait: Duration) -> Value {
        let mut last = self.last.subscribe();
        // The time may run out without an event.
        let _ = tokio::time::timeout(wait, last.wait_for(|last| *last != after)).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = kept.iter().filter(|(sequence, _)| *sequence > after);
        let events: Vec<&Value> = newer.map(|(_, event)| event).collect();
        json!({ "events": events, "next": *self.last.borrow() })
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    #[tokio::test]
    async fn reader_gets_events_after_its_number_and_waits_for_new_ones() {
        let log = EventLog::new();
        let at = Timestamp::from_millis(1_779_710_400_000).unwrap();
        let none = log.read(0, Duration::ZERO).await;
        assert_eq!(none, json!({ "events": [], "next": 0 }));
        let delivery = |body: &'static [u8]| {
            let headers = [("webhook-id", "e"), ("host", "127.0.0.1")].map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            });
            Delivery {
                headers: headers.into_iter().collect(),
                body: Bytes::from_static(body),
                forwarded: None,
            }
        };
        let other = delivery(br#"{"transactId": "txn_1", "type": "pool.transaction.settled"}"#);
        log.record(&other, true, at);
        let event = delivery(br#"{"id": "e", "object": "event", "type": "gate_session.created"}"#);
        let (read, ()) = tokio::join!(log.read(0, Duration::from_secs(60)), async {
            tokio::task::yield_now().await;
            log.record(&event, true, at);
            log.record(&event, true, at);
        });
        assert_eq!(read["next"], 1);
        assert_eq!(read["events"][0]["type"], "gate_session.created");
        assert_eq!(read["events"][0]["headers"], json!({ "webhook-id": "e" }));
        assert_eq!(read["events"][0]["received_at"], "2026-05-25T12:00:00.000Z");
        assert_eq!(log.read(1, Duration::ZERO).await["events"], json!([]));
    }
}
