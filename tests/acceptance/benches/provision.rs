//! A database with partners, created by the operator's own program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::Result;
use crate::programs::{Server, command, run};

/// Number of concurrent programs that make deposits.
const CONCURRENT_DEPOSITS: usize = 2;

/// Initial funds of every partner, in euros.
pub(crate) const FUNDS: &str = "1000000000";

/// 32 bytes; a server database requires a key, although no partner here has a sealed value.
const MASTER_KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// An installation: folder, programs and database.
pub(crate) struct Installation {
    folder: PathBuf,
    programs: PathBuf,
    database: String,
}

/// A partner's name, from which its key is derived.
pub(crate) fn partner(number: usize) -> String {
    format!("partner-{number}")
}

/// A key of the documented form.
pub(crate) fn key(number: usize) -> String {
    format!("sk_test_{number:032}")
}

impl Installation {
    pub(crate) fn new(folder: &Path, programs: &Path, database: String) -> Self {
        Self {
            folder: folder.to_owned(),
            programs: programs.to_owned(),
            database,
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = command(&self.programs.join(program));
        command
            .current_dir(&self.folder)
            .env("PENSTOCK_DATABASE_URL", &self.database)
            .env("PENSTOCK_MASTER_KEY", MASTER_KEY)
            .env("PENSTOCK_POOLS_LISTEN", "127.0.0.1:0")
            .env("PENSTOCK_THROTTLE", "off")
            .env("PENSTOCK_QUOTE_TTL", "24h")
            .env("RUST_LOG", "warn");
        command
    }

    /// Creates the schema and applies one file with this many partners, each with funds, a cap far above them, and the balance gate on.
    pub(crate) fn provision(&self, partners: usize) -> Result<()> {
        eprintln!("provisioning {partners} partners");
        run(self.command("pools-service").arg("migrate"))?;
        let mut text = String::from(
            "[[pools]]\nid = \"EUR-USDT\"\nnetworks = [\"tron\", \"ethereum\"]\navailable = true\n",
        );
        for number in 0..partners {
            write!(
                text,
                "[[partners]]\nid = \"{}\"\nname = \"Bench\"\nstatus = \"active\"\n\
                 [partners.pools]\nenabled = true\naccess = \"active\"\nkyc = \"approved\"\nallowed = [\"EUR-USDT\"]\n\
                 balance_gate = true\nvelocity_cap_usdt = \"9000000000\"\n\
                 [[partners.pools.terms]]\npool = \"EUR-USDT\"\ndraw_fee_bps = 30\nspread_cap_bps = 50\nmin_order_usdt = 1\n\
                 [[partners.keys]]\nkind = \"secret\"\nkey = \"{}\"\n",
                partner(number),
                key(number)
            )?;
        }
        let file = self.folder.join("partners.toml");
        std::fs::write(&file, text)?;
        run(self.command("penstock").arg("apply").arg("-f").arg(file))?;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..CONCURRENT_DEPOSITS)
                .map(|worker| {
                    scope.spawn(move || {
                        self.deposit((worker..partners).step_by(CONCURRENT_DEPOSITS))
                    })
                })
                .collect();
            for worker in workers {
                worker.join().map_err(|_| "a deposit panicked")??;
            }
            Ok(())
        })
    }

    fn deposit(&self, numbers: impl Iterator<Item = usize>) -> Result<()> {
        for number in numbers {
            self.credit(number, FUNDS, "bench")?;
        }
        Ok(())
    }

    /// Credits euros with the operator's command.
    pub(crate) fn credit(&self, number: usize, amount: &str, reference: &str) -> Result<()> {
        let name = partner(number);
        let credit = ["balance", "credit", "--partner", &name, "--currency", "EUR"];
        let what = ["--amount", amount, "--ref", reference];
        run(self.command("penstock").args(credit).args(what))
    }

    pub(crate) fn serve(&self) -> Result<Server> {
        Server::start(self.command("pools-service"))
    }

    /// The figures only count if the audit is clean afterwards.
    pub(crate) fn verify(&self) -> Result<()> {
        run(self.command("penstock").arg("verify"))
    }
}
