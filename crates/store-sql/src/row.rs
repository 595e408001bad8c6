//! Reading a row parses it. A value that the cores never write is an error that names table, column and row.

use kernel::{Amount, Asset, Id, IdKind, Mode, StoreError, StoreResult, Timestamp};
use partner_core::{PartnerId, Tenant};
use ulid::Ulid;

/// The columns that identify a row in an error, if the statement selects them.
const NAMING: [&str; 5] = ["partner_id", "id", "asset", "service", "key"];

/// The column was not selected, or its value has another type than the requested one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// The value of a column, or `None` if it is NULL.
pub type Found<T> = Result<Option<T>, Unreadable>;

/// A row of a table, as an engine's driver returns it.
///
/// An engine converts a column's value from its own column type. The methods of `dyn Row` parse the value.
pub trait Row: Send + Sync {
    /// The table that errors name.
    fn table(&self) -> &'static str;

    fn as_text(&self, column: &str) -> Found<&str>;

    fn as_bytes(&self, column: &str) -> Found<&[u8]>;

    fn as_integer(&self, column: &str) -> Found<i64>;

    /// A number that Postgres stores as a `smallint`.
    fn as_small(&self, column: &str) -> Found<u16>;

    fn as_flag(&self, column: &str) -> Found<bool>;

    fn as_id(&self, column: &str) -> Found<Ulid>;
}

impl dyn Row + '_ {
    /// The error for a column that cannot be read.
    pub fn bad(&self, column: &'static str) -> StoreError {
        let named = NAMING.iter().filter_map(|name| self.shown(name));
        StoreError::Inconsistent {
            table: self.table(),
            column,
            row: named.collect::<Vec<_>>().join("/"),
        }
    }

    fn shown(&self, column: &str) -> Option<String> {
        match self.as_text(column) {
            Ok(text) => text.map(str::to_owned),
            Err(Unreadable) => self.as_id(column).ok()?.map(|id| id.to_string()),
        }
    }

    fn some<T>(&self, column: &'static str, found: Found<T>) -> StoreResult<T> {
        found.ok().flatten().ok_or_else(|| self.bad(column))
    }

    fn opt<T>(&self, column: &'static str, found: Found<T>) -> StoreResult<Option<T>> {
        found.map_err(|Unreadable| self.bad(column))
    }

    /// A text, or an id as text.
    pub fn written(&self, column: &'static str) -> StoreResult<String> {
        self.shown(column).ok_or_else(|| self.bad(column))
    }

    /// A text that `parse` accepts.
    pub fn parsed<T>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<T> {
        parse(self.text(column)?).ok_or_else(|| self.bad(column))
    }

    pub fn opt_parsed<T>(
        &self,
        column: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> StoreResult<Option<T>> {
        self.opt_text(column)?
            .map(|text| parse(text).ok_or_else(|| self.bad(column)))
            .transpose()
    }

    pub fn text(&self, column: &'static str) -> StoreResult<&str> {
        self.some(column, self.as_text(column))
    }

    pub fn opt_text(&self, column: &'static str) -> StoreResult<Option<&str>> {
        self.opt(column, self.as_text(column))
    }

    pub fn opt_string(&self, column: &'static str) -> StoreResult<Option<String>> {
        Ok(self.opt_text(column)?.map(str::to_owned))
    }

    pub fn bytes(&self, column: &'static str) -> StoreResult<&[u8]> {
        self.some(column, self.as_bytes(column))
    }

    /// A digest of 32 bytes.
    pub fn digest(&self, column: &'static str) -> StoreResult<[u8; 32]> {
        self.opt_digest(column)?.ok_or_else(|| self.bad(column))
    }

    pub fn opt_bytes(&self, column: &'static str) -> StoreResult<Option<&[u8]>> {
        self.opt(column, self.as_bytes(column))
    }

    pub fn opt_digest(&self, column: &'static str) -> StoreResult<Option<[u8; 32]>> {
        self.opt(column, self.as_bytes(column))?
            .map(|bytes| bytes.try_into().map_err(|_| self.bad(column)))
            .transpose()
    }

    pub fn integer(&self, column: &'static str) -> StoreResult<i64> {
        self.some(column, self.as_integer(column))
    }

    pub fn opt_integer(&self, column: &'static str) -> StoreResult<Option<i64>> {
        self.opt(column, self.as_integer(column))
    }

    pub fn small(&self, column: &'static str) -> StoreResult<u16> {
        self.some(column, self.as_small(column))
    }

    pub fn flag(&self, column: &'static str) -> StoreResult<bool> {
        self.some(column, self.as_flag(column))
    }

    pub fn opt_flag(&self, column: &'static str) -> StoreResult<Option<bool>> {
        self.opt(column, self.as_flag(column))
    }

    /// A count, which fits its type and is never negative.
    pub fn count<N: TryFrom<i64>>(&self, column: &'static str) -> StoreResult<N> {
        N::try_from(self.integer(column)?).map_err(|_| self.bad(column))
    }

    pub fn opt_count<N: TryFrom<i64>>(&self, column: &'static str) -> StoreResult<Option<N>> {
        self.opt_integer(column)?
            .map(|count| N::try_from(count).map_err(|_| self.bad(column)))
            .transpose()
    }

    pub fn instant(&self, column: &'static str) -> StoreResult<Timestamp> {
        self.opt_instant(column)?.ok_or_else(|| self.bad(column))
    }

    pub fn opt_instant(&self, column: &'static str) -> StoreResult<Option<Timestamp>> {
        self.opt_integer(column)?
            .map(|millis| Timestamp::from_millis(millis).ok_or_else(|| self.bad(column)))
            .transpose()
    }

    pub fn amount(&self, column: &'static str, asset: Asset) -> StoreResult<Amount> {
        self.opt_amount(column, asset)?
            .ok_or_else(|| self.bad(column))
    }

    pub fn opt_amount(&self, column: &'static str, asset: Asset) -> StoreResult<Option<Amount>> {
        self.opt_integer(column)?
            .map(|units| Amount::from_units(units, asset).ok_or_else(|| self.bad(column)))
            .transpose()
    }

    /// Both of two values or neither. One alone is an error of this column.
    pub fn pair<A, B>(
        &self,
        column: &'static str,
        one: Option<A>,
        other: Option<B>,
    ) -> StoreResult<Option<(A, B)>> {
        if one.is_some() == other.is_some() {
            return Ok(one.zip(other));
        }
        Err(self.bad(column))
    }

    pub fn asset(&self, column: &'static str) -> StoreResult<Asset> {
        self.parsed(column, Asset::parse)
    }

    pub fn partner(&self) -> StoreResult<PartnerId> {
        self.parsed("partner_id", PartnerId::parse)
    }

    /// The tenant of a row of this mode.
    pub fn tenant_in(&self, mode: Mode) -> StoreResult<Tenant> {
        let partner = self.partner()?;
        Ok(Tenant { partner, mode })
    }

    pub fn tenant(&self) -> StoreResult<Tenant> {
        Ok(Tenant {
            partner: self.partner()?,
            mode: self.mode()?,
        })
    }

    pub fn mode(&self) -> StoreResult<Mode> {
        self.parsed("mode", Mode::parse)
    }

    /// An id without its kind and mode.
    pub fn ulid(&self, column: &'static str) -> StoreResult<Ulid> {
        self.some(column, self.as_id(column))
    }

    pub fn id<K: IdKind>(&self, column: &'static str, mode: Mode) -> StoreResult<Id<K>> {
        self.opt_id(column, mode)?.ok_or_else(|| self.bad(column))
    }

    pub fn opt_id<K: IdKind>(
        &self,
        column: &'static str,
        mode: Mode,
    ) -> StoreResult<Option<Id<K>>> {
        let id = self.opt(column, self.as_id(column))?;
        Ok(id.map(|id| Id::from_parts(mode, id)))
    }
}

/// Names another table in the error of a read, because a statement can join several.
pub(crate) fn of_table<T>(table: &'static str, read: StoreResult<T>) -> StoreResult<T> {
    read.map_err(|error| match error {
        StoreError::Inconsistent { column, row, .. } => {
            StoreError::Inconsistent { table, column, row }
        }
        other => other,
    })
}

/// Encodes a document, or the rows of a set-based statement.
///
/// # Errors
/// [`StoreError::Unexpected`] if the value cannot be written as JSON.
pub fn json(document: &impl serde::Serialize) -> StoreResult<String> {
    serde_json::to_string(document).map_err(StoreError::unexpected)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pools_core::trade::TradeId;

    use super::*;

    enum Value {
        Null,
        Text(&'static str),
        Number(i64),
        Id(u128),
    }
    use Value::{Null, Number, Text};

    /// A row of an engine whose ids are not texts.
    struct FakeRow(BTreeMap<&'static str, Value>);

    impl FakeRow {
        fn find<T>(&self, column: &str, read: impl Fn(&Value) -> Option<T>) -> Found<T> {
            match self.0.get(column) {
                None => Err(Unreadable),
                Some(Null) => Ok(None),
                Some(value) => read(value).map(Some).ok_or(Unreadable),
            }
        }
    }

    impl Row for FakeRow {
        fn table(&self) -> &'static str {
            "trades"
        }

        fn as_text(&self, column: &str) -> Found<&str> {
            match self.0.get(column) {
                Some(Text(text)) => Ok(Some(text)),
                Some(Null) => Ok(None),
                _ => Err(Unreadable),
            }
        }

        fn as_bytes(&self, column: &str) -> Found<&[u8]> {
            Ok(self.as_text(column)?.map(str::as_bytes))
        }

        fn as_integer(&self, column: &str) -> Found<i64> {
            self.find(column, |value| match value {
                Number(number) => Some(*number),
                _ => None,
            })
        }

        fn as_small(&self, column: &str) -> Found<u16> {
            self.find(column, |value| match value {
                Number(number) => u16::try_from(*number).ok(),
                _ => None,
            })
        }

        fn as_flag(&self, column: &str) -> Found<bool> {
            Ok(self.as_integer(column)?.map(|number| number != 0))
        }

        fn as_id(&self, column: &str) -> Found<Ulid> {
            self.find(column, |value| match value {
                Value::Id(id) => Some(Ulid(*id)),
                _ => None,
            })
        }
    }

    fn row(values: impl IntoIterator<Item = (&'static str, Value)>) -> FakeRow {
        FakeRow(values.into_iter().collect())
    }

    fn error_text<T: std::fmt::Debug>(read: StoreResult<T>) -> String {
        read.unwrap_err().to_string()
    }

    #[test]
    fn error_names_table_column_and_row() {
        let named = row([
            ("partner_id", Text("acme")),
            ("id", Value::Id(7)),
            ("asset", Null),
            ("key", Text("k1")),
            ("rate", Text("high")),
        ]);
        let named: &dyn Row = &named;
        let id = Ulid(7).to_string();
        for error in [
            error_text(named.integer("rate")),
            error_text(named.parsed("rate", |_| None::<()>)),
            error_text(named.opt_digest("rate")),
        ] {
            for part in ["trades", "rate", &format!("acme/{id}/k1")] {
                assert!(error.contains(part), "{error} does not name {part}");
            }
        }
    }

    #[test]
    fn null_is_none_if_optional_and_error_otherwise() {
        let null = row([("at", Null)]);
        let null: &dyn Row = &null;
        assert_eq!(null.opt_text("at").unwrap(), None);
        assert_eq!(null.opt_integer("at").unwrap(), None);
        assert_eq!(null.opt_instant("at").unwrap(), None);
        assert_eq!(null.opt_digest("at").unwrap(), None);
        assert_eq!(null.opt_flag("at").unwrap(), None);
        let id: Option<TradeId> = null.opt_id("at", Mode::Test).unwrap();
        assert_eq!(id, None);
        error_text(null.text("at"));
        error_text(null.integer("at"));
        error_text(null.instant("at"));
        error_text(null.digest("at"));
        error_text(null.flag("at"));
        let id: Result<TradeId, _> = null.id("at", Mode::Test);
        error_text(id);
    }

    #[test]
    fn unselected_column_is_error_instead_of_null() {
        let empty = row([]);
        let empty: &dyn Row = &empty;
        error_text(empty.opt_text("at"));
        error_text(empty.opt_integer("at"));
        let id: Result<Option<TradeId>, _> = empty.opt_id("at", Mode::Test);
        error_text(id);
    }

    #[test]
    fn count_is_error_when_out_of_range() {
        let counts = row([
            ("few", Number(3)),
            ("less", Number(-1)),
            ("lots", Number(1 << 40)),
        ]);
        let counts: &dyn Row = &counts;
        assert_eq!(counts.count::<u32>("few").unwrap(), 3);
        assert_eq!(counts.count::<u64>("lots").unwrap(), 1 << 40);
        error_text(counts.count::<u64>("less"));
        error_text(counts.count::<u32>("lots"));
        error_text(counts.opt_count::<u16>("lots"));
    }
}
