//! `penstock sandbox --check`: the main job, performed over HTTP, each step judged.

use std::time::Duration;

use kernel::{Amount, Asset, RequestId};
use partner_core::Tenant;
use partner_core::events::event_place;
use pools_core::events::{event_body, event_id};
use pools_core::trade::{TradeEvent, TradeId};
use pools_core::usecases::credit::Credit;
use serde::Serialize;
use serde_json::{Value, json};

use super::client::{Call, Client};
use super::demo::Demo;
use super::tour::DESTINATION;
use crate::cmd::credit;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

/// What the check buys with, in EUR: its fraction settles on the first poll.
const AMOUNT: &str = "100.00";
/// Polls before the check gives up, and the pause between them.
const POLLS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// A step that was taken.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    step: &'static str,
    ok: bool,
    seen: String,
}

/// Everything that was done and seen.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) ok: bool,
    steps: Vec<Step>,
}

/// Performs the main job; stops at the first step that fails, as the later ones build on it.
pub(super) async fn check(
    installation: &Installation,
    demo: &Demo,
    client: Client,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut tour = Tour {
        installation,
        who: demo.tenant()?,
        demo,
        client,
        quote: String::new(),
        trade: String::new(),
    };
    let mut steps = Vec::new();
    for name in STEPS {
        let seen = tour.take(name).await;
        let ok = seen.is_ok();
        let seen = seen.unwrap_or_else(|fault| fault);
        let mark = if ok { "✓" } else { "✗" };
        terminal.progress(&format!("{mark} {name:<12} {seen}"));
        steps.push(Step {
            step: name,
            ok,
            seen,
        });
        if !ok {
            break;
        }
    }
    let ok = steps.iter().all(|step| step.ok);
    Ok(Outcome { ok, steps })
}

const STEPS: [&str; 11] = [
    "credit",
    "discover",
    "capabilities",
    "quote",
    "transact",
    "repeat",
    "poll",
    "trade",
    "balance",
    "ledger",
    "event",
];

struct Tour<'t> {
    installation: &'t Installation,
    who: Tenant,
    demo: &'t Demo,
    client: Client,
    /// The quote that was given.
    quote: String,
    /// The trade that executes it.
    trade: String,
}

/// What a step has seen, or why it failed.
type Seen = Result<String, String>;

impl Tour<'_> {
    async fn take(&mut self, step: &str) -> Seen {
        match step {
            "credit" => self.credit().await,
            "discover" => self.discover().await,
            "capabilities" => self.capabilities().await,
            "quote" => self.quote().await,
            "transact" => self.transact(false).await,
            "repeat" => self.transact(true).await,
            "poll" => self.poll().await,
            "trade" => self.trade().await,
            "balance" => self.balance().await,
            "ledger" => self.ledger().await,
            "event" => self.event().await,
            other => Err(format!("no step is called {other}")),
        }
    }

    async fn credit(&self) -> Seen {
        let base = &self.installation.base;
        let amount = Asset::fiat("EUR").and_then(|asset| Amount::parse(AMOUNT, asset).ok());
        let credit = Credit {
            amount: amount.ok_or("no amount to credit")?,
            network: None,
            reference: format!("check-{}", RequestId::new(&*base.clock, &*base.entropy)),
        };
        let partner = self.who.partner.clone();
        let credited = credit::credit_to(self.installation, partner, &credit).await;
        let credited = credited.map_err(|failure| failure.lines().join("; "))?;
        Ok(format!(
            "{AMOUNT} EUR as {}; the balance is {} EUR",
            credit.reference, credited.balance
        ))
    }

    async fn discover(&self) -> Seen {
        let key = &self.demo.publishable_key;
        let answer = self.client.call(Call::get(key, "/v1/pools")).await?;
        let pools = answer.get("pools").and_then(Value::as_array);
        let ids: Vec<&str> = pools
            .into_iter()
            .flatten()
            .filter_map(|pool| pool.get("id")?.as_str())
            .collect();
        expect(
            ids.contains(&"EUR-USDT"),
            "EUR-USDT among the pools",
            &answer,
        )?;
        Ok(ids.join(", "))
    }

    async fn capabilities(&self) -> Seen {
        let answer = self.get("/v1/pools/EUR-USDT/capabilities").await?;
        let sides = answer.get("sides").and_then(Value::as_array);
        let buys = sides.is_some_and(|sides| sides.iter().any(|side| side == "on_ramp"));
        expect(buys, "the side on_ramp", &answer)?;
        Ok(format!(
            "tier {}, fee {} bps, spread at most {} bps",
            text(&answer, "tier")?,
            number(&answer, "drawFeeBps")?,
            number(&answer, "spreadCapBps")?
        ))
    }

    async fn quote(&mut self) -> Seen {
        let body = json!({
            "side": "on_ramp", "type": "firm", "fiatCurrency": "EUR", "cryptoCurrency": "USDT",
            "amount": AMOUNT, "cryptoNetwork": "ethereum", "destAddress": DESTINATION,
        });
        let answer = self.post("/v1/pools/EUR-USDT/quote", body, None).await?;
        let firm = answer.get("executable") == Some(&Value::Bool(true));
        expect(firm, "an executable quote", &answer)?;
        self.quote = text(&answer, "quoteId")?;
        let (rate, until) = (text(&answer, "rate")?, text(&answer, "expiresAt")?);
        Ok(format!("{} at {rate} until {until}", self.quote))
    }

    async fn transact(&mut self, repeated: bool) -> Seen {
        let body = json!({ "quoteId": self.quote });
        let key = format!("check-{}", self.quote);
        let path = "/v1/pools/EUR-USDT/transact";
        let answer = self.post(path, body, Some(&key)).await?;
        let trade = text(&answer, "transactId")?;
        let flagged = answer.get("idempotent") == Some(&Value::Bool(repeated));
        expect(flagged, &format!("idempotent {repeated}"), &answer)?;
        if repeated {
            expect(trade == self.trade, "the same trade", &answer)?;
            return Ok("the same trade again, nothing executed twice".to_owned());
        }
        expect(
            text(&answer, "status")? == "reserved",
            "status reserved",
            &answer,
        )?;
        self.trade = trade;
        Ok(format!("{} is reserved", self.trade))
    }

    async fn poll(&self) -> Seen {
        let path = format!("/v1/pools/transactions/{}", self.quote);
        for poll in 1..=POLLS {
            let answer = self.get(&path).await?;
            match text(&answer, "status")?.as_str() {
                "settled" => {
                    return Ok(format!(
                        "settled on poll {poll}, at {}",
                        text(&answer, "settledAt")?
                    ));
                }
                "reserved" => tokio::time::sleep(PAUSE).await,
                _ => return Err(format!("expected status reserved or settled, got {answer}")),
            }
        }
        Err(format!("still reserved after {POLLS} polls"))
    }

    async fn trade(&self) -> Seen {
        let answer = self
            .get(&format!("/v1/pools/trades/{}", self.trade))
            .await?;
        expect(
            text(&answer, "status")? == "settled",
            "status settled",
            &answer,
        )?;
        expect(
            text(&answer, "fiatAmount")? == AMOUNT,
            "the amount of the order",
            &answer,
        )?;
        let (crypto, fill) = (
            text(&answer, "cryptoAmount")?,
            text(&answer, "engineFillTxId")?,
        );
        Ok(format!("{AMOUNT} EUR for {crypto} USDT, fill {fill}"))
    }

    async fn balance(&self) -> Seen {
        let answer = self.get("/v1/pools/EUR-USDT/balance").await?;
        Ok(format!("{} EUR", text(&answer, "balance")?))
    }

    async fn ledger(&self) -> Seen {
        let answer = self.get("/v1/pools/ledger?currency=EUR&limit=50").await?;
        let entries = answer.get("entries").and_then(Value::as_array);
        let ours = entries
            .into_iter()
            .flatten()
            .find(|entry| entry.get("ref").and_then(Value::as_str) == Some(&self.quote))
            .ok_or_else(|| format!("expected an entry of the quote, got {answer}"))?;
        expect(
            text(ours, "delta")? == format!("-{AMOUNT}"),
            "the debit",
            ours,
        )?;
        expect(
            text(ours, "reason")? == "buy_debit",
            "reason buy_debit",
            ours,
        )?;
        Ok(format!(
            "buy_debit -{AMOUNT} EUR, {} EUR after it",
            text(ours, "balanceAfter")?
        ))
    }

    /// The event as stored: its id and every byte of its body, once opened.
    async fn event(&self) -> Seen {
        let base = &self.installation.base;
        let wrong = |fault: kernel::StoreError| runtime::causes(&fault);
        let id = TradeId::parse(&self.trade).ok_or("the trade's id has no known form")?;
        let trade = base.store.trade_get(&self.who, id).await.map_err(wrong)?;
        let trade = trade.ok_or("the trade is not in the store")?;
        let events = base
            .store
            .events_of(&self.who, &self.trade)
            .await
            .map_err(wrong)?;
        let [event] = events.as_slice() else {
            return Err(format!(
                "expected one event of the trade, got {}",
                events.len()
            ));
        };
        let settled = TradeEvent::Settled;
        if event.id != event_id(&trade, settled) || event.kind != settled.as_str() {
            return Err(format!(
                "expected {}, got {} {}",
                settled.as_str(),
                event.kind,
                event.id
            ));
        }
        let opened = base
            .sealer
            .open(&event_place(&self.who, &event.id), &event.body);
        let opened = opened.map_err(|fault| fault.to_string())?;
        let expected = event_body(&trade, settled).map_err(|fault| fault.to_string())?;
        if opened != expected {
            return Err("the event's body is not the trade's".to_owned());
        }
        Ok(format!(
            "{} {}, {} bytes, sealed",
            event.kind,
            event.id,
            opened.len()
        ))
    }

    async fn get(&self, path: &str) -> Result<Value, String> {
        self.client
            .call(Call::get(&self.demo.secret_key, path))
            .await
    }

    async fn post(&self, path: &str, body: Value, key: Option<&str>) -> Result<Value, String> {
        let mut call = Call::post(&self.demo.secret_key, path, body);
        call.idempotency_key = key;
        self.client.call(call).await
    }
}

fn expect(holds: bool, expected: &str, answer: &Value) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("expected {expected}, got {answer}"))
    }
}

fn text(answer: &Value, field: &str) -> Result<String, String> {
    let value = answer.get(field).and_then(Value::as_str);
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("expected a text in `{field}`, got {answer}"))
}

fn number(answer: &Value, field: &str) -> Result<u64, String> {
    let value = answer.get(field).and_then(Value::as_u64);
    value.ok_or_else(|| format!("expected a number in `{field}`, got {answer}"))
}
