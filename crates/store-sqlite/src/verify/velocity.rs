//! What the velocity cap counts: the running totals, and the cap itself at every instant.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::StoreError;
use partner_core::audit::Breaches;
use pools_core::audit::Window;
use sqlx::SqliteConnection;

use super::{Work, integer, text};
use crate::errors;

impl Work<'_> {
    pub(super) async fn velocity(&mut self) -> Result<(), StoreError> {
        self.totals().await?;
        self.floors().await?;
        self.caps().await
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

    /// At the instant of every trade, what counts in the window that ends there is within the
    /// cap. Judged from when both the cap and the window last changed: what was allowed before is
    /// not known. A trade that came to nothing later counts no more, so nothing is found that was
    /// none.
    async fn caps(&mut self) -> Result<(), StoreError> {
        let name = "velocity-stays-within-cap";
        let mut breaches = Breaches::default();
        let mut window = Window::default();
        self.each(name, CAPPED, |row| {
            let partner = (text(row, "mode")?, text(row, "partner_id")?);
            let (at, notional) = (integer(row, "created_at")?, integer(row, "notional")?);
            let sum = window.move_to(partner, at, integer(row, "millis")?, notional);
            let judged = at > integer(row, "since")?;
            let cap = integer(row, "velocity_cap")?;
            if judged && sum > i128::from(cap) {
                let (mode, partner) = &window.partner;
                let id = text(row, "id")?;
                breaches.add(|| {
                    format!(
                        "{mode}/{partner} trade {id} brings its window to {sum}, the cap is {cap}"
                    )
                });
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }
}

/// Notes the window of the process that serves, unless it is the one noted already.
pub(super) async fn keep_window(
    conn: &mut SqliteConnection,
    window: Duration,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO velocity_window (id, millis, since)
         VALUES (1, ?1, coalesce((SELECT created_at FROM trades ORDER BY rowid DESC LIMIT 1), 0))
         ON CONFLICT (id) DO UPDATE SET millis = excluded.millis, since = excluded.since
         WHERE millis <> excluded.millis",
    )
    .bind(i64::try_from(window.as_millis()).unwrap_or(i64::MAX))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

pub(super) const COUNTED: &str = "SELECT t.mode, t.partner_id, t.notional
     FROM trades AS t
     LEFT JOIN velocity AS v ON v.mode = t.mode AND v.partner_id = t.partner_id
     WHERE t.status NOT IN ('released', 'failed') AND (v.floor IS NULL OR t.created_at > v.floor)";

pub(super) const TOTALS: &str = "SELECT mode, partner_id, total, floor FROM velocity";

/// Read backwards along the index of the list, so that a partner's trades come in their order.
pub(super) const CAPPED: &str =
    "SELECT t.mode, t.partner_id, t.id, t.created_at, t.notional, p.velocity_cap, w.millis,
            max(p.velocity_cap_since, w.since) AS since
     FROM trades AS t INDEXED BY trades_list
     CROSS JOIN velocity_window AS w ON w.id = 1
     CROSS JOIN pools_profiles AS p ON p.mode = t.mode AND p.partner_id = t.partner_id
     WHERE t.status NOT IN ('released', 'failed') AND p.velocity_cap IS NOT NULL
     ORDER BY t.mode DESC, t.partner_id DESC, t.created_at, t.id";
