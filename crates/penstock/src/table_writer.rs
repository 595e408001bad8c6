//! Writes rows for other programs one by one: as CSV, or as one JSON array.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::terminal::Output;

/// The value of one column in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// No value: an empty field in CSV, null in JSON.
    Empty,
    /// A number.
    Number(u64),
    /// A text of a known form: a fixed text, an id, an amount or an instant.
    Plain(String),
    /// A text chosen by a partner or an operator.
    Text(String),
}

impl Cell {
    pub(crate) fn plain<T: ToString>(value: Option<T>) -> Self {
        value.map_or(Self::Empty, |value| Self::Plain(value.to_string()))
    }
}

/// Writes a table. Every row has the table's columns.
pub(crate) struct TableWriter<W: Write> {
    columns: &'static [&'static str],
    form: Form<W>,
}

enum Form<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Json { out: io::BufWriter<W>, rows: u64 },
}

impl<W: Write> TableWriter<W> {
    /// Starts a table. CSV starts with the names of the columns, also if no row follows.
    pub(crate) fn begin(
        output: Output,
        columns: &'static [&'static str],
        out: W,
    ) -> io::Result<Self> {
        let form = match output {
            Output::Text => {
                let mut writer = csv::Writer::from_writer(out);
                writer.write_record(columns)?;
                Form::Csv(Box::new(writer))
            }
            Output::Json => {
                let mut out = io::BufWriter::new(out);
                out.write_all(b"[")?;
                Form::Json { out, rows: 0 }
            }
        };
        Ok(Self { columns, form })
    }

    pub(crate) fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        match &mut self.form {
            Form::Csv(writer) => {
                writer.write_record(cells.iter().map(field))?;
            }
            Form::Json { out, rows } => {
                let gap: &[u8] = if *rows == 0 { b"\n" } else { b",\n" };
                out.write_all(gap)?;
                let named = self.columns.iter().zip(cells);
                let object: Map<String, Value> = named
                    .map(|(name, cell)| ((*name).to_owned(), value(cell)))
                    .collect();
                serde_json::to_writer(out, &object)?;
                *rows = rows.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Ends the table, which is incomplete until then.
    pub(crate) fn end(self) -> io::Result<()> {
        match self.form {
            Form::Csv(mut writer) => writer.flush(),
            Form::Json { mut out, rows } => {
                let end: &[u8] = if rows == 0 { b"]\n" } else { b"\n]\n" };
                out.write_all(end)?;
                out.flush()
            }
        }
    }
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Number(number) => number.to_string(),
        Cell::Plain(text) => text.clone(),
        Cell::Text(text) => guarded(text),
    }
}

/// Adds an apostrophe to a text that a spreadsheet would read as a formula. A text that starts with an apostrophe gets another
/// one, so that removing one apostrophe restores every text.
fn guarded(text: &str) -> String {
    const SPECIAL: [char; 8] = ['=', '+', '-', '@', '\t', '\r', '\n', '\''];
    if text.starts_with(SPECIAL) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Number(number) => Value::from(*number),
        Cell::Plain(text) | Cell::Text(text) => Value::from(text.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(output: Output, rows: &[[Cell; 3]]) -> String {
        let mut out = Vec::new();
        let mut sheet = TableWriter::begin(output, &["a", "b", "c"], &mut out).unwrap();
        for row in rows {
            sheet.row(row).unwrap();
        }
        sheet.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn rows() -> [[Cell; 3]; 2] {
        let text = |text: &str| Cell::Text(text.to_owned());
        [
            [
                text("a,\"b\"\nc"),
                Cell::Plain("-1.50".to_owned()),
                Cell::Empty,
            ],
            [text("=1+1"), Cell::Number(7), text("'quoted")],
        ]
    }

    // rule: cli.export.formulas
    #[test]
    fn csv_quotes_and_guards_texts_but_not_amounts() {
        assert_eq!(
            written(Output::Text, &rows()),
            "a,b,c\n\"a,\"\"b\"\"\nc\",-1.50,\n'=1+1,7,''quoted\n"
        );
        assert_eq!(written(Output::Text, &[]), "a,b,c\n");
        for first in ["=", "+", "-", "@", "\t", "\r", "\n", "'"] {
            assert_eq!(guarded(&format!("{first}x")), format!("'{first}x"));
        }
        assert_eq!(guarded("x=1"), "x=1");
    }

    #[test]
    fn json_is_one_array_of_unchanged_texts() {
        let array: Value = serde_json::from_str(&written(Output::Json, &rows())).unwrap();
        let expected = serde_json::json!([
            {"a": "a,\"b\"\nc", "b": "-1.50", "c": null},
            {"a": "=1+1", "b": 7, "c": "'quoted"},
        ]);
        assert_eq!(array, expected);
        assert_eq!(written(Output::Json, &[]), "[]\n");
    }
}
