//! The calls of the check, which it makes over HTTP as a partner does.

use std::time::Duration;

use kernel::RequestId;
use serde_json::{Value, json};

use super::client::{Call, Client, expect, text};
use super::event::{Judge, OF_A_PAY_IN, PAID_IN};
use super::listener::{AMOUNT, Listener, PAGES, Partner, fund, no_event};
use super::receiver::Delivery;
use crate::installation::Installation;

/// The address for deliveries of crypto. No one has its key.
const DESTINATION: &str = "0x52908400098527886E0F7030069857D2E4169EE7";
/// Maximum number of polls, and the pause between two polls.
const POLLS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// Timeout for an event: enough for an immediate attempt and one retry.
pub(super) const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

const PAY_INS: &str = "/v1/rails/pay_ins";

/// A response, or why it did not arrive.
pub(super) type Response = Result<Value, String>;

/// What the calls of later steps need to know of the earlier ones.
pub(super) struct Tour {
    pub(super) installation: Installation,
    pub(super) pools: Client,
    pub(super) gate: Client,
    /// The demo partner, and from the step `receiver` on the partner that receives the events.
    pub(super) partner: Partner,
    pub(super) listener: Option<Listener>,
    pub(super) kept: Kept,
}

/// What earlier responses and deliveries contained.
#[derive(Default)]
pub(super) struct Kept {
    /// The id of the last quote.
    pub(super) quote: String,
    /// The id of the last trade.
    pub(super) trade: String,
    /// The id of the session.
    pub(super) session: String,
    pub(super) client_secret: String,
    /// The last delivery.
    pub(super) delivery: Delivery,
    /// The pay-in that the event of its settlement shows.
    pub(super) paid_in: Option<Value>,
}

impl Tour {
    /// Makes a call with the partner's secret key.
    pub(super) async fn get(&self, client: Client, path: &str) -> Response {
        let call = Call::get(&self.partner.secret_key, path);
        client.call(call).await
    }

    /// Makes a call with the partner's secret key and, if given, an idempotency key.
    pub(super) async fn post(
        &self,
        client: Client,
        path: &str,
        body: Value,
        key: Option<&str>,
    ) -> Response {
        let mut call = Call::post(&self.partner.secret_key, path, body);
        call.idempotency_key = key;
        client.call(call).await
    }

    pub(super) async fn credit(&self) -> Response {
        let base = &self.installation.base;
        let reference = format!("check-{}", RequestId::new(&*base.clock, &*base.entropy));
        let partner = self.partner.who.partner.clone();
        let balance = fund(&self.installation, partner, reference.clone()).await?;
        Ok(json!({ "reference": reference, "balance": balance }))
    }

    pub(super) async fn discover(&self) -> Response {
        let call = Call::get(&self.partner.publishable_key, "/v1/pools");
        self.pools.call(call).await
    }

    pub(super) async fn quote(&self) -> Response {
        let body = json!({
            "side": "on_ramp", "type": "firm", "fiatCurrency": "EUR", "cryptoCurrency": "USDT",
            "amount": AMOUNT, "cryptoNetwork": "ethereum", "destAddress": DESTINATION,
        });
        let path = "/v1/pools/EUR-USDT/quote";
        self.post(self.pools, path, body, None).await
    }

    pub(super) async fn transact(&self) -> Response {
        let quote = self.kept.quote.as_str();
        let key = format!("check-{quote}");
        let (path, body) = ("/v1/pools/EUR-USDT/transact", json!({ "quoteId": quote }));
        self.post(self.pools, path, body, Some(&key)).await
    }

    /// Polls until the trade is settled.
    pub(super) async fn poll(&self) -> Response {
        let path = format!("/v1/pools/transactions/{}", self.kept.quote);
        for poll in 1..=POLLS {
            let response = self.get(self.pools, &path).await?;
            match text(&response, "status")?.as_str() {
                "settled" => {
                    let at = text(&response, "settledAt")?;
                    return Ok(json!({ "poll": poll, "at": at }));
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

    pub(super) async fn trade(&self) -> Response {
        let path = format!("/v1/pools/trades/{}", self.kept.trade);
        self.get(self.pools, &path).await
    }

    /// Creates the partner that receives the events. Later calls use its keys.
    pub(super) async fn listen(&mut self) -> Response {
        let (partner, listener) = Listener::begin(&self.installation).await?;
        let name = partner.who.partner.as_str();
        let begun = json!({ "url": listener.receiver.url, "partner": name });
        self.partner = partner;
        self.listener = Some(listener);
        Ok(begun)
    }

    /// Waits for the next delivery. The error names the last attempt to deliver an event about `object`.
    pub(super) async fn hear(&mut self, object: &str) -> Result<(), String> {
        let listener = self.listener.as_mut().ok_or("no receiver was started")?;
        match listener.receiver.next(EVENT_TIMEOUT).await {
            Some(delivery) => self.kept.delivery = delivery,
            None => return Err(no_event(&self.installation, &self.partner.who, object).await),
        }
        Ok(())
    }

    /// Who checks the deliveries.
    pub(super) fn judge(&self) -> Result<Judge<'_>, String> {
        let listener = self.listener.as_ref().ok_or("no receiver was started")?;
        Ok(Judge {
            secret: &listener.secret,
            now: self.installation.base.clock.now(),
        })
    }

    /// Creates a session with this idempotency key.
    async fn open(&self, key: &str) -> Response {
        let body = json!({
            "amount": AMOUNT, "currency": "EUR", "target_token": "USDT", "flow": "on_ramp",
            "return_url": format!("{PAGES}/done"),
        });
        let path = "/v1/gate_sessions";
        let response = self.post(self.gate, path, body, Some(key)).await?;
        let open = text(&response, "status")? == "open";
        expect(open, "status open", &response)?;
        for field in ["id", "client_secret", "expires_at"] {
            text(&response, field)?;
        }
        Ok(response)
    }

    /// Creates the session, and waits for its event.
    pub(super) async fn session(&mut self) -> Response {
        let key = self.partner.who.partner.to_string();
        let opened = self.open(&key).await?;
        let id = text(&opened, "id")?;
        self.kept.client_secret = text(&opened, "client_secret")?;
        self.kept.session.clone_from(&id);
        self.hear(&id).await?;
        Ok(opened)
    }

    /// Starts the session's widget as a browser does.
    pub(super) async fn bootstrap(&self) -> Response {
        let body = json!({ "clientSecret": self.kept.client_secret });
        let path = "/v1/embed/bootstrap";
        let mut call = Call::post(&self.partner.publishable_key, path, body);
        call.origin = Some(PAGES);
        self.gate.call(call).await
    }

    /// Completes the session with a test helper, waits for its event, and then reads the session.
    pub(super) async fn complete(&mut self) -> Response {
        let id = self.kept.session.clone();
        let path = format!("/v1/test_helpers/sessions/{id}/complete");
        let response = self.post(self.gate, &path, json!({}), None).await?;
        let completed = response.pointer("/session/status") == Some(&Value::from("completed"));
        expect(completed, "status completed", &response)?;
        let path = format!("/v1/transactions?session_id={id}");
        let listed = self.get(self.gate, &path).await?;
        let transaction = listed.pointer("/data/0");
        let transaction =
            transaction.ok_or_else(|| format!("expected one transaction, got {listed}"))?;
        let refid = text(transaction, "refid")?;
        self.hear(&id).await?;
        let path = format!("/v1/gate_sessions/{id}");
        let session = self.get(self.gate, &path).await?;
        let is_named = session.get("tx_refid") == Some(&Value::from(refid.as_str()));
        expect(is_named, &format!("tx_refid {refid}"), &session)?;
        Ok(session)
    }

    pub(super) async fn preview(&self) -> Response {
        let path = "/v1/quotes/preview";
        self.post(self.gate, path, order(), None).await
    }

    pub(super) async fn lock(&self) -> Response {
        let key = format!("{}-quote", self.partner.who.partner);
        self.post(self.gate, "/v1/quotes", order(), Some(&key))
            .await
    }

    /// Redeems the signed quote for a new session, waits for every event of the redemption, and then reads the pay-in.
    pub(super) async fn pay_in(&mut self) -> Response {
        let key = format!("{}-pay-in", self.partner.who.partner);
        let session = self.open(&key).await?;
        let session = text(&session, "id")?;
        let body = json!({ "quote_id": self.kept.quote, "session_id": session });
        let response = self.post(self.gate, PAY_INS, body, Some(&key)).await?;
        let ours = text(&response, "quote_id")? == self.kept.quote;
        expect(ours, "the quote", &response)?;
        let record = text(&response, "id")?;
        let mut awaited = OF_A_PAY_IN.to_vec();
        while !awaited.is_empty() {
            self.hear(&record).await?;
            let (kind, data) = self.judge()?.of_gate(&self.kept.delivery)?;
            awaited.retain(|awaited| *awaited != kind);
            if kind == PAID_IN {
                self.kept.paid_in = Some(data);
            }
        }
        let path = format!("{PAY_INS}/{record}");
        self.get(self.gate, &path).await
    }
}

/// The order of a preview and of a signed quote.
fn order() -> Value {
    json!({
        "currency": "EUR", "asset": "USDT", "amount": AMOUNT, "side": "on_ramp", "payment_method": "sepa",
    })
}
