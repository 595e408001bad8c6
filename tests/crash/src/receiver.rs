//! A partner's receiver of webhooks. It verifies every delivery by itself, keeps its bytes, and misbehaves now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use test_support::http::{self, Reply, Request};
use test_support::time;

use crate::programs::Service;

/// The secret of every endpoint.
pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// Time in which all deliveries must arrive or be given up, from the start of the wait; a missing one is a breach. The lease of a killed
/// worker lasts its timeout plus 20 s; then the delivery is sent again. A busy machine needs several times as long.
pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(300);
/// Highest age of an attempt's timestamp, in seconds, as verifiers usually have it.
const MAX_TIMESTAMP_AGE: u64 = 300;
/// A wanted event that has arrived so often is taken, before the shortest schedule has no attempt left.
const MAX_FAILURES: u32 = 3;

/// The event format of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Pools,
    Gate,
}

impl Dialect {
    const fn signature(self) -> &'static str {
        match self {
            Self::Pools => "pools-signature",
            Self::Gate => "gate-signature",
        }
    }

    /// Returns id, type and object of an event.
    fn read(self, said: &Value) -> std::result::Result<[String; 3], String> {
        let text = |path: &str| {
            let found = said.pointer(path).and_then(Value::as_str);
            found
                .map(str::to_owned)
                .ok_or(format!("event without {path}"))
        };
        match self {
            Self::Pools => {
                let (id, kind, trade) = (text("/eventId")?, text("/type")?, text("/transactId")?);
                if id != hex::encode(Sha256::digest(format!("{trade}:{kind}"))) {
                    return Err(format!("event {id} is not that of {trade}:{kind}"));
                }
                Ok([id, kind, trade])
            }
            Self::Gate => {
                let (id, kind) = (text("/id")?, text("/type")?);
                // A test event is its own object.
                let object = text("/data/id").unwrap_or_else(|_| id.clone());
                Ok([id, kind, object])
            }
        }
    }
}

/// A received event, and how often it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) partner: String,
    pub(crate) kind: String,
    pub(crate) object: String,
    pub(crate) body: Vec<u8>,
    pub(crate) times: u32,
    /// Whether the receiver sent a 2xx.
    pub(crate) taken: bool,
}

impl Event {
    /// The resource in the data of a gate event.
    pub(crate) fn data(&self) -> Value {
        let said: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        said.get("data").cloned().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Inbox {
    events: BTreeMap<String, Event>,
    breaches: Vec<String>,
    /// Type of the events that the receiver rejects, except those with these ids.
    unwanted: Option<(&'static str, BTreeSet<String>)>,
    /// The service that the next delivery kills, before the response.
    victim: Option<Service>,
    chance: Option<fastrand::Rng>,
}

/// A receiver that listens until the driver ends.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    inbox: Arc<Mutex<Inbox>>,
}

/// How the receiver responds to a delivery.
enum Manner {
    Takes,
    TakesSlowly,
    Refuses,
    HangsUp,
}

impl Receiver {
    pub(crate) fn start(seed: u64, dialect: Dialect) -> Self {
        let inbox = Inbox {
            chance: Some(fastrand::Rng::with_seed(seed)),
            ..Inbox::default()
        };
        let inbox = Arc::new(Mutex::new(inbox));
        let shared = Arc::clone(&inbox);
        let address = http::serve(move |delivery| respond(&shared, dialect, &delivery));
        Self { address, inbox }
    }

    /// Makes the next delivery kill a service, after its POST has arrived and before the response.
    pub(crate) fn kill_on_receipt(&self, service: &Service) {
        self.inbox.lock().victim = Some(service.clone());
    }

    /// Rejects events of this type from now on, so that their deliveries become dead letters.
    pub(crate) fn refuse(&self, kind: &'static str) {
        self.inbox.lock().unwanted = Some((kind, BTreeSet::new()));
    }

    /// Accepts this event although its type is rejected.
    pub(crate) fn want(&self, event: &str) {
        if let Some((_, wanted)) = &mut self.inbox.lock().unwanted {
            wanted.insert(event.to_owned());
        }
    }

    pub(crate) fn events(&self) -> BTreeMap<String, Event> {
        self.inbox.lock().events.clone()
    }

    /// Returns the breaches in deliveries so far.
    pub(crate) fn breaches(&self) -> Vec<String> {
        self.inbox.lock().breaches.clone()
    }
}

fn respond(inbox: &Mutex<Inbox>, dialect: Dialect, delivery: &Request) -> Reply {
    let victim = inbox.lock().victim.take();
    if let Some(service) = victim {
        service.kill();
        return Reply::Closes;
    }
    let manner = inbox.lock().note(dialect, delivery);
    match manner {
        Manner::Takes => Reply::kept(200, &[], ""),
        Manner::TakesSlowly => {
            thread::sleep(Duration::from_millis(60));
            Reply::Keeps("HTTP/1.1 204 No Content\r\n\r\n".to_owned())
        }
        Manner::Refuses => Reply::kept(503, &[], ""),
        Manner::HangsUp => Reply::Closes,
    }
}

impl Inbox {
    fn note(&mut self, dialect: Dialect, delivery: &Request) -> Manner {
        let manner = match self.chance.as_mut().map_or(0, |chance| chance.u8(0..100)) {
            0..=3 => Manner::Refuses,
            4..=6 => Manner::HangsUp,
            7..=10 => Manner::TakesSlowly,
            _ => Manner::Takes,
        };
        match self.judge(dialect, delivery, manner) {
            Ok(manner) => manner,
            Err(breach) => {
                self.breaches.push(breach);
                Manner::Refuses
            }
        }
    }

    fn judge(
        &mut self,
        dialect: Dialect,
        delivery: &Request,
        manner: Manner,
    ) -> std::result::Result<Manner, String> {
        verify(dialect, delivery)?;
        let body = delivery.body.as_slice();
        let said: Value = serde_json::from_slice(body).map_err(|fault| fault.to_string())?;
        let [id, kind, object] = dialect.read(&said)?;
        if delivery.header("webhook-id") != id {
            return Err(format!("webhook-id is not {id}"));
        }
        let unwanted = |(refused, wanted): &(&str, BTreeSet<String>)| {
            *refused == kind && !wanted.contains(&id)
        };
        let is_unwanted = self.unwanted.as_ref().is_some_and(unwanted);
        let times = self.events.get(&id).map_or(0, |event| event.times);
        let manner = match manner {
            _ if is_unwanted => Manner::Refuses,
            Manner::Refuses | Manner::HangsUp if times >= MAX_FAILURES => Manner::Takes,
            manner => manner,
        };
        let partner = delivery.path().trim_start_matches('/').to_owned();
        let event = self.events.entry(id.clone()).or_insert_with(|| Event {
            partner: partner.clone(),
            kind,
            object,
            body: body.to_vec(),
            times: 0,
            taken: false,
        });
        if event.body != body || event.partner != partner {
            return Err(format!(
                "event {id} came with other bytes, or to another endpoint"
            ));
        }
        event.times = event.times.saturating_add(1);
        event.taken |= matches!(manner, Manner::Takes | Manner::TakesSlowly);
        Ok(manner)
    }
}

/// Checks both signature schemes as their documents describe them, and the timestamp.
fn verify(dialect: Dialect, delivery: &Request) -> std::result::Result<(), String> {
    let body = delivery.body.as_slice();
    let ours = delivery.header(dialect.signature());
    let (stamp, signature) = ours
        .strip_prefix("t=")
        .and_then(|rest| rest.split_once(",v1="))
        .ok_or(format!("{}: {ours}", dialect.signature()))?;
    let signed = [stamp.as_bytes(), b".", body].concat();
    if hex::encode(hmac_sha256(SECRET.as_bytes(), &signed)?) != signature {
        return Err(format!("{} does not verify", dialect.signature()));
    }
    let id = delivery.header("webhook-id");
    let stamp_too = delivery.header("webhook-timestamp");
    let secret = SECRET.trim_start_matches("whsec_");
    let secret = STANDARD.decode(secret).map_err(|fault| fault.to_string())?;
    let signed = [id.as_bytes(), b".", stamp_too.as_bytes(), b".", body].concat();
    let expected = format!("v1,{}", STANDARD.encode(hmac_sha256(&secret, &signed)?));
    if delivery.header("webhook-signature") != expected {
        return Err("webhook-signature does not verify".to_owned());
    }
    let at: u64 = stamp.parse().map_err(|_| format!("t={stamp}"))?;
    if time::unix().abs_diff(at) > MAX_TIMESTAMP_AGE || stamp != stamp_too {
        return Err(format!("the timestamp {stamp} is not current"));
    }
    Ok(())
}

/// HMAC-SHA256.
pub(crate) fn hmac_sha256(key: &[u8], message: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|fault| fault.to_string())?;
    mac.update(message);
    Ok(mac.finalize().into_bytes().to_vec())
}
