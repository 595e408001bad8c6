//! What the velocity cap counts: the running totals.

use std::collections::BTreeMap;

use kernel::StoreError;

use super::{Breaches, Work, integer, text};

impl Work<'_> {
    pub(super) async fn velocity(&mut self) -> Result<(), StoreError> {
        self.totals().await?;
        self.floors().await
    }

    /// Each running total is the plain sum of the trades it counts.
    async fn totals(&mut self) -> Result<(), StoreError> {
        let name = "velocity-total-is-plain-sum";
        let mut plain: BTreeMap<(String, String), i128> = BTreeMap::new();
        self.each(name, COUNTED, |row| {
            let partner = (text(row, "mode")?, text(row, "partner_id")?);
            *plain.entry(partner).or_default() += i128::from(integer(row, "notional")?);
            Ok(())
        })
        .await?;
        let mut breaches = Breaches::default();
        self.each(name, TOTALS, |row| {
            let partner = (text(row, "mode")?, text(row, "partner_id")?);
            let total = text(row, "total")?;
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

    /// A floor that has not come yet would count nothing, whatever is traded until then.
    async fn floors(&mut self) -> Result<(), StoreError> {
        let name = "velocity-floor-has-passed";
        let now = self.now.millis();
        let mut breaches = Breaches::default();
        self.each(name, TOTALS, |row| {
            let floor = integer(row, "floor")?;
            if floor > now {
                let (mode, partner) = (text(row, "mode")?, text(row, "partner_id")?);
                breaches.add(|| format!("{mode}/{partner} counts nothing before {floor}"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }
}

pub(super) const COUNTED: &str = "SELECT t.mode, t.partner_id, t.notional
     FROM trades AS t
     LEFT JOIN velocity AS v ON v.mode = t.mode AND v.partner_id = t.partner_id
     WHERE t.status NOT IN ('released', 'failed') AND (v.floor IS NULL OR t.created_at > v.floor)";

pub(super) const TOTALS: &str = "SELECT mode, partner_id, total, floor FROM velocity";
