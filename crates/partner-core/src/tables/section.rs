//! The reader of one table of a file: its keys, and the types of their values.

use std::fmt::Display;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::fault::{Sink, shown};
use crate::text;

/// The shape of a table.
#[derive(Debug)]
pub struct Shape {
    /// Its name with the names of its parent tables; empty for the file itself.
    pub name: &'static str,
    pub keys: &'static [&'static str],
}

/// A table of a file, with the position of its header.
#[derive(Debug)]
pub struct Section<'d, 's> {
    shape: &'static Shape,
    /// The byte offset of its header.
    pub at: usize,
    table: &'d DeTable<'s>,
}

impl<'d, 's> Section<'d, 's> {
    /// Opens a table and reports its unknown keys.
    pub(super) fn open(
        sink: &mut Sink<'_>,
        shape: &'static Shape,
        at: usize,
        table: &'d DeTable<'s>,
    ) -> Self {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !shape.keys.contains(&name) {
                sink.add(
                    key.span().start,
                    path(shape, name),
                    unknown(sink.shapes(), shape, name),
                );
            }
        }
        Self { shape, at, table }
    }

    /// The value of a key, if it is present.
    pub fn field(&self, key: &'static str) -> Option<Field<'d, 's>> {
        let value = self.table.get(key)?;
        Some(Field {
            path: path(self.shape, key),
            at: value.span().start,
            value: value.get_ref(),
        })
    }

    /// The value of a required key. If it is absent, the error is at the table's header.
    pub fn required(
        &self,
        sink: &mut Sink<'_>,
        key: &'static str,
        expected: &str,
    ) -> Option<Field<'d, 's>> {
        let found = self.field(key);
        if found.is_none() {
            let problem = format!("missing; expected {expected}");
            sink.add(self.at, path(self.shape, key), problem);
        }
        found
    }

    /// A boolean; `false` if absent.
    pub fn flag(&self, sink: &mut Sink<'_>, key: &'static str) -> bool {
        let Some(field) = self.field(key) else {
            return false;
        };
        if let DeValue::Boolean(on) = field.value {
            return *on;
        }
        field.refuse(sink, "expected true or false");
        false
    }

    /// The tables of an array of tables; empty if absent.
    pub fn sections(
        &self,
        sink: &mut Sink<'_>,
        key: &'static str,
        shape: &'static Shape,
    ) -> Vec<Section<'d, 's>> {
        let Some(field) = self.field(key) else {
            return Vec::new();
        };
        let expected = format!("expected an array of tables, written [[{}]]", shape.name);
        let DeValue::Array(items) = field.value else {
            field.refuse(sink, &expected);
            return Vec::new();
        };
        let mut found = Vec::with_capacity(items.len());
        for item in items.iter() {
            let at = item.span().start;
            match item.get_ref() {
                DeValue::Table(table) => found.push(Section::open(sink, shape, at, table)),
                _ => sink.add(at, shape.name, &expected),
            }
        }
        found
    }

    /// A table inside this one.
    pub fn section(
        &self,
        sink: &mut Sink<'_>,
        key: &'static str,
        shape: &'static Shape,
    ) -> Option<Section<'d, 's>> {
        let field = self.field(key)?;
        if let DeValue::Table(table) = field.value {
            return Some(Section::open(sink, shape, field.at, table));
        }
        field.refuse(sink, &format!("expected a table, written [{}]", shape.name));
        None
    }

    /// Whether the table itself is present, by its header or by a key of its own. Tables below it do not count.
    pub fn is_written(&self, sink: &Sink<'_>, below: &[&str]) -> bool {
        let header = sink.text_from(self.at).starts_with(['[', '{']);
        header
            || self
                .table
                .keys()
                .any(|key| !below.contains(&&**key.get_ref()))
    }
}

/// A key with its value.
#[derive(Debug)]
pub struct Field<'d, 's> {
    /// The key with its tables.
    pub path: String,
    /// The byte offset of the value.
    pub at: usize,
    value: &'d DeValue<'s>,
}

impl<'d> Field<'d, '_> {
    /// Reports an invalid value: what was expected, and what was found.
    pub fn refuse(&self, sink: &mut Sink<'_>, expected: &str) {
        let found = match self.value {
            DeValue::String(text) => shown(text),
            DeValue::Integer(number) => shown(number.as_str()),
            DeValue::Float(number) => shown(number.as_str()),
            DeValue::Boolean(on) => on.to_string(),
            other => format!("a {}", other.type_str()),
        };
        sink.add(self.at, &self.path, format!("{expected}, found {found}"));
    }

    /// Reports an invalid value that must not be shown.
    pub fn refuse_unseen(&self, sink: &mut Sink<'_>, expected: &str) {
        sink.add(self.at, &self.path, expected);
    }

    /// The value if it is a string.
    #[must_use]
    pub fn text(&self) -> Option<&'d str> {
        self.value.as_str()
    }

    /// Whether the value is a list of any type.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Whether the value is a table.
    #[must_use]
    pub const fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// A string, parsed by `parse`.
    pub fn read<T>(
        &self,
        sink: &mut Sink<'_>,
        expected: &str,
        parse: impl FnOnce(&'d str) -> Option<T>,
    ) -> Option<T> {
        let value = self.value.as_str().and_then(parse);
        if value.is_none() {
            self.refuse(sink, &format!("expected {expected}"));
        }
        value
    }

    /// A text for people: 1 to `most` printable characters, without a space at either end.
    pub fn label(&self, sink: &mut Sink<'_>, most: usize) -> Option<String> {
        let expected = format!("1 to {most} printable characters without a space at either end");
        self.read(sink, &expected, |text| {
            is_label(text, most).then(|| text.to_owned())
        })
    }

    /// A text that must be unique: as [`Field::label`], and readers see every character of it.
    pub fn unique_label(&self, sink: &mut Sink<'_>, most: usize) -> Option<String> {
        let label = self.label(sink, most)?;
        let Err(refused) = text::check(&label) else {
            return Some(label);
        };
        let expected = format!("expected visible characters without {refused}");
        self.refuse(sink, &expected);
        None
    }

    /// A number, written as an integer, a float or a string. `parse` gets its text, so it is never converted to a
    /// binary float.
    pub fn number<T>(
        &self,
        sink: &mut Sink<'_>,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = match self.value {
            DeValue::String(text) => Some(&**text),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
            DeValue::Float(number) => Some(number.as_str()),
            _ => None,
        };
        let value = text.and_then(parse);
        if value.is_none() {
            self.refuse(sink, &format!("expected {expected}"));
        }
        value
    }

    /// A whole number, such as basis points.
    pub fn whole<T>(&self, sink: &mut Sink<'_>, most: T) -> Option<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        let read = self.value.as_integer().filter(|it| it.radix() == 10);
        let value = read
            .and_then(|number| number.as_str().parse().ok())
            .filter(|number| *number <= most);
        if value.is_none() {
            self.refuse(sink, &format!("expected a whole number from 0 to {most}"));
        }
        value
    }

    /// A list of distinct strings, each parsed by `parse`. Errors have the line of the item.
    pub fn list<T: PartialEq>(
        &self,
        sink: &mut Sink<'_>,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<(usize, T)> {
        let DeValue::Array(items) = self.value else {
            self.refuse(sink, &format!("expected a list, each entry {expected}"));
            return Vec::new();
        };
        let mut found: Vec<(usize, T)> = Vec::with_capacity(items.len());
        for item in items.iter() {
            let field = Field {
                path: self.path.clone(),
                at: item.span().start,
                value: item.get_ref(),
            };
            let Some(value) = field.read(sink, expected, &parse) else {
                continue;
            };
            if found.iter().any(|(_, earlier)| *earlier == value) {
                field.refuse(sink, "expected every entry once");
            }
            found.push((field.at, value));
        }
        found
    }
}

fn path(shape: &Shape, key: &str) -> String {
    let key = key.escape_debug();
    if shape.name.is_empty() {
        key.to_string()
    } else {
        format!("{}.{key}", shape.name)
    }
}

/// Names the nearest key of the table, or another table that has the key.
fn unknown(shapes: &[&Shape], shape: &Shape, key: &str) -> String {
    let folded = key.to_lowercase();
    let distance = |known: &&&str| strsim::damerau_levenshtein(known, &folded);
    let nearest = shape.keys.iter().min_by_key(distance);
    // A key of this table that differs by one letter is preferred to the same key of another table.
    let close = nearest.filter(|known| distance(known) <= 1);
    let elsewhere = shapes
        .iter()
        .filter(|other| !other.name.is_empty())
        .find(|other| other.keys.contains(&key));
    if let (None, Some(other)) = (close, elsewhere) {
        return format!("unknown key here; `{key}` belongs in {}", other.name);
    }
    match nearest {
        Some(known) => format!("unknown key; the nearest known one is `{known}`"),
        None => "unknown key".to_owned(),
    }
}

/// Whether a text is fit for people: not empty, at most `most` characters, no control characters, no space at either
/// end.
#[must_use]
pub fn is_label(text: &str, most: usize) -> bool {
    let fits = !text.is_empty() && text.chars().count() <= most;
    fits && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_printable() {
        assert!(is_label("Größe & Söhne", 64));
        for bad in ["", " a", "a\n", "a\u{7f}b", &"x".repeat(65)] {
            assert!(!is_label(bad, 64), "{bad:?}");
        }
    }
}
