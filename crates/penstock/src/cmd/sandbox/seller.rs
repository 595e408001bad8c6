//! Uses the gate over HTTP as a partner does: a session with its widget, and a signed quote that a pay-in redeems. Each response
//! is checked.

use serde_json::{Value, json};

use super::buyer::{expect, text};
use super::client::{Call, Client};

/// The origin of the partner's pages.
pub(super) const PAGES: &str = "https://shop.example";
/// The amount of a session in EUR.
const AMOUNT: &str = "100.00";

const PAY_INS: &str = "/v1/rails/pay_ins";

/// A partner's keys, and the API that accepts them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seller<'s> {
    pub(super) client: Client,
    pub(super) secret_key: &'s str,
    pub(super) publishable_key: &'s str,
}

/// A created session.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) id: String,
    client_secret: String,
}

impl Seller<'_> {
    /// Creates a session with this idempotency key.
    pub(super) async fn open(self, key: &str) -> Result<(Opened, String), String> {
        let body = json!({
            "amount": AMOUNT, "currency": "EUR", "target_token": "USDT", "flow": "on_ramp",
            "return_url": format!("{PAGES}/done"),
        });
        let mut call = Call::post(self.secret_key, "/v1/gate_sessions", body);
        call.idempotency_key = Some(key);
        let response = self.client.call(call).await?;
        expect(
            text(&response, "status")? == "open",
            "status open",
            &response,
        )?;
        let opened = Opened {
            id: text(&response, "id")?,
            client_secret: text(&response, "client_secret")?,
        };
        let until = text(&response, "expires_at")?;
        let seen = format!("{} over {AMOUNT} EUR until {until}", opened.id);
        Ok((opened, seen))
    }

    /// Starts the session's widget as a browser does.
    pub(super) async fn bootstrap(self, session: &Opened) -> Result<String, String> {
        let body = json!({ "clientSecret": session.client_secret });
        let mut call = Call::post(self.publishable_key, "/v1/embed/bootstrap", body);
        call.origin = Some(PAGES);
        let response = self.client.call(call).await?;
        let ours = text(&response, "session_id")? == session.id;
        expect(ours, "the token of the session", &response)?;
        let available = response.get("available") == Some(&Value::Bool(true));
        expect(available, "available true", &response)?;
        text(&response, "embed_token")?;
        let until = text(&response, "expires_at")?;
        Ok(format!("a token for pages of {PAGES} until {until}"))
    }

    /// Completes the session with a test helper. Returns the id of its transaction.
    pub(super) async fn complete(self, session: &Opened) -> Result<String, String> {
        let path = format!("/v1/test_helpers/sessions/{}/complete", session.id);
        let call = Call::post(self.secret_key, path, json!({}));
        let response = self.client.call(call).await?;
        let completed = response.pointer("/session/status") == Some(&Value::from("completed"));
        expect(completed, "status completed", &response)?;
        let path = format!("/v1/transactions?session_id={}", session.id);
        let listed = self.client.call(Call::get(self.secret_key, path)).await?;
        let transaction = listed.pointer("/data/0");
        let transaction =
            transaction.ok_or_else(|| format!("expected one transaction, got {listed}"))?;
        text(transaction, "refid")
    }

    /// The session as the API shows it.
    pub(super) async fn session(self, session: &Opened) -> Result<Value, String> {
        let path = format!("/v1/gate_sessions/{}", session.id);
        self.client.call(Call::get(self.secret_key, path)).await
    }

    /// Requests previews of an order and locks the price of one. Returns a description.
    pub(super) async fn preview(self) -> Result<String, String> {
        let call = Call::post(self.secret_key, "/v1/quotes/preview", order());
        let response = self.client.call(call).await?;
        let id = text(&response, "quote_preview_id")?;
        let options = response.get("options").and_then(Value::as_array);
        let offered = options.and_then(|options| {
            let free = |option: &&Value| option.get("unavailable_reason") == Some(&Value::Null);
            options.iter().find(free)
        });
        let offered =
            offered.ok_or_else(|| format!("expected an option that is offered, got {response}"))?;
        let method = text(offered, "payment_method")?;
        let crypto = text(offered, "crypto_amount")?;
        let until = text(&response, "expires_at")?;
        Ok(format!("{id}: {crypto} USDT by {method} until {until}"))
    }

    /// Locks a rate with this idempotency key. Returns the signed quote's id and a description.
    pub(super) async fn lock(self, key: &str) -> Result<(String, String), String> {
        let mut call = Call::post(self.secret_key, "/v1/quotes", order());
        call.idempotency_key = Some(key);
        let response = self.client.call(call).await?;
        expect(
            text(&response, "status")? == "active",
            "status active",
            &response,
        )?;
        text(&response, "signature")?;
        let quote = text(&response, "id")?;
        let (rate, until) = (
            text(&response, "exchange_rate")?,
            text(&response, "expires_at")?,
        );
        let seen = format!("{quote}, signed, at {rate} until {until}");
        Ok((quote, seen))
    }

    /// Redeems a signed quote for a session. Returns the pay-in's id.
    pub(super) async fn pay_in(
        self,
        key: &str,
        quote: &str,
        session: &Opened,
    ) -> Result<String, String> {
        let body = json!({ "quote_id": quote, "session_id": session.id });
        let mut call = Call::post(self.secret_key, PAY_INS, body);
        call.idempotency_key = Some(key);
        let response = self.client.call(call).await?;
        expect(
            text(&response, "quote_id")? == quote,
            "the quote",
            &response,
        )?;
        text(&response, "id")
    }

    /// A pay-in as the API shows it.
    pub(super) async fn paid_in(self, id: &str) -> Result<Value, String> {
        let path = format!("{PAY_INS}/{id}");
        self.client.call(Call::get(self.secret_key, path)).await
    }
}

/// The order of a preview and of a signed quote.
fn order() -> Value {
    json!({
        "currency": "EUR", "asset": "USDT", "amount": AMOUNT, "side": "on_ramp", "payment_method": "sepa",
    })
}
