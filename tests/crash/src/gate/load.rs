//! The load: several clients of several partners, concurrently on the same few sessions, customers, previews and quotes.

mod hosted;
mod notifications;
mod orders;
mod people;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kernel::Mode;
use parking_lot::Mutex;
use serde_json::Value;
use test_support::time;

pub(super) use self::orders::path_of_rail;
use super::book::Test;
use super::writing::{Writing, brand, everybodys};
use super::{Gate, SHOP, Shop};
use crate::caller::{Begun, Caller, number};
use crate::history::{Kind, Op};
use crate::http::{Answer, Client, Lost, request};
use crate::load::unknown_id;
use crate::pages;
use crate::storm::cut;

const STORMERS: u64 = 8;
/// Concurrent clients that send the same write.
const CROWD: usize = 20;
/// Percentage of operations that pay in a widget, if most of them do.
const MOSTLY: u8 = 60;

/// One client of a partner.
pub(super) struct Visitor<'g, 'c, 'f> {
    pub(super) gate: &'g Gate,
    pub(super) shop: &'g Shop,
    pub(super) caller: &'c mut Caller<'f>,
    pub(super) chance: &'c mut fastrand::Rng,
}

impl Visitor<'_, '_, '_> {
    pub(super) fn act(&mut self) {
        if self.gate.mostly_pays && self.chance.u8(0..100) < MOSTLY {
            return self.hosted();
        }
        let hot = self.shop.book.lock().hot.clone();
        let newest = hot.iter().rev().take(self.caller.front.hot);
        let picked = self.chance.choice(newest).cloned();
        match picked.filter(|_| self.chance.u8(0..100) < 78) {
            Some(id) => self.act_on(&id, &hot),
            None => match self.chance.u8(0..100) {
                0..=59 => self.create(),
                60..=79 => self.people(),
                _ => self.orders(),
            },
        }
    }

    /// Runs an operation on a shared session or another shared object.
    fn act_on(&mut self, id: &str, hot: &[String]) {
        match self.chance.u8(0..100) {
            0..=13 => self.end(id),
            14..=18 => self.twins(id),
            19..=22 => self.fail(id),
            23..=33 => self.read(id),
            34..=38 => {
                self.bootstrap(id);
            }
            39..=43 => self.list(),
            44..=48 => self.repeat(),
            49..=51 => self.rebrand(),
            52..=54 => self.read_branding(),
            55..=57 => self.send_test(),
            58..=60 => self.replay(),
            61..=64 => self.refused(id),
            65 => self.hang_up(id),
            66..=70 => self.late(hot),
            71..=77 => self.people(),
            _ => self.orders(),
        }
    }

    fn begin(&self, kind: Kind, object: Option<&str>) -> Begun {
        Begun::now(kind, &self.shop.name, object)
    }

    /// Records that a write is being sent.
    fn prepare(&self, writing: &Writing) -> Begun {
        self.shop.book.lock().doubt(writing);
        writing.begun(self.shop)
    }

    /// Records the outcome of a write.
    fn conclude(&mut self, writing: &Writing, begun: Begun, answer: Result<Answer, Lost>) {
        let mut book = self.shop.book.lock();
        match &writing.key {
            Some(key) => {
                book.note(key, &answer);
            }
            None => {
                if let Some(answer) = answer.as_ref().ok().filter(|answer| answer.status < 300) {
                    book.learn(writing, answer);
                }
            }
        }
        drop(book);
        self.caller.end(begun, answer);
    }

    /// Records a contradiction.
    fn complain(&self, breach: String) {
        self.shop.book.lock().breaches.push(breach);
    }

    fn write(&mut self, writing: &Writing) {
        let begun = self.prepare(writing);
        let answer = self.caller.one.call(&writing.bytes);
        self.conclude(writing, begun, answer);
    }

    /// Sends two concurrent writes.
    fn write_both(&mut self, one: &Writing, other: &Writing) {
        let begun = self.prepare(one);
        let sent = self.caller.one.send(&one.bytes);
        let second = self.prepare(other);
        let answer = self.caller.other.call(&other.bytes);
        self.conclude(other, second, answer);
        let answer = sent.and_then(|()| self.caller.one.receive());
        self.conclude(one, begun, answer);
    }

    /// Sends a write once, as twins with equal or different bodies, or as many under one key or under keys of their own.
    fn create(&mut self) {
        if self.has_quota_left() && self.chance.u8(0..100) < 20 {
            return self.crowd_of_creates();
        }
        let key = format!("create-{}", number());
        let writing = Writing::create(self.shop, &key, self.chance);
        match self.chance.u8(0..100) {
            0..=77 => self.write(&writing),
            78 => self.crowd(&vec![writing; CROWD]),
            79..=80 => self.crowd_of_creates(),
            81..=90 => self.write_both(&writing, &writing),
            _ => {
                let twin = Writing::create(self.shop, &key, self.chance);
                self.write_both(&writing, &twin);
            }
        }
    }

    /// Whether the partner has a quota that its sessions have not used up.
    fn has_quota_left(&self) -> bool {
        let made = self.shop.book.lock().sessions.len() as u64;
        self.gate.mode == Mode::Live && self.shop.quota.is_some_and(|quota| made < quota)
    }

    /// Sends more concurrent creates than the quota has left.
    fn crowd_of_creates(&mut self) {
        let shop = self.shop;
        let another =
            |chance: &mut _| Writing::create(shop, &format!("create-{}", number()), chance);
        let all = self.crowded(another);
        self.crowd(&all);
    }

    /// Makes N writes of a kind.
    fn crowded(&mut self, another: impl Fn(&mut fastrand::Rng) -> Writing) -> Vec<Writing> {
        (0..CROWD).map(|_| another(self.chance)).collect()
    }

    /// Sends writes concurrently, spread over all services.
    fn crowd(&mut self, writings: &[Writing]) {
        let addresses = self.caller.front.addresses.iter().cycle();
        let answers: Vec<_> = thread::scope(|scope| {
            let sending: Vec<_> = writings
                .iter()
                .zip(addresses)
                .map(|(writing, address)| {
                    let begun = self.prepare(writing);
                    let sent = scope.spawn(move || Client::new(*address).call(&writing.bytes));
                    (writing, begun, sent)
                })
                .collect();
            let ends = sending.into_iter();
            ends.map(|(writing, begun, sent)| {
                (writing, begun, sent.join().unwrap_or(Err(Lost::Unknown)))
            })
            .collect()
        });
        for (writing, begun, answer) in answers {
            self.conclude(writing, begun, answer);
        }
    }

    /// Cancels a session, or completes it if that is allowed by hand.
    fn ending(&mut self, id: &str) -> Writing {
        let by_hand = self.gate.mode == Mode::Test && self.chance.bool();
        let kind = if by_hand {
            Kind::Complete
        } else {
            Kind::Cancel
        };
        Writing::act(self.shop, kind, id, self.chance)
    }

    fn end(&mut self, id: &str) {
        let writing = self.ending(id);
        self.write(&writing);
    }

    fn twins(&mut self, id: &str) {
        let (one, other) = (self.ending(id), self.ending(id));
        self.write_both(&one, &other);
    }

    /// Fails a payment. Without a key, the number of failures after an unknown outcome would be unknown.
    fn fail(&mut self, id: &str) {
        if self.gate.mode == Mode::Test {
            let mut writing = Writing::act(self.shop, Kind::Fail, id, self.chance);
            if writing.key.is_none() {
                let key = format!("fail-{}", number());
                writing = Writing::of_session(self.shop, Kind::Fail, id, Some(key));
            }
            self.write(&writing);
        }
    }

    /// Sends a write without waiting for the response.
    fn hang_up(&mut self, id: &str) {
        let writing = match self.chance.bool() {
            true => cancel_with_shared_key(self.shop, id),
            false => Writing::create(self.shop, &format!("create-{}", number()), self.chance),
        };
        let begun = self.prepare(&writing);
        let sent = self.caller.one.send(&writing.bytes);
        self.caller.one.close();
        self.conclude(&writing, begun, sent.and(Err(Lost::Unknown)));
    }

    /// Repeats an earlier write, which has the same response whatever has happened since.
    fn repeat(&mut self) {
        let again = {
            let book = self.shop.book.lock();
            let calls = book.calls.values();
            let recent: Vec<_> = calls.filter(|call| call.invoked >= book.since).collect();
            self.chance.choice(recent).map(|call| call.writing.clone())
        };
        if let Some(writing) = again {
            self.write(&writing);
        }
    }

    /// Changes the branding, now and then twice concurrently.
    fn rebrand(&mut self) {
        let one = Writing::rebrand(self.shop);
        if self.chance.bool() {
            return self.write(&one);
        }
        let other = Writing::rebrand(self.shop);
        self.write_both(&one, &other);
    }

    fn get(&mut self, kind: Kind, path: &str, object: Option<&str>) -> Option<Answer> {
        let begun = self.begin(kind, object);
        self.caller.get(begun, &self.shop.key, path)
    }

    fn read(&mut self, id: &str) {
        let known = self.shop.book.lock().end(id);
        let path = format!("/gate_sessions/{id}");
        let begun = self.begin(Kind::ReadSession, Some(id));
        let answer = self.caller.ask(begun, &self.shop.key, &path);
        match answer.as_ref().map(|answer| (answer.status, answer)) {
            Some((200, answer)) => self.saw(&answer.json(), id, known.as_deref()),
            Some((404, _)) => {
                self.complain(format!("{id} was acknowledged and does not exist"));
            }
            Some(_) | None => {}
        }
    }

    /// Records a session from a read.
    fn saw(&self, session: &Value, id: &str, known: Option<&str>) {
        let status = session.get("status").and_then(Value::as_str);
        let status = status.unwrap_or_default();
        self.shop.book.lock().saw(id, status, known);
    }

    /// Shows a session's secret. Returns the token of the widget.
    fn bootstrap(&mut self, id: &str) -> Option<String> {
        let (secret, known) = {
            let book = self.shop.book.lock();
            let session = book.sessions.get(id);
            let secret = session.map(|session| session.secret.clone());
            (secret.unwrap_or_default(), book.end(id))
        };
        let body = format!("{{\"clientSecret\":\"{secret}\"}}");
        let origin = format!("Origin: {SHOP}\r\n");
        let key = &self.shop.publishable;
        let bytes = request(key, "POST", "/embed/bootstrap", &origin, &body);
        let begun = self.begin(Kind::Bootstrap, Some(id));
        let answer = self.caller.one.call(&bytes);
        let answer = self.caller.end(begun, answer);
        let answer = answer.filter(|answer| answer.status == 200)?;
        self.shop.book.lock().saw(id, "open", known.as_deref());
        answer.text("embed_token")
    }

    /// Lists sessions. A page must not show an overdue session as open, unless a payment may keep it open, and each session must
    /// match the status filter.
    fn list(&mut self) {
        let known: Vec<(String, Option<String>)> = {
            let book = self.shop.book.lock();
            let newest = book.hot.iter().rev().take(20);
            newest.map(|id| (id.clone(), book.end(id))).collect()
        };
        let wanted = ["", "open", "completed", "expired", "cancelled"];
        let wanted = self.chance.choice(wanted).unwrap_or_default();
        let filter = match wanted {
            "" => String::new(),
            status => format!("&status={status}"),
        };
        let asked = time::wall();
        let path = format!("/gate_sessions?limit=20{filter}");
        let Some(answer) = self.get(Kind::ReadList, &path, None) else {
            return;
        };
        let read = answer.parse();
        let listed = match read.and_then(|page| pages::followed(&path, &page)) {
            Ok((listed, _)) => listed,
            Err(fault) => return self.complain(fault.to_string()),
        };
        for session in &listed {
            let text = |field: &str| session.get(field).and_then(Value::as_str);
            let (id, status) = (text("id").unwrap_or_default(), text("status"));
            let ended = known.iter().find(|(known, _)| known == id);
            self.saw(session, id, ended.and_then(|(_, end)| end.as_deref()));
            let mut book = self.shop.book.lock();
            let expired = book.sessions.get(id).map(|session| session.expires_at);
            let late = status == Some("open")
                && expired.is_some_and(|expires| expires <= asked)
                && !book.may_be_paid(id);
            if late || !wanted.is_empty() && status != Some(wanted) {
                let breach = format!("a list of `{wanted}` asked for at {asked} shows {session}");
                book.breaches.push(breach);
            }
        }
    }

    fn read_branding(&mut self) {
        let object = brand(self.shop);
        self.get(Kind::ReadBranding, "/branding", Some(&object));
    }

    fn send_test(&mut self) {
        let bytes = request(&self.shop.key, "POST", "/webhooks/test", "", "");
        let begun = self.begin(Kind::SendTest, None);
        let answer = self.caller.one.call(&bytes);
        let answer = self.caller.end(begun, answer);
        let Some(answer) = answer.filter(|answer| answer.status == 200) else {
            return;
        };
        if let Some((id, event)) = answer.text("id").zip(answer.text("event_id")) {
            let test = Test {
                event,
                replayed: false,
            };
            self.shop.book.lock().tests.insert(id, test);
        }
    }

    /// Replays an event, which the receiver accepts from the request on.
    fn replay(&mut self) {
        let test = {
            let book = self.shop.book.lock();
            let tests = book.tests.iter().map(|(id, test)| (id, &test.event));
            let picked = self.chance.choice(tests);
            picked.map(|(id, event)| (id.clone(), event.clone()))
        };
        let Some((id, event)) = test else { return };
        let path = format!("/webhooks/deliveries/{id}/replay");
        let bytes = request(&self.shop.key, "POST", &path, "", "");
        let begun = self.begin(Kind::Replay, Some(&id));
        self.gate.receiver.want(&event);
        let answer = self.caller.one.call(&bytes);
        if let Some(answer) = self.caller.end(begun, answer)
            && answer.status == 200
            && let Some(test) = self.shop.book.lock().tests.get_mut(&id)
        {
            test.replayed = true;
        }
    }

    /// Sends a request that is always refused and changes nothing.
    fn refused(&mut self, id: &str) {
        let mode = self.gate.mode.as_str();
        let unknown_key = format!("sk_{mode}_NobodyNobodyNobodyNobodyNobody99");
        let path = format!("/gate_sessions/{id}");
        let unknown = format!("/gate_sessions/{}", unknown_id(id));
        let Shop {
            key, publishable, ..
        } = self.shop;
        let headers = format!("Idempotency-Key: refused-{}\r\n", number());
        let elsewhere = r#"{"amount":"1","currency":"EUR","return_url":"https://other.example/"}"#;
        let bytes = match self.chance.u8(0..5) {
            0 => request(&unknown_key, "GET", &path, "", ""),
            1 => request(publishable, "GET", &path, "", ""),
            2 => request(key, "POST", "/gate_sessions", "", elsewhere),
            3 => request(key, "POST", "/gate_sessions", &headers, elsewhere),
            _ => request(key, "GET", &unknown, "", ""),
        };
        let begun = self.begin(Kind::Refused, None);
        let answer = self.caller.one.call(&bytes);
        if let Some(answer) = self.caller.end(begun, answer)
            && answer.status < 300
        {
            self.complain(format!("an invalid request received {answer:?}"));
        }
    }

    /// Ends an older session, which may have expired, and reads it meanwhile.
    fn late(&mut self, hot: &[String]) {
        let Some(id) = self.chance.choice(hot).cloned() else {
            return;
        };
        let writing = self.ending(&id);
        let begun = self.prepare(&writing);
        let sent = self.caller.other.send(&writing.bytes);
        self.read(&id);
        let answer = sent.and_then(|()| self.caller.other.receive());
        self.conclude(&writing, begun, answer);
    }
}

/// A cancel under the shared key.
fn cancel_with_shared_key(shop: &Shop, id: &str) -> Writing {
    let key = everybodys(Kind::Cancel, id);
    Writing::of_session(shop, Kind::Cancel, id, Some(key))
}

/// Disconnects at random bytes and instants, during writes under keys and reads.
pub(super) fn rage(gate: &Gate, address: SocketAddr, disconnects: u64, seed: u64) -> Vec<Op> {
    let cuts = AtomicU64::new(0);
    let ops = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for place in 0..STORMERS {
            let (cuts, ops) = (&cuts, &ops);
            scope.spawn(move || {
                let mut chance = fastrand::Rng::with_seed(seed.wrapping_mul(STORMERS) + place);
                while cuts.fetch_add(1, Ordering::Relaxed) < disconnects {
                    if let Some((bytes, begun)) = stray(gate, &mut chance) {
                        cut(&bytes, address, &mut chance);
                        ops.lock().extend(begun.map(Begun::left));
                    }
                }
            });
        }
    });
    ops.into_inner()
}

/// Renders a write for a client that hangs up, and records it as in doubt; also returns the operation if its object is shared.
fn stray(gate: &Gate, chance: &mut fastrand::Rng) -> Option<(Vec<u8>, Option<Begun>)> {
    let shop = chance.choice(gate.shops.iter())?;
    let mut book = shop.book.lock();
    let session = chance.choice(book.hot.iter()).cloned();
    let customer = chance.choice(book.people.hot.iter()).cloned();
    let redeemed = orders::stray(shop, &book.orders, chance);
    let writing = match (chance.u8(0..100), session, customer) {
        (0..=34, Some(_), _) => {
            let reading = request(&shop.key, "GET", "/gate_sessions", "", "");
            return Some((reading, None));
        }
        (35..=44, Some(id), _) => cancel_with_shared_key(shop, &id),
        (45..=54, _, Some(id)) => Writing::rename(shop, &id),
        (55..=64, ..) if redeemed.is_some() => redeemed?,
        _ => Writing::create(shop, &format!("create-{}", number()), chance),
    };
    book.doubt(&writing);
    let shared = writing.kind != Kind::Create;
    let begun = shared.then(|| writing.begun(shop));
    Some((writing.bytes, begun))
}
