//! Measures the payments of one partner beside partners whose calls hang at the rail: the gate over a store, in this process, and a
//! rail over HTTP on loopback. A row of the printed table shows how long a payment takes until it is accepted, and from then on until
//! it has completed, also as ratios to the row without hanging partners.
//!
//! `cargo run --release -p acceptance --example hanging_partners -- 20`
//!
//! The argument is the number of payments in each row. To compare two commits, run this file at both.
#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a measurement, which prints its ratios"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use acceptance::measure::{Stopwatch, percentile};
use acceptance::table::millis;
use acceptance::{ACME_PUBLISHABLE, Answer, Call, Gate, GateClient, SHOP, gate_profile, profile};
use kernel::Mode;
use parking_lot::Mutex;
use partner_core::PartnerStatus;
use providers::{HttpRail, UpstreamUrl, http_rail};
use runtime::polls::settle_rails;
use serde_json::{Value, json};
use test_support::http::{Reply, Upstream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The numbers of hanging partners.
const ROWS: [usize; 4] = [0, 1, 2, 4];
/// Requests of a hanging partner that wait for the rail at the same time.
const REQUESTS: usize = 150;
/// Payments of a hanging partner whose polls hang.
const RECORDS: usize = 60;
/// The rail gives no instructions for this amount.
const SILENT_INSTRUCTIONS: &str = "66.66";
/// The rail responds to no poll about a payment of this amount.
const SILENT_POLLS: &str = "77.77";
/// How long the hanging partners run before the first payment.
const HEAD_START: Duration = Duration::from_secs(1);
/// Steps of the store's clock, and of the wait for a completed payment.
const STEP: Duration = Duration::from_millis(5);
/// After this number of steps the measurement gives up: two minutes.
const MAX_STEPS: usize = 24_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const WALLET: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

/// The payments beside a number of hanging partners.
#[derive(Debug, Default)]
struct Row {
    /// How long each took until it was accepted.
    accepted: Vec<Duration>,
    /// How long each took from then on until it had completed.
    completed: Vec<Duration>,
    refused: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let payments = std::env::args()
        .nth(1)
        .map_or(Ok(20), |word| word.parse())?;
    println!(
        "| hanging partners | accepted, median | ratio | slowest | ratio | completed, median | ratio | slowest | ratio | refused |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut alone = None;
    for hanging in ROWS {
        let mut row = measure(hanging, payments).await?;
        let spans = [&mut row.accepted, &mut row.completed]
            .map(|spans| [percentile(spans, 50), percentile(spans, 100)]);
        let baseline = *alone.get_or_insert(spans);
        let mut cells = Vec::new();
        for (span, base) in spans.as_flattened().iter().zip(baseline.as_flattened()) {
            let ratio = span.as_secs_f64() / base.as_secs_f64();
            cells.push(format!("{} | {ratio:.2}", millis(span.as_secs_f64())));
        }
        println!("| {hanging} | {} | {} |", cells.join(" | "), row.refused);
    }
    Ok(())
}

/// Makes payments one after another beside this number of hanging partners.
async fn measure(hanging: usize, payments: usize) -> Result<Row> {
    let gate = Gate::with(|setup| setup.signed_quote_ttl = DAY).await;
    let far = rail();
    let url = UpstreamUrl::parse(&far.url()).ok_or("the rail's URL")?;
    let adapter = HttpRail::new(url, None, http_rail::TIMEOUT)?;
    gate.rail().becomes(Arc::new(adapter));
    let mut orders = Vec::new();
    for number in 0..hanging {
        let client = add_partner(&gate, number).await;
        for record in 0..RECORDS {
            let name = format!("poll-{record}");
            let order = Order::open(&client, number, &name, SILENT_POLLS).await?;
            order.redeem(&client, &name).await.created();
        }
        let order = Order::open(&client, number, "hang", SILENT_INSTRUCTIONS).await?;
        orders.push((client, order));
    }
    let settling = gate.use_cases().settling.clone();
    let settling = settling.into_iter().next().ok_or("the gate has no rail")?;
    let stop = CancellationToken::new();
    let store = gate.world().store();
    let polling = settle_rails(settling, Mode::Test, store, stop.clone());
    let polling = tokio::spawn(polling);
    let mut others = JoinSet::new();
    others.spawn(tick(gate.clone()));
    // The first payment of a process is slower than the others.
    pay(&gate, "first").await?;
    for (client, order) in orders {
        flood(&client, &order, &mut others);
    }
    sleep(HEAD_START).await;
    let mut row = Row::default();
    for number in 0..payments {
        match pay(&gate, &number.to_string()).await? {
            Some((accepted, completed)) => {
                row.accepted.push(accepted);
                row.completed.push(completed);
            }
            None => row.refused += 1,
        }
    }
    others.shutdown().await;
    stop.cancel();
    polling.await?;
    gate.close().await;
    Ok(row)
}

/// Starts a rail that settles every payment, unless its amount makes the rail silent.
fn rail() -> Upstream {
    let silent = Mutex::new(BTreeSet::new());
    Upstream::start(move |request| {
        let mut segments = request.path().split('/').skip(3);
        let id = segments.next().unwrap_or_default();
        let instructs = segments.next() == Some("instructions");
        let body = request.json();
        let amount = body.get("fiat_amount").and_then(Value::as_str);
        if instructs && amount == Some(SILENT_POLLS) {
            silent.lock().insert(id.to_owned());
        }
        let waits = if instructs {
            amount == Some(SILENT_INSTRUCTIONS)
        } else {
            silent.lock().contains(id)
        };
        if waits {
            return Reply::Waits;
        }
        let response = if instructs {
            json!({ "id": id, "instructions": { "reference": "r-1" } })
        } else if request.method() == "PUT" {
            json!({ "id": id, "status": "accepted" })
        } else {
            json!({ "id": id, "status": "settled" })
        };
        Reply::json(200, &response.to_string())
    })
}

/// Moves the store's clock on as time passes.
async fn tick(gate: Gate) {
    loop {
        sleep(STEP).await;
        gate.world().clock().advance(STEP);
    }
}

fn page(number: usize) -> String {
    format!("https://hanging-{number}.example")
}

/// Provisions a partner, and returns its client.
async fn add_partner(gate: &Gate, number: usize) -> GateClient {
    let (partner, key) = (format!("hanging-{number}"), format!("sk_test_{number:032}"));
    let operator = gate.world().operator();
    operator.put_partner(&partner, PartnerStatus::Active).await;
    let pools = profile(&format!("HANGING-{number}"));
    operator.put_profile(&partner, &pools).await;
    let access = gate_profile(&page(number));
    operator.put_gate_profile(&partner, &access).await;
    operator.put_key(&partner, &key).await;
    gate.client(&key)
}

/// A session of a hanging partner, and the quote with which it is paid.
#[derive(Debug, Clone)]
struct Order {
    quote: String,
    session: String,
}

impl Order {
    async fn open(client: &GateClient, number: usize, name: &str, amount: &str) -> Result<Self> {
        let quote = json!({
            "currency": "EUR", "asset": "USDT", "amount": amount, "side": "on_ramp", "payment_method": "sepa",
        });
        let call = Call::post("/v1/quotes").json(&quote);
        let quote = client.send(call.key(&format!("{name}-q"))).await.created();
        let return_url = format!("{}/done", page(number));
        let session = json!({ "amount": amount, "currency": "EUR", "return_url": return_url });
        let session = client.create(&session, &format!("{name}-s")).await;
        Ok(Self {
            quote: text(&quote, "id")?,
            session: text(&session.created(), "id")?,
        })
    }

    /// Pays in. Without instructions of the rail this changes nothing.
    async fn redeem(&self, client: &GateClient, key: &str) -> Answer {
        let body = json!({ "quote_id": self.quote, "session_id": self.session });
        let call = Call::post("/v1/rails/pay_ins").json(&body);
        client.send(call.key(key)).await
    }
}

/// Starts the requests of a hanging partner. Each is repeated until the tasks are stopped.
fn flood(client: &GateClient, order: &Order, tasks: &mut JoinSet<()>) {
    for place in 0..REQUESTS {
        let (client, order) = (client.clone(), order.clone());
        tasks.spawn(async move {
            for round in 0_u64.. {
                order
                    .redeem(&client, &format!("hang-{place}-{round}"))
                    .await;
            }
        });
    }
}

/// Pays a session of acme in its widget. Returns how long the payment took until it was accepted, and from then on until it had
/// completed; `None` if it was refused.
async fn pay(gate: &Gate, name: &str) -> Result<Option<(Duration, Duration)>> {
    let session =
        json!({ "amount": "100.00", "currency": "EUR", "return_url": format!("{SHOP}/done") });
    let session = gate.acme().create(&session, name).await.created();
    let start = json!({ "clientSecret": text(&session, "client_secret")? });
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    let call = Call::post("/v1/embed/bootstrap").header("origin", SHOP);
    let started = gate.send(call.bearer(&key).json(&start)).await.ok();
    let token = text(&started, "embed_token")?;
    let send = async |call: Call| gate.send(call.header("x-embed-token", &token)).await;
    let order =
        json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" });
    let quote = send(Call::post("/v1/embed/quotes").json(&order)).await;
    let quote = text(&quote.created(), "id")?;
    let payment = json!({ "quote_id": quote, "wallet_address": WALLET });
    let watch = Stopwatch::start();
    let call = Call::post("/v1/embed/payments").json(&payment);
    let answer = send(call.key("pay")).await;
    let accepted = watch.elapsed();
    if answer.status != 201 {
        return Ok(None);
    }
    let watch = Stopwatch::start();
    for _ in 0..MAX_STEPS {
        let session = send(Call::get("/v1/embed/session")).await.ok();
        if text(&session, "status")? == "completed" {
            return Ok(Some((accepted, watch.elapsed())));
        }
        sleep(STEP).await;
    }
    Err("a payment did not complete".into())
}

/// A text of a response.
fn text(body: &Value, field: &str) -> Result<String> {
    let found = body.get(field).and_then(Value::as_str);
    let found = found.ok_or_else(|| format!("no {field} in {body}"))?;
    Ok(found.to_owned())
}
