//! A partner's receiver of webhooks. It verifies every delivery by itself, keeps its bytes, and misbehaves now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Result;
use crate::http::{header, length};
use crate::programs::Service;
use crate::time;

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
    dialect: Dialect,
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
    pub(crate) fn start(seed: u64, dialect: Dialect) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let inbox = Inbox {
            chance: Some(fastrand::Rng::with_seed(seed)),
            ..Inbox::default()
        };
        let inbox = Arc::new(Mutex::new(inbox));
        let receiver = Self {
            address,
            dialect,
            inbox,
        };
        let shared = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = shared.clone();
                thread::spawn(move || receiver.serve(stream));
            }
        });
        Ok(receiver)
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

    fn serve(&self, mut stream: TcpStream) {
        // A killed worker leaves its connections open.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(90)));
        let mut buffer = Vec::new();
        while let Some(used) = self.one(&mut stream, &mut buffer) {
            buffer.drain(..used);
        }
    }

    /// Reads one delivery and responds. Returns the bytes consumed; `None` ends the connection.
    fn one(&self, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<usize> {
        let mut chunk = [0; 16 * 1024];
        loop {
            if let Some((path, headers, start, end)) = parse(buffer) {
                let body = buffer.get(start..end)?.to_vec();
                if !self.kill_victim() {
                    return None;
                }
                let manner = self.note(&path, &headers, &body);
                answer(stream, &manner)?;
                return Some(end);
            }
            match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(read) => buffer.extend_from_slice(chunk.get(..read)?),
            }
        }
    }

    /// Kills the service that must die on receipt. Returns whether the receiver must still respond.
    fn kill_victim(&self) -> bool {
        let victim = self.inbox.lock().victim.take();
        match victim {
            None => true,
            Some(service) => {
                service.kill();
                false
            }
        }
    }

    fn note(&self, path: &str, headers: &BTreeMap<String, String>, body: &[u8]) -> Manner {
        let mut inbox = self.inbox.lock();
        let manner = match inbox.chance.as_mut().map_or(0, |chance| chance.u8(0..100)) {
            0..=3 => Manner::Refuses,
            4..=6 => Manner::HangsUp,
            7..=10 => Manner::TakesSlowly,
            _ => Manner::Takes,
        };
        match inbox.judge(self.dialect, path, headers, body, manner) {
            Ok(manner) => manner,
            Err(breach) => {
                inbox.breaches.push(breach);
                Manner::Refuses
            }
        }
    }
}

impl Inbox {
    fn judge(
        &mut self,
        dialect: Dialect,
        path: &str,
        headers: &BTreeMap<String, String>,
        body: &[u8],
        manner: Manner,
    ) -> std::result::Result<Manner, String> {
        verify(dialect, headers, body)?;
        let said: Value = serde_json::from_slice(body).map_err(|fault| fault.to_string())?;
        let [id, kind, object] = dialect.read(&said)?;
        if headers.get("webhook-id") != Some(&id) {
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
        let partner = path.trim_start_matches('/').to_owned();
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

/// Parses a request that has arrived completely: path, headers, and the position of the body.
pub(crate) fn parse(buffer: &[u8]) -> Option<(String, BTreeMap<String, String>, usize, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(buffer).ok()? else {
        return None;
    };
    let path = head.path?.to_owned();
    let end = start.checked_add(length(head.headers)?)?;
    buffer.get(start..end)?;
    let named = head.headers.iter().filter_map(|one| {
        let name = one.name.to_ascii_lowercase();
        let value = header(head.headers, &name)?.to_owned();
        Some((name, value))
    });
    Some((path, named.collect(), start, end))
}

fn answer(stream: &mut TcpStream, manner: &Manner) -> Option<()> {
    let line = match manner {
        Manner::Takes => "200 OK",
        Manner::TakesSlowly => {
            thread::sleep(Duration::from_millis(60));
            "204 No Content"
        }
        Manner::Refuses => "503 Service Unavailable",
        Manner::HangsUp => return None,
    };
    let length = if line.starts_with("204") {
        ""
    } else {
        "Content-Length: 0\r\n"
    };
    let bytes = format!("HTTP/1.1 {line}\r\n{length}\r\n");
    stream.write_all(bytes.as_bytes()).ok()
}

/// Checks both signature schemes as their documents describe them, and the timestamp.
fn verify(
    dialect: Dialect,
    headers: &BTreeMap<String, String>,
    body: &[u8],
) -> std::result::Result<(), String> {
    let get = |name: &str| headers.get(name).ok_or(format!("no {name}"));
    let ours = get(dialect.signature())?;
    let (stamp, signature) = ours
        .strip_prefix("t=")
        .and_then(|rest| rest.split_once(",v1="))
        .ok_or(format!("{}: {ours}", dialect.signature()))?;
    let signed = [stamp.as_bytes(), b".", body].concat();
    if hex::encode(hmac_sha256(SECRET.as_bytes(), &signed)?) != signature {
        return Err(format!("{} does not verify", dialect.signature()));
    }
    let (id, stamp_too) = (get("webhook-id")?, get("webhook-timestamp")?);
    let secret = SECRET.trim_start_matches("whsec_");
    let secret = STANDARD.decode(secret).map_err(|fault| fault.to_string())?;
    let signed = [id.as_bytes(), b".", stamp_too.as_bytes(), b".", body].concat();
    let expected = format!("v1,{}", STANDARD.encode(hmac_sha256(&secret, &signed)?));
    if get("webhook-signature")? != &expected {
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
