//! Locked previews.

use gate_core::preview::{Preview, PreviewId, PreviewTerms};
use kernel::rates::Side;
use kernel::{Asset, Mode, StoreError};

use crate::Row;

pub fn preview(row: &dyn Row, mode: Mode) -> Result<Preview, StoreError> {
    let used = row.opt_id("session_id", mode)?;
    Ok(Preview {
        id: row.parsed("id", PreviewId::parse)?,
        bound: PreviewTerms {
            side: row.parsed("side", Side::parse)?,
            currency: row.parsed("currency", Asset::fiat)?,
            asset: row.text("asset")?.to_owned(),
            units: row.integer("amount")?,
        },
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        used: used.zip(row.opt_instant("used_at")?),
    })
}
