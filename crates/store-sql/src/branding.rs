//! Branding.

use gate_core::branding::Branding;
use kernel::StoreError;

use crate::Row;

pub fn branding(row: &dyn Row) -> Result<Branding, StoreError> {
    Ok(Branding {
        logo_url: row.opt_string("logo_url")?,
        primary_color: row.opt_string("primary_color")?,
        secondary_color: row.opt_string("secondary_color")?,
        accent_color: row.opt_string("accent_color")?,
        brand_name: row.opt_string("brand_name")?,
        revision: row.integer("revision")?,
    })
}
