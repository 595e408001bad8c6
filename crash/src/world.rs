//! The partners of a campaign, their installation, and what is known of them.

use std::fmt::Write;
use std::path::Path;

use parking_lot::Mutex;
use serde_json::Value;

use crate::Result;
use crate::book::{Book, Deposit};
use crate::judge::Judged;
use crate::programs::{Installation, Programs};
use crate::receiver::{Receiver, SECRET};

/// Quotes live so long: long enough to find out after a crash, short enough that some expire.
const QUOTE_TTL: &str = "4s";
/// The window of the capped partner's velocity cap.
const VELOCITY_WINDOW: &str = "3s";
const CAP_USDT: &str = "250";

/// A partner, seen from outside.
#[derive(Debug)]
pub(crate) struct Partner {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) book: Mutex<Book>,
    pub(crate) judged: Mutex<Judged>,
}

/// Everything a campaign works with.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) installation: Installation,
    pub(crate) partners: Vec<Partner>,
    pub(crate) receiver: Receiver,
}

/// The one that has hardly any money.
pub(crate) const POOR: usize = 2;
/// The one with a velocity cap.
pub(crate) const CAPPED: usize = 3;

impl World {
    /// A fresh database with four partners: two rich, one poor, one capped.
    pub(crate) fn make(folder: &Path, programs: &Programs, seed: u64) -> Result<Self> {
        let settings = [
            ("PENSTOCK_QUOTE_TTL", QUOTE_TTL),
            ("PENSTOCK_VELOCITY_WINDOW", VELOCITY_WINDOW),
            ("PENSTOCK_WEBHOOK_TIMEOUT", "1s"),
            (
                "PENSTOCK_WEBHOOK_WAITS",
                "50ms,100ms,200ms,400ms,800ms,1s,1s,1s,1s,1s,1s,1s",
            ),
        ];
        let receiver = Receiver::start(seed)?;
        let installation = Installation::new(folder, programs, &settings);
        let mut world = Self {
            installation,
            partners: Vec::new(),
            receiver,
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
                book: Mutex::default(),
                judged: Mutex::default(),
            };
            let cap = match number {
                CAPPED => format!("velocity_cap_usdt = \"{CAP_USDT}\"\n"),
                _ => String::new(),
            };
            let (name, key) = (&partner.name, &partner.key);
            let address = self.receiver.address;
            write!(
                text,
                "[[partners]]\nid = \"{name}\"\nname = \"Crash\"\nstatus = \"active\"\n\
                 [partners.pools]\nenabled = true\naccess = \"active\"\nkyc = \"approved\"\nallowed = [\"EUR-USDT\"]\n\
                 balance_gate = true\n{cap}\
                 [[partners.pools.terms]]\npool = \"EUR-USDT\"\ndraw_fee_bps = 30\nspread_cap_bps = 50\nmin_order_usdt = 1\n\
                 [partners.pools.webhook]\nurl = \"http://{address}/{name}\"\nsecret = \"{SECRET}\"\n\
                 [[partners.keys]]\nkind = \"secret\"\nkey = \"{key}\"\n"
            )?;
            self.partners.push(partner);
        }
        let file = self.installation.folder.join("partners.toml");
        std::fs::write(&file, text)?;
        let file = file.to_string_lossy().into_owned();
        self.installation.penstock(&["apply", "-f", &file])?;
        for (number, partner) in self.partners.iter().enumerate() {
            let cents = if number == POOR {
                30_000
            } else {
                1_000_000_000
            };
            self.credit(partner, "opening", cents)?;
        }
        Ok(())
    }

    /// Credits and sees it done; the same reference again does nothing.
    pub(crate) fn credit(&self, partner: &Partner, reference: &str, cents: i64) -> Result<()> {
        let deposit = Deposit {
            cents,
            in_doubt: true,
        };
        let mut book = partner.book.lock();
        book.deposits.insert(reference.to_owned(), deposit);
        drop(book);
        let words = credit_words(&partner.name, reference, cents);
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

/// The words of `penstock balance credit`.
pub(crate) fn credit_words(partner: &str, reference: &str, cents: i64) -> Vec<String> {
    let amount = format!("{}.{:02}", cents / 100, cents % 100);
    let words = [
        "balance",
        "credit",
        "--partner",
        partner,
        "--currency",
        "EUR",
        "--amount",
        &amount,
        "--ref",
        reference,
    ];
    words.map(str::to_owned).to_vec()
}
