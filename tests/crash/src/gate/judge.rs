//! Compares what the gate returns after a crash with what clients observed before.

mod hosted;
mod orders;
mod people;
mod rails;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread;

use kernel::{Bound, Timestamp};
use serde_json::Value;
use test_support::time;

use super::book::{Book, Call, Rail, Session, Test};
use super::load::path_of_rail;
use super::{Gate, Shop};
use crate::Result;
use crate::history::Kind;
use crate::http::{Client, RESPONSE_TIMEOUT};
use crate::pages::{self, field};
use crate::receiver::{DELIVERY_TIMEOUT, Event};

/// Type of the event of a verification.
const KYC_REQUIRED: &str = "kyc.required";
/// The statuses by which deliveries are listed.
const DELIVERY_STATUSES: [&str; 4] = ["pending", "in_flight", "dead_lettered", "succeeded"];
/// The largest `skip` of a list of deliveries.
const MAX_SKIP: usize = 10_000;

/// Retries every operation with an unknown outcome, under its own key, until the outcome is known.
pub(super) fn converge(gate: &Gate, address: SocketAddr) -> Result<u64> {
    let mut resolved = 0;
    for shop in &gate.shops {
        let mut client = Client::new(address);
        let doubts: Vec<(String, Vec<u8>)> = {
            let book = shop.book.lock();
            let open = book.calls.iter().filter(|(_, call)| call.in_doubt > 0);
            open.map(|(key, call)| (key.clone(), call.writing.bytes.clone()))
                .collect()
        };
        for (key, bytes) in doubts {
            client
                .call_until_definite(&bytes, |answer| shop.book.lock().note(&key, answer))
                .map_err(|fault| format!("{key}: {fault}"))?;
            // Every earlier request under this key has the same outcome.
            if let Some(call) = shop.book.lock().calls.get_mut(&key) {
                call.in_doubt = 0;
            }
            resolved += 1;
        }
    }
    Ok(resolved)
}

/// Compares the lists with the observations, and repeats every write that was not repeated yet, or with `all` every write.
pub(super) fn judge(gate: &Gate, address: SocketAddr, all: bool) -> Result<Vec<String>> {
    let mut breaches = gate.receiver.breaches();
    for shop in &gate.shops {
        let mut reader = Reader::new(shop, address);
        reader.repeat(all)?;
        let seen = reader.see(all)?;
        let mut book = shop.book.lock();
        let mut found = check_sessions(&mut book, &seen);
        book.breaches.clear();
        found.extend(people::check(&book, &seen.people));
        found.extend(orders::check_payments(&book, &seen.payments));
        found.extend(orders::check(&mut book, &seen.orders));
        found.extend(hosted::check(&mut book, &seen.payments));
        found.extend(check_transactions(&book, &seen));
        found.extend(check_quota(&book, shop.quota, &seen));
        found.extend(check_branding(&book, seen.brand.as_deref()));
        tidy(&mut book);
        let name = &shop.name;
        breaches.extend(found.iter().map(|breach| format!("{name}: {breach}")));
    }
    breaches.extend(rails::check(gate)?);
    Ok(breaches)
}

/// Everything that a partner's reads return.
#[derive(Debug, Default)]
struct Seen {
    /// Sessions by id.
    sessions: BTreeMap<String, Value>,
    /// The pages of the list of sessions.
    pages: Vec<Page>,
    /// The payments of each session by reference.
    payments: BTreeMap<String, BTreeMap<String, Payment>>,
    people: BTreeMap<String, Value>,
    orders: orders::Orders,
    brand: Option<String>,
}

/// A page of a list: its number of items, and whether another page follows.
type Page = (usize, bool);

/// A payment in a list.
#[derive(Debug, PartialEq, Eq)]
struct Payment {
    status: String,
    /// The pay-in or pay-out of the payment.
    rail: Option<String>,
    completed_at: Option<Timestamp>,
}

struct Reader<'s> {
    shop: &'s Shop,
    client: Client,
}

impl<'s> Reader<'s> {
    const fn new(shop: &'s Shop, address: SocketAddr) -> Self {
        Self {
            shop,
            client: Client::new(address),
        }
    }

    /// Repeats every write under its key and checks that the response is the first one.
    fn repeat(&mut self, all: bool) -> Result<()> {
        let due: Vec<(String, Vec<u8>)> = {
            let book = self.shop.book.lock();
            let due = |call: &Call| call.first.is_some() && (all || !call.judged);
            let calls = book.calls.iter().filter(|(_, call)| due(call));
            calls
                .map(|(key, call)| (key.clone(), call.writing.bytes.clone()))
                .collect()
        };
        for (key, bytes) in due {
            let book = &self.shop.book;
            self.client
                .call_until_definite(&bytes, |answer| book.lock().note(&key, answer))
                .map_err(|fault| format!("{key} again: {fault}"))?;
            if let Some(call) = book.lock().calls.get_mut(&key) {
                call.judged = true;
            }
        }
        Ok(())
    }

    /// Reads everything that is listed, and what has no list unless its end was read before; with `all` that too.
    fn see(&mut self, all: bool) -> Result<Seen> {
        let (sessions, pages) = self.by_id("/gate_sessions")?;
        Ok(Seen {
            sessions,
            pages,
            people: self.by_id("/customers")?.0,
            orders: self.orders(all)?,
            payments: self.payments()?,
            brand: field(&self.get("/branding")?, "brand_name"),
        })
    }

    fn by_id(&mut self, path: &str) -> Result<(BTreeMap<String, Value>, Vec<Page>)> {
        let mut found = BTreeMap::new();
        let (all, pages) = self.pages(path, "id")?;
        for one in all {
            let id = field(&one, "id").ok_or(format!("{path}: one without id"))?;
            if found.insert(id.clone(), one).is_some() {
                return Err(format!("{id} is listed twice").into());
            }
        }
        found.retain(|id, _| !self.shop.book.lock().aside.contains(id));
        Ok((found, pages))
    }

    fn orders(&mut self, all: bool) -> Result<orders::Orders> {
        let (quotes, rails) = {
            let book = self.shop.book.lock();
            let known = &book.orders;
            let quotes = known.quotes.iter();
            let quotes = quotes.filter(|(_, quote)| all || quote.end.is_none());
            let quotes: Vec<_> = quotes.map(|(id, _)| id.clone()).collect();
            let rails = known.rails.iter();
            let rails = rails.filter(|(_, rail)| all || rail.end.is_none());
            let path = |(id, rail): (&String, &Rail)| {
                let side = known.quotes.get(&rail.quote)?.order.side;
                Some((id.clone(), path_of_rail(side, id)))
            };
            (quotes, rails.filter_map(path).collect::<Vec<_>>())
        };
        let mut seen = orders::Orders::default();
        for id in quotes {
            let read = self.get(&format!("/quotes/{id}"))?;
            seen.quotes.insert(id, read);
        }
        for (id, path) in rails {
            let read = self.get(&path)?;
            seen.rails.insert(id, read);
        }
        Ok(seen)
    }

    fn payments(&mut self) -> Result<BTreeMap<String, BTreeMap<String, Payment>>> {
        let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for listed in self.pages("/transactions", "refid")?.0 {
            let text = |name| field(&listed, name).ok_or(format!("{listed} without {name}"));
            let completed_at = field(&listed, "completed_at");
            let completed_at = completed_at.map(|at| Timestamp::parse(&at, Bound::Upper));
            let payment = Payment {
                status: text("status")?,
                rail: field(&listed, "local_rail_transaction_id"),
                completed_at: completed_at
                    .transpose()
                    .map_err(|fault| fault.to_string())?,
            };
            found
                .entry(text("session_id")?)
                .or_default()
                .insert(text("refid")?, payment);
        }
        Ok(found)
    }

    fn get(&mut self, path: &str) -> Result<Value> {
        self.client.read(&self.shop.key, path)
    }

    /// Reads all items of a list, page by page.
    fn pages(&mut self, path: &str, id: &str) -> Result<(Vec<Value>, Vec<Page>)> {
        let (mut all, mut pages) = (Vec::new(), Vec::new());
        let mut after = String::new();
        loop {
            let path = format!("{path}?limit=100{after}");
            let page = self.get(&path)?;
            let (items, has_more) = pages::followed(&path, &page)?;
            pages.push((items.len(), has_more));
            all.extend(items);
            if !has_more {
                return Ok((all, pages));
            }
            let last = all.last().and_then(|last| field(last, id));
            let last = last.ok_or(format!("GET {path}: the last item has no {id}: {page}"))?;
            after = format!("&starting_after={last}");
        }
    }

    /// Reads the status of the partner's newest deliveries. Returns whether these are all deliveries.
    fn deliveries(&mut self) -> Result<(BTreeMap<String, String>, bool)> {
        let (mut statuses, mut are_all) = (BTreeMap::new(), true);
        for status in DELIVERY_STATUSES {
            let (mut skip, mut has_more) = (0, true);
            while has_more && skip <= MAX_SKIP {
                let path = format!("/webhooks/deliveries?status={status}&limit=200&skip={skip}");
                let page = self.get(&path)?;
                let (listed, more) = pages::followed(&path, &page)?;
                has_more = more;
                skip += listed.len();
                for delivery in listed {
                    let text =
                        |name| field(&delivery, name).ok_or(format!("{delivery}: no {name}"));
                    statuses.insert(text("id")?, text("status")?);
                }
            }
            are_all &= !has_more;
        }
        Ok((statuses, are_all))
    }
}

/// Checks that the listed sessions are exactly those acknowledged, as created, each with its last recorded status or a later one.
fn check_sessions(book: &mut Book, seen: &Seen) -> Vec<String> {
    let mut breaches = Vec::new();
    for (id, listed) in &seen.sessions {
        let mut terms = listed.clone();
        let mut take = |name: &str| terms.as_object_mut().and_then(|it| it.remove(name));
        let (status, refid) = (take("status"), take("tx_refid"));
        let status = status.as_ref().and_then(Value::as_str).unwrap_or_default();
        if refid.is_some() != (status == "completed") {
            breaches.push(format!("{id} is {status} with the transaction {refid:?}"));
        }
        let Some(known) = book.sessions.get(id) else {
            breaches.push(format!("{id} exists, but no client received it"));
            continue;
        };
        if known.terms != terms {
            breaches.push(format!("{id} was {} and is {terms}", known.terms));
        }
        let end = known.end.clone();
        book.saw(id, status, end.as_deref());
    }
    // A caller that looks again must find them again.
    breaches.extend(book.breaches.iter().cloned());
    let lost = book
        .sessions
        .keys()
        .filter(|id| !seen.sessions.contains_key(*id));
    let pages = &seen.pages;
    breaches.extend(lost.map(|id| {
        format!("{id} was acknowledged and is lost; pages of (items, has_more): {pages:?}")
    }));
    breaches
}

/// Checks that completed sessions were paid once and no others, that no session has two payments in progress, and that the
/// payments that failed by hand are those in responses.
fn check_transactions(book: &Book, seen: &Seen) -> Vec<String> {
    let mut breaches = Vec::new();
    let nothing = BTreeMap::new();
    for (id, session) in &book.sessions {
        let payments = seen.payments.get(id).unwrap_or(&nothing);
        let count = |status: &str| payments.values().filter(|is| is.status == status).count();
        let (completed, going_on) = (count("completed"), count("processing"));
        let paid = match session.end.as_deref() {
            Some("completed") => (completed, going_on) == (1, 0),
            Some(_) => (completed, going_on) == (0, 0),
            // The payment may have settled after the session was read.
            None => completed + going_on <= 1,
        };
        let by_hand = payments.iter().filter(|(_, is)| is.rail.is_none());
        let failed_by_hand = by_hand.filter(|(_, is)| is.status == "failed");
        let failed_by_hand: BTreeSet<&String> = failed_by_hand.map(|(refid, _)| refid).collect();
        let failed: BTreeSet<&String> = session.failed.iter().collect();
        if !paid || failed_by_hand != failed {
            breaches.push(format!(
                "{id} ended {:?}, failed payments {failed:?}: {payments:?}",
                session.end
            ));
        }
    }
    let strays = seen
        .payments
        .keys()
        .filter(|id| !book.sessions.contains_key(*id));
    breaches.extend(strays.map(|id| format!("a payment of {id}, which no client received")));
    breaches
}

/// Checks that no month has more sessions than the quota, and that every refusal by the quota was true.
fn check_quota(book: &Book, quota: Option<u64>, seen: &Seen) -> Option<String> {
    let mut months: BTreeMap<String, u64> = BTreeMap::new();
    for session in seen.sessions.values() {
        let created = field(session, "created_at").unwrap_or_default();
        *months.entry(created.chars().take(7).collect()).or_default() += 1;
    }
    let most = months.values().max().copied().unwrap_or_default();
    let sound = match quota {
        Some(quota) if book.exhausted => most == quota,
        Some(quota) => most <= quota,
        None => !book.exhausted,
    };
    let told = book.exhausted;
    (!sound).then(|| format!("a quota of {quota:?}, used up: {told}; sessions {months:?}"))
}

/// Checks that the name is the last one that was set.
fn check_branding(book: &Book, name: Option<&str>) -> Option<String> {
    lost_to(book, name, |_, call| call.writing.kind == Kind::Rebrand)
}

/// Reports if the name is not that of the last write that sets it. The key of the write is the name.
fn lost_to(book: &Book, name: Option<&str>, sets: impl Fn(&str, &Call) -> bool) -> Option<String> {
    let changes = || {
        let calls = book.calls.iter();
        calls
            .filter(|(key, call)| sets(key, call))
            .map(|(_, call)| call)
    };
    let done = |call: &Call| call.first.as_ref().map(|(_, at)| *at);
    let Some(name) = name else {
        let lost = changes().find(|call| done(call).is_some());
        return lost.map(|call| format!("{call:?} succeeded and has no effect"));
    };
    let set = book.calls.get(name).filter(|call| sets(name, call));
    let Some(set) = set.and_then(done) else {
        return Some(format!("the name is {name}, which no client has set"));
    };
    let later = changes().find(|call| done(call).is_some() && call.invoked > set);
    later.map(|call| format!("the name is {name} again, in spite of {call:?}"))
}

/// Drops the objects of earlier rounds from those that clients use; their responses stay recorded.
fn tidy(book: &mut Book) {
    let Book {
        hot,
        people,
        orders,
        ..
    } = book;
    for hot in [
        hot,
        &mut people.hot,
        &mut orders.hot_previews,
        &mut orders.hot_quotes,
    ] {
        let keep = hot.len().saturating_sub(24);
        hot.drain(..keep);
    }
}

/// After every session has ended: checks that the receiver accepted both events of each, and every replayed event.
pub(super) fn events(gate: &Gate, address: SocketAddr) -> Result<Vec<String>> {
    let end = time::now().saturating_add(DELIVERY_TIMEOUT);
    loop {
        let mut open = Vec::new();
        let received = gate.receiver.events();
        for shop in &gate.shops {
            open.extend(missing(gate, shop, address, &received)?);
        }
        open.extend(rails::check_ends(gate, address)?);
        if open.is_empty() || time::now() > end {
            return Ok(open);
        }
        thread::sleep(RESPONSE_TIMEOUT / 24);
    }
}

fn missing(
    gate: &Gate,
    shop: &Shop,
    address: SocketAddr,
    received: &BTreeMap<String, Event>,
) -> Result<Vec<String>> {
    let mut reader = Reader::new(shop, address);
    let seen = reader.see(false)?;
    let listens = gate.mode == kernel::Mode::Test;
    let (stands, are_all) = if listens {
        reader.deliveries()?
    } else {
        (BTreeMap::new(), true)
    };
    let mut told: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    let taken = received.values().filter(|event| event.taken);
    for event in taken.filter(|event| event.partner == shop.name) {
        told.entry(&event.object).or_default().push(event);
    }
    let mut book = shop.book.lock();
    told.retain(|object, _| !book.aside.contains(*object));
    let mut open = check_sessions(&mut book, &seen);
    open.extend(orders::check(&mut book, &seen.orders));
    open.extend(hosted::check(&mut book, &seen.payments));
    open.extend(orders::in_progress(&book));
    for (id, session) in &book.sessions {
        let events = told.remove(id.as_str()).unwrap_or_default();
        match &session.end {
            None => open.push(format!("{id} has not ended")),
            Some(end) if listens => {
                let payments = hosted::events_of_payments(&book, id, seen.payments.get(id));
                open.extend(check_events(id, session, end, &events, payments));
            }
            Some(_) => {}
        }
    }
    if listens {
        let mut told_of = |id: &str| told.remove(id).unwrap_or_default();
        let customers = book.people.customers.keys();
        open.extend(customers.filter_map(|id| people::check_events(&book, id, &told_of(id))));
        let quotes = book.orders.quotes.keys();
        open.extend(quotes.filter_map(|id| orders::check_events_of_quote(&book, id, &told_of(id))));
        let rails = book.orders.rails.keys();
        open.extend(rails.filter_map(|id| orders::check_events_of_rail(&book, id, &told_of(id))));
        if shop.rails {
            let paid = book.orders.hosted.values();
            open.extend(paid.filter_map(|paid| {
                hosted::check_events(paid, &told_of(&paid.quote), &told_of(&paid.rail))
            }));
        }
    }
    let is_read = |id: &str| are_all || stands.contains_key(id);
    for (id, test) in book.tests.iter().filter(|(id, _)| is_read(id.as_str())) {
        let taken = told.remove(test.event.as_str()).is_some();
        let status = stands.get(id).map_or("lost", String::as_str);
        if !is_status_of_test(test, taken, status) {
            open.push(format!("{id}: {test:?}, taken {taken}, is {status}"));
        }
    }
    // A partner whose send had no response does not know the event.
    let strays = told.iter().filter(|(object, events)| {
        let tests = events.iter().all(|event| event.kind == super::TEST_EVENT);
        !tests || stands.is_empty() && !object.is_empty()
    });
    open.extend(strays.map(|(object, _)| format!("events of {object}, which no client received")));
    Ok(open)
}

/// Whether a test event may end with this status. A request to replay makes the receiver take it from then on. The response to each
/// attempt may be lost, so the service may have given up what the receiver took. Once replayed it has all attempts again, so it must
/// arrive.
fn is_status_of_test(test: &Test, taken: bool, status: &str) -> bool {
    match status {
        "succeeded" => taken,
        "dead_lettered" => taken || !test.replayed,
        _ => false,
    }
}

/// Checks for one event of the creation, one of the end, those of the payments, and one of a verification, each with the session of
/// that time. `payments` are the kinds and references of the events about payments.
fn check_events(
    id: &str,
    session: &Session,
    end: &str,
    events: &[&Event],
    payments: Vec<(String, String)>,
) -> Vec<String> {
    let mut told: Vec<_> = events
        .iter()
        .map(|event| (event.kind.clone(), field(&event.data(), "tx_refid")))
        .collect();
    let of_payments = payments.into_iter();
    let mut wanted: Vec<_> = of_payments
        .map(|(kind, refid)| (kind, Some(refid)))
        .collect();
    wanted.push(("gate_session.created".to_owned(), None));
    if end != "completed" {
        wanted.push((format!("gate_session.{end}"), None));
    }
    // A verification may have started without a response.
    let verified = (KYC_REQUIRED.to_owned(), None);
    if session.verified || told.contains(&verified) {
        wanted.push(verified);
    }
    told.sort_unstable();
    wanted.sort_unstable();
    if told != wanted {
        return vec![format!(
            "{id} is {end}; wanted: {wanted:?}; taken: {told:?}"
        )];
    }
    let breaches = events.iter().filter(|event| !shows(session, event));
    breaches
        .map(|event| format!("{id}: {} said {}", event.kind, event.data()))
        .collect()
}

/// Whether an event has the session of its time.
fn shows(session: &Session, event: &Event) -> bool {
    let mut data = event.data();
    let Some(fields) = data.as_object_mut() else {
        return false;
    };
    fields.remove("tx_refid");
    let status = fields.remove("status");
    let failure = ["failure_code", "failure_message"].map(|name| fields.remove(name).is_some());
    let can_be_paid = fields.remove("pay_until").is_some();
    let then = match event.kind.trim_start_matches("gate_session.") {
        "created" | "processing" | "failed" | KYC_REQUIRED => "open",
        end => end,
    };
    let failed = event.kind == "gate_session.failed";
    let begun = event.kind == "gate_session.processing";
    status.as_ref().and_then(Value::as_str) == Some(then)
        && failure == [failed; 2]
        && can_be_paid == begun
        && data == session.terms
}

#[cfg(test)]
mod tests;
