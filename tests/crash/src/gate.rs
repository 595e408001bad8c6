//! The gate: its partners, its installation, and what clients observed.

mod book;
mod judge;
mod lives;
mod load;
mod panics;
mod provider;
mod rows;
mod upstreams;
mod writing;

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use kernel::Mode;
use parking_lot::Mutex;
use serde_json::Value;

use crate::Result;
use crate::caller::Caller;
use crate::history::{Op, Wanted};
use crate::http::request;
use crate::linear::Checked;
use crate::programs::{Installation, Programs, Served};
use crate::races::Race;
use crate::receiver::{Dialect, Receiver, SECRET};
use crate::servers::MASTER_KEY;
use crate::subject::Subject;
use book::Book;
use load::Visitor;
use upstreams::{Signer, Upstreams};

/// Lifetime of a session: long enough to resolve it after a crash, short enough that many expire.
const SESSION_TTL: &str = "3s";
/// The secret of the notifications of the sandbox's rail.
const RAIL_SECRET: &str = "the-secret-of-the-rail";
/// The rates of a live campaign: those of the sandbox.
const RATES: &str = "valid_until = \"2099-01-01T00:00:00Z\"\n\
    [[rates]]\npair = \"EUR-USDT\"\nmid = \"1.0850\"\nspread_bps = 25\n\
    [[rates]]\npair = \"EUR-USDC\"\nmid = \"1.0845\"\nspread_bps = 25\n";
/// Origin of every partner's pages.
const SHOP: &str = "https://shop.example";
/// Live sessions that each partner may create per month.
const QUOTAS: [Option<u64>; 3] = [Some(25), Some(70), None];
/// Which partners have rails.
const RAILS: [bool; 3] = [true, false, true];
/// Lifetime of previews and signed quotes, like that of sessions.
const ORDER_TTL: &str = "3s";
/// Type of test events, which the receiver rejects until they are replayed.
const TEST_EVENT: &str = "webhook.test";
/// The kinds of payments in widgets, each with its name among the figures.
pub(crate) const PAYMENTS: [(&str, &str); 3] = [
    ("pay_in", "purchases in widgets"),
    ("pay_out", "sales in widgets"),
    ("swap", "swaps in widgets"),
];

const WANTED: Wanted = Wanted {
    refusals: &[
        (400, "delivery_not_dead_lettered"),
        (400, "idempotency_key_required"),
        (400, "invalid_request"),
        (400, "quote_preview_expired"),
        (400, "quote_preview_mismatch"),
        (400, "quote_preview_used"),
        (401, "unauthorized"),
        (403, "key_kind_not_allowed"),
        (403, "quota_exhausted"),
        (403, "rails_not_enabled"),
        (403, "session_not_open"),
        (403, "verification_required"),
        (404, "resource_not_found"),
        (409, "customer_already_exists"),
        (409, "idempotency_in_progress"),
        (409, "payment_not_cancellable"),
        (409, "quote_consumed"),
        (409, "quote_expired"),
        (409, "quote_session_mismatch"),
        (409, "quote_superseded"),
        (409, "session_not_open"),
        (409, "session_payment_in_progress"),
    ],
    races: &Race::OF_GATE,
};

/// A partner, seen from outside.
#[derive(Debug)]
struct Shop {
    name: String,
    key: String,
    /// Branding of the partner's pages.
    publishable: String,
    quota: Option<u64>,
    rails: bool,
    /// Whether the partner itself verifies the payers of live payments. A verifier verifies those whose amount asks for it.
    vouches: bool,
    book: Mutex<Book>,
}

/// Installation, partners and observations of a campaign.
#[derive(Debug)]
pub(crate) struct Gate {
    installation: Installation,
    mode: Mode,
    shops: Vec<Shop>,
    receiver: Receiver,
    /// The providers of a live campaign. The other campaigns use the sandbox's rail and verifier.
    upstreams: Option<Upstreams>,
    /// Whether most operations of clients are payments in widgets.
    mostly_pays: bool,
}

impl Gate {
    /// Makes payments in widgets most of the load.
    pub(crate) fn mostly_paying(self) -> Self {
        Self {
            mostly_pays: true,
            ..self
        }
    }

    /// Number of payments in widgets of a kind.
    fn payments(&self, kind: &str) -> u64 {
        let of_shop = |shop: &Shop| {
            let book = shop.book.lock();
            let hosted = book.orders.hosted.values();
            hosted.filter(|paid| paid.kind == kind).count() as u64
        };
        self.shops.iter().map(of_shop).sum()
    }

    /// Creates a fresh embedded database with three partners.
    pub(crate) fn make(folder: &Path, programs: &Programs, mode: Mode, seed: u64) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let installation = Installation::new(folder, programs, &[]).of(Served::Gate);
        Self::on(installation, mode, seed)
    }

    /// Creates three partners on an existing database.
    pub(crate) fn on(installation: Installation, mode: Mode, seed: u64) -> Result<Self> {
        let settings = [
            ("PENSTOCK_MODE", mode.as_str()),
            ("PENSTOCK_MASTER_KEY", MASTER_KEY),
            ("PENSTOCK_WIDGET_ORIGIN", "https://pay.example"),
            ("PENSTOCK_GATE_ORIGIN", "https://gate.example"),
            ("PENSTOCK_SESSION_TTL", SESSION_TTL),
            ("PENSTOCK_SESSION_SWEEP", "1s"),
            ("PENSTOCK_SANDBOX_SETTLES_AFTER", "1s"),
            // A campaign's last judgement repeats the payments of its first widgets.
            ("PENSTOCK_EMBED_TOKEN_TTL", "24h"),
            ("PENSTOCK_PREVIEW_TTL", ORDER_TTL),
            ("PENSTOCK_SIGNED_QUOTE_TTL", ORDER_TTL),
            ("PENSTOCK_THROTTLE_BOOTSTRAP", "6000/60s"),
            ("PENSTOCK_THROTTLE_EMBED", "6000/60s"),
            ("PENSTOCK_THROTTLE_EMBED_QUOTES", "6000/60s"),
            ("PENSTOCK_THROTTLE_EMBED_PAYMENTS", "6000/60s"),
            ("PENSTOCK_WEBHOOK_TIMEOUT", "1s"),
            ("PENSTOCK_WEBHOOK_WAITS", "50ms,100ms,200ms,400ms,800ms"),
        ];
        let receiver = Receiver::start(seed, Dialect::Gate);
        receiver.refuse(TEST_EVENT);
        let mut gate = Self {
            installation: installation.with(&settings),
            mode,
            shops: Vec::new(),
            receiver,
            upstreams: None,
            mostly_pays: false,
        };
        match mode {
            Mode::Test => {
                let secret = ("PENSTOCK_RAIL_SECRET", RAIL_SECRET);
                gate.installation = gate.installation.clone().with(&[secret]);
            }
            Mode::Live => gate.go_live(seed)?,
        }
        gate.provision()?;
        Ok(gate)
    }

    /// Starts what mode live requires: providers and rates.
    fn go_live(&mut self, seed: u64) -> Result<()> {
        let rates = self.installation.folder.join("rates.toml");
        std::fs::write(&rates, RATES)?;
        let rates = format!("static:{}", rates.display());
        let settings = [("PENSTOCK_RATES", rates.as_str())];
        self.installation = self.installation.clone().with(&settings);
        let upstreams = Upstreams::start(seed);
        upstreams.configure(&self.installation);
        self.upstreams = Some(upstreams);
        Ok(())
    }

    /// The rails that notify the gate, the one first that holds the payment. The sandbox has one rail.
    fn signers(&self, id: &str) -> [Signer; 2] {
        match &self.upstreams {
            Some(upstreams) => upstreams.signers(id),
            None => std::array::from_fn(|_| Signer {
                secret: RAIL_SECRET.to_owned(),
                is_configured: true,
            }),
        }
    }

    fn provision(&mut self) -> Result<()> {
        let mut text = String::new();
        for (number, (quota, rails)) in QUOTAS.iter().zip(RAILS).enumerate() {
            write!(
                text,
                "[[partners]]\nid = \"shop-{number}\"\nname = \"Shop\"\nstatus = \"active\"\n\
                 [partners.gate]\nenabled = true\nallowed_domains = [\"{SHOP}\"]\nflow_sessions = true\n\
                 kyc_trusted = true\npreview_locks = true\nrails = {rails}\n"
            )?;
            if let Some(quota) = quota {
                writeln!(text, "live_session_quota = {quota}")?;
            }
            // A live endpoint requires TLS, which this receiver does not have.
            if self.mode == Mode::Test {
                let address = self.receiver.address;
                write!(
                    text,
                    "[partners.gate.webhook]\nurl = \"http://{address}/shop-{number}\"\nsecret = \"{SECRET}\"\n"
                )?;
            }
            text.push_str(
                "[[partners.keys]]\nkind = \"secret\"\n[[partners.keys]]\nkind = \"publishable\"\n",
            );
        }
        let file = self.installation.folder.join("partners.toml");
        std::fs::write(&file, text)?;
        // In mode live no other command creates a database.
        self.installation.penstock(&["migrate"])?;
        let applied = self
            .installation
            .penstock(&["apply", "-f", &file.to_string_lossy()])?;
        for (number, (quota, rails)) in QUOTAS.into_iter().zip(RAILS).enumerate() {
            let name = format!("shop-{number}");
            self.shops.push(Shop {
                key: created_key(&applied, &name, "secret")?,
                publishable: created_key(&applied, &name, "publishable")?,
                name,
                quota: quota.filter(|_| self.mode == Mode::Live),
                rails,
                vouches: self.mode == Mode::Live,
                book: Mutex::default(),
            });
        }
        Ok(())
    }
}

/// Returns the key that `apply` created for a partner.
fn created_key(applied: &Value, partner: &str, kind: &str) -> Result<String> {
    let keys = applied.get("created_keys").and_then(Value::as_array);
    let said = |key: &Value, field: &str| Some(key.get(field)?.as_str()?.to_owned());
    let found = keys.into_iter().flatten().find(|key| {
        said(key, "partner").as_deref() == Some(partner)
            && said(key, "kind").as_deref() == Some(kind)
    });
    let key = found.and_then(|key| said(key, "key"));
    key.ok_or_else(|| format!("no {kind} key of {partner}: {applied}").into())
}

impl Subject for Gate {
    fn installation(&self) -> &Installation {
        &self.installation
    }

    fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    fn greeting(&self) -> Vec<u8> {
        let key = self.shops.first().map_or("", |shop| &shop.key);
        request(key, "GET", "/branding", "", "")
    }

    fn visit(&self, caller: &mut Caller<'_>, chance: &mut fastrand::Rng) {
        if let Some(shop) = chance.choice(self.shops.iter()) {
            let mut visitor = Visitor {
                gate: self,
                shop,
                caller,
                chance,
            };
            visitor.act();
        }
    }

    /// Does nothing: only the pools' campaigns interrupt operator commands.
    fn operate(&self, _: &mut fastrand::Rng) -> Option<Op> {
        None
    }

    /// Chooses the providers of the next start of a live campaign.
    fn reconfigure(&self, chance: &mut fastrand::Rng) {
        if let Some(upstreams) = &self.upstreams {
            upstreams.choose(chance);
            upstreams.configure(&self.installation);
        }
    }

    fn restore(&self) {
        if let Some(upstreams) = &self.upstreams {
            upstreams.choose_both();
            upstreams.configure(&self.installation);
        }
    }

    fn rage(&self, address: SocketAddr, disconnects: u64, seed: u64) -> Vec<Op> {
        load::rage(self, address, disconnects, seed)
    }

    fn start_new_history(&self) {
        for shop in &self.shops {
            shop.book.lock().start_new_history();
        }
    }

    fn converge(&self, address: SocketAddr) -> Result<u64> {
        judge::converge(self, address)
    }

    fn judge(&self, address: SocketAddr, all: bool) -> Result<Vec<String>> {
        judge::judge(self, address, all)
    }

    /// Waits until every session has expired.
    fn end_all(&self, _: SocketAddr) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn events(&self, address: SocketAddr) -> Result<Vec<String>> {
        judge::events(self, address)
    }

    fn linear(&self, ops: &[Op]) -> Checked {
        lives::check(ops)
    }

    fn wanted(&self) -> Wanted {
        WANTED
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let mut figures = [
            ("sessions", 0),
            ("writes under a key", 0),
            ("test events", 0),
            ("customers", 0),
            ("locked previews", 0),
            ("signed quotes", 0),
            ("pay-ins and pay-outs", 0),
        ];
        for shop in &self.shops {
            let book = shop.book.lock();
            let counts = [
                book.sessions.len(),
                book.calls.len(),
                book.tests.len(),
                book.people.customers.len(),
                book.orders.previews.len(),
                book.orders.quotes.len(),
                book.orders.rails.len(),
            ];
            for ((_, figure), count) in figures.iter_mut().zip(counts) {
                *figure += count as u64;
            }
        }
        let of_widgets = PAYMENTS.map(|(kind, what)| (what, self.payments(kind)));
        let upstreams = self.upstreams.as_ref();
        let of_upstreams = upstreams.map(Upstreams::figures).into_iter().flatten();
        let figures = figures.into_iter().chain(of_widgets);
        figures.chain(of_upstreams).collect()
    }
}
