//! Reading a row parses it: what no rule of ours writes is an error that names table, column
//! and row.

use kernel::{Amount, Asset, Id, Mode, StoreError, Timestamp};
use partner_core::{PartnerId, Tenant};
use sqlx::postgres::{PgRow, PgTypeInfo, Postgres};
use sqlx::types::Uuid;
use sqlx::{Decode, Row as _, Type};
use ulid::Ulid;

/// The columns that name a row to the operator, as far as a statement selects them.
const NAMING: [&str; 5] = ["partner_id", "id", "asset", "service", "key"];

/// A row of a table, read column by column.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'r> {
    table: &'static str,
    row: &'r PgRow,
}

impl<'r> Columns<'r> {
    pub(crate) const fn new(table: &'static str, row: &'r PgRow) -> Self {
        Self { table, row }
    }

    /// The error for a column that cannot be read.
    pub(crate) fn bad(&self, column: &'static str) -> StoreError {
        let named = NAMING
            .iter()
            .filter_map(|name| self.shown(name))
            .collect::<Vec<_>>()
            .join("/");
        StoreError::Inconsistent {
            table: self.table,
            column,
            row: named,
        }
    }

    fn shown(&self, column: &str) -> Option<String> {
        let text = self.row.try_get::<&str, _>(column).map(str::to_owned);
        let id = |_| self.row.try_get::<Uuid, _>(column).map(written);
        text.or_else(id).ok()
    }

    /// A column as it is, whatever may stand there.
    pub(crate) fn get<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: Decode<'r, Postgres> + Type<Postgres>,
        PgTypeInfo: Send,
    {
        self.row.try_get(column).map_err(|_| self.bad(column))
    }

    /// A column read by a function that knows what may stand there.
    pub(crate) fn parsed<T>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&'r str) -> Option<T>,
    ) -> Result<T, StoreError> {
        parse(self.text(column)?).ok_or_else(|| self.bad(column))
    }

    pub(crate) fn text(&self, column: &'static str) -> Result<&'r str, StoreError> {
        self.get(column)
    }

    pub(crate) fn opt_text(&self, column: &'static str) -> Result<Option<&'r str>, StoreError> {
        self.get(column)
    }

    pub(crate) fn bytes(&self, column: &'static str) -> Result<&'r [u8], StoreError> {
        self.get(column)
    }

    /// A digest of 32 bytes.
    pub(crate) fn digest(&self, column: &'static str) -> Result<[u8; 32], StoreError> {
        self.bytes(column)?.try_into().map_err(|_| self.bad(column))
    }

    pub(crate) fn opt_digest(&self, column: &'static str) -> Result<Option<[u8; 32]>, StoreError> {
        let bytes: Option<&[u8]> = self.get(column)?;
        bytes
            .map(|bytes| bytes.try_into().map_err(|_| self.bad(column)))
            .transpose()
    }

    pub(crate) fn integer(&self, column: &'static str) -> Result<i64, StoreError> {
        self.get(column)
    }

    pub(crate) fn opt_integer(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        self.get(column)
    }

    pub(crate) fn small(&self, column: &'static str) -> Result<u16, StoreError> {
        u16::try_from(self.get::<i16>(column)?).map_err(|_| self.bad(column))
    }

    pub(crate) fn flag(&self, column: &'static str) -> Result<bool, StoreError> {
        self.get(column)
    }

    /// A count that no rule of ours makes negative.
    pub(crate) fn count(&self, column: &'static str) -> Result<u64, StoreError> {
        u64::try_from(self.integer(column)?).map_err(|_| self.bad(column))
    }

    pub(crate) fn instant(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        Timestamp::from_millis(self.integer(column)?).ok_or_else(|| self.bad(column))
    }

    pub(crate) fn opt_instant(
        &self,
        column: &'static str,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.opt_integer(column)?
            .map(|millis| Timestamp::from_millis(millis).ok_or_else(|| self.bad(column)))
            .transpose()
    }

    pub(crate) fn amount(&self, column: &'static str, asset: Asset) -> Result<Amount, StoreError> {
        Amount::from_units(self.integer(column)?, asset).ok_or_else(|| self.bad(column))
    }

    pub(crate) fn opt_amount(
        &self,
        column: &'static str,
        asset: Asset,
    ) -> Result<Option<Amount>, StoreError> {
        self.opt_integer(column)?
            .map(|units| Amount::from_units(units, asset).ok_or_else(|| self.bad(column)))
            .transpose()
    }

    pub(crate) fn asset(&self, column: &'static str) -> Result<Asset, StoreError> {
        self.parsed(column, Asset::parse)
    }

    pub(crate) fn partner(&self) -> Result<PartnerId, StoreError> {
        self.parsed("partner_id", PartnerId::parse)
    }

    pub(crate) fn tenant(&self) -> Result<Tenant, StoreError> {
        Ok(Tenant {
            partner: self.partner()?,
            mode: self.mode()?,
        })
    }

    pub(crate) fn mode(&self) -> Result<Mode, StoreError> {
        self.parsed("mode", Mode::parse)
    }

    pub(crate) fn id<K>(&self, column: &'static str, mode: Mode) -> Result<Id<K>, StoreError>
    where
        K: kernel::IdKind,
    {
        self.get::<Uuid>(column)
            .map(|id| Id::from_parts(mode, Ulid(id.as_u128())))
    }

    pub(crate) fn opt_id<K>(
        &self,
        column: &'static str,
        mode: Mode,
    ) -> Result<Option<Id<K>>, StoreError>
    where
        K: kernel::IdKind,
    {
        let id = self.get::<Option<Uuid>>(column)?;
        Ok(id.map(|id| Id::from_parts(mode, Ulid(id.as_u128()))))
    }
}

/// An id as everybody else writes it.
pub(crate) fn written(id: Uuid) -> String {
    Ulid(id.as_u128()).to_string()
}

/// What a row's id column holds.
pub(crate) fn key<K>(id: Id<K>) -> Uuid
where
    K: kernel::IdKind,
{
    Uuid::from_u128(id.ulid().0)
}

/// The same for a look-up on behalf of a tenant. An id of the other mode names nothing of theirs,
/// although its ULID may occur.
pub(crate) fn own_key<K>(who: &Tenant, id: Id<K>) -> Option<Uuid>
where
    K: kernel::IdKind,
{
    (id.mode() == who.mode).then(|| key(id))
}

/// Encodes a document.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(document).map_err(StoreError::unexpected)
}
