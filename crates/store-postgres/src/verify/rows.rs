//! Each row by itself: it reads as what it stands for, and its figures follow from each other.

use kernel::{Asset, AssetKind, StoreError};
use partner_core::audit::Breaches;
use partner_core::pools::Network;
use pools_core::audit::follows_the_rate;
use sqlx::postgres::PgRow;

use super::rails::{SIGNED_QUOTES, TRANSACTIONS as RAIL_RECORDS};
use super::{Work, named};
use crate::row::Columns;
use crate::{
    customers, gate, previews, quotes, rails, sessions, signed_quotes, tallies, trades,
    transactions,
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
        self.each(name, QUOTES, |row| {
            unreadable(row, "quote", quote(row).err(), &mut breaches)
        })
        .await?;
        self.each(name, TRADES, |row| {
            let mode = Columns::new("trades", row).mode();
            let read = mode.and_then(|mode| trades::trade(row, mode));
            unreadable(row, "trade", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, SESSIONS, |row| {
            let mode = Columns::new("sessions", row).mode();
            let read = mode.and_then(|mode| sessions::session(row, mode));
            unreadable(row, "session", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, TRANSACTIONS, |row| {
            let mode = Columns::new("transactions", row).mode();
            let read = mode.and_then(|mode| transactions::transaction(row, mode));
            unreadable(row, "transaction", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, PREVIEWS, |row| {
            let mode = Columns::new("quote_previews", row).mode();
            let read = mode.and_then(|mode| previews::preview(row, mode));
            unreadable(row, "preview", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, CUSTOMERS, |row| {
            let mode = Columns::new("customers", row).mode();
            let read = mode.and_then(|mode| customers::customer(row, mode));
            unreadable(row, "customer", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, SIGNED_QUOTES, |row| {
            let mode = Columns::new("signed_quotes", row).mode();
            let read = mode.and_then(|mode| signed_quotes::quote(row, mode));
            unreadable(row, "signed quote", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, RAIL_RECORDS, |row| {
            let mode = Columns::new("rail_records", row).mode();
            let read = mode.and_then(|mode| rails::record(row, mode));
            unreadable(row, "rail record", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, TALLIES, |row| {
            let read = tallies::tally(row);
            unreadable(row, "tally of", read.err(), &mut breaches)
        })
        .await?;
        self.each(name, GATE_PROFILES, |row| {
            let read = gate::profile(&Columns::new("gate_profiles", row));
            unreadable(row, "access to the gate", read.err(), &mut breaches)
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }

    /// The leg a partner gets is the leg it gives times the rate, rounded down once: recomputed
    /// with the pricing's own arithmetic. A trade has its quote's legs.
    async fn legs(&mut self) -> Result<(), StoreError> {
        let name = "legs-follow-the-rate";
        let mut breaches = Breaches::default();
        self.each(name, QUOTES, |row| {
            // What cannot be read has its own name.
            let terms = quotes::terms(&Columns::new("quotes", row));
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
        self.each(name, DEPOSITS, |row| {
            let columns = Columns::new("deposits", row);
            let kind = columns.asset("asset").ok().map(|asset: Asset| asset.kind());
            let network = columns.opt_text("network")?;
            let fits = match kind {
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

pub(super) const QUOTES: &str =
    "SELECT mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, created_at, expires_at, consumed_at, rejected_at
     FROM quotes";

pub(super) const TRADES: &str =
    "SELECT mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
            dest_address, dest_network, reserved, status, created_at, settled_at, fill, released_at, failed_at,
            returned_at, attempts, lease_token, lease_until
     FROM trades";

pub(super) const DEPOSITS: &str =
    "SELECT mode, partner_id, reference AS id, asset, network FROM deposits";

pub(super) const SESSIONS: &str =
    "SELECT mode, partner_id, id, amount, currency, return_url, cancel_url, flow, target_token, target_network,
            wallet_address, user_reference, metadata, secret_hash, kyc_pre_verified, status, created_at, expires_at,
            completed_at, cancelled_at, expired_at, transaction_id
     FROM sessions";

pub(super) const TRANSACTIONS: &str =
    "SELECT mode, partner_id, id, session_id, action, status, token, network, currency, payment_method, fiat_amount,
            token_amount, exchange_rate, total_fees, local_rail_transaction_id, created_at, completed_at
     FROM transactions";

pub(super) const CUSTOMERS: &str =
    "SELECT mode, partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at, updated_at, deleted_at,
            revision
     FROM customers";

pub(super) const PREVIEWS: &str =
    "SELECT mode, partner_id, id, side, currency, asset, amount, created_at, expires_at, session_id, used_at
     FROM quote_previews";

pub(super) const TALLIES: &str =
    "SELECT mode, partner_id, month AS id, month, created FROM session_tallies";

pub(super) const GATE_PROFILES: &str =
    "SELECT mode, partner_id, '' AS id, enabled AS gate_enabled, allowed_domains, flow_sessions, kyc_trusted, rails,
            preview_locks, live_session_quota
     FROM gate_profiles";

fn quote(row: &PgRow) -> Result<(), StoreError> {
    let row = Columns::new("quotes", row);
    quotes::quote(&row, row.mode()?).map(drop)
}

/// Notes a row that could not be read; any other fault ends the audit.
fn unreadable(
    row: &PgRow,
    noun: &str,
    fault: Option<StoreError>,
    breaches: &mut Breaches,
) -> Result<(), StoreError> {
    match fault {
        None => Ok(()),
        Some(StoreError::Inconsistent { column, .. }) => {
            let row = named(row, noun)?;
            breaches.add(|| format!("{row} cannot be read: its {column}"));
            Ok(())
        }
        Some(fault) => Err(fault),
    }
}
