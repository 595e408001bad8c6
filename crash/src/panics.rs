//! A panic in every handler the contract names: as it begins, and when its work is done. The client is answered the
//! envelope of a 500; no connection of the database is lost; nothing is done by halves.

use failpoints::Side as Edge;
use serde_json::Value;

use crate::Result;
use crate::book::Quote;
use crate::caller::number;
use crate::http::{Answer, Client, request};
use crate::judge::{converge, judge};
use crate::kills::{Tally, close};
use crate::load::{quote_request, transact_request};
use crate::orders::{Order, Side};
use crate::programs::{Programs, Service};
use crate::storm::{at_rest, free_port};
use crate::world::{Partner, World};

/// Of each handler on each side, and more than the database has connections: one lost each time is soon the last.
const TIMES: u32 = 12;
/// Quotes that nobody has to hurry for.
const QUOTE_TTL: (&str, &str) = ("PENSTOCK_QUOTE_TTL", "10m");

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Panics {
    pub(crate) tally: Tally,
    pub(crate) handlers: u64,
    pub(crate) panics: u64,
}

/// One published operation.
#[derive(Debug)]
struct Operation {
    id: String,
    method: String,
    template: String,
}

impl Operation {
    /// Everything that is published, so that no route is forgotten.
    fn all() -> Result<Vec<Self>> {
        let document = serde_json::to_value(pools_http::openapi()?)?;
        let paths = document.get("paths").and_then(Value::as_object);
        let mut all = Vec::new();
        for (template, item) in paths.into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let id = operation.get("operationId").and_then(Value::as_str);
                all.extend(id.map(|id| Self {
                    id: id.to_owned(),
                    method: method.to_uppercase(),
                    template: template.clone(),
                }));
            }
        }
        if all.is_empty() {
            return Err("the contract names no operation".into());
        }
        Ok(all)
    }

    fn point(&self, side: Edge) -> String {
        side.of(&format!("{} {}", self.method, self.template))
    }

    /// A request that does what the operation is there for.
    fn request(&self, partner: &Partner, objects: &Objects) -> Result<Vec<u8>> {
        let quote = match self.id.as_str() {
            "createQuote" => return Ok(quote_request(partner, Order::new(Side::Purchase, 1_200))),
            "transact" => {
                let (quote, key) = &objects.to_execute;
                return Ok(transact_request(partner, quote, key));
            }
            "rejectQuote" => &objects.to_reject,
            _ => &objects.to_poll,
        };
        let path = self
            .template
            .replace("{id}", "EUR-USDT")
            .replace("{quoteId}", quote)
            .replace("{transactId}", &objects.trade);
        let path = path.strip_prefix("/v1").unwrap_or(&path);
        if path.contains('{') || !matches!(self.id.as_str(), "rejectQuote") && self.method != "GET"
        {
            return Err(format!("{}: this lane knows no request for it", self.id).into());
        }
        Ok(request(&partner.key, &self.method, path, "", ""))
    }
}

/// What requests are about: a quote with its key, a quote, and a trade that is under way with its quote.
#[derive(Debug)]
struct Objects {
    to_execute: (String, String),
    to_reject: String,
    to_poll: String,
    trade: String,
}

/// Every handler on both sides.
// rule: error.panic-contained, error.internal-generic, pools.transact.atomic
pub(crate) fn run(programs: &Programs, seed: u64) -> Result<Panics> {
    let folder = tempfile::tempdir()?;
    let world = World::make(folder.path(), programs, seed)?;
    let operations = Operation::all()?;
    let mut panics = Panics {
        handlers: operations.len() as u64,
        ..Panics::default()
    };
    for side in [Edge::Before, Edge::After] {
        let breaches = all_panic(&world, &operations, side, &mut panics)?;
        panics.tally.blame(seed, panics.tally.rounds, breaches);
        panics.tally.rounds += 1;
    }
    let breaches = close(&world, &mut panics.tally)?;
    panics.tally.blame(seed, panics.tally.rounds, breaches);
    if !panics.tally.breaches.is_empty() {
        panics.tally = crate::kills::keep(folder, panics.tally)?;
    }
    Ok(panics)
}

/// All handlers panic on one side, again and again, in one process; then it does its work as if nothing had been.
fn all_panic(
    world: &World,
    operations: &[Operation],
    side: Edge,
    panics: &mut Panics,
) -> Result<Vec<String>> {
    let partner = world.partners.first().ok_or("no partner")?;
    let objects = prepare(world, partner)?;
    let metrics = free_port()?;
    let listen = metrics.to_string();
    let armed: Vec<String> = operations
        .iter()
        .map(|operation| format!("{}={TIMES}*return(panic)", operation.point(side)))
        .collect();
    let more = [QUOTE_TTL, ("PENSTOCK_METRICS_LISTEN", listen.as_str())];
    let service = world.installation.serve(Some(&armed.join(";")), &more)?;
    let mut client = Client::new(service.address);
    let mut breaches = Vec::new();
    for operation in operations {
        let bytes = doubted(partner, &objects, operation)?;
        for _ in 0..TIMES {
            breaches.extend(contained(operation, client.call(&bytes).ok()));
            panics.panics += 1;
        }
    }
    breaches.extend(not_reached(operations, side, &service)?);
    if side == Edge::Before {
        breaches.extend(untouched(partner, &objects, &service)?);
    }
    for operation in operations {
        let bytes = operation.request(partner, &objects)?;
        match client.call(&bytes) {
            // What was rejected, or finished, by a handler that panicked afterwards is no longer open.
            Ok(answer) if answer.status < 300 || side == Edge::After && answer.status == 409 => {}
            other => breaches.push(format!("{} after its panics: {other:?}", operation.id)),
        }
    }
    panics.tally.resolved += converge(world, service.address)?;
    breaches.extend(judge(world, service.address, true)?);
    if side == Edge::After {
        breaches.extend(at_rest(world, &service, metrics)?);
    }
    service.kill();
    world.installation.verify()?;
    panics.tally.verified += 1;
    Ok(breaches)
}

/// Two open quotes and a trade under way, made by a service without points.
fn prepare(world: &World, partner: &Partner) -> Result<Objects> {
    let service = world.installation.serve(None, &[QUOTE_TTL])?;
    let mut client = Client::new(service.address);
    let mut quote = || -> Result<String> {
        let order = Order::new(Side::Purchase, 1_200);
        let answer = client.call(&quote_request(partner, order));
        let answer = answer.map_err(|lost| format!("no quote: {lost:?}"))?;
        let (id, quote) = Quote::read(order, &answer).ok_or("a quote that cannot be read")?;
        partner.book.lock().quotes.insert(id.clone(), quote);
        Ok(id)
    };
    let (to_execute, to_reject, to_poll) = (quote()?, quote()?, quote()?);
    let key = format!("key-{}", number());
    let answer = client.call(&transact_request(partner, &to_poll, &key));
    crate::load::note_transact(partner, &to_poll, &key, &answer);
    let trade = answer.ok().and_then(|answer| answer.text("transactId"));
    service.kill();
    Ok(Objects {
        to_execute: (to_execute, format!("key-{}", number())),
        to_reject,
        to_poll,
        trade: trade.ok_or("no trade")?,
    })
}

/// The request, noted in the book as one whose end nobody knows.
fn doubted(partner: &Partner, objects: &Objects, operation: &Operation) -> Result<Vec<u8>> {
    let bytes = operation.request(partner, objects)?;
    let mut book = partner.book.lock();
    let (quote, key) = &objects.to_execute;
    match operation.id.as_str() {
        "transact" => {
            if let Some(known) = book.quotes.get_mut(quote) {
                known.doubt(key);
            }
        }
        "rejectQuote" => {
            if let Some(known) = book.quotes.get_mut(&objects.to_reject) {
                known.reject_in_doubt = true;
            }
        }
        _ => {}
    }
    Ok(bytes)
}

/// A panic is a 500 in the envelope, with nothing of its cause.
fn contained(operation: &Operation, answer: Option<Answer>) -> Option<String> {
    let answer = answer.map(|answer| (answer.status, answer.code(), answer.json()));
    let members = [
        "type",
        "code",
        "message",
        "request_id",
        "doc_url",
        "statusCode",
    ];
    match &answer {
        Some((500, code, said))
            if code == "internal_error"
                && members.iter().all(|member| said.get(member).is_some())
                && !said.to_string().contains("asked for") =>
        {
            None
        }
        other => Some(format!("{} panicked: {other:?}", operation.id)),
    }
}

/// Handlers that did not panic as often as they were asked to.
fn not_reached(operations: &[Operation], side: Edge, service: &Service) -> Result<Vec<String>> {
    let said = service.said()?;
    let reached = |operation: &&Operation| {
        let line = format!("failpoint {} panic", operation.point(side));
        said.matches(&line).count() != TIMES as usize
    };
    let missed = operations.iter().filter(reached);
    Ok(missed
        .map(|operation| format!("{} was not reached {TIMES} times", operation.point(side)))
        .collect())
}

/// Handlers that panicked as they began have done nothing: both quotes are open, the trade is where it was, and the
/// ledger and the list of trades, which `judge` compares, have no new line.
fn untouched(partner: &Partner, objects: &Objects, service: &Service) -> Result<Vec<String>> {
    let mut client = Client::new(service.address);
    let mut status = |path: String| -> Result<Option<String>> {
        let answer = client.call(&request(&partner.key, "GET", &path, "", ""));
        let answer = answer.map_err(|lost| format!("GET {path}: {lost:?}"))?;
        Ok(answer.text("status"))
    };
    let mut touched = Vec::new();
    for (path, wanted) in [
        (format!("/pools/quotes/{}", objects.to_execute.0), "active"),
        (format!("/pools/quotes/{}", objects.to_reject), "active"),
        (format!("/pools/trades/{}", objects.trade), "reserved"),
    ] {
        let found = status(path.clone())?;
        if found.as_deref() != Some(wanted) {
            touched.push(format!("GET {path}: {found:?} after panics, not {wanted}"));
        }
    }
    Ok(touched)
}
