//! Checks of single rows: the cores can read each row, and its amounts are consistent.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{AssetKind, StoreError, StoreResult};
use partner_core::audit::Breaches;
use pools_core::audit::follows_the_rate;
use pools_core::deposits::{DepositClaim, compared_reference};
use pools_core::profile::Network;

use super::{Work, named, walked};
use crate::{
    Row, Statement, customers, gate, pools, previews, quotes, rails, sessions, signed_quotes,
    tallies, trades, transactions, verifications,
};

impl Work<'_> {
    pub(super) async fn rows(&mut self) -> StoreResult<()> {
        self.readable().await?;
        self.legs().await?;
        self.networks().await?;
        self.compared().await?;
        self.owners().await
    }

    /// A row that the cores never write cannot be read, so no request can return it.
    async fn readable(&mut self) -> StoreResult<()> {
        let name = "rows-can-be-read";
        let mut breaches = Breaches::default();
        for (entity, statement, read) in readable_entities() {
            self.each(name, statement, |row| {
                unreadable(row, entity, read(row), &mut breaches)
            })
            .await?;
        }
        self.found(name, breaches);
        Ok(())
    }

    /// The leg that a partner receives is the leg that it pays times the rate, rounded down once. The pricing's own arithmetic
    /// computes it again. A trade has its quote's legs.
    async fn legs(&mut self) -> StoreResult<()> {
        let name = "legs-follow-the-rate";
        self.check(name, &walked::QUOTES, |row, breaches| {
            // `rows-can-be-read` reports rows that cannot be read.
            let terms = quotes::terms(row);
            if terms.is_ok_and(|terms| !follows_the_rate(&terms)) {
                let quote = named(row, "quote")?;
                breaches.add(|| format!("{quote} has legs that are not those of its rate"));
            }
            Ok(())
        })
        .await
    }

    /// A crypto receipt names its network. A fiat deposit has no network.
    async fn networks(&mut self) -> StoreResult<()> {
        let name = "receipt-names-its-network";
        self.check(name, &walked::DEPOSITS, |row, breaches| {
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
        .await
    }

    /// The form in which a deposit's reference is compared decides whether the deposit is credited again.
    async fn compared(&mut self) -> StoreResult<()> {
        let name = "deposit-is-compared-by-its-reference";
        self.check(name, &walked::DEPOSITS, |row, breaches| {
            let form = compared_reference(row.text("id")?);
            if row
                .opt_text("compared")?
                .is_some_and(|stored| stored != form)
            {
                let deposit = named(row, "deposit")?;
                breaches
                    .add(|| format!("{deposit} is compared by another text than its reference"));
            }
            Ok(())
        })
        .await
    }

    /// A deposit address and a funding reference belong to one partner of a mode. Partners may share one since before the rule, or
    /// since before two spellings counted as one.
    async fn owners(&mut self) -> StoreResult<()> {
        let name = "deposits-have-one-owner";
        let mut owners: BTreeMap<(String, DepositClaim), BTreeSet<String>> = BTreeMap::new();
        self.each(name, &walked::POOLS_PROFILES, |row| {
            let (mode, partner) = (row.text("mode")?, row.text("partner_id")?);
            // `rows-can-be-read` reports rows that cannot be read.
            let profile = pools::profile(row).ok();
            for claim in profile.iter().flat_map(|profile| profile.deposit_claims()) {
                let partners = owners.entry((mode.to_owned(), claim)).or_default();
                partners.insert(partner.to_owned());
            }
            Ok(())
        })
        .await?;
        let mut breaches = Breaches::default();
        for ((mode, claim), partners) in owners.iter().filter(|(_, partners)| partners.len() > 1) {
            let partners: Vec<&str> = partners.iter().map(String::as_str).collect();
            let (kind, partners) = (claim.kind.as_str(), partners.join(", "));
            let compared = &claim.compared;
            breaches.add(|| format!("{mode} {kind} {compared} is of partners {partners}"));
        }
        self.found(name, breaches);
        Ok(())
    }
}

/// An entity whose rows partners' requests read: its name in breaches, its rows and their reader.
type ReadableEntity = (
    &'static str,
    &'static Statement,
    fn(&dyn Row) -> StoreResult<()>,
);

fn readable_entities() -> [ReadableEntity; 12] {
    [
        ("quote", &walked::QUOTES, |row| {
            quotes::quote(row, row.mode()?).map(drop)
        }),
        ("trade", &walked::TRADES, |row| {
            trades::trade(row, row.mode()?).map(drop)
        }),
        ("session", &walked::SESSIONS, |row| {
            sessions::session(row, row.mode()?).map(drop)
        }),
        ("transaction", &walked::TRANSACTIONS, |row| {
            transactions::transaction(row, row.mode()?).map(drop)
        }),
        ("preview", &walked::PREVIEWS, |row| {
            previews::preview(row, row.mode()?).map(drop)
        }),
        ("customer", &walked::CUSTOMERS, |row| {
            customers::customer(row, row.mode()?).map(drop)
        }),
        ("signed quote", &walked::SIGNED_QUOTES, |row| {
            signed_quotes::quote(row, row.mode()?).map(drop)
        }),
        ("rail record", &walked::RAIL_RECORDS, |row| {
            rails::record(row, row.mode()?).map(drop)
        }),
        ("verification", &walked::VERIFICATIONS, |row| {
            verifications::verification(row, row.mode()?).map(drop)
        }),
        ("tally of", &walked::TALLIES, |row| {
            tallies::tally(row).map(drop)
        }),
        ("access to pools", &walked::POOLS_PROFILES, |row| {
            pools::profile(row).map(drop)
        }),
        ("access to the gate", &walked::GATE_PROFILES, |row| {
            gate::profile(row).map(drop)
        }),
    ]
}

/// Reports a row that cannot be read. Any other error ends the audit.
fn unreadable(
    row: &dyn Row,
    entity: &str,
    read: StoreResult<()>,
    breaches: &mut Breaches,
) -> StoreResult<()> {
    match read {
        Err(StoreError::Inconsistent { column, .. }) => {
            let row = named(row, entity)?;
            breaches.add(|| format!("{row} cannot be read: its {column}"));
            Ok(())
        }
        other => other,
    }
}
