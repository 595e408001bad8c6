//! The sealed columns. The statements that page, replace and audit sealed values come from this list.

use gate_core::customer::person_place;
use gate_core::ports::kyc_place;
use gate_core::rail::payout_place;
use kernel::{StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::events::{event_place, secret_place};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::key::publishable_place;
use partner_core::ports::{SealedRow, SealedValue};
use partner_core::sealing::{SealBroken, Sealed, Sealer};
use partner_core::stored_response;
use ulid::Ulid;

use crate::{Row, Statement, Value};
use Key::{Id, Number, Text};

/// A column of sealed values.
pub(crate) struct SealedColumn {
    /// `table.column`
    pub(crate) name: &'static str,
    column: &'static str,
    /// The key of the table after mode and partner.
    key: &'static [Key],
    /// The place that the value of a row is sealed for.
    place: fn(&Tenant, &dyn Row) -> StoreResult<String>,
    /// The rows after a row, in the order of their keys.
    pub(crate) page: Statement,
    /// Replaces a value that is unchanged.
    pub(crate) replace: Statement,
    /// Every value, for the audit.
    pub(crate) values: Statement,
}

/// A sealed column of a table, whose key after mode and partner has one or two parts. The audit also reads `$more`.
macro_rules! sealed_column {
    (@ $table:literal, $column:literal, [$($part:ident($key:literal)),+], $more:literal, $place:expr,
     $numbers:literal, $next:literal, $last:literal) => {
        SealedColumn {
            name: concat!($table, ".", $column),
            column: $column,
            key: &[$($part($key)),+],
            place: $place,
            page: Statement::new(
                $table,
                concat!(
                    "SELECT mode, partner_id", $(", ", $key,)+ ", ", $column, " FROM ", $table,
                    " WHERE (mode, partner_id", $(", ", $key,)+ ") > (", $numbers, ")",
                    " ORDER BY mode, partner_id", $(", ", $key,)+ " LIMIT CAST(", $next, " AS bigint)"
                ),
            ),
            replace: Statement::new(
                $table,
                concat!(
                    "UPDATE ", $table, " SET ", $column, " = ", $next,
                    " WHERE (mode, partner_id", $(", ", $key,)+ ") = (", $numbers, ")",
                    " AND ", $column, " = ", $last
                ),
            ),
            values: Statement::new(
                $table,
                concat!(
                    "SELECT mode, partner_id", $(", ", $key,)+ ", ", $column, $more, " FROM ", $table,
                    " WHERE ", $column, " IS NOT NULL"
                ),
            ),
        }
    };
    ($table:literal, $column:literal, [$a:ident($first:literal)], $more:literal, $place:expr) => {
        sealed_column!(
            @ $table, $column, [$a($first)], $more, $place,
            "$1, $2, $3", "$4", "$5"
        )
    };
    ($table:literal, $column:literal, [$a:ident($first:literal), $b:ident($second:literal)], $more:literal, $place:expr) => {
        sealed_column!(
            @ $table, $column, [$a($first), $b($second)], $more, $place,
            "$1, $2, $3, $4", "$5", "$6"
        )
    };
}

/// Every sealed column.
pub(crate) static ALL: [&SealedColumn; 7] = [
    &SECRET,
    &BODY,
    &PACKAGE,
    &PERSON,
    &ANSWER,
    &PAYOUT,
    &PUBLISHABLE,
];

/// Signing secrets of webhook endpoints.
pub(crate) static SECRET: SealedColumn = sealed_column! {
    "webhook_secrets", "sealed", [Id("endpoint_id"), Number("place")], ", endpoint_id AS id",
    |who, row| Ok(secret_place(row.id("endpoint_id", who.mode)?))
};

/// Bodies of events.
pub(crate) static BODY: SealedColumn = sealed_column! {
    "events", "body", [Text("id")], ", service, type, object_id",
    |who, row| Ok(event_place(who, row.text("id")?))
};

/// KYC packages of sessions.
pub(crate) static PACKAGE: SealedColumn = sealed_column! {
    "sessions", "kyc_package", [Id("id")], "",
    |who, row| Ok(kyc_place(who, row.id("id", who.mode)?))
};

/// Personal data of customers.
pub(crate) static PERSON: SealedColumn = sealed_column! {
    "customers", "person", [Id("id")], "",
    |who, row| Ok(person_place(who, row.id("id", who.mode)?))
};

/// Stored responses.
pub(crate) static ANSWER: SealedColumn = sealed_column! {
    "answers", "answer", [Text("route"), Text("key")], ", key AS id",
    |who, row| Ok(stored_response::place(&scope(who, row)?))
};

/// Payout accounts of rail records.
pub(crate) static PAYOUT: SealedColumn = sealed_column! {
    "rail_records", "payout", [Id("id")], ", kind",
    |who, row| Ok(payout_place(who, row.id("id", who.mode)?))
};

/// Texts of publishable keys.
pub(crate) static PUBLISHABLE: SealedColumn = sealed_column! {
    "api_keys", "publishable_sealed", [Id("id")], ", hash",
    |who, row| Ok(publishable_place(who, row.id("id", who.mode)?))
};

/// The scope of a stored response.
pub(crate) fn scope(who: &Tenant, row: &dyn Row) -> StoreResult<Scope> {
    Ok(Scope {
        tenant: who.clone(),
        route: row.text("route")?.to_owned(),
        key: row.parsed("key", |key| IdempotencyKey::parse(key.as_bytes()).ok())?,
    })
}

impl SealedColumn {
    pub(crate) fn value(&self, row: &dyn Row) -> StoreResult<SealedValue> {
        let tenant = row.tenant()?;
        let key = self.key.iter().map(|part| part.text(row));
        Ok(SealedValue {
            place: (self.place)(&tenant, row)?,
            sealed: self.sealed(row)?,
            row: SealedRow {
                key: key.collect::<Result<_, _>>()?,
                tenant,
            },
        })
    }

    pub(crate) fn sealed(&self, row: &dyn Row) -> StoreResult<Option<Sealed>> {
        let bytes = row.opt_bytes(self.column)?;
        Ok(bytes.map(|bytes| Sealed(bytes.to_vec())))
    }

    /// Opens the value of a row that has one.
    pub(crate) fn open(
        &self,
        sealer: &Sealer,
        row: &dyn Row,
    ) -> StoreResult<Result<Vec<u8>, SealBroken>> {
        let sealed = Sealed(row.bytes(self.column)?.to_vec());
        Ok(sealer.open(&(self.place)(&row.tenant()?, row)?, &sealed))
    }

    /// The key of a row; without a row, values below the keys of all rows.
    pub(crate) fn key_values<'r>(&self, row: Option<&'r SealedRow>) -> StoreResult<Vec<Value<'r>>> {
        let Some(SealedRow { tenant, key }) = row else {
            let parts = self.key.iter().map(|part| part.value(part.least()));
            let tenant = ["", ""].map(|text| Ok(Value::from(text)));
            return tenant.into_iter().chain(parts).collect();
        };
        let parts = self.key.iter().zip(key);
        let parts = parts.map(|(part, text)| part.value(text));
        let tenant = [Value::from(tenant.mode), Value::from(&tenant.partner)].map(Ok);
        tenant.into_iter().chain(parts).collect()
    }
}

/// The sealed column of a name.
pub(crate) fn named(name: &str) -> StoreResult<&'static SealedColumn> {
    let mut columns = ALL.into_iter();
    let found = columns.find(|column| column.name == name);
    found.ok_or_else(|| StoreError::unexpected(format!("no sealed column {name}")))
}

/// The number of a row's values that an older master key sealed.
pub(crate) fn older(sealer: &Sealer, row: &dyn Row) -> StoreResult<u64> {
    let mut older = 0;
    for column in ALL.iter().filter(|one| one.page.table == row.table()) {
        let sealed = column.sealed(row)?;
        older += u64::from(sealed.is_some_and(|sealed| !sealer.is_current(&sealed)));
    }
    Ok(older)
}

/// A column of a key.
#[derive(Clone, Copy)]
enum Key {
    Id(&'static str),
    Text(&'static str),
    Number(&'static str),
}

impl Key {
    fn text(self, row: &dyn Row) -> StoreResult<String> {
        match self {
            Id(column) | Text(column) => row.written(column),
            Number(column) => Ok(row.small(column)?.to_string()),
        }
    }

    fn value(self, text: &str) -> StoreResult<Value<'_>> {
        Ok(match self {
            Id(_) => Value::from(Ulid::from_string(text).map_err(StoreError::unexpected)?),
            Text(_) => Value::from(text),
            Number(_) => Value::from(text.parse::<i16>().map_err(StoreError::unexpected)?),
        })
    }

    /// A text below that of every row.
    const fn least(self) -> &'static str {
        match self {
            Id(_) => "00000000000000000000000000",
            Text(_) => "",
            Number(_) => "-1",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// [`older`] counts every sealed column of a row's table. The audit reads a column alone (`values`), but the rows of customers whole.
    #[test]
    fn tables_of_columns_that_are_read_alone_have_one_sealed_column() {
        let tables = ALL.iter().map(|column| column.page.table);
        let alone: Vec<&str> = tables.filter(|table| *table != "customers").collect();
        let different: BTreeSet<&&str> = alone.iter().collect();
        assert_eq!(different.len(), alone.len());
    }
}
