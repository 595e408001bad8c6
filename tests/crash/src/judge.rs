//! Compares what the service returns after a crash with what clients observed before.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use test_support::time;

use crate::Result;
use crate::book::{Book, Deposit, Page, Quote, follows};
use crate::http::{Answer, Client, RESPONSE_TIMEOUT};
use crate::load::{note_transact, reject_request, transact_request};
use crate::money::{cents, millionths};
use crate::orders::Asset;
use crate::pages::{self, field};
use crate::world::{Partner, World};

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    id: String,
    delta: i64,
    after: i64,
    reason: String,
    reference: String,
}

/// A trade as the list shows it.
#[derive(Debug, Clone)]
struct Trade {
    id: String,
    quote: String,
    status: String,
    fields: Value,
}

/// Rows that were read and found correct, and must not change again.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Ledger entries by account, oldest first.
    ledgers: BTreeMap<Asset, Vec<Entry>>,
    /// Trades by quote, with the status last read.
    trades: BTreeMap<String, (String, String)>,
}

/// Retries every operation with an unknown outcome, under its own key, until the outcome is known.
pub(crate) fn converge(world: &World, address: SocketAddr) -> Result<u64> {
    let mut resolved = 0;
    for partner in &world.partners {
        let mut client = Client::new(address);
        let doubts: Vec<(String, Vec<String>, bool)> = {
            let book = partner.book.lock();
            let open = book
                .quotes
                .iter()
                .filter(|(_, quote)| !quote.in_doubt.is_empty() || quote.reject_in_doubt);
            let told = |(id, quote): (&String, &Quote)| {
                let keys = quote.in_doubt.keys().cloned().collect();
                (id.clone(), keys, quote.reject_in_doubt)
            };
            open.map(told).collect()
        };
        for (id, keys, reject) in doubts {
            for key in keys {
                find_out(partner, &mut client, &id, &key)?;
                resolved += 1;
            }
            if reject {
                find_out_rejection(partner, &mut client, &id)?;
                resolved += 1;
            }
        }
        let credits: Vec<(String, Deposit)> = {
            let book = partner.book.lock();
            let open = book.deposits.iter().filter(|(_, deposit)| deposit.in_doubt);
            open.map(|(reference, deposit)| (reference.clone(), deposit.clone()))
                .collect()
        };
        for (reference, deposit) in credits {
            world.credit(partner, &reference, deposit)?;
            resolved += 1;
        }
    }
    Ok(resolved)
}

fn find_out(partner: &Partner, client: &mut Client, id: &str, key: &str) -> Result<()> {
    let bytes = transact_request(partner, id, key);
    let found =
        client.call_until_definite(&bytes, |answer| note_transact(partner, id, key, answer));
    found.map_err(|fault| format!("{id} under {key}: {fault}"))?;
    // Every earlier transact under this key has the same outcome.
    if let Some(quote) = partner.book.lock().quotes.get_mut(id) {
        quote.in_doubt.remove(key);
    }
    Ok(())
}

fn find_out_rejection(partner: &Partner, client: &mut Client, id: &str) -> Result<()> {
    let bytes = reject_request(partner, id);
    let found = client.call_until_definite(&bytes, |answer| {
        let answer = answer.as_ref();
        answer.is_ok_and(|answer| note_rejection(partner, id, answer))
    });
    found.map_err(|fault| format!("{id}: its rejection: {fault}").into())
}

/// Records the response to a rejection. Returns whether it was definite.
fn note_rejection(partner: &Partner, id: &str, answer: &Answer) -> bool {
    let mut book = partner.book.lock();
    match (answer.status, answer.code().as_str()) {
        (200, _) => book.reject(id),
        (409, "quote_rejected") => {
            if let Some(quote) = book.quotes.get_mut(id) {
                quote.rejected = true;
            }
        }
        (409, _) => {}
        _ => return false,
    }
    if let Some(quote) = book.quotes.get_mut(id) {
        quote.reject_in_doubt = false;
    }
    true
}

/// Compares everything new, or with `all` everything there is. Returns every breach.
pub(crate) fn judge(world: &World, address: SocketAddr, all: bool) -> Result<Vec<String>> {
    let mut breaches = world.receiver.breaches();
    breaches.extend(world.engine.records().breaches.iter().cloned());
    for partner in &world.partners {
        let mut judging = Judging {
            partner,
            client: Client::new(address),
            breaches: Vec::new(),
        };
        judging.run(all)?;
        let name = &partner.name;
        let found = judging
            .breaches
            .iter()
            .map(|breach| format!("{name}: {breach}"));
        breaches.extend(found);
    }
    Ok(breaches)
}

struct Judging<'p> {
    partner: &'p Partner,
    client: Client,
    breaches: Vec<String>,
}

impl Judging<'_> {
    fn run(&mut self, all: bool) -> Result<()> {
        let trades = self.trades(all)?;
        let mut read = Vec::new();
        for asset in Asset::ALL {
            read.push((asset, self.ledger(asset, all)?));
        }
        let balance = self.get("/pools/EUR-USDT/balance")?;
        let balance = field(&balance, "balance").and_then(|text| cents(&text));
        let mut book = self.partner.book.lock();
        let mut judged = self.partner.judged.lock();
        self.breaches.append(&mut book.breaches);
        for trade in &trades {
            self.breaches.extend(check_trade(trade, &book, &judged));
            let state = (trade.id.clone(), trade.status.clone());
            judged.trades.insert(trade.quote.clone(), state);
        }
        for (asset, entries) in read {
            let ledger = judged.ledgers.entry(asset).or_default();
            self.breaches.extend(check_ledger(&entries, ledger, all));
        }
        self.breaches.extend(check_acknowledged(&book, &judged));
        self.breaches
            .extend(check_money(&book, &judged, balance, all));
        self.breaches.extend(check_pages(&book, &judged));
        book.pages.clear();
        tidy(&mut book);
        Ok(())
    }

    fn get(&mut self, path: &str) -> Result<Value> {
        self.client.read(&self.partner.key, path)
    }

    /// Reads trades, newest first, down to those already checked.
    fn trades(&mut self, all: bool) -> Result<Vec<Trade>> {
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/pools/trades?limit=100{cursor}");
            let page = self.get(&path)?;
            let (listed, next) = pages::with_cursor(&path, &page, "data")?;
            let mut fresh = false;
            for fields in listed {
                let text = |name| field(&fields, name).ok_or(format!("a trade without {name}"));
                let (id, quote, status) = (text("transactId")?, text("quoteId")?, text("status")?);
                fresh |= !self.partner.judged.lock().trades.contains_key(&quote);
                found.push(Trade {
                    id,
                    quote,
                    status,
                    fields,
                });
            }
            let Some(next) = next.filter(|_| all || fresh) else {
                return Ok(found);
            };
            cursor = format!("&cursor={next}");
        }
    }

    /// Reads ledger entries, oldest first, after those already checked.
    fn ledger(&mut self, asset: Asset, all: bool) -> Result<Vec<Entry>> {
        let last = {
            let judged = self.partner.judged.lock();
            let last = judged.ledgers.get(&asset).and_then(|ledger| ledger.last());
            last.map(|entry| entry.id.clone())
        };
        let account = asset.code();
        let mut found = Vec::new();
        let mut cursor = String::new();
        'pages: loop {
            let path = format!("/pools/ledger?currency={account}&limit=200{cursor}");
            let page = self.get(&path)?;
            let (lines, next) = pages::with_cursor(&path, &page, "entries")?;
            for line in &lines {
                let entry = entry(line, asset).ok_or("a ledger entry that cannot be read")?;
                if !all && Some(&entry.id) == last.as_ref() {
                    break 'pages;
                }
                found.push(entry);
            }
            let Some(next) = next else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        found.reverse();
        Ok(found)
    }
}

fn entry(line: &Value, asset: Asset) -> Option<Entry> {
    Some(Entry {
        id: field(line, "id")?,
        delta: asset.read(&field(line, "delta")?)?,
        after: asset.read(&field(line, "balanceAfter")?)?,
        reason: field(line, "reason")?,
        reference: field(line, "ref")?,
    })
}

/// Checks that a trade has its quote's terms, was requested by a client, and did not go back.
fn check_trade(trade: &Trade, book: &Book, judged: &Judged) -> Vec<String> {
    let Trade {
        id,
        quote: of,
        status,
        fields,
    } = trade;
    let Some(quote) = book.quotes.get(of) else {
        return vec![format!("{id} is for {of}, a quote that no client received")];
    };
    let mut breaches = Vec::new();
    if quote.trade.as_ref() != Some(id) {
        breaches.push(format!(
            "{id} exists; the response for {of} was {:?}",
            quote.trade
        ));
    }
    if quote.rejected || quote.expired {
        breaches.push(format!(
            "{id}: {of} is rejected ({}) or was seen expired ({})",
            quote.rejected, quote.expired
        ));
    }
    if let Some(seen) = &quote.seen
        && !follows(seen, status)
    {
        breaches.push(format!("{id} is {status} after it was seen {seen}"));
    }
    if let Some((earlier, was)) = judged.trades.get(of)
        && (earlier != id || !follows(was, status))
    {
        breaches.push(format!("{of}: {earlier} {was}, then {id} {status}"));
    }
    if !same_terms(quote, fields) {
        breaches.push(format!(
            "{id} has other terms than its quote {quote:?}: {fields}"
        ));
    }
    breaches
}

fn same_terms(quote: &Quote, fields: &Value) -> bool {
    let number = |name| fields.get(name).and_then(Value::as_u64);
    let amount =
        |name, read: fn(&str) -> Option<i64>| field(fields, name).and_then(|text| read(&text));
    number("spreadBps") == Some(quote.spread_bps)
        && number("feeBps") == Some(quote.fee_bps)
        && number("totalBps") == quote.spread_bps.checked_add(quote.fee_bps)
        && field(fields, "quotedRate").as_ref() == Some(&quote.rate)
        && amount("fiatAmount", cents).zip(amount("cryptoAmount", millionths))
            == quote.order.legs(&quote.rate)
}

/// Checks that new lines continue the old ones and old lines are unchanged.
fn check_ledger(read: &[Entry], ledger: &mut Vec<Entry>, all: bool) -> Vec<String> {
    if all {
        if read == ledger {
            return Vec::new();
        }
        let places = read.iter().zip(ledger.iter());
        let first = places.into_iter().position(|(now, then)| now != then);
        let lengths = (ledger.len(), read.len());
        let told = read.get(ledger.len()..).map(<[Entry]>::to_vec);
        if first.is_some() || lengths.1 < lengths.0 {
            return vec![format!(
                "the ledger was rewritten at {first:?}, {lengths:?} lines"
            )];
        }
        return extend(&told.unwrap_or_default(), ledger);
    }
    extend(read, ledger)
}

fn extend(read: &[Entry], ledger: &mut Vec<Entry>) -> Vec<String> {
    let mut breaches = Vec::new();
    for entry in read {
        let before = ledger.last().map_or(0, |last| last.after);
        if before.checked_add(entry.delta) != Some(entry.after) || entry.after < 0 {
            breaches.push(format!("the ledger breaks at {entry:?} after {before}"));
        }
        ledger.push(entry.clone());
    }
    breaches
}

/// Checks that every acknowledged trade exists.
fn check_acknowledged(book: &Book, judged: &Judged) -> Vec<String> {
    let acknowledged = book
        .quotes
        .iter()
        .filter(|(_, quote)| quote.trade.is_some());
    acknowledged
        .filter(|(id, _)| !judged.trades.contains_key(*id))
        .map(|(id, quote)| format!("{id}: acknowledged {:?} is lost", quote.trade))
        .collect()
}

/// Checks that each trade has one debit, each returned trade one refund to the right account and each deposit one credit, and
/// that the balance is the last line's. If only new lines were read, an older trade may have been returned since.
fn check_money(book: &Book, judged: &Judged, balance: Option<i64>, all: bool) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut moved: BTreeMap<(Asset, &str, &str), i64> = BTreeMap::new();
    for (asset, entry) in lines(judged) {
        let place = (asset, entry.reason.as_str(), entry.reference.as_str());
        if moved.insert(place, entry.delta).is_some() {
            breaches.push(format!("twice in the ledger: {place:?}"));
        }
    }
    for (id, (_, status)) in &judged.trades {
        let Some(quote) = book.quotes.get(id) else {
            continue;
        };
        let (order, (taken, _)) = (quote.order, quote.order.reasons());
        if moved.remove(&(order.pays_in(), taken, id)) != Some(-order.paid()) {
            breaches.push(format!("{id}: no {taken} of {}", order.paid()));
        }
        let ends = ["failed", "returned"].map(|end| order.refund(end, &quote.rate));
        let refunds = ends.iter().flatten();
        let back: Vec<(Asset, &str, i64)> = refunds
            .filter_map(|(asset, why, _)| Some((*asset, *why, moved.remove(&(*asset, why, id))?)))
            .collect();
        let due = order.refund(status, &quote.rate);
        let since =
            !all && due.is_none() && back.len() == 1 && ends.contains(&back.first().copied());
        if !back.iter().eq(due.iter()) && !since {
            breaches.push(format!("{id}: {status}, refunded {back:?}, due {due:?}"));
        }
    }
    for (reference, deposit) in &book.deposits {
        let credited = match deposit.asset {
            Asset::Eur => "payin_credit",
            Asset::Usdt => "crypto_receipt",
        };
        if moved.remove(&(deposit.asset, credited, reference)) != Some(deposit.amount()) {
            breaches.push(format!("deposit {reference}: not credited once"));
        }
    }
    let unasked = moved.keys();
    breaches.extend(unasked.map(|place| format!("no client requested {place:?}")));
    let ledger = judged.ledgers.get(&Asset::Eur);
    let last = ledger
        .and_then(|lines| lines.last())
        .map(|entry| entry.after);
    if balance != last {
        breaches.push(format!("balance {balance:?}, last line {last:?}"));
    }
    breaches
}

/// Returns the lines of all accounts.
fn lines(judged: &Judged) -> impl Iterator<Item = (Asset, &Entry)> {
    let ledgers = judged.ledgers.iter();
    ledgers.flat_map(|(asset, ledger)| ledger.iter().map(|entry| (*asset, entry)))
}

/// Checks that every page read under load is a part of its account's ledger and includes everything that was acknowledged before
/// the request.
fn check_pages(book: &Book, judged: &Judged) -> Vec<String> {
    let mut breaches = Vec::new();
    for asset in Asset::ALL {
        let ledger = judged.ledgers.get(&asset).map_or(&[][..], Vec::as_slice);
        let pages = book.pages.iter().filter(|page| page.asset == asset);
        breaches.extend(check_pages_of(pages, book, ledger));
    }
    breaches
}

fn check_pages_of<'p>(
    pages: impl Iterator<Item = &'p Page>,
    book: &Book,
    ledger: &[Entry],
) -> Vec<String> {
    let numbered = || ledger.iter().enumerate();
    let places: BTreeMap<&str, usize> = numbered()
        .map(|(place, entry)| (entry.id.as_str(), place))
        .collect();
    let debits: BTreeMap<&str, usize> = numbered()
        .filter(|(_, entry)| matches!(entry.reason.as_str(), "buy_debit" | "sell_debit"))
        .map(|(place, entry)| (entry.reference.as_str(), place))
        .collect();
    let mut breaches = Vec::new();
    for page in pages {
        let Some((newest, _)) = page.entries.first() else {
            continue;
        };
        let Some(top) = places.get(newest.as_str()) else {
            breaches.push(format!(
                "a page showed {newest}, which is not in the ledger"
            ));
            continue;
        };
        let piece = ledger.get(..=*top).unwrap_or_default().iter().rev();
        let same = piece
            .zip(&page.entries)
            .all(|(entry, (id, after))| &entry.id == id && entry.after == *after);
        let available = ledger.get(*top).map(|entry| entry.after);
        if !same || available != Some(page.available) {
            breaches.push(format!("the page at {newest} is not a part of the ledger"));
        }
        let missed = book.quotes.iter().find(|(id, quote)| {
            let before = quote.acknowledged.is_some_and(|at| at < page.invoked);
            before && debits.get(id.as_str()).is_some_and(|place| place > top)
        });
        if let Some((id, _)) = missed {
            breaches.push(format!(
                "the page at {newest} lacks {id}, acknowledged before it was read"
            ));
        }
    }
    breaches
}

/// Drops finished quotes from those that clients use; their responses stay recorded.
fn tidy(book: &mut Book) {
    let keep = book.hot.len().saturating_sub(24);
    book.hot.drain(..keep);
}

/// Polls every trade to its end and checks that the receiver accepted the event of each.
pub(crate) fn events(
    world: &World,
    address: SocketAddr,
    wait: std::time::Duration,
) -> Result<Vec<String>> {
    let end = time::now().saturating_add(wait);
    loop {
        let open = missing(world, address)?;
        if open.is_empty() || time::now() > end {
            return Ok(open);
        }
        std::thread::sleep(RESPONSE_TIMEOUT / 40);
    }
}

fn missing(world: &World, address: SocketAddr) -> Result<Vec<String>> {
    let received = world.receiver.events();
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in received.values().filter(|event| event.taken) {
        kinds.entry(&event.object).or_default().push(&event.kind);
    }
    let mut open = Vec::new();
    for partner in &world.partners {
        let mut judging = Judging {
            partner,
            client: Client::new(address),
            breaches: Vec::new(),
        };
        for trade in judging.trades(true)? {
            let kind = match trade.status.as_str() {
                "reserved" => None,
                "settled" | "returned" => Some("pool.transaction.settled"),
                "failed" => Some("pool.transaction.failed"),
                _ => Some("pool.transaction.released"),
            };
            let got = kinds.remove(trade.id.as_str()).unwrap_or_default();
            if got != kind.into_iter().collect::<Vec<_>>() {
                open.push(format!("{} is {}; taken: {got:?}", trade.id, trade.status));
            }
        }
    }
    open.extend(
        kinds
            .keys()
            .map(|trade| format!("an event of {trade}, which is not there")),
    );
    Ok(open)
}

#[cfg(test)]
mod tests;
