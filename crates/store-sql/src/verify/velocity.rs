//! Checks the running totals of the velocity cap, and the cap itself at every trade.

use std::collections::BTreeMap;

use kernel::StoreResult;
use partner_core::audit::Breaches;
use pools_core::audit::Window;

use super::{Work, walked};
use crate::Row;

impl Work<'_> {
    pub(super) async fn velocity(&mut self) -> StoreResult<()> {
        self.totals().await?;
        self.floors().await?;
        self.caps().await
    }

    /// Each running total is the sum of the trades that it counts.
    async fn totals(&mut self) -> StoreResult<()> {
        let name = "velocity-total-is-plain-sum";
        let mut plain: BTreeMap<(String, String), i128> = BTreeMap::new();
        self.each(name, &walked::COUNTED, |row| {
            *plain.entry(partner(row)?).or_default() += i128::from(row.integer("notional")?);
            Ok(())
        })
        .await?;
        let mut breaches = Breaches::default();
        self.each(name, &walked::TOTALS, |row| {
            let partner = partner(row)?;
            let total = row.text("total")?;
            let sum = plain.remove(&partner).unwrap_or_default();
            if total != sum.to_string() {
                let (mode, partner) = partner;
                breaches.add(|| {
                    format!(
                        "{mode}/{partner} has a running total of {total}, its trades sum to {sum}"
                    )
                });
            }
            Ok(())
        })
        .await?;
        for (mode, partner) in plain.keys() {
            breaches.add(|| format!("{mode}/{partner} has trades and no running total"));
        }
        self.found(name, breaches);
        Ok(())
    }

    /// No floor is in the future. Trades before the floor would not count.
    async fn floors(&mut self) -> StoreResult<()> {
        let name = "velocity-floor-has-passed";
        let now = self.now.millis();
        self.check(name, &walked::TOTALS, |row, breaches| {
            let floor = row.integer("floor")?;
            if floor > now {
                let (mode, partner) = (row.text("mode")?, row.text("partner_id")?);
                breaches.add(|| format!("{mode}/{partner} counts nothing before {floor}"));
            }
            Ok(())
        })
        .await
    }

    /// At the instant of every trade, the trades in the window that ends there are within the cap.
    ///
    /// Trades before the last change of the cap or the window are skipped, because the earlier limit is not stored. A trade that
    /// was released or failed no longer counts, so the check reports no false breach.
    async fn caps(&mut self) -> StoreResult<()> {
        let name = "velocity-stays-within-cap";
        let mut window = Window::default();
        self.check(name, &walked::CAPPED, |row, breaches| {
            let partner = partner(row)?;
            let (at, notional) = (row.integer("created_at")?, row.integer("notional")?);
            let sum = window.move_to(partner, at, row.integer("millis")?, notional);
            let judged = at > row.integer("since")?;
            let cap = row.integer("velocity_cap")?;
            if judged && sum > i128::from(cap) {
                let (mode, partner) = &window.partner;
                let id = row.written("id")?;
                breaches.add(|| {
                    format!(
                        "{mode}/{partner} trade {id} brings its window to {sum}, the cap is {cap}"
                    )
                });
            }
            Ok(())
        })
        .await
    }
}

/// The partner of a row, with its mode.
fn partner(row: &dyn Row) -> StoreResult<(String, String)> {
    let (mode, partner) = (row.text("mode")?, row.text("partner_id")?);
    Ok((mode.to_owned(), partner.to_owned()))
}
