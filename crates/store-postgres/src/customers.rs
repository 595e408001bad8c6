//! Customers: rows in and out, found by their marks.

use crate::conn::Conn;
use async_trait::async_trait;
use gate_core::customer::{CustomerId, CustomerIndexes, SealedCustomer, Unique};
use gate_core::ports::{CustomerFilter, CustomerTx};
use instruments::failpoint::{Step, around};
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;
use sqlx::types::Uuid;
use store_sql::customers::{check_new, customer};

use crate::errors;
use crate::row::{Columns, key, own_key};
use crate::tx::PgTx;

#[async_trait]
impl CustomerTx for PgTx {
    async fn customer_taken(
        &mut self,
        who: &Tenant,
        marks: &CustomerIndexes,
    ) -> Result<Option<Unique>, StoreError> {
        taken(self.locked_connection(who).await?, who, marks).await
    }

    async fn customer_insert(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<(), StoreError> {
        let inserting = insert(self.locked_connection(who).await?, who, customer);
        around(Step::CustomerInsert, inserting).await
    }

    async fn customer_lock(
        &mut self,
        who: &Tenant,
        id: CustomerId,
    ) -> Result<Option<SealedCustomer>, StoreError> {
        find(self.locked_connection(who).await?, who, id).await
    }

    async fn customer_put(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> Result<Cas, StoreError> {
        let putting = put(self.locked_connection(who).await?, who, customer);
        let outcome = around(Step::CustomerPut, putting).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut Conn,
    who: &Tenant,
    id: CustomerId,
) -> Result<Option<SealedCustomer>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    let row = sqlx::query(FIND)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(key)
        .fetch_optional(conn)
        .await
        .map_err(errors::statement)?;
    row.map(|row| customer(&Columns::new("customers", &row), who.mode))
        .transpose()
}

pub(crate) const FIND: &str =
    "SELECT partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at, updated_at, deleted_at, revision
     FROM customers WHERE mode = $1 AND partner_id = $2 AND id = $3";

/// A page by (`created_at`, id) descending, after a customer of the tenant's.
pub(crate) async fn page(
    conn: &mut Conn,
    who: &Tenant,
    filter: &CustomerFilter,
    limit: u32,
) -> Result<Vec<SealedCustomer>, StoreError> {
    let below = match filter.after {
        None => (i64::MAX, Uuid::max()),
        Some(after) => match find(conn, who, after).await? {
            None => return Ok(Vec::new()),
            Some(after) => (after.created_at.millis(), key(after.id)),
        },
    };
    let statement = match (filter.email, filter.external_id) {
        (Some(_), _) => PAGE_OF_EMAIL,
        (None, Some(_)) => PAGE_OF_EXTERNAL_ID,
        (None, None) => PAGE,
    };
    let mut query = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(below.0)
        .bind(below.1)
        .bind(i64::from(limit));
    if filter.email.is_some() || filter.external_id.is_some() {
        query = query.bind(filter.external_id.map(|mark| mark.0.to_vec()));
    }
    if let Some(email) = filter.email {
        query = query.bind(email.0.to_vec());
    }
    let rows = query.fetch_all(conn).await.map_err(errors::statement)?;
    rows.iter()
        .map(|row| customer(&Columns::new("customers", row), who.mode))
        .collect()
}

pub(crate) const PAGE: &str =
    "SELECT partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at, updated_at, deleted_at, revision
     FROM customers
     WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND deleted_at IS NULL
     ORDER BY created_at DESC, id DESC LIMIT $5";

/// One at most has an email, and one a name.
pub(crate) const PAGE_OF_EMAIL: &str =
    "SELECT partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at, updated_at, deleted_at, revision
     FROM customers
     WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND deleted_at IS NULL
       AND ($6::bytea IS NULL OR external_id_mark = $6) AND email_mark = $7
     LIMIT $5";

pub(crate) const PAGE_OF_EXTERNAL_ID: &str =
    "SELECT partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at, updated_at, deleted_at, revision
     FROM customers
     WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND deleted_at IS NULL AND external_id_mark = $6
     LIMIT $5";

async fn taken(
    conn: &mut Conn,
    who: &Tenant,
    marks: &CustomerIndexes,
) -> Result<Option<Unique>, StoreError> {
    let external_id = marks.external_id.map(|mark| mark.0.to_vec());
    let [email, external_id]: [bool; 2] = sqlx::query_as(TAKEN)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(marks.email.0.to_vec())
        .bind(external_id)
        .fetch_one(conn)
        .await
        .map(|(email, external_id)| [email, external_id])
        .map_err(errors::statement)?;
    Ok(if email {
        Some(Unique::Email)
    } else {
        external_id.then_some(Unique::ExternalId)
    })
}

pub(crate) const TAKEN: &str =
    "SELECT EXISTS (SELECT FROM customers WHERE mode = $1 AND partner_id = $2 AND email_mark = $3),
            EXISTS (SELECT FROM customers WHERE mode = $1 AND partner_id = $2 AND external_id_mark = $4)";

async fn insert(
    conn: &mut Conn,
    who: &Tenant,
    customer: &SealedCustomer,
) -> Result<(), StoreError> {
    check_new(who, customer)?;
    sqlx::query(
        "INSERT INTO customers (mode, partner_id, id, person, email_mark, external_id_mark, kyc_status, created_at,
                                updated_at, revision)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(customer.id))
    .bind(&customer.person.0)
    .bind(customer.marks.email.0.to_vec())
    .bind(customer.marks.external_id.map(|mark| mark.0.to_vec()))
    .bind(customer.kyc.as_str())
    .bind(customer.created_at.millis())
    .bind(customer.updated_at.millis())
    .bind(customer.revision)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn put(conn: &mut Conn, who: &Tenant, customer: &SealedCustomer) -> Result<Cas, StoreError> {
    let Some(key) = own_key(who, customer.id) else {
        return Ok(Cas::Lost);
    };
    let written = sqlx::query(
        "UPDATE customers SET person = $4, kyc_status = $5, updated_at = $6, deleted_at = $7, revision = $8
         WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revision = $8 - 1 AND deleted_at IS NULL",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(&customer.person.0)
    .bind(customer.kyc.as_str())
    .bind(customer.updated_at.millis())
    .bind(customer.deleted_at.map(Timestamp::millis))
    .bind(customer.revision)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
