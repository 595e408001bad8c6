//! A statement: its static text for each engine, and the number of its parameters.

use kernel::StoreError;

use crate::Value;

/// The texts of one statement.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

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
    pub fn check(&self, values: &[Value<'_>]) -> Result<(), StoreError> {
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
    let bytes = text.as_bytes();
    let (mut at, mut highest) = (0, 0);
    while at < bytes.len() {
        assert!(bytes[at] != b'?', "a parameter is written `$1`");
        let is_parameter = bytes[at] == b'$';
        let is_bare =
            is_parameter && (follows(bytes, at, b"LIMIT ") || follows(bytes, at, b"OFFSET "));
        assert!(!is_bare, "write `LIMIT CAST($1 AS bigint)`");
        at += 1;
        let mut number = 0;
        while is_parameter && at < bytes.len() && bytes[at].is_ascii_digit() {
            number = number * 10 + (bytes[at] - b'0') as usize;
            at += 1;
        }
        if number > highest {
            highest = number;
        }
    }
    highest
}

/// Does this word end right before the byte at `at`?
const fn follows(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    let mut back = 0;
    while back < word.len() {
        back += 1;
        if back > at || bytes[at - back] != word[word.len() - back] {
            return false;
        }
    }
    true
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
