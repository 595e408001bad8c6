//! The load: several clients of several partners, concurrently on the same few quotes.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use test_support::time;

use crate::book::{Page, Quote};
use crate::caller::{Begun, Caller, number};
use crate::history::{Kind, Outcome};
use crate::http::{Answer, Lost, request};
use crate::orders::{Asset, Order, Side};
use crate::world::{POOR, Partner, World};

/// Fractions of the amounts, from which the sandbox chooses the outcome; most trades settle at once.
const FRACTIONS: [i64; 16] = [0, 0, 0, 0, 0, 5, 99, 11, 12, 21, 31, 32, 33, 41, 41, 51];

/// A trader polls a trade after it has executed this many more, when most have ended.
const POLL_DISTANCE: usize = 4;

/// One client of the pools.
pub(crate) struct Visitor<'w, 'c, 'f> {
    pub(crate) world: &'w World,
    pub(crate) caller: &'c mut Caller<'f>,
}

fn begin(kind: Kind, partner: &Partner, object: Option<&str>) -> Begun {
    Begun::now(kind, &partner.name, object)
}

impl Visitor<'_, '_, '_> {
    pub(crate) fn act(&mut self, chance: &mut fastrand::Rng) {
        let world = self.world;
        if let Some(own) = self.caller.own_trades.take() {
            let own = self.trade(own, chance);
            self.caller.own_trades = Some(own);
            return;
        }
        let Some(partner) = world.partners.get(chance.usize(0..world.partners.len())) else {
            return;
        };
        let hot = partner.book.lock().hot.clone();
        let picked = chance
            .choice(hot.iter().rev().take(self.caller.front.hot))
            .cloned();
        let Some(quote) = picked.filter(|_| chance.u8(0..100) < 80) else {
            return self.quote(partner, chance);
        };
        match chance.u8(0..100) {
            0..=34 => self.transact(partner, &quote, chance),
            35..=41 => self.twins(partner, &quote, chance),
            42 => self.hang_up(partner, &quote),
            43..=47 => self.reject(partner, &quote),
            48..=51 => self.refused(partner, &quote, chance),
            52..=74 => self.poll_or_transact(partner, &quote, chance),
            75..=82 => self.read_quote(partner, &quote),
            83..=89 => self.read_trade(partner, &quote),
            90..=92 => self.reuse(partner, &hot, chance),
            93..=94 => self.late(partner, chance),
            _ => self.read_books(partner, chance),
        }
    }

    /// Sends a request that is always refused and changes nothing.
    fn refused(&mut self, partner: &Partner, quote: &str, chance: &mut fastrand::Rng) {
        let unknown_key = "sk_test_NobodyNobodyNobodyNobodyNobody99";
        let path = format!("/pools/quotes/{quote}");
        let unknown = format!("/pools/quotes/{}", unknown_id(quote));
        let bytes = match chance.u8(0..4) {
            0 => request(unknown_key, "GET", &path, "", ""),
            1 => request(&partner.publishable, "GET", &path, "", ""),
            2 => request(&partner.key, "POST", "/pools/EUR-USDT/transact", "", "{}"),
            _ => request(&partner.key, "GET", &unknown, "", ""),
        };
        let begun = begin(Kind::Refused, partner, None);
        let answer = self.caller.one.call(&bytes);
        if let Some(answer) = self.end(begun, answer)
            && answer.status < 300
        {
            let breach = format!("an invalid request received {answer:?}");
            partner.book.lock().breaches.push(breach);
        }
    }

    fn end(&mut self, begun: Begun, answer: Result<Answer, Lost>) -> Option<Answer> {
        self.caller.end(begun, answer)
    }

    fn get(
        &mut self,
        kind: Kind,
        partner: &Partner,
        path: &str,
        object: Option<&str>,
    ) -> Option<Answer> {
        let begun = begin(kind, partner, object);
        self.caller.get(begun, &partner.key, path)
    }

    /// Executes a quote that no other client knows, and polls an earlier trade.
    fn trade(
        &mut self,
        mut own: VecDeque<(usize, String)>,
        chance: &mut fastrand::Rng,
    ) -> VecDeque<(usize, String)> {
        let world = self.world;
        let number = chance.usize(0..POOR);
        let Some(partner) = world.partners.get(number) else {
            return own;
        };
        if let Some(quote) = self.open_quote(partner, chance) {
            self.transact(partner, &quote, chance);
            own.push_back((number, quote));
        }
        if own.len() > POLL_DISTANCE
            && let Some((number, quote)) = own.pop_front()
            && let Some(partner) = world.partners.get(number)
        {
            self.poll(partner, &quote);
        }
        own
    }

    fn quote(&mut self, partner: &Partner, chance: &mut fastrand::Rng) {
        if let Some(id) = self.open_quote(partner, chance) {
            partner.book.lock().hot.push(id);
        }
    }

    fn open_quote(&mut self, partner: &Partner, chance: &mut fastrand::Rng) -> Option<String> {
        let fraction = chance.choice(FRACTIONS).unwrap_or_default();
        let side = match chance.u8(0..100) {
            0..=64 => Side::Purchase,
            _ => Side::Sale,
        };
        let order = Order::new(side, chance.i64(10..90) * 100 + fraction);
        let begun = begin(Kind::Quote, partner, None);
        let answer = self.caller.one.call(&quote_request(partner, order));
        let answer = self.end(begun, answer);
        let (id, quote) = answer.and_then(|answer| Quote::read(order, &answer))?;
        partner.book.lock().quotes.insert(id.clone(), quote);
        Some(id)
    }

    /// Records that a transact is being sent, and renders it.
    fn prepare(&mut self, partner: &Partner, quote: &str, key: &str) -> (Begun, Vec<u8>) {
        if let Some(known) = partner.book.lock().quotes.get_mut(quote) {
            known.doubt(key);
        }
        let begun = Begun {
            key: Some(key.to_owned()),
            ..begin(Kind::Transact, partner, Some(quote))
        };
        (begun, transact_request(partner, quote, key))
    }

    /// Records the outcome of a transact.
    fn conclude(
        &mut self,
        partner: &Partner,
        quote: &str,
        key: &str,
        begun: Begun,
        answer: Result<Answer, Lost>,
    ) {
        note_transact(partner, quote, key, &answer);
        self.end(begun, answer);
    }

    fn transact(&mut self, partner: &Partner, quote: &str, chance: &mut fastrand::Rng) {
        let key = self.key_of(partner, quote, chance.u8(0..100) < 15);
        let (begun, bytes) = self.prepare(partner, quote, &key);
        let answer = self.caller.one.call(&bytes);
        self.conclude(partner, quote, &key, begun, answer);
    }

    /// Sends two concurrent transacts of one quote, or a transact and a reject.
    fn twins(&mut self, partner: &Partner, quote: &str, chance: &mut fastrand::Rng) {
        let key = self.key_of(partner, quote, false);
        let (begun, bytes) = self.prepare(partner, quote, &key);
        let sent = self.caller.one.send(&bytes);
        if chance.u8(0..100) < 10 {
            self.reject(partner, quote);
        } else {
            let twin = self.key_of(partner, quote, chance.bool());
            let (begun, bytes) = self.prepare(partner, quote, &twin);
            let answer = self.caller.other.call(&bytes);
            self.conclude(partner, quote, &twin, begun, answer);
        }
        let answer = sent.and_then(|()| self.caller.one.receive());
        self.conclude(partner, quote, &key, begun, answer);
    }

    /// Sends a transact without waiting for the response.
    fn hang_up(&mut self, partner: &Partner, quote: &str) {
        let key = self.key_of(partner, quote, false);
        let (begun, bytes) = self.prepare(partner, quote, &key);
        let sent = self.caller.one.send(&bytes);
        self.caller.one.close();
        let answer = sent.and(Err(Lost::Unknown));
        self.conclude(partner, quote, &key, begun, answer);
    }

    /// Sends the key of one quote with another, which never has an effect.
    fn reuse(&mut self, partner: &Partner, hot: &[String], chance: &mut fastrand::Rng) {
        let (Some(one), Some(other)) = (chance.choice(hot), chance.choice(hot)) else {
            return;
        };
        if one != other {
            let key = self.key_of(partner, one, false);
            let (begun, bytes) = self.prepare(partner, other, &key);
            let answer = self.caller.one.call(&bytes);
            self.conclude(partner, other, &key, begun, answer);
        }
    }

    /// Uses an older quote, which may have expired.
    fn late(&mut self, partner: &Partner, chance: &mut fastrand::Rng) {
        let old = chance.choice(partner.book.lock().hot.iter()).cloned();
        if let Some(quote) = old {
            self.transact(partner, &quote, chance);
        }
    }

    fn key_of(&self, partner: &Partner, quote: &str, fresh: bool) -> String {
        let book = partner.book.lock();
        let known = book.quotes.get(quote).filter(|_| !fresh);
        known.map_or_else(|| format!("key-{}", number()), |quote| quote.key.clone())
    }

    fn reject(&mut self, partner: &Partner, quote: &str) {
        if let Some(known) = partner.book.lock().quotes.get_mut(quote) {
            known.reject_in_doubt = true;
        }
        let begun = begin(Kind::Reject, partner, Some(quote));
        let answer = self.caller.other.call(&reject_request(partner, quote));
        if matches!(&answer, Ok(answer) if answer.status == 200) {
            partner.book.lock().reject(quote);
        }
        self.end(begun, answer);
    }

    /// Transacts a quote without a trade, else polls the trade. Now and then it polls anyway.
    fn poll_or_transact(&mut self, partner: &Partner, quote: &str, chance: &mut fastrand::Rng) {
        let traded = partner
            .book
            .lock()
            .quotes
            .get(quote)
            .is_some_and(|quote| quote.trade.is_some());
        if traded || chance.u8(0..100) < 10 {
            self.poll(partner, quote);
        } else {
            self.transact(partner, quote, chance);
        }
    }

    fn poll(&mut self, partner: &Partner, quote: &str) {
        let known = seen(partner, quote);
        let path = format!("/pools/transactions/{quote}");
        if let Some(answer) = self.get(Kind::Poll, partner, &path, Some(quote)) {
            let state = answer.text("status").unwrap_or_default();
            partner.book.lock().saw(quote, &state, known.as_deref());
        }
    }

    fn read_quote(&mut self, partner: &Partner, quote: &str) {
        let (traded, rejected) = {
            let book = partner.book.lock();
            let known = book.quotes.get(quote);
            (
                known.is_some_and(|quote| quote.trade.is_some()),
                known.is_some_and(|quote| quote.rejected),
            )
        };
        let path = format!("/pools/quotes/{quote}");
        if let Some(answer) = self.get(Kind::ReadQuote, partner, &path, Some(quote)) {
            let status = answer.text("status").unwrap_or_default();
            if status == "expired"
                && let Some(known) = partner.book.lock().quotes.get_mut(quote)
            {
                known.expired = true;
            }
            let wrong = traded && status != "consumed" || rejected && status != "rejected";
            if wrong {
                let breach =
                    format!("{quote} reads {status} (executed: {traded}, rejected: {rejected})");
                partner.book.lock().breaches.push(breach);
            }
        }
    }

    fn read_trade(&mut self, partner: &Partner, quote: &str) {
        let known = seen(partner, quote);
        let trade = partner
            .book
            .lock()
            .quotes
            .get(quote)
            .and_then(|quote| quote.trade.clone());
        let Some(trade) = trade else {
            return;
        };
        let path = format!("/pools/trades/{trade}");
        let begun = begin(Kind::ReadTrade, partner, Some(quote));
        let answer = self.caller.ask(begun, &partner.key, &path);
        match answer.as_ref().map(|answer| (answer.status, answer)) {
            Some((200, answer)) => {
                let state = answer.text("status").unwrap_or_default();
                partner.book.lock().saw(quote, &state, known.as_deref());
            }
            Some((404, _)) => {
                let breach = format!("{trade} was acknowledged and does not exist");
                partner.book.lock().breaches.push(breach);
            }
            Some(_) | None => {}
        }
    }

    fn read_books(&mut self, partner: &Partner, chance: &mut fastrand::Rng) {
        let invoked = time::now();
        let asset = chance.choice(Asset::ALL).unwrap_or_default();
        let path = format!("/pools/ledger?currency={}&limit=50", asset.code());
        let Some(answer) = self.get(Kind::ReadBooks, partner, &path, None) else {
            return;
        };
        let read = page(asset, &answer.json(), invoked);
        let mut book = partner.book.lock();
        match read {
            Some(page) => book.pages.push(page),
            None => book
                .breaches
                .push(format!("GET {path} cannot be read: {answer:?}")),
        }
    }
}

fn seen(partner: &Partner, quote: &str) -> Option<String> {
    partner.book.lock().quotes.get(quote)?.seen.clone()
}

fn page(asset: Asset, said: &Value, invoked: Duration) -> Option<Page> {
    let entry = |entry: &Value| {
        let id = entry.get("id")?.as_str()?.to_owned();
        Some((id, asset.read(entry.get("balanceAfter")?.as_str()?)?))
    };
    let entries = said.get("entries")?.as_array()?;
    Some(Page {
        asset,
        invoked,
        available: asset.read(said.get("available")?.as_str()?)?,
        entries: entries.iter().map(entry).collect::<Option<_>>()?,
    })
}

/// An id that differs in its last letter: of the right kind, and unknown.
pub(crate) fn unknown_id(id: &str) -> String {
    let mut id = id.to_owned();
    let last = id.pop();
    id.push(if last == Some('0') { '1' } else { '0' });
    id
}

pub(crate) fn quote_request(partner: &Partner, order: Order) -> Vec<u8> {
    let path = "/pools/EUR-USDT/quote";
    request(&partner.key, "POST", path, "", &order.body())
}

pub(crate) fn transact_request(partner: &Partner, quote: &str, key: &str) -> Vec<u8> {
    let headers = format!("Idempotency-Key: {key}\r\n");
    let body = format!("{{\"quoteId\":\"{quote}\"}}");
    request(
        &partner.key,
        "POST",
        "/pools/EUR-USDT/transact",
        &headers,
        &body,
    )
}

pub(crate) fn reject_request(partner: &Partner, quote: &str) -> Vec<u8> {
    let path = format!("/pools/quotes/{quote}/reject");
    request(&partner.key, "POST", &path, "", "")
}

/// Records the response to a transact. Returns whether it was definite.
pub(crate) fn note_transact(
    partner: &Partner,
    quote: &str,
    key: &str,
    answer: &Result<Answer, Lost>,
) -> bool {
    let mut book = partner.book.lock();
    let at = time::now();
    let definite = match (answer, Outcome::of(answer)) {
        (Ok(answer), Outcome::Ok) => {
            let trade = answer.text("transactId").unwrap_or_default();
            let first = answer.json().get("idempotent") == Some(&Value::Bool(false));
            book.acknowledge(quote, &trade, first, at);
            true
        }
        (_, outcome) => outcome == Outcome::Fail || matches!(answer, Err(Lost::Unsent)),
    };
    if definite && let Some(known) = book.quotes.get_mut(quote) {
        known.know(key);
    }
    definite
}
