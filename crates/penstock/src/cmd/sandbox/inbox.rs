//! The demo partner's receiver: verifies every event that the services send and prints it.

use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use partner_core::webhooks::signing::SigningSecret;
use serde_json::Value;

use super::demo::Demo;
use super::event::Judge;
use super::event_log::EventLog;
use super::receiver::{Delivery, Receiver};
use super::server::BackgroundTask;
use crate::terminal::{BackgroundPrinter, Terminal, say};

/// The port of the demo partner's endpoints, unless another program uses it when the sandbox is first started.
pub(super) const EVENTS_PORT: u16 = 9999;
/// Timeout of one wait for an event. The wait is repeated.
const WAIT: Duration = Duration::from_secs(3600);

/// Receives the demo partner's events, for the terminal and the demo shop, until the result is dropped. Prints nothing for a check
/// or for JSON output.
pub(super) fn start(
    mut receiver: Receiver,
    demo: &Demo,
    clock: Arc<dyn Clock>,
    log: Arc<EventLog>,
    is_check: bool,
    terminal: &Terminal,
) -> BackgroundTask {
    let is_shown = terminal.is_for_people() && !is_check;
    // Without a thread for it, the sandbox works, but prints no events.
    let printer = is_shown.then(|| BackgroundPrinter::start(say));
    let printer = printer.and_then(Result::ok);
    let secret = SigningSecret::parse(&demo.webhook_secret);
    BackgroundTask::start(async move {
        loop {
            let Some(delivery) = receiver.next(WAIT).await else {
                continue;
            };
            let now = clock.now();
            let judge = secret.as_ref().map(|secret| Judge { secret, now });
            let verified = judge.is_some_and(|judge| judge.verify(&delivery).is_ok());
            log.record(&delivery, verified, now);
            if let Some(printer) = &printer {
                printer.say(line(&delivery, secret.as_ref(), &*clock));
            }
        }
    })
}

/// `03:09:17.936 event pool.transaction.settled txn_… both signatures verified`
fn line(delivery: &Delivery, secret: Option<&SigningSecret>, clock: &dyn Clock) -> String {
    let now = clock.now();
    let instant = now.to_string();
    let time = instant.get(11..23).unwrap_or(&instant);
    let body: Value = serde_json::from_slice(&delivery.body).unwrap_or_default();
    let text = |pointer| body.pointer(pointer).and_then(Value::as_str);
    let kind = text("/type").unwrap_or("(no type)");
    let object = ["/transactId", "/data/id", "/data/refid"];
    let object = object.into_iter().find_map(text).unwrap_or("(no object)");
    let verification = match secret.map(|secret| Judge { secret, now }.verify(delivery)) {
        Some(Ok(())) => "both signatures verified".to_owned(),
        Some(Err(error)) => format!("NOT verified: {error}"),
        None => "NOT verified: demo.json has no valid webhook_secret".to_owned(),
    };
    let forwarded = delivery.forwarded.as_deref();
    let forwarded = forwarded.map_or_else(String::new, |shown| format!(", {shown}"));
    format!("{time} event {kind} {object} {verification}{forwarded}")
}

#[cfg(test)]
mod tests {
    use super::super::event::signed_delivery;
    use super::*;
    use kernel::Timestamp;
    use partner_core::events::Service;
    use serde_json::json;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_779_710_400_000).unwrap()
        }
    }

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    // rule: cli.sandbox.events
    #[test]
    fn line_shows_event_and_result_of_signature_check() {
        let secret = SigningSecret::parse(SECRET).unwrap();
        let trade = json!({"transactId": "txn_1", "type": "pool.transaction.settled"});
        let good = signed_delivery(Service::Pools, &trade, SECRET, Fixed.now());
        assert_eq!(
            line(&good, Some(&secret), &Fixed),
            "12:00:00.000 event pool.transaction.settled txn_1 both signatures verified"
        );
        let session = json!({"type": "gate_session.created", "data": {"id": "gs_1"}});
        let good = signed_delivery(Service::Gate, &session, SECRET, Fixed.now());
        assert!(line(&good, Some(&secret), &Fixed).ends_with("gs_1 both signatures verified"));
        let mut forged = good.clone();
        forged.body = "{}".into();
        let shown = line(&forged, Some(&secret), &Fixed);
        assert!(
            shown.contains("(no type) (no object) NOT verified: "),
            "{shown}"
        );
    }
}
