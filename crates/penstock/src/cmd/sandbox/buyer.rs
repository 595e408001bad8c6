//! Buys over HTTP as a partner does: quote, transact, poll. Each response is checked.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Call, Client};
use super::tour::DESTINATION;

/// The amount of a purchase in EUR. Its fraction settles on the first poll.
pub(super) const AMOUNT: &str = "100.00";
/// Maximum number of polls, and the pause between two polls.
const POLLS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// A partner's secret key, and the API that accepts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buyer<'b> {
    pub(super) client: Client,
    pub(super) key: &'b str,
}

impl Buyer<'_> {
    /// Creates a firm quote. Returns the quote's id and a description.
    pub(super) async fn quote(self) -> Result<(String, String), String> {
        let body = json!({
            "side": "on_ramp", "type": "firm", "fiatCurrency": "EUR", "cryptoCurrency": "USDT",
            "amount": AMOUNT, "cryptoNetwork": "ethereum", "destAddress": DESTINATION,
        });
        let response = self.post("/v1/pools/EUR-USDT/quote", body, None).await?;
        let firm = response.get("executable") == Some(&Value::Bool(true));
        expect(firm, "an executable quote", &response)?;
        let quote = text(&response, "quoteId")?;
        let (rate, until) = (text(&response, "rate")?, text(&response, "expiresAt")?);
        let seen = format!("{quote} at {rate} until {until}");
        Ok((quote, seen))
    }

    /// Executes a quote. `again` says whether the quote already has a trade. Returns the trade's id.
    pub(super) async fn transact(self, quote: &str, again: bool) -> Result<String, String> {
        let body = json!({ "quoteId": quote });
        let key = format!("check-{quote}");
        let path = "/v1/pools/EUR-USDT/transact";
        let response = self.post(path, body, Some(&key)).await?;
        let flagged = response.get("idempotent") == Some(&Value::Bool(again));
        expect(flagged, &format!("idempotent {again}"), &response)?;
        if !again {
            let reserved = text(&response, "status")? == "reserved";
            expect(reserved, "status reserved", &response)?;
        }
        text(&response, "transactId")
    }

    /// Polls until the trade is settled. Returns a description.
    pub(super) async fn settle(self, quote: &str) -> Result<String, String> {
        let path = format!("/v1/pools/transactions/{quote}");
        for poll in 1..=POLLS {
            let response = self.get(&path).await?;
            match text(&response, "status")?.as_str() {
                "settled" => {
                    let at = text(&response, "settledAt")?;
                    return Ok(format!("settled on poll {poll}, at {at}"));
                }
                "reserved" => tokio::time::sleep(PAUSE).await,
                _ => {
                    return Err(format!(
                        "expected status reserved or settled, got {response}"
                    ));
                }
            }
        }
        Err(format!("still reserved after {POLLS} polls"))
    }

    /// A trade as the API shows it.
    pub(super) async fn trade(self, trade: &str) -> Result<Value, String> {
        self.get(&format!("/v1/pools/trades/{trade}")).await
    }

    pub(super) async fn get(self, path: &str) -> Result<Value, String> {
        self.client.call(Call::get(self.key, path)).await
    }

    async fn post(self, path: &str, body: Value, key: Option<&str>) -> Result<Value, String> {
        let mut call = Call::post(self.key, path, body);
        call.idempotency_key = key;
        self.client.call(call).await
    }
}

pub(super) fn expect(holds: bool, expected: &str, response: &Value) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("expected {expected}, got {response}"))
    }
}

pub(super) fn text(response: &Value, field: &str) -> Result<String, String> {
    let value = response.get(field).and_then(Value::as_str);
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("expected a text in `{field}`, got {response}"))
}

pub(super) fn number(response: &Value, field: &str) -> Result<u64, String> {
    let value = response.get(field).and_then(Value::as_u64);
    value.ok_or_else(|| format!("expected a number in `{field}`, got {response}"))
}
