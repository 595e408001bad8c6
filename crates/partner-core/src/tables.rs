//! The reader of operators' TOML files. It reports every error at once, with its line and the nearest known key.

mod fault;
mod section;

use toml::de::DeTable;

pub use fault::{Faults, Sink, TableError};
pub use section::{Field, Section, Shape, is_label};

/// Reads a file with the tables `shapes`; `root` is the file itself. `document` takes the values and records errors.
///
/// # Errors
/// [`Faults`]: all errors of the file. If the syntax is broken, only the syntax errors.
pub fn read<T>(
    text: &str,
    root: &'static Shape,
    shapes: &'static [&'static Shape],
    document: impl FnOnce(&mut Sink<'_>, &Section<'_, '_>) -> T,
) -> Result<T, Faults> {
    let mut sink = Sink::new(text, shapes);
    let (table, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        for error in &broken {
            let at = error.span().map_or(0, |span| span.start);
            sink.add(at, "", broken_syntax(text, at, error.message()));
        }
        return Err(sink.into_faults());
    }
    let section = Section::open(&mut sink, root, 0, table.get_ref());
    let read = document(&mut sink, &section);
    if sink.is_empty() {
        Ok(read)
    } else {
        Err(sink.into_faults())
    }
}

/// One line that describes a syntax error at a byte of a text, from the parser's `message`, with a remedy if one is
/// known.
#[must_use]
pub fn broken_syntax(text: &str, at: usize, message: &str) -> String {
    let one_line = || message.split_whitespace().collect::<Vec<_>>().join(" ");
    unquoted(text, at)
        .or_else(|| duplicate(text, at, message))
        .unwrap_or_else(one_line)
}

/// Names the key that occurs twice in its table.
fn duplicate(text: &str, at: usize, message: &str) -> Option<String> {
    let rest = text.get(at..).filter(|_| message == "duplicate key")?;
    let end = rest.find(['=', ']', '\n']).unwrap_or(rest.len());
    let key = rest.get(..end)?.trim();
    (!key.is_empty()).then(|| format!("duplicate key `{key}`; remove one of the two"))
}

/// Words of a key whose value is never repeated in a message.
const SECRET_WORDS: [&str; 5] = ["key", "password", "secret", "token", "url"];

/// The remedy for an unquoted text, which the parser takes for a boolean or a number.
fn unquoted(text: &str, at: usize) -> Option<String> {
    let begin = text.get(..at)?.rfind('\n').map_or(0, |before| before + 1);
    let line = text.get(begin..)?.lines().next()?;
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim();
    let is_word = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && !value.contains(['"', '\'', '[', '{']);
    let is_keyword = ["true", "false", "inf", "nan"].contains(&value);
    let key = key.trim();
    let is_secret = SECRET_WORDS.iter().any(|word| key.contains(word));
    let shown = if is_secret { "…" } else { value };
    let lower = value.to_ascii_lowercase();
    if !is_keyword && ["true", "false"].contains(&lower.as_str()) {
        return Some(format!("a boolean is in lower case: {key} = {lower}"));
    }
    (is_word && !is_keyword).then(|| format!("a text needs quotes: {key} = \"{shown}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    static ROOT: Shape = Shape {
        name: "",
        keys: &["mode", "name"],
    };

    static SHAPES: [&Shape; 1] = [&ROOT];

    fn faults(text: &str) -> String {
        let read = read(text, &ROOT, &SHAPES, |_, _| ());
        read.unwrap_err().to_string()
    }

    #[test]
    fn text_without_quotes_is_named_with_the_corrected_line() {
        assert_eq!(
            faults("name = \"a\"\nmode = test # the mode\n"),
            "line 2: a text needs quotes: mode = \"test\""
        );
        assert_eq!(
            broken_syntax("master_key = abc", 13, "invalid"),
            "a text needs quotes: master_key = \"…\""
        );
        assert!(!faults("mode = [").contains("quotes"));
    }

    #[test]
    fn boolean_in_upper_case_and_duplicate_key_name_the_remedy() {
        assert_eq!(
            faults("name = True\n"),
            "line 1: a boolean is in lower case: name = true"
        );
        assert_eq!(
            faults("name = \"a\"\nname = \"b\"\n"),
            "line 2: duplicate key `name`; remove one of the two"
        );
    }
}
