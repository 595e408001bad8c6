//! `penstock sandbox --check`: performs the main job over HTTP and checks each step.

use kernel::{Amount, Asset, RequestId};
use partner_core::Tenant;
use pools_core::usecases::credit_account::Credit;
use serde::Serialize;
use serde_json::Value;

use super::buyer::{AMOUNT, Buyer, expect, number, text};
use super::client::{Call, Client};
use super::demo::Demo;
use super::listener::Listener;
use crate::cmd::credit;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

/// A step with its result.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    step: &'static str,
    ok: bool,
    seen: String,
}

/// The steps with their results.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) ok: bool,
    steps: Vec<Step>,
}

/// Performs the main job. Stops at the first step that fails, because later steps depend on it.
pub(super) async fn check(
    installation: &Installation,
    demo: &Demo,
    services: Services,
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut tour = Tour {
        installation,
        who: demo.tenant()?,
        demo,
        services,
        quote: String::new(),
        trade: String::new(),
        listener: None,
    };
    let mut steps = Vec::new();
    for name in STEPS {
        let seen = tour.take(name).await;
        let ok = seen.is_ok();
        let seen = seen.unwrap_or_else(|error| error);
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
    if let Some(listener) = tour.listener {
        let ended = listener.end(installation).await;
        ended.map_err(Failure::Failed)?;
    }
    let ok = steps.iter().all(|step| step.ok);
    Ok(Outcome { ok, steps })
}

const STEPS: [&str; 18] = [
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
    "receiver",
    "event",
    "session",
    "bootstrap",
    "complete",
    "preview",
    "lock",
    "pay-in",
];

/// Clients of the two services.
#[derive(Debug, Clone, Copy)]
pub(super) struct Services {
    pub(super) pools: Client,
    pub(super) gate: Client,
}

struct Tour<'t> {
    installation: &'t Installation,
    who: Tenant,
    demo: &'t Demo,
    services: Services,
    /// The id of the quote.
    quote: String,
    /// The id of the quote's trade.
    trade: String,
    /// The partner that receives the events.
    listener: Option<Listener>,
}

/// A description of what the step did, or why it failed.
type Seen = Result<String, String>;

impl Tour<'_> {
    async fn take(&mut self, step: &str) -> Seen {
        match step {
            "credit" => self.credit().await,
            "discover" => self.discover().await,
            "capabilities" => self.capabilities().await,
            "quote" => self.quote().await,
            "transact" => self.transact().await,
            "repeat" => self.repeat().await,
            "poll" => self.buyer().settle(&self.quote).await,
            "trade" => self.trade().await,
            "balance" => self.balance().await,
            "ledger" => self.ledger().await,
            "receiver" => self.receiver().await,
            "event" => self.event().await,
            "session" => self.session().await,
            "bootstrap" => self.bootstrap().await,
            "complete" => self.complete().await,
            "preview" => self.preview().await,
            "lock" => self.lock().await,
            "pay-in" => self.pay_in().await,
            other => Err(format!("unknown step {other}")),
        }
    }

    async fn credit(&self) -> Seen {
        let base = &self.installation.base;
        let amount = Asset::fiat("EUR").and_then(|asset| Amount::parse(AMOUNT, asset).ok());
        let credit = Credit {
            amount: amount.ok_or("the amount to credit is invalid")?,
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
        let response = self
            .services
            .pools
            .call(Call::get(key, "/v1/pools"))
            .await?;
        let pools = response.get("pools").and_then(Value::as_array);
        let ids: Vec<&str> = pools
            .into_iter()
            .flatten()
            .filter_map(|pool| pool.get("id")?.as_str())
            .collect();
        expect(
            ids.contains(&"EUR-USDT"),
            "EUR-USDT in the list of pools",
            &response,
        )?;
        Ok(ids.join(", "))
    }

    async fn capabilities(&self) -> Seen {
        let path = "/v1/pools/EUR-USDT/capabilities";
        let response = self.buyer().get(path).await?;
        let sides = response.get("sides").and_then(Value::as_array);
        let buys = sides.is_some_and(|sides| sides.iter().any(|side| side == "on_ramp"));
        expect(buys, "the side on_ramp", &response)?;
        Ok(format!(
            "tier {}, fee {} bps, spread at most {} bps",
            text(&response, "tier")?,
            number(&response, "drawFeeBps")?,
            number(&response, "spreadCapBps")?
        ))
    }

    async fn quote(&mut self) -> Seen {
        let (quote, seen) = self.buyer().quote().await?;
        self.quote = quote;
        Ok(seen)
    }

    async fn transact(&mut self) -> Seen {
        self.trade = self.buyer().transact(&self.quote, false).await?;
        Ok(format!("{} is reserved", self.trade))
    }

    async fn repeat(&self) -> Seen {
        let trade = self.buyer().transact(&self.quote, true).await?;
        if trade != self.trade {
            return Err(format!("expected {} again, got {trade}", self.trade));
        }
        Ok("the same trade again, nothing executed twice".to_owned())
    }

    async fn trade(&self) -> Seen {
        let response = self.buyer().trade(&self.trade).await?;
        let settled = text(&response, "status")? == "settled";
        expect(settled, "status settled", &response)?;
        let ordered = text(&response, "fiatAmount")? == AMOUNT;
        expect(ordered, "the amount of the order", &response)?;
        let crypto = text(&response, "cryptoAmount")?;
        let fill = text(&response, "engineFillTxId")?;
        Ok(format!("{AMOUNT} EUR for {crypto} USDT, fill {fill}"))
    }

    async fn balance(&self) -> Seen {
        let response = self.buyer().get("/v1/pools/EUR-USDT/balance").await?;
        Ok(format!("{} EUR", text(&response, "balance")?))
    }

    async fn ledger(&self) -> Seen {
        let path = "/v1/pools/ledger?currency=EUR&limit=50";
        let response = self.buyer().get(path).await?;
        let entries = response.get("entries").and_then(Value::as_array);
        let ours = entries
            .into_iter()
            .flatten()
            .find(|entry| entry.get("ref").and_then(Value::as_str) == Some(&self.quote))
            .ok_or_else(|| format!("expected a ledger entry of the quote, got {response}"))?;
        expect(
            text(ours, "delta")? == format!("-{AMOUNT}"),
            "the amount of the debit",
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

    async fn receiver(&mut self) -> Seen {
        let listener = Listener::begin(self.installation).await?;
        let seen = listener.seen();
        self.listener = Some(listener);
        Ok(seen)
    }

    async fn event(&mut self) -> Seen {
        let (installation, client) = (self.installation, self.services.pools);
        self.listener()?.hear(installation, client).await
    }

    async fn session(&mut self) -> Seen {
        let (installation, client) = (self.installation, self.services.gate);
        self.listener()?.open(installation, client).await
    }

    async fn bootstrap(&mut self) -> Seen {
        let client = self.services.gate;
        self.listener()?.bootstrap(client).await
    }

    async fn complete(&mut self) -> Seen {
        let (installation, client) = (self.installation, self.services.gate);
        self.listener()?.complete(installation, client).await
    }

    async fn preview(&mut self) -> Seen {
        let client = self.services.gate;
        self.listener()?.preview(client).await
    }

    async fn lock(&mut self) -> Seen {
        let client = self.services.gate;
        self.listener()?.lock(client).await
    }

    async fn pay_in(&mut self) -> Seen {
        let (installation, client) = (self.installation, self.services.gate);
        self.listener()?.pay_in(installation, client).await
    }

    fn listener(&mut self) -> Result<&mut Listener, String> {
        self.listener
            .as_mut()
            .ok_or_else(|| "no receiver was started".to_owned())
    }

    fn buyer(&self) -> Buyer<'_> {
        Buyer {
            client: self.services.pools,
            key: &self.demo.secret_key,
        }
    }
}
