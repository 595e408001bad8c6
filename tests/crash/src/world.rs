//! The partners of the pools' campaign, their installation, and what clients observed.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use test_support::engine::Engine;

use crate::book::{Book, Deposit};
use crate::caller::{Begun, Caller, number};
use crate::engine::{self, Chance};
use crate::history::{Kind, Op, Outcome, Wanted};
use crate::http::request;
use crate::judge::Judged;
use crate::linear::Checked;
use crate::load::Visitor;
use crate::orders::{Asset, decimal};
use crate::programs::{Installation, Programs};
use crate::races::Race;
use crate::receiver::{DELIVERY_TIMEOUT, Dialect, Receiver, SECRET};
use crate::subject::Subject;
use crate::{Result, ends, judge, linear, storm};

/// Lifetime of a quote: long enough to resolve it after a crash, short enough that some expire.
const QUOTE_TTL: &str = "4s";
/// The window of the capped partner's velocity cap.
const VELOCITY_WINDOW: &str = "3s";
const CAP_USDT: &str = "250";
/// Opening balances in hundredths of each asset: of most partners, and of the poor one.
const RICH_BALANCE: i64 = 1_000_000_000;
const POOR_BALANCE: i64 = 30_000;

const WANTED: Wanted = Wanted {
    refusals: &[
        (400, "idempotency_key_required"),
        (401, "unauthorized"),
        (402, "insufficient_balance"),
        (403, "key_mode_mismatch"),
        (404, "resource_not_found"),
        (409, "idempotency_in_progress"),
        (409, "idempotency_key_reused"),
        (409, "quote_consumed"),
        (409, "quote_expired"),
        (409, "quote_rejected"),
        (409, "reservation_failed"),
        (429, "velocity_cap_exceeded"),
        (501, "side_not_enabled"),
    ],
    races: &Race::OF_POOLS,
};

/// A partner, seen from outside.
#[derive(Debug)]
pub(crate) struct Partner {
    pub(crate) name: String,
    pub(crate) key: String,
    /// A publishable key, which few routes accept.
    pub(crate) publishable: String,
    pub(crate) book: Mutex<Book>,
    pub(crate) judged: Mutex<Judged>,
}

/// Installation, partners and observations of a campaign.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) installation: Installation,
    pub(crate) partners: Vec<Partner>,
    pub(crate) receiver: Receiver,
    pub(crate) engine: Engine<Chance>,
}

/// Index of the partner with a low balance.
pub(crate) const POOR: usize = 2;
/// Index of the partner with a velocity cap. It may not sell.
pub(crate) const CAPPED: usize = 3;

impl World {
    /// Creates a fresh embedded database with four partners: two rich, one poor, one capped.
    pub(crate) fn make(folder: &Path, programs: &Programs, seed: u64) -> Result<Self> {
        Self::on(Installation::new(folder, programs, &[]), seed)
    }

    /// Creates four partners on an existing database.
    pub(crate) fn on(installation: Installation, seed: u64) -> Result<Self> {
        let engine = Engine::start(Chance::new(seed));
        let engine_setting = format!("http:{}", engine.url());
        let settings = [
            ("PENSTOCK_ENGINE", engine_setting.as_str()),
            ("PENSTOCK_QUOTE_TTL", QUOTE_TTL),
            ("PENSTOCK_VELOCITY_WINDOW", VELOCITY_WINDOW),
            ("PENSTOCK_WEBHOOK_TIMEOUT", "1s"),
            (
                "PENSTOCK_WEBHOOK_WAITS",
                "50ms,100ms,200ms,400ms,800ms,1s,1s,1s,1s,1s,1s,1s",
            ),
        ];
        let receiver = Receiver::start(seed, Dialect::Pools);
        let mut world = Self {
            installation: installation.with(&settings),
            partners: Vec::new(),
            receiver,
            engine,
        };
        world.provision()?;
        Ok(world)
    }

    fn provision(&mut self) -> Result<()> {
        let mut text = String::from(
            "[[pools]]\nid = \"EUR-USDT\"\nnetworks = [\"tron\", \"ethereum\"]\navailable = true\n",
        );
        for number in 0..4_usize {
            let partner = Partner {
                name: format!("crash-{number}"),
                key: format!("sk_test_{number:032}"),
                publishable: format!("pk_test_{number:032}"),
                book: Mutex::default(),
                judged: Mutex::default(),
            };
            let cap = match number {
                CAPPED => format!("velocity_cap_usdt = \"{CAP_USDT}\"\n"),
                _ => "velocity_cap_usdt = \"none\"\n".to_owned(),
            };
            let (name, key, sells) = (&partner.name, &partner.key, number != CAPPED);
            let publishable = &partner.publishable;
            let address = self.receiver.address;
            write!(
                text,
                "[[partners]]\nid = \"{name}\"\nname = \"Crash\"\nstatus = \"active\"\n\
                 [partners.pools]\nenabled = true\naccess = \"active\"\nkyc = \"approved\"\nallowed = [\"EUR-USDT\"]\n\
                 balance_gate = true\n{cap}\
                 [[partners.pools.terms]]\npool = \"EUR-USDT\"\ndraw_fee_bps = 30\nspread_cap_bps = 50\nmin_order_usdt = 1\n\
                 off_ramp = {sells}\n\
                 [partners.pools.webhook]\nurl = \"http://{address}/{name}\"\nsecret = \"{SECRET}\"\n\
                 [[partners.keys]]\nkind = \"secret\"\nkey = \"{key}\"\n\
                 [[partners.keys]]\nkind = \"publishable\"\nkey = \"{publishable}\"\n"
            )?;
            self.partners.push(partner);
        }
        let file = self.installation.folder.join("partners.toml");
        std::fs::write(&file, text)?;
        let file = file.to_string_lossy().into_owned();
        self.installation.penstock(&["apply", "-f", &file])?;
        for (number, partner) in self.partners.iter().enumerate() {
            let hundredths = if number == POOR {
                POOR_BALANCE
            } else {
                RICH_BALANCE
            };
            for asset in Asset::ALL {
                let reference = format!("opening-{}", asset.code());
                let deposit = Deposit::of(asset, hundredths);
                self.credit(partner, &reference, deposit)?;
            }
        }
        Ok(())
    }

    /// Credits and checks the result; a repeat with the same reference has no effect.
    pub(crate) fn credit(
        &self,
        partner: &Partner,
        reference: &str,
        deposit: Deposit,
    ) -> Result<()> {
        let words = credit_words(&partner.name, reference, &deposit);
        let mut book = partner.book.lock();
        book.deposits.insert(reference.to_owned(), deposit);
        drop(book);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.installation.penstock(&words)?;
        if said.get("applied").and_then(Value::as_bool).is_none() {
            return Err(format!("credit {reference}: {said}").into());
        }
        if let Some(deposit) = partner.book.lock().deposits.get_mut(reference) {
            deposit.in_doubt = false;
        }
        Ok(())
    }
}

impl World {
    /// Returns the trades whose status contradicts the engine's records.
    fn disagreements(&self) -> Vec<String> {
        let mut found = Vec::new();
        for partner in &self.partners {
            let book = partner.book.lock();
            let ended = book.quotes.values().filter_map(|quote| {
                let status = quote.seen.as_deref().filter(|seen| *seen != "reserved")?;
                Some((quote.trade.as_deref()?, status))
            });
            found.extend(engine::disagreements(&self.engine, ended));
        }
        found
    }
}

impl Subject for World {
    fn installation(&self) -> &Installation {
        &self.installation
    }

    fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    fn greeting(&self) -> Vec<u8> {
        let key = self.partners.first().map_or("", |partner| &partner.key);
        request(key, "GET", "/pools/EUR-USDT/balance", "", "")
    }

    fn visit(&self, caller: &mut Caller<'_>, chance: &mut fastrand::Rng) {
        Visitor {
            world: self,
            caller,
        }
        .act(chance);
    }

    /// Credits the poor partner. Sometimes the command is killed midway.
    fn operate(&self, chance: &mut fastrand::Rng) -> Option<Op> {
        let partner = self.partners.get(POOR)?;
        let reference = format!("deposit-{}", number());
        let asset = chance.choice(Asset::ALL).unwrap_or_default();
        let deposit = Deposit::of(asset, chance.i64(1_000..20_000));
        let words = credit_words(&partner.name, &reference, &deposit);
        partner.book.lock().deposits.insert(reference, deposit);
        let mut command = self.installation.command("penstock", None);
        command
            .args(words)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let begun = Begun::now(Kind::Credit, &partner.name, None);
        let mut child = command.spawn().ok()?;
        if chance.bool() {
            thread::sleep(Duration::from_millis(chance.u64(1..60)));
            // The command may have ended already; the reference is sent again in both cases.
            let _ = child.kill();
        }
        let done = child.wait().is_ok_and(|status| status.success());
        Some(Op {
            outcome: if done { Outcome::Ok } else { Outcome::Info },
            ..begun.left()
        })
    }

    /// Does nothing: only the gate's campaigns change their upstreams.
    fn reconfigure(&self, _: &mut fastrand::Rng) {}

    fn restore(&self) {}

    /// Disconnects on quotes of its own, which no other client uses.
    fn rage(&self, address: SocketAddr, disconnects: u64, seed: u64) -> Vec<Op> {
        storm::rage(self, address, disconnects, seed);
        Vec::new()
    }

    fn start_new_history(&self) {
        for partner in &self.partners {
            partner.book.lock().hot.clear();
        }
    }

    fn converge(&self, address: SocketAddr) -> Result<u64> {
        judge::converge(self, address)
    }

    fn judge(&self, address: SocketAddr, all: bool) -> Result<Vec<String>> {
        judge::judge(self, address, all)
    }

    fn end_all(&self, address: SocketAddr) -> Result<Vec<String>> {
        let open = ends::poll_all(self, address)?;
        Ok([open, self.disagreements()].concat())
    }

    fn events(&self, address: SocketAddr) -> Result<Vec<String>> {
        judge::events(self, address, DELIVERY_TIMEOUT)
    }

    fn linear(&self, ops: &[Op]) -> Checked {
        linear::check(ops)
    }

    fn wanted(&self) -> Wanted {
        WANTED
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let (mut quotes, mut trades) = (0, 0);
        for partner in &self.partners {
            let book = partner.book.lock();
            quotes += book.quotes.len() as u64;
            let traded = book.quotes.values().filter(|quote| quote.trade.is_some());
            trades += traded.count() as u64;
        }
        let mut figures = vec![("firm quotes", quotes), ("trades acknowledged", trades)];
        figures.extend(engine::figures(&self.engine));
        figures
    }
}

/// The arguments of `penstock balance credit` or `penstock crypto credit`.
pub(crate) fn credit_words(partner: &str, reference: &str, deposit: &Deposit) -> Vec<String> {
    let amount = decimal(deposit.hundredths);
    let account: &[&str] = match deposit.asset {
        Asset::Eur => &["balance", "credit", "--currency", "EUR"],
        Asset::Usdt => &["crypto", "credit", "--asset", "USDT", "--network", "tron"],
    };
    let rest = [
        "--partner",
        partner,
        "--amount",
        &amount,
        "--ref",
        reference,
    ];
    let words = account.iter().chain(&rest);
    words.map(|word| (*word).to_owned()).collect()
}
