//! A provider of a live campaign over HTTP: a rail, which moves the money of payments, and a verifier, which checks users.
//!
//! It keeps its own books. It loses some responses after it acted, and lies about some payments and users.

mod ledger;
mod lies;
mod terms;
#[cfg(test)]
mod tests;
mod users;
mod word;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use kernel::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use test_support::http::{self, Reply, Request};
use test_support::time;

use ledger::Ledger;
pub(super) use ledger::{Ended, NOT_CANCELLABLE, Payment, status_of_record};
use terms::Terms;
#[cfg(test)]
pub(super) use users::User;
use users::Users;
use word::Answer;
pub(super) use word::Arrived;
#[cfg(test)]
pub(super) use word::Word;

/// Percentage of responses that are lost.
const LOST: u8 = 3;

/// What a provider knows, and what it has noticed.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) name: &'static str,
    pub(super) ledger: Ledger,
    pub(super) users: Users,
    /// Every id that the provider was called about.
    pub(super) called: BTreeSet<String>,
    /// Whether the gate is configured with the provider.
    pub(super) is_configured: bool,
    chance: fastrand::Rng,
    lost: u64,
    breaches: Vec<String>,
}

/// A provider that listens until the driver ends.
#[derive(Debug)]
pub(super) struct Provider {
    address: SocketAddr,
    name: &'static str,
    books: Arc<Mutex<Books>>,
}

impl Provider {
    pub(super) fn start(name: &'static str, seed: u64) -> Self {
        let books = Arc::new(Mutex::new(Books::new(name, seed)));
        let shared = Arc::clone(&books);
        let address = http::serve(move |request| shared.lock().respond(&request, time::wall()));
        Self {
            address,
            name,
            books,
        }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }

    /// The secret that the rail signs notifications with, and that the gate calls it with.
    pub(super) fn rail_secret(&self) -> String {
        secret(self.name, "rail")
    }

    /// The settings of the gate for this provider. The suffix says whether it is the present one or a former one.
    pub(super) fn settings(&self, suffix: &str) -> Vec<(String, String)> {
        let of_upstream = |upstream: &str| {
            let setting = format!("PENSTOCK_{}{suffix}", upstream.to_uppercase());
            [
                (setting.clone(), format!("http:http://{}", self.address)),
                (format!("{setting}_SECRET"), secret(self.name, upstream)),
                (format!("{setting}_NAME"), self.name.to_owned()),
            ]
        };
        ["rail", "verifier"]
            .into_iter()
            .flat_map(of_upstream)
            .collect()
    }
}

fn secret(name: &str, upstream: &str) -> String {
    format!("the-secret-of-the-{name}-{upstream}")
}

impl Books {
    pub(super) fn new(name: &'static str, seed: u64) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        Self {
            name,
            ledger: Ledger::new(chance.u64(..)),
            users: Users::new(chance.u64(..)),
            called: BTreeSet::new(),
            is_configured: false,
            chance,
            lost: 0,
            breaches: Vec::new(),
        }
    }

    /// Calls that violate the contract or the configuration.
    pub(super) fn breaches(&self) -> impl Iterator<Item = &String> {
        self.breaches.iter().chain(&self.ledger.breaches)
    }

    pub(super) fn figures(&self) -> [(&'static str, u64); 6] {
        let payments = || self.ledger.payments.values();
        let count = |is: fn(&&Payment) -> bool| payments().filter(is).count() as u64;
        [
            (
                "payments at providers",
                count(|payment| !payment.begins.is_empty()),
            ),
            ("providers' responses lost", self.lost),
            ("payments begun again", self.ledger.repeated()),
            (
                "instructions that differ",
                count(|payment| payment.asked_otherwise),
            ),
            ("untrue reports", self.ledger.lies + self.users.lies),
            (
                "ends that a rail changed",
                count(|payment| payment.changed.is_some()),
            ),
        ]
    }

    /// Acts on a call and responds.
    fn respond(&mut self, request: &Request, now: Timestamp) -> Reply {
        let steps: Vec<&str> = request.path().split('/').collect();
        let ["", "v1", kind, id, steps @ ..] = steps.as_slice() else {
            self.notice(&format!("{} is not a call of the contract", request.line()));
            return Reply::Closes;
        };
        self.inspect(request, kind, id);
        let terms = Terms(request.json());
        let answer = match (request.method(), *kind, steps) {
            ("POST", "payments", ["instructions"]) => self.ledger.instructions(id, &terms),
            ("POST", "payments", ["cancel"]) => self.ledger.cancel(id, &terms, now),
            ("PUT", "payments", []) => self.ledger.begin(id, &terms, now),
            ("GET", "payments", []) => self.ledger.report(id, now),
            ("PUT", "verifications", []) => self.users.start(id, terms.text("amount"), now),
            ("GET", "verifications", []) => self.users.report(id, now),
            _ => Answer::refuses(404, id),
        };
        if self.chance.u8(0..100) < LOST {
            self.lost += 1;
            return Reply::Closes;
        }
        match (*kind, answer.word) {
            ("payments", Some(word)) => self.ledger.note(id, word),
            (_, Some(word)) => self.users.note(id, word),
            (_, None) => {}
        }
        answer.reply
    }

    /// Records the id of a call, and checks its secret and that the gate is configured with the provider.
    fn inspect(&mut self, request: &Request, kind: &str, id: &str) {
        self.called.insert(id.to_owned());
        let upstream = match kind {
            "payments" => "rail",
            _ => "verifier",
        };
        let secret = format!("Bearer {}", secret(self.name, upstream));
        let line = request.line();
        if request.header("authorization") != secret {
            self.notice(&format!("{line} had another secret than the {upstream}'s"));
        }
        if !self.is_configured {
            self.notice(&format!(
                "{line} reached the {upstream}, which is not configured"
            ));
        }
    }

    pub(super) fn notice(&mut self, breach: &str) {
        self.breaches.push(breach.to_owned());
    }
}
