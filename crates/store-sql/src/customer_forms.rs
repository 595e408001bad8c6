//! The forms of comparison of customers that an earlier version stored without: reads page by page, and the write.

use async_trait::async_trait;
use gate_core::customer::{CustomerId, Forms, SealedCustomer};
use gate_core::ports::{CustomerFormsTx, FormsPage, HeldForms};
use kernel::{Cas, Mode, Readable, StoreError, StoreResult};
use partner_core::{PartnerId, Tenant};
use ulid::Ulid;

use crate::customers::opt_bytes;
use crate::{Reader, Row, Statement, StoreTx, values};

/// Partners of a mode, in the order of their ids.
pub async fn partners_after(
    reader: &mut dyn Reader,
    mode: Mode,
    after: Option<&PartnerId>,
    limit: u32,
) -> StoreResult<FormsPage<PartnerId>> {
    let after = after.map_or("", PartnerId::as_str);
    let values = values![mode, after, limit];
    let rows = reader.connection().fetch_all(&PARTNERS, values).await?;
    let found: Readable<PartnerId> = rows.iter().map(|row| row.partner()).collect();
    let last = found.rows.last().cloned();
    Ok(FormsPage {
        next: next(last, &rows, limit)?,
        found,
    })
}

pub static PARTNERS: Statement = Statement::new(
    "partners",
    "SELECT partner_id FROM partners WHERE mode = $1 AND partner_id > $2
     ORDER BY partner_id LIMIT CAST($3 AS bigint)",
);

/// Customers without a form, in a page of a partner's customers.
///
/// The page is read by the primary key, so it needs no index of the customers without a form: soon every customer has one.
pub async fn without_forms(
    reader: &mut dyn Reader,
    who: &Tenant,
    after: Option<CustomerId>,
    limit: u32,
) -> StoreResult<FormsPage<CustomerId>> {
    let after = after.map_or(Ulid::nil(), |id| id.ulid());
    let values = values![who.mode, &who.partner, after, limit];
    let rows = reader.connection().fetch_all(&WITHOUT, values).await?;
    let read: Readable<(CustomerId, bool)> = rows
        .iter()
        .map(|row| -> StoreResult<(CustomerId, bool)> {
            Ok((row.id("id", who.mode)?, row.flag("is_without")?))
        })
        .collect();
    let last = read.rows.last().map(|(id, _)| *id);
    let without = read.rows.into_iter().filter(|(_, is_without)| *is_without);
    Ok(FormsPage {
        found: Readable {
            rows: without.map(|(id, _)| id).collect(),
            unreadable: read.unreadable,
        },
        next: next(last, &rows, limit)?,
    })
}

pub static WITHOUT: Statement = Statement::new(
    "customers",
    "SELECT partner_id, id,
            email_compared IS NULL OR (external_id_compared IS NULL AND external_id_mark IS NOT NULL) AS is_without
     FROM customers WHERE mode = $1 AND partner_id = $2 AND id > $3
     ORDER BY id LIMIT CAST($4 AS bigint)",
);

/// The last id of a read that may have left out other rows.
fn next<I>(last: Option<I>, rows: &[Box<dyn Row>], limit: u32) -> StoreResult<Option<I>> {
    if u32::try_from(rows.len()).unwrap_or(u32::MAX) < limit {
        return Ok(None);
    }
    let unreadable = || StoreError::unexpected("no row of a whole page can be read");
    last.ok_or_else(unreadable).map(Some)
}

#[async_trait]
impl CustomerFormsTx for StoreTx {
    async fn customer_forms_held(&mut self, who: &Tenant, forms: &Forms) -> StoreResult<HeldForms> {
        let (email, external_id) = (opt_bytes(&forms.email), opt_bytes(&forms.external_id));
        let values = values![who.mode, &who.partner, email, external_id];
        let row = self.locked(who).await?.fetch_one(&HELD, values).await?;
        Ok(HeldForms {
            email: row.opt_id("email", who.mode)?,
            external_id: row.opt_id("external_id", who.mode)?,
        })
    }

    async fn customer_forms_put(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
        forms: &Forms,
    ) -> StoreResult<Cas> {
        let values = values![
            who.mode,
            &who.partner,
            customer.id.in_mode(who.mode),
            customer.revision,
            opt_bytes(&forms.email),
            opt_bytes(&forms.external_id),
        ];
        let written = self.locked(who).await?.execute(&PUT, values).await?;
        Ok(self.record_race(Cas::from_rows(written)?))
    }
}

pub static HELD: Statement = Statement::new(
    "customers",
    "SELECT (SELECT id FROM customers WHERE mode = $1 AND partner_id = $2 AND email_compared = $3 LIMIT 1) AS email,
            (SELECT id FROM customers WHERE mode = $1 AND partner_id = $2 AND external_id_compared = $4 LIMIT 1)
                AS external_id",
);

pub static PUT: Statement = Statement::new(
    "customers",
    "UPDATE customers SET email_compared = coalesce(email_compared, $5),
                          external_id_compared = coalesce(external_id_compared, $6)
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revision = $4",
);
