//! A statement: its static text for each engine, and the number of its parameters.

use kernel::{StoreError, StoreResult};

use crate::Value;

/// The texts of one statement.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

/// A list of columns for `concat!`, each after the same prefix.
#[macro_export]
macro_rules! prefixed {
    ($table:literal: $first:literal $(, $column:literal)*) => {
        concat!($table, $first $(, ", ", $table, $column)*)
    };
}

/// The texts of a read whose row also has the server's instant on Postgres: the statement reads the clock after it has taken its
/// snapshot.
macro_rules! with_clock {
    ($columns:expr, $rest:literal) => {
        $crate::Sql {
            sqlite: concat!("SELECT ", $columns, $rest),
            postgres: concat!(
                "SELECT ",
                $columns,
                ", (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock",
                $rest
            ),
        }
    };
}
pub(crate) use with_clock;

/// A statement about one table.
///
/// Both engines accept parameters as `$1`. The compiler counts the parameters of each text and rejects a bare parameter after `LIMIT`
/// or `OFFSET`: SQLite prepares such a statement again for every number that is bound. `LIMIT CAST($1 AS bigint)` suits both engines.
#[derive(Debug)]
pub struct Statement {
    /// The table that errors name.
    pub table: &'static str,
    pub sql: Sql,
    parameters: usize,
}

impl Statement {
    /// A statement whose text both engines accept.
    #[must_use]
    pub const fn new(table: &'static str, text: &'static str) -> Self {
        let (sqlite, postgres) = (text, text);
        Self::per_engine(table, Sql { sqlite, postgres })
    }

    /// A statement with a text for each engine.
    ///
    /// # Panics
    /// At compile time, if the texts have different numbers of parameters, or a parameter that is not allowed.
    #[must_use]
    pub const fn per_engine(table: &'static str, sql: Sql) -> Self {
        let parameters = count(sql.sqlite);
        assert!(
            parameters == count(sql.postgres),
            "both texts have the same parameters"
        );
        Self {
            table,
            sql,
            parameters,
        }
    }

    /// Rejects values that are not as many as the parameters: SQLite would take a missing value as NULL.
    ///
    /// # Errors
    /// [`StoreError::Unexpected`] with the table, both numbers and the text.
    pub fn check(&self, values: &[Value<'_>]) -> StoreResult<()> {
        if values.len() == self.parameters {
            return Ok(());
        }
        let (table, parameters, bound) = (self.table, self.parameters, values.len());
        let text = self.sql.postgres;
        Err(StoreError::unexpected(format!(
            "{table}: {bound} values for {parameters} parameters of: {text}"
        )))
    }
}

/// The highest `$n` of a text.
const fn count(text: &str) -> usize {
    let (mut rest, mut highest) = (text.as_bytes(), 0);
    while let [byte, tail @ ..] = rest {
        assert!(*byte != b'?', "a parameter is written `$1`");
        let is_bare = starts_with(rest, b"LIMIT $") || starts_with(rest, b"OFFSET $");
        assert!(!is_bare, "write `LIMIT CAST($1 AS bigint)`");
        rest = tail;
        let mut number = 0;
        while *byte == b'$'
            && let [digit @ b'0'..=b'9', tail @ ..] = rest
        {
            number = number * 10 + (*digit - b'0') as usize;
            rest = tail;
        }
        if number > highest {
            highest = number;
        }
    }
    highest
}

const fn starts_with(mut text: &[u8], mut word: &[u8]) -> bool {
    while let ([byte, after @ ..], [expected, others @ ..]) = (text, word) {
        if *byte != *expected {
            return false;
        }
        (text, word) = (after, others);
    }
    word.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    static FIND: Statement =
        Statement::new("tallies", "SELECT $2 FROM tallies WHERE a = $1 AND b = $10");

    #[test]
    fn statement_rejects_values_that_are_not_as_many_as_its_parameters() {
        assert!(FIND.check(&[Value::Int(None); 10]).is_ok());
        let error = kernel::causes(&FIND.check(&[Value::Int(None); 2]).unwrap_err());
        assert!(
            error.contains("tallies: 2 values for 10 parameters of: SELECT"),
            "{error}"
        );
    }

    #[test]
    #[should_panic(expected = "write `LIMIT CAST($1 AS bigint)`")]
    fn statement_rejects_bare_parameter_of_limit() {
        let _ = Statement::new("tallies", "SELECT 1 FROM tallies LIMIT $1");
    }

    #[test]
    #[should_panic(expected = "both texts have the same parameters")]
    fn statement_rejects_texts_with_different_parameters() {
        let (sqlite, postgres) = ("SELECT $1", "SELECT $1, $2");
        let _ = Statement::per_engine("tallies", Sql { sqlite, postgres });
    }
}
