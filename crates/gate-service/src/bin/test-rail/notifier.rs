//! Notifies the gate that the state of a payment has changed.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kernel::Clock;
use partner_core::webhooks::notification::NotificationSecret;
use runtime::process::SystemClock;
use serde_json::json;

/// How long the gate may take to accept a connection, and for each part of its response.
const PATIENCE: Duration = Duration::from_secs(30);

/// The gate, and the secret that signs notifications.
pub(crate) struct Notifier {
    secret: Option<NotificationSecret>,
    gate: Mutex<Option<String>>,
}

impl Notifier {
    pub(crate) fn new(secret: Option<String>, gate: Option<String>) -> Self {
        Self {
            secret: secret.map(|secret| NotificationSecret::new(secret.into())),
            gate: Mutex::new(gate),
        }
    }

    /// Notifies another gate from now on.
    pub(crate) fn use_gate(&self, url: &str) -> bool {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.to_owned());
        true
    }

    /// The gate that is notified. The lock ends here, so a slow gate holds back no command and no other notification.
    fn gate(&self) -> Option<String> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.clone()
    }

    /// Whether the gate has received a notification of a payment.
    pub(crate) fn notify(&self, id: &str) -> bool {
        let (Some(secret), Some(gate)) = (&self.secret, self.gate()) else {
            return false;
        };
        let sent = post(&gate, secret, &json!({ "id": id }).to_string());
        match &sent {
            Ok(status) => println!("test-rail: notified {gate} about {id}: {status}"),
            Err(error) => eprintln!("test-rail: cannot notify {gate}: {error}"),
        }
        sent.is_ok_and(|status| status == "202")
    }
}

/// Posts a signed body, and returns the status of the response.
fn post(gate: &str, secret: &NotificationSecret, body: &str) -> io::Result<String> {
    let address = gate.trim_end_matches('/').strip_prefix("http://");
    let address =
        address.ok_or_else(|| io::Error::other("expected a URL such as http://127.0.0.1:4020"))?;
    let signature = secret.sign(body.as_bytes(), SystemClock.now());
    let mut stream = connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST /v1/rail_notifications HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nRail-Signature: {signature}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let status = response.split(' ').nth(1);
    Ok(status.unwrap_or_default().to_owned())
}

/// Connects to the first address of the gate that accepts a connection in time.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::other("the gate's name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
