//! Customers, stored sealed: their rows, and searches by blind index.

use async_trait::async_trait;
use gate_core::customer::{CustomerId, CustomerIndexes, KycStatus, SealedCustomer, Unique};
use gate_core::ports::{CustomerFilter, CustomerTx};
use instruments::failpoint::around;
use kernel::{Cas, Mode, StoreError};
use partner_core::Tenant;
use partner_core::sealing::{BlindIndex, Sealed};
use ulid::Ulid;

use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl CustomerTx for StoreTx {
    async fn customer_taken(
        &mut self,
        who: &Tenant,
        indexes: &CustomerIndexes,
    ) -> Result<Option<Unique>, StoreError> {
        taken(self.locked(who).await?, who, indexes).await
    }

    async fn customer_insert(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<(), StoreError> {
        let inserting = insert(self.locked(who).await?, who, customer);
        around("customer.insert", inserting).await
    }

    async fn customer_lock(
        &mut self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError> {
        find(self.locked(who).await?, who, id).await
    }

    async fn customer_put(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<Cas, StoreError> {
        let putting = put(self.locked(who).await?, who, customer);
        let outcome = around("customer.put", putting).await?;
        Ok(self.record_race(outcome))
    }
}

pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    id: CustomerId,
) -> Result<Option<SealedCustomer>, StoreError> {
    find(reader.connection(), who, id).await
}

async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: CustomerId,
) -> Result<Option<SealedCustomer>, StoreError> {
    let Some(id) = id.in_mode(who.mode) else {
        return Ok(None);
    };
    let values = values![who.mode, &who.partner, id];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| customer(&*row, who.mode)).transpose()
}

/// Every column that [`customer`] reads.
macro_rules! columns {
    () => {
        "partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at, updated_at, deleted_at, revision"
    };
}

pub static FIND: Statement = Statement::new(
    "customers",
    concat!(
        "SELECT ",
        columns!(),
        " FROM customers WHERE mode = $1 AND partner_id = $2 AND id = $3"
    ),
);

/// A page by (`created_at`, id) descending, after one of the tenant's customers.
pub async fn page(
    reader: &mut dyn Reader,
    who: &Tenant,
    filter: &CustomerFilter,
    limit: u32,
) -> Result<Vec<SealedCustomer>, StoreError> {
    let connection = reader.connection();
    let (before, id) = match filter.after {
        None => (i64::MAX, Ulid(u128::MAX)),
        Some(after) => match find(connection, who, after).await? {
            None => return Ok(Vec::new()),
            Some(after) => (after.created_at.millis(), after.id.ulid()),
        },
    };
    let external_id = opt_bytes(&filter.external_id);
    let (mode, partner) = (who.mode, &who.partner);
    let rows = match (&filter.email, external_id) {
        (Some(email), _) => {
            let email = email.0.as_slice();
            let values = values![mode, partner, before, id, limit, external_id, email];
            connection.fetch_all(&PAGE_OF_EMAIL, values).await?
        }
        (None, Some(external_id)) => {
            let values = values![mode, partner, before, id, limit, external_id];
            connection.fetch_all(&PAGE_OF_EXTERNAL_ID, values).await?
        }
        (None, None) => {
            let values = values![mode, partner, before, id, limit];
            connection.fetch_all(&PAGE, values).await?
        }
    };
    rows.iter().map(|row| customer(&**row, mode)).collect()
}

fn opt_bytes(index: &Option<BlindIndex>) -> Option<&[u8]> {
    index.as_ref().map(|index| index.0.as_slice())
}

pub static PAGE: Statement = Statement::new(
    "customers",
    concat!(
        "SELECT ",
        columns!(),
        " FROM customers
         WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND deleted_at IS NULL
         ORDER BY created_at DESC, id DESC LIMIT CAST($5 AS bigint)"
    ),
);

/// At most one customer has an email or an external id, so the page needs no order.
pub static PAGE_OF_EMAIL: Statement = Statement::new(
    "customers",
    concat!(
        "SELECT ",
        columns!(),
        " FROM customers
         WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND deleted_at IS NULL
           AND (CAST($6 AS bytea) IS NULL OR external_id_mark = $6) AND email_mark = $7
         LIMIT CAST($5 AS bigint)"
    ),
);

pub static PAGE_OF_EXTERNAL_ID: Statement = Statement::new(
    "customers",
    concat!(
        "SELECT ",
        columns!(),
        " FROM customers
         WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND deleted_at IS NULL
           AND external_id_mark = $6
         LIMIT CAST($5 AS bigint)"
    ),
);

async fn taken(
    connection: &mut dyn Connection,
    who: &Tenant,
    indexes: &CustomerIndexes,
) -> Result<Option<Unique>, StoreError> {
    let (email, external_id) = (indexes.email.0.as_slice(), opt_bytes(&indexes.external_id));
    let values = values![who.mode, &who.partner, email, external_id];
    let row = connection.fetch_optional(&TAKEN, values).await?;
    let row = row.ok_or_else(|| StoreError::unexpected("customers: no row of TAKEN"))?;
    Ok(if row.flag("email")? {
        Some(Unique::Email)
    } else {
        row.flag("external_id")?.then_some(Unique::ExternalId)
    })
}

pub static TAKEN: Statement = Statement::new(
    "customers",
    "SELECT EXISTS (SELECT 1 FROM customers WHERE mode = $1 AND partner_id = $2 AND email_mark = $3) AS email,
            EXISTS (SELECT 1 FROM customers WHERE mode = $1 AND partner_id = $2 AND external_id_mark = $4) AS external_id",
);

pub(crate) fn customer(row: &dyn Row, mode: Mode) -> Result<SealedCustomer, StoreError> {
    Ok(SealedCustomer {
        id: row.id("id", mode)?,
        person: Sealed(row.bytes("person")?.to_vec()),
        marks: CustomerIndexes {
            email: BlindIndex(row.digest("email_mark")?),
            external_id: row.opt_digest("external_id_mark")?.map(BlindIndex),
        },
        kyc: row.parsed("kyc_status", KycStatus::parse)?,
        created_at: row.instant("created_at")?,
        updated_at: row.instant("updated_at")?,
        deleted_at: row.opt_instant("deleted_at")?,
        revision: row.integer("revision")?,
    })
}

/// A new customer belongs to the tenant and is not deleted.
fn check_new(who: &Tenant, customer: &SealedCustomer) -> Result<(), StoreError> {
    if customer.id.mode() == who.mode && customer.deleted_at.is_none() {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "customers: {} has another mode or is deleted",
        customer.id
    )))
}

async fn insert(
    connection: &mut dyn Connection,
    who: &Tenant,
    customer: &SealedCustomer,
) -> Result<(), StoreError> {
    check_new(who, customer)?;
    let values = values![
        who.mode,
        &who.partner,
        customer.id,
        customer.person.0.as_slice(),
        customer.marks.email.0.as_slice(),
        opt_bytes(&customer.marks.external_id),
        customer.kyc.as_str(),
        customer.created_at,
        customer.updated_at,
        customer.revision,
    ];
    connection.execute(&INSERT, values).await.map(drop)
}

static INSERT: Statement = Statement::new(
    "customers",
    "INSERT INTO customers (mode, partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at,
                            updated_at, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
);

async fn put(
    connection: &mut dyn Connection,
    who: &Tenant,
    customer: &SealedCustomer,
) -> Result<Cas, StoreError> {
    let Some(id) = customer.id.in_mode(who.mode) else {
        return Ok(Cas::Lost);
    };
    let values = values![
        who.mode,
        &who.partner,
        id,
        customer.person.0.as_slice(),
        customer.kyc.as_str(),
        customer.updated_at,
        customer.deleted_at,
        customer.revision,
    ];
    Cas::from_rows(connection.execute(&PUT, values).await?)
}

static PUT: Statement = Statement::new(
    "customers",
    "UPDATE customers SET person = $4, kyc_status = $5, updated_at = $6, deleted_at = $7, revision = $8
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revision = $8 - 1 AND deleted_at IS NULL",
);
