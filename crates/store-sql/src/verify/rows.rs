//! Each row by itself: it reads as what it stands for, and its figures follow from each other.

use kernel::{AssetKind, StoreError};
use partner_core::audit::Breaches;
use pools_core::audit::follows_the_rate;
use pools_core::profile::Network;

use super::{Work, named, walked};
use crate::{
    Row, Statement, customers, gate, previews, quotes, rails, sessions, signed_quotes, tallies,
    trades, transactions,
};

impl Work<'_> {
    pub(super) async fn rows(&mut self) -> Result<(), StoreError> {
        self.readable().await?;
        self.legs().await?;
        self.networks().await
    }

    /// What no rule of ours writes is refused by whoever reads it, so a partner cannot get at it.
    async fn readable(&mut self) -> Result<(), StoreError> {
        let name = "rows-can-be-read";
        let mut breaches = Breaches::default();
        for kind in kinds() {
            self.each(name, kind.statement, |row| {
                unreadable(row, kind.noun, (kind.read)(row), &mut breaches)
            })
            .await?;
        }
        self.found(name, breaches);
        Ok(())
    }

    /// The leg a partner gets is the leg it gives times the rate, rounded down once: recomputed
    /// with the pricing's own arithmetic. A trade has its quote's legs.
    async fn legs(&mut self) -> Result<(), StoreError> {
        let name = "legs-follow-the-rate";
        let mut breaches = Breaches::default();
        self.each(name, &walked::QUOTES, |row| {
            // What cannot be read has its own name.
            let terms = quotes::terms(row);
            if terms.is_ok_and(|terms| !follows_the_rate(&terms)) {
                let quote = named(row, "quote")?;
                breaches.add(|| format!("{quote} has legs that are not those of its rate"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }

    /// A crypto receipt names the network it came on, a deposit of fiat none.
    async fn networks(&mut self) -> Result<(), StoreError> {
        let name = "receipt-names-its-network";
        let mut breaches = Breaches::default();
        self.each(name, &walked::DEPOSITS, |row| {
            let network = row.opt_text("network")?;
            let fits = match row.asset("asset").ok().map(|asset| asset.kind()) {
                Some(AssetKind::Fiat) => network.is_none(),
                Some(AssetKind::Crypto) => network.and_then(Network::parse).is_some(),
                None => false,
            };
            if !fits {
                let deposit = named(row, "deposit")?;
                let network = network.unwrap_or("none");
                breaches.add(|| format!("{deposit} came on the network {network}"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }
}

/// A kind of rows that partners' requests read.
struct Kind {
    statement: &'static Statement,
    /// What a row of it is called.
    noun: &'static str,
    read: fn(&dyn Row) -> Result<(), StoreError>,
}

fn kinds() -> [Kind; 10] {
    [
        Kind {
            statement: &walked::QUOTES,
            noun: "quote",
            read: |row| quotes::quote(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::TRADES,
            noun: "trade",
            read: |row| trades::trade(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::SESSIONS,
            noun: "session",
            read: |row| sessions::session(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::TRANSACTIONS,
            noun: "transaction",
            read: |row| transactions::transaction(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::PREVIEWS,
            noun: "preview",
            read: |row| previews::preview(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::CUSTOMERS,
            noun: "customer",
            read: |row| customers::customer(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::SIGNED_QUOTES,
            noun: "signed quote",
            read: |row| signed_quotes::quote(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::RAIL_RECORDS,
            noun: "rail record",
            read: |row| rails::record(row, row.mode()?).map(drop),
        },
        Kind {
            statement: &walked::TALLIES,
            noun: "tally of",
            read: |row| tallies::tally(row).map(drop),
        },
        Kind {
            statement: &walked::GATE_PROFILES,
            noun: "access to the gate",
            read: |row| gate::profile(row).map(drop),
        },
    ]
}

/// Notes a row that could not be read; any other fault ends the audit.
fn unreadable(
    row: &dyn Row,
    noun: &str,
    read: Result<(), StoreError>,
    breaches: &mut Breaches,
) -> Result<(), StoreError> {
    match read {
        Err(StoreError::Inconsistent { column, .. }) => {
            let row = named(row, noun)?;
            breaches.add(|| format!("{row} cannot be read: its {column}"));
            Ok(())
        }
        other => other,
    }
}
