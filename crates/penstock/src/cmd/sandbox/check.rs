//! `penstock sandbox --check`: performs the main job over HTTP and checks each step.

use std::pin::Pin;

use serde::Serialize;
use serde_json::Value;

use super::calls::{Kept, Response, Tour};
use super::client::{Client, expect, number, text};
use super::demo::Demo;
use super::event::{OF_A_PAY_IN, PAID_IN};
use super::listener::{AMOUNT, PAGES, Partner, suspend};
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

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
    installation: Installation,
    demo: &Demo,
    (pools, gate): (Client, Client),
    terminal: &Terminal,
) -> Result<Outcome, Failure> {
    let mut tour = Tour {
        installation,
        pools,
        gate,
        partner: Partner {
            who: demo.tenant()?,
            secret_key: demo.secret_key.clone(),
            publishable_key: demo.publishable_key.clone(),
        },
        listener: None,
        kept: Kept::default(),
    };
    let mut steps = Vec::new();
    for (step, call, expectation) in STEPS {
        let response = call(&mut tour).await;
        let seen = response.and_then(|response| expectation(&mut tour, &response));
        let ok = seen.is_ok();
        let seen = seen.unwrap_or_else(|error| error);
        let mark = if ok { "✓" } else { "✗" };
        terminal.progress(&format!("{mark} {step:<12} {seen}"));
        steps.push(Step { step, ok, seen });
        if !ok {
            break;
        }
    }
    if tour.listener.is_some() {
        let ended = suspend(&tour.installation, &tour.partner.who.partner).await;
        ended.map_err(Failure::Failed)?;
    }
    let ok = steps.iter().all(|step| step.ok);
    Ok(Outcome { ok, steps })
}

/// A description of what the step did, or why it failed.
type Seen = Result<String, String>;

/// A call that is under way.
type Calling<'t> = Pin<Box<dyn Future<Output = Response> + 't>>;

/// The name of a step, its call, and what is expected of the response.
type Row = (
    &'static str,
    fn(&mut Tour) -> Calling<'_>,
    fn(&mut Tour, &Value) -> Seen,
);

const STEPS: [Row; 18] = [
    (
        "credit",
        |tour| Box::pin(tour.credit()),
        |_, credited| {
            let reference = text(credited, "reference")?;
            let balance = text(credited, "balance")?;
            Ok(format!(
                "{AMOUNT} EUR as {reference}; the balance is {balance} EUR"
            ))
        },
    ),
    ("discover", |tour| Box::pin(tour.discover()), discovered),
    (
        "capabilities",
        |tour| Box::pin(tour.get(tour.pools, "/v1/pools/EUR-USDT/capabilities")),
        capable,
    ),
    ("quote", |tour| Box::pin(tour.quote()), quoted),
    ("transact", |tour| Box::pin(tour.transact()), reserved),
    ("repeat", |tour| Box::pin(tour.transact()), repeated),
    (
        "poll",
        |tour| Box::pin(tour.poll()),
        |_, settled| {
            let (poll, at) = (number(settled, "poll")?, text(settled, "at")?);
            Ok(format!("settled on poll {poll}, at {at}"))
        },
    ),
    ("trade", |tour| Box::pin(tour.trade()), traded),
    (
        "balance",
        |tour| Box::pin(tour.get(tour.pools, "/v1/pools/EUR-USDT/balance")),
        |_, response| Ok(format!("{} EUR", text(response, "balance")?)),
    ),
    (
        "ledger",
        |tour| Box::pin(tour.get(tour.pools, "/v1/pools/ledger?currency=EUR&limit=50")),
        debited,
    ),
    (
        "receiver",
        |tour| Box::pin(tour.listen()),
        |_, begun| {
            let (url, partner) = (text(begun, "url")?, text(begun, "partner")?);
            Ok(format!("{url} for partner {partner}"))
        },
    ),
    (
        "event",
        |tour| Box::pin(trade_again(tour)),
        |tour, trade| tour.judge()?.of_trade(&tour.kept.delivery, trade),
    ),
    ("session", |tour| Box::pin(tour.session()), opened),
    ("bootstrap", |tour| Box::pin(tour.bootstrap()), started),
    (
        "complete",
        |tour| Box::pin(tour.complete()),
        |tour, session| tour.judge()?.of_completed(&tour.kept.delivery, session),
    ),
    ("preview", |tour| Box::pin(tour.preview()), offered),
    ("lock", |tour| Box::pin(tour.lock()), locked),
    ("pay-in", |tour| Box::pin(tour.pay_in()), paid_in),
];

fn discovered(_: &mut Tour, response: &Value) -> Seen {
    let pools = response.get("pools").and_then(Value::as_array);
    let pools = pools.into_iter().flatten();
    let ids: Vec<&str> = pools.filter_map(|pool| pool.get("id")?.as_str()).collect();
    let listed = ids.contains(&"EUR-USDT");
    expect(listed, "EUR-USDT in the list of pools", response)?;
    Ok(ids.join(", "))
}

fn capable(_: &mut Tour, response: &Value) -> Seen {
    let sides = response.get("sides").and_then(Value::as_array);
    let buys = sides.is_some_and(|sides| sides.iter().any(|side| side == "on_ramp"));
    expect(buys, "the side on_ramp", response)?;
    let tier = text(response, "tier")?;
    let fee = number(response, "drawFeeBps")?;
    let spread = number(response, "spreadCapBps")?;
    Ok(format!(
        "tier {tier}, fee {fee} bps, spread at most {spread} bps"
    ))
}

fn quoted(tour: &mut Tour, response: &Value) -> Seen {
    let firm = response.get("executable") == Some(&Value::Bool(true));
    expect(firm, "an executable quote", response)?;
    let quote = text(response, "quoteId")?;
    let (rate, until) = (text(response, "rate")?, text(response, "expiresAt")?);
    tour.kept.quote.clone_from(&quote);
    Ok(format!("{quote} at {rate} until {until}"))
}

fn reserved(tour: &mut Tour, response: &Value) -> Seen {
    let first = response.get("idempotent") == Some(&Value::Bool(false));
    expect(first, "idempotent false", response)?;
    let reserved = text(response, "status")? == "reserved";
    expect(reserved, "status reserved", response)?;
    let trade = text(response, "transactId")?;
    tour.kept.trade.clone_from(&trade);
    Ok(format!("{trade} is reserved"))
}

fn repeated(tour: &mut Tour, response: &Value) -> Seen {
    let again = response.get("idempotent") == Some(&Value::Bool(true));
    expect(again, "idempotent true", response)?;
    let (first, trade) = (&tour.kept.trade, text(response, "transactId")?);
    if trade != *first {
        return Err(format!("expected {first} again, got {trade}"));
    }
    Ok("the same trade again, nothing executed twice".to_owned())
}

fn traded(_: &mut Tour, response: &Value) -> Seen {
    let settled = text(response, "status")? == "settled";
    expect(settled, "status settled", response)?;
    let ordered = text(response, "fiatAmount")? == AMOUNT;
    expect(ordered, "the amount of the order", response)?;
    let crypto = text(response, "cryptoAmount")?;
    let fill = text(response, "engineFillTxId")?;
    Ok(format!("{AMOUNT} EUR for {crypto} USDT, fill {fill}"))
}

fn debited(tour: &mut Tour, response: &Value) -> Seen {
    let quote = tour.kept.quote.as_str();
    let entries = response.get("entries").and_then(Value::as_array);
    let mut entries = entries.into_iter().flatten();
    let ours = entries.find(|entry| entry.get("ref").and_then(Value::as_str) == Some(quote));
    let ours =
        ours.ok_or_else(|| format!("expected a ledger entry of the quote, got {response}"))?;
    let amount = text(ours, "delta")? == format!("-{AMOUNT}");
    expect(amount, "the amount of the debit", ours)?;
    let bought = text(ours, "reason")? == "buy_debit";
    expect(bought, "reason buy_debit", ours)?;
    let after = text(ours, "balanceAfter")?;
    Ok(format!("buy_debit -{AMOUNT} EUR, {after} EUR after it"))
}

/// Trades as the partner that receives the events, waits for the event of the trade, and then reads the trade.
async fn trade_again(tour: &mut Tour) -> Response {
    let response = tour.quote().await?;
    quoted(tour, &response)?;
    let response = tour.transact().await?;
    reserved(tour, &response)?;
    tour.poll().await?;
    let trade = tour.kept.trade.clone();
    tour.hear(&trade).await?;
    tour.trade().await
}

fn opened(tour: &mut Tour, response: &Value) -> Seen {
    let session = tour.kept.session.as_str();
    tour.judge()?.of_created(&tour.kept.delivery, session)?;
    let until = text(response, "expires_at")?;
    Ok(format!("{session} over {AMOUNT} EUR until {until}"))
}

fn started(tour: &mut Tour, response: &Value) -> Seen {
    let ours = text(response, "session_id")? == tour.kept.session;
    expect(ours, "the token of the session", response)?;
    let available = response.get("available") == Some(&Value::Bool(true));
    expect(available, "available true", response)?;
    text(response, "embed_token")?;
    let until = text(response, "expires_at")?;
    Ok(format!("a token for pages of {PAGES} until {until}"))
}

fn offered(_: &mut Tour, response: &Value) -> Seen {
    let id = text(response, "quote_preview_id")?;
    let options = response.get("options").and_then(Value::as_array);
    let mut options = options.into_iter().flatten();
    let offered = options.find(|it| it.get("unavailable_reason") == Some(&Value::Null));
    let offered =
        offered.ok_or_else(|| format!("expected an option that is offered, got {response}"))?;
    let method = text(offered, "payment_method")?;
    let crypto = text(offered, "crypto_amount")?;
    let until = text(response, "expires_at")?;
    Ok(format!("{id}: {crypto} USDT by {method} until {until}"))
}

fn locked(tour: &mut Tour, response: &Value) -> Seen {
    let active = text(response, "status")? == "active";
    expect(active, "status active", response)?;
    text(response, "signature")?;
    let quote = text(response, "id")?;
    let rate = text(response, "exchange_rate")?;
    let until = text(response, "expires_at")?;
    tour.kept.quote.clone_from(&quote);
    Ok(format!("{quote}, signed, at {rate} until {until}"))
}

fn paid_in(tour: &mut Tour, shown: &Value) -> Seen {
    let reported = &tour.kept.paid_in;
    if reported.as_ref() != Some(shown) {
        return Err(format!("expected {PAID_IN} with {shown}, got {reported:?}"));
    }
    let (record, events) = (text(shown, "id")?, OF_A_PAY_IN.len());
    Ok(format!(
        "{record} has settled; {events} events, both signatures of each verified"
    ))
}
