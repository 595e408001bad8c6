//! What a partner's receiver does with a delivery: reads `{"headers", "body", "secret"}` from its input, and prints the
//! event where the signature is right.

use std::error::Error;

use http::HeaderMap;
use serde_json::Value;
use standardwebhooks::Webhook;

fn event_of(headers: &HeaderMap, body: &[u8], secret: &str) -> Result<Value, Box<dyn Error>> {
    Webhook::new(secret)?.verify(body, headers)?;
    Ok(serde_json::from_slice(body)?)
}

#[derive(serde::Deserialize)]
struct Arrived {
    headers: std::collections::HashMap<String, String>,
    body: String,
    secret: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arrived: Arrived = serde_json::from_reader(std::io::stdin())?;
    let headers = HeaderMap::try_from(&arrived.headers)?;
    let event = event_of(&headers, arrived.body.as_bytes(), &arrived.secret)?;
    serde_json::to_writer(std::io::stdout(), &event)?;
    Ok(())
}
