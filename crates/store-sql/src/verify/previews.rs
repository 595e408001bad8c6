//! Checks the terms that a used preview shares with its session.

use gate_core::amount::SessionAmount;
use gate_core::preview::PreviewTerms;
use kernel::rates::Side;
use kernel::{Asset, StoreResult};

use super::{Work, named, walked};
use crate::{Row, previews};

impl Work<'_> {
    /// A session has the side, currency, asset and amount of the preview it has used.
    pub(super) async fn previews(&mut self) -> StoreResult<()> {
        let name = "used-preview-is-its-sessions";
        self.check(name, &walked::USED_PREVIEWS, |row, breaches| {
            // `rows-can-be-read` reports rows that cannot be read.
            let preview = previews::preview(row, row.mode()?);
            if let (Ok(preview), Ok(session)) = (preview, session(row))
                && session.as_ref() != Some(&preview.bound)
            {
                let preview = named(row, "preview")?;
                breaches.add(|| format!("{preview} was used by a session of other terms"));
            }
            Ok(())
        })
        .await
    }
}

/// The terms of the preview that the session can have used, or `None` if it can have used no preview.
fn session(row: &dyn Row) -> StoreResult<Option<PreviewTerms>> {
    let side = row.opt_text("s_flow")?.and_then(Side::parse);
    let (Some(side), Some(asset)) = (side, row.opt_text("s_token")?) else {
        return Ok(None);
    };
    let amount = row.parsed("s_amount", |text| SessionAmount::parse(text).ok())?;
    let units = i64::try_from(amount.units()).map_err(|_| row.bad("s_amount"))?;
    Ok(Some(PreviewTerms {
        side,
        currency: row.parsed("s_currency", Asset::fiat)?,
        asset: asset.to_owned(),
        units,
    }))
}
