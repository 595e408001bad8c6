//! Customers, stored sealed: their rows, and searches by blind index.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use gate_core::customer::{
    CustomerId, CustomerIndexes, IdentityIndexes, KycStatus, SealedCustomer, TextIndexes, Unique,
};
use gate_core::ports::{CustomerFilter, CustomerTx};
use kernel::{Cas, Mode, StoreResult};
use partner_core::Tenant;
use partner_core::sealing::{BlindIndex, Sealed};

use crate::bounds::{exclusive_lower_bound, upper_bound};
use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl CustomerTx for StoreTx {
    async fn customer_taken(
        &mut self,
        who: &Tenant,
        identity: &IdentityIndexes,
    ) -> StoreResult<Option<Unique>> {
        let (email, external_id) = (&identity.email, identity.external_id.as_ref());
        let [one, two, three, four] = spellings(email);
        let ids = external_id.map(spellings);
        let id = |number: usize| ids.and_then(|ids| ids.get(number).copied());
        let values = values![
            who.mode,
            &who.partner,
            email.compared.0.as_slice(),
            one,
            two,
            three,
            four,
            external_id.map(|text| text.compared.0.as_slice()),
            id(0),
            id(1),
            id(2),
            id(3),
        ];
        let row = self.locked(who).await?.fetch_one(&TAKEN, values).await?;
        Ok(if row.flag("email")? {
            Some(Unique::Email)
        } else {
            row.flag("external_id")?.then_some(Unique::ExternalId)
        })
    }

    async fn customer_insert(
        &mut self,
        who: &Tenant,
        customer: &SealedCustomer,
    ) -> StoreResult<()> {
        let fits = customer.id.mode() == who.mode && customer.deleted_at.is_none();
        guard(fits, || {
            format!("customers: {} has another mode or is deleted", customer.id)
        })?;
        let values = values![
            who.mode,
            &who.partner,
            customer.id,
            customer.person.0.as_slice(),
            customer.marks.email.0.as_slice(),
            opt_bytes(&customer.marks.external_id),
            opt_bytes(&customer.marks.email_compared),
            opt_bytes(&customer.marks.external_id_compared),
            customer.kyc.as_str(),
            customer.created_at,
            customer.updated_at,
            customer.revision,
        ];
        self.insert_around("customer.insert", who, &INSERT, values)
            .await
    }

    async fn customer_lock(
        &mut self,
        who: &Tenant,
        id: CustomerId,
    ) -> StoreResult<Option<SealedCustomer>> {
        find(self.locked(who).await?, who, id).await
    }

    async fn customer_put(&mut self, who: &Tenant, customer: &SealedCustomer) -> StoreResult<Cas> {
        let values = values![
            who.mode,
            &who.partner,
            customer.id.in_mode(who.mode),
            customer.person.0.as_slice(),
            customer.kyc.as_str(),
            customer.updated_at,
            customer.deleted_at,
            customer.revision,
        ];
        self.swap_around("customer.put", who, &PUT, values).await
    }
}

pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: CustomerId,
) -> StoreResult<Option<SealedCustomer>> {
    let values = values![who.mode, &who.partner, id.in_mode(who.mode)];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| customer(&*row, who.mode)).transpose()
}

/// Every column that [`customer`] reads.
macro_rules! columns {
    () => {
        "partner_id, id, person, email_mark, external_id_mark, email_compared, external_id_compared, kyc_status,
         created_at, updated_at, deleted_at, revision"
    };
}
pub(crate) use columns;

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
) -> StoreResult<Vec<SealedCustomer>> {
    let connection = reader.connection();
    let cursor = match filter.after {
        None => None,
        Some(after) => match find(connection, who, after).await? {
            None => return Ok(Vec::new()),
            Some(after) => Some((after.created_at.millis(), after.id.ulid())),
        },
    };
    let before = upper_bound(filter.created.before, cursor);
    let after = exclusive_lower_bound(filter.created.after);
    let mut page = match (&filter.email, &filter.external_id) {
        (Some(email), _) => of_text(connection, who, email, &OF_EMAIL).await?,
        (None, Some(external_id)) => of_text(connection, who, external_id, &OF_EXTERNAL_ID).await?,
        (None, None) => {
            let values = values![who.mode, &who.partner, before.0, before.1, after, limit];
            let rows = connection.fetch_all(&PAGE, values).await?;
            return rows.iter().map(|row| customer(&**row, who.mode)).collect();
        }
    };
    let place = |customer: &SealedCustomer| (customer.created_at.millis(), customer.id.ulid());
    page.retain(|customer| {
        let marks = &customer.marks;
        let has_id =
            |wanted: TextIndexes| wanted.finds(marks.external_id_compared, marks.external_id);
        let is_within = place(customer) < before && customer.created_at.millis() > after;
        let is_listed = customer.deleted_at.is_none() && is_within;
        is_listed && filter.external_id.is_none_or(has_id)
    });
    page.sort_by_key(|customer| Reverse(place(customer)));
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(page)
}

pub static PAGE: Statement = Statement::new(
    "customers",
    concat!(
        "SELECT ",
        columns!(),
        " FROM customers
         WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND created_at > $5
           AND deleted_at IS NULL
         ORDER BY created_at DESC, id DESC LIMIT CAST($6 AS bigint)"
    ),
);

/// The statements that find the customers with a text.
struct OfText {
    /// By the form of comparison: one customer at most.
    compared: &'static Statement,
    /// By a spelling, among customers of earlier versions: one for each spelling at most.
    spelled: &'static Statement,
}

static OF_EMAIL: OfText = OfText {
    compared: &BY_EMAIL,
    spelled: &BY_SPELLED_EMAIL,
};

static OF_EXTERNAL_ID: OfText = OfText {
    compared: &BY_EXTERNAL_ID,
    spelled: &BY_SPELLED_EXTERNAL_ID,
};

/// All customers with a text, also deleted ones. Customers of earlier versions may share a text in different spellings.
async fn of_text(
    connection: &mut dyn Connection,
    who: &Tenant,
    text: &TextIndexes,
    statements: &OfText,
) -> StoreResult<Vec<SealedCustomer>> {
    let (mode, partner) = (who.mode, &who.partner);
    // A customer may get its form between the two reads, so those without a form are read first.
    let [one, two, three, four] = spellings(text);
    let values = values![mode, partner, one, two, three, four];
    let mut rows = connection.fetch_all(statements.spelled, values).await?;
    let values = values![mode, partner, text.compared.0.as_slice()];
    rows.extend(connection.fetch_all(statements.compared, values).await?);
    let found: BTreeMap<CustomerId, SealedCustomer> = rows
        .iter()
        .map(|row| customer(&**row, mode).map(|found| (found.id, found)))
        .collect::<StoreResult<_>>()?;
    Ok(found.into_values().collect())
}

fn spellings(text: &TextIndexes) -> [&[u8]; 4] {
    text.spellings.each_ref().map(|index| index.0.as_slice())
}

pub(crate) fn opt_bytes(index: &Option<BlindIndex>) -> Option<&[u8]> {
    index.as_ref().map(|index| index.0.as_slice())
}

/// The start of a statement that finds the customers with a text.
macro_rules! customers_with {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM customers
             WHERE mode = $1 AND partner_id = $2 AND ",
            $condition
        )
    };
}

pub static BY_EMAIL: Statement =
    Statement::new("customers", customers_with!("email_compared = $3"));

pub static BY_SPELLED_EMAIL: Statement = Statement::new(
    "customers",
    customers_with!("email_mark IN ($3, $4, $5, $6) AND email_compared IS NULL"),
);

pub static BY_EXTERNAL_ID: Statement =
    Statement::new("customers", customers_with!("external_id_compared = $3"));

pub static BY_SPELLED_EXTERNAL_ID: Statement = Statement::new(
    "customers",
    customers_with!("external_id_mark IN ($3, $4, $5, $6) AND external_id_compared IS NULL"),
);

pub static TAKEN: Statement = Statement::new(
    "customers",
    "SELECT EXISTS (SELECT 1 FROM customers WHERE mode = $1 AND partner_id = $2 AND email_compared = $3)
                OR EXISTS (SELECT 1 FROM customers
                           WHERE mode = $1 AND partner_id = $2 AND email_mark IN ($4, $5, $6, $7)
                             AND email_compared IS NULL) AS email,
            EXISTS (SELECT 1 FROM customers WHERE mode = $1 AND partner_id = $2 AND external_id_compared = $8)
                OR EXISTS (SELECT 1 FROM customers
                           WHERE mode = $1 AND partner_id = $2 AND external_id_mark IN ($9, $10, $11, $12)
                             AND external_id_compared IS NULL) AS external_id",
);

pub(crate) fn customer(row: &dyn Row, mode: Mode) -> StoreResult<SealedCustomer> {
    Ok(SealedCustomer {
        id: row.id("id", mode)?,
        person: Sealed(row.bytes("person")?.to_vec()),
        marks: CustomerIndexes {
            email: BlindIndex(row.digest("email_mark")?),
            external_id: row.opt_digest("external_id_mark")?.map(BlindIndex),
            email_compared: row.opt_digest("email_compared")?.map(BlindIndex),
            external_id_compared: row.opt_digest("external_id_compared")?.map(BlindIndex),
        },
        kyc: row.parsed("kyc_status", KycStatus::parse)?,
        created_at: row.instant("created_at")?,
        updated_at: row.instant("updated_at")?,
        deleted_at: row.opt_instant("deleted_at")?,
        revision: row.integer("revision")?,
    })
}

static INSERT: Statement = Statement::new(
    "customers",
    "INSERT INTO customers (mode, partner_id, id, person, email_mark, external_id_mark, email_compared,
                            external_id_compared, kyc_status, created_at, updated_at, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
);

static PUT: Statement = Statement::new(
    "customers",
    "UPDATE customers SET person = $4, kyc_status = $5, updated_at = $6, deleted_at = $7, revision = $8
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND revision = $8 - 1 AND deleted_at IS NULL",
);
