//! Reading a row parses it: what no rule of ours writes is an error that names table, column
//! and row.

use kernel::{Amount, Asset, Id, Mode, StoreError, Timestamp};
use partner_core::{PartnerId, Tenant};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use ulid::Ulid;

/// The columns that name a row to the operator, as far as a statement selects them.
const NAMING: [&str; 5] = ["partner_id", "id", "asset", "service", "key"];

/// A row of a table, read column by column.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'r> {
    table: &'static str,
    row: &'r SqliteRow,
}

impl<'r> Columns<'r> {
    pub(crate) const fn new(table: &'static str, row: &'r SqliteRow) -> Self {
        Self { table, row }
    }

    /// The error for a column that cannot be read.
    pub(crate) fn bad(&self, column: &'static str) -> StoreError {
        let named = NAMING
            .iter()
            .filter_map(|name| self.row.try_get::<&str, _>(*name).ok())
            .collect::<Vec<_>>()
            .join("/");
        StoreError::Inconsistent {
            table: self.table,
            column,
            row: named,
        }
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
        self.row.try_get(column).map_err(|_| self.bad(column))
    }

    pub(crate) fn opt_text(&self, column: &'static str) -> Result<Option<&'r str>, StoreError> {
        self.row.try_get(column).map_err(|_| self.bad(column))
    }

    pub(crate) fn bytes(&self, column: &'static str) -> Result<&'r [u8], StoreError> {
        self.row.try_get(column).map_err(|_| self.bad(column))
    }

    /// A digest of 32 bytes.
    pub(crate) fn digest(&self, column: &'static str) -> Result<[u8; 32], StoreError> {
        self.bytes(column)?.try_into().map_err(|_| self.bad(column))
    }

    pub(crate) fn opt_digest(&self, column: &'static str) -> Result<Option<[u8; 32]>, StoreError> {
        let bytes: Option<&[u8]> = self.row.try_get(column).map_err(|_| self.bad(column))?;
        bytes
            .map(|bytes| bytes.try_into().map_err(|_| self.bad(column)))
            .transpose()
    }

    pub(crate) fn integer(&self, column: &'static str) -> Result<i64, StoreError> {
        self.row.try_get(column).map_err(|_| self.bad(column))
    }

    pub(crate) fn opt_integer(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        self.row.try_get(column).map_err(|_| self.bad(column))
    }

    pub(crate) fn small(&self, column: &'static str) -> Result<u16, StoreError> {
        u16::try_from(self.integer(column)?).map_err(|_| self.bad(column))
    }

    pub(crate) fn flag(&self, column: &'static str) -> Result<bool, StoreError> {
        match self.integer(column)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.bad(column)),
        }
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
        self.parsed(column, |text| Ulid::from_string(text).ok())
            .map(|ulid| Id::from_parts(mode, ulid))
    }

    pub(crate) fn opt_id<K>(
        &self,
        column: &'static str,
        mode: Mode,
    ) -> Result<Option<Id<K>>, StoreError>
    where
        K: kernel::IdKind,
    {
        self.opt_text(column)?
            .map(|text| Ulid::from_string(text).map_err(|_| self.bad(column)))
            .transpose()
            .map(|ulid| ulid.map(|ulid| Id::from_parts(mode, ulid)))
    }
}

/// What a row's id column holds.
pub(crate) fn key<K>(id: Id<K>) -> String
where
    K: kernel::IdKind,
{
    id.ulid().to_string()
}

/// The same for a look-up on behalf of a tenant. An id of the other mode names nothing of theirs,
/// although its ULID may occur.
pub(crate) fn own_key<K>(who: &Tenant, id: Id<K>) -> Option<String>
where
    K: kernel::IdKind,
{
    (id.mode() == who.mode).then(|| key(id))
}

/// Encodes the rows of a set-based statement.
pub(crate) fn json(rows: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(rows).map_err(StoreError::unexpected)
}
