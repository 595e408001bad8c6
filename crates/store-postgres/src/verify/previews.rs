//! What a used preview and its session have agreed on.

use gate_core::amount::SessionAmount;
use gate_core::preview::Bound;
use kernel::{Asset, StoreError};
use partner_core::audit::Breaches;
use partner_core::rates::Side;
use sqlx::postgres::PgRow;

use super::{Work, named};
use crate::previews;
use crate::row::Columns;

impl Work<'_> {
    /// A session has the side, currency, asset and amount of the preview it has used.
    pub(super) async fn previews(&mut self) -> Result<(), StoreError> {
        let name = "used-preview-is-its-sessions";
        let mut breaches = Breaches::default();
        self.each(name, USED, |row| {
            // What cannot be read has its own name.
            let mode = Columns::new("quote_previews", row).mode()?;
            let preview = previews::preview(row, mode);
            if let (Ok(preview), Ok(session)) = (preview, session(row))
                && session.as_ref() != Some(&preview.bound)
            {
                let preview = named(row, "preview")?;
                breaches.add(|| format!("{preview} was used by a session of other terms"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }
}

/// Used previews with the terms of their sessions.
pub(super) const USED: &str =
    "SELECT q.mode, q.partner_id, q.id, q.side, q.currency, q.asset, q.amount, q.created_at, q.expires_at, q.session_id,
            q.used_at, s.flow AS s_flow, s.currency AS s_currency, s.target_token AS s_token, s.amount AS s_amount
     FROM quote_previews AS q
     JOIN sessions AS s ON s.mode = q.mode AND s.partner_id = q.partner_id AND s.id = q.session_id";

/// What a session of these terms can have used; `None`: no preview at all.
fn session(row: &PgRow) -> Result<Option<Bound>, StoreError> {
    let row = Columns::new("sessions", row);
    let side = row.opt_text("s_flow")?.and_then(Side::parse);
    let (Some(side), Some(asset)) = (side, row.opt_text("s_token")?) else {
        return Ok(None);
    };
    let amount = row.parsed("s_amount", |text| SessionAmount::parse(text).ok())?;
    let units = i64::try_from(amount.units()).map_err(|_| row.bad("s_amount"))?;
    Ok(Some(Bound {
        side,
        currency: row.parsed("s_currency", Asset::fiat)?,
        asset: asset.to_owned(),
        units,
    }))
}
