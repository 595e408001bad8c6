//! Checks the names of tests. A name starts with its subject, without an article or a pronoun.

use ra_ap_rustc_lexer::TokenKind;
use regex::Regex;

use super::Finding;
use crate::Result;
use crate::source::{Token, tokens};

/// The refused beginnings.
const BEGINNING: &str = "^(a|an|the|no|what|who|whoever|where|nobody|nothing)_";

/// Reads the names of tests.
pub(super) struct Reader {
    beginning: Regex,
    python: Regex,
}

impl Reader {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            beginning: Regex::new(BEGINNING)?,
            python: Regex::new(r"^\s*(?:async )?def test_(\w+)")?,
        })
    }

    pub(super) fn read(&self, file: &str, text: &str) -> Vec<Finding> {
        let names = if file.ends_with(".rs") {
            rust_tests(text)
        } else if file.ends_with(".py") {
            self.python_tests(text)
        } else {
            Vec::new()
        };
        let found = names.into_iter().filter_map(|(line, name)| {
            let beginning = self.beginning.find(&name)?.as_str();
            let text = format!("`{name}`: start with the subject, not with `{beginning}`");
            let file = file.to_owned();
            Some(Finding { file, line, text })
        });
        found.collect()
    }

    /// Returns the names without the prefix that pytest requires.
    fn python_tests(&self, text: &str) -> Vec<(usize, String)> {
        let lines = text.lines().zip(1..);
        let tests = lines.filter_map(|(line, number)| {
            let name = self.python.captures(line)?.get(1)?;
            Some((number, name.as_str().to_owned()))
        });
        tests.collect()
    }
}

/// A token that is neither white space nor comment, and its line.
struct Word<'source> {
    text: &'source str,
    line: usize,
}

fn words(source: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut line = 1;
    for Token { kind, range } in tokens(source) {
        let text = source.get(range).unwrap_or_default();
        let is_blank = matches!(
            kind,
            TokenKind::Whitespace | TokenKind::LineComment { .. } | TokenKind::BlockComment { .. }
        );
        if !is_blank {
            words.push(Word { text, line });
        }
        line += text.matches('\n').count();
    }
    words
}

/// Returns the functions with an attribute whose path ends in `test`, with their lines.
fn rust_tests(source: &str) -> Vec<(usize, String)> {
    let words = words(source);
    let mut tests = Vec::new();
    let mut is_test = false;
    let mut rest = words.as_slice();
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        match word.text {
            "#" => {
                let (path, after) = attribute(after);
                is_test |= path == "test" || path.ends_with("::test");
                rest = after;
            }
            "fn" => {
                let name = after.first().filter(|_| is_test);
                tests.extend(name.map(|name| (name.line, name.text.to_owned())));
                is_test = false;
            }
            // An attribute belongs to the item directly below it.
            "{" | "}" | ";" => is_test = false,
            _ => {}
        }
    }
    tests
}

/// Returns the path of the attribute whose remaining words these are, and the words after the attribute.
fn attribute<'rest, 'source>(words: &'rest [Word<'source>]) -> (String, &'rest [Word<'source>]) {
    let mut path = String::new();
    let Some(inside) = words.split_first().filter(|(word, _)| word.text == "[") else {
        return (path, words);
    };
    let mut open = 1_usize;
    let mut rest = inside.1;
    let mut in_path = true;
    while let Some((word, after)) = rest.split_first().filter(|_| open > 0) {
        match word.text {
            "[" => open += 1,
            "]" => open -= 1,
            _ => {}
        }
        in_path &= !["[", "]", "(", "="].contains(&word.text);
        if in_path {
            path.push_str(word.text);
        }
        rest = after;
    }
    (path, rest)
}

#[cfg(test)]
mod tests {
    use super::{Reader, rust_tests};

    fn names(source: &str) -> Vec<String> {
        rust_tests(source)
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }

    #[test]
    fn rust_tests_are_functions_under_a_test_attribute() {
        for source in [
            "#[test] fn a() {}",
            "#[tokio::test]\nasync fn a() {}",
            "#[tokio::test(flavor = \"multi_thread\", worker_threads = 2)]\nasync fn a() {}",
            "#[test]\n#[should_panic(expected = \"x [ y\")]\npub(crate) fn a() {}",
            "#[cfg(unix)] #[test]\n/// Why.\nfn a() {}",
            "proptest! { #[test] fn a(x in 0..3) {} }",
        ] {
            assert_eq!(names(source), ["a"], "{source}");
        }
    }

    #[test]
    fn other_functions_are_not_rust_tests() {
        for source in [
            "#![test] fn a() {}",
            "#[cfg(test)] fn a() {}",
            "#[cfg(test)] mod tests { fn a() {} }",
            "#[attest] fn a() {}",
            "#[test] const A: u8 = 1; fn a() {}",
            "// #[test]\nfn a() {}",
            "f(\"#[test] fn a() {}\")",
        ] {
            assert_eq!(names(source), [] as [String; 0], "{source}");
        }
    }

    #[test]
    fn names_that_begin_with_an_article_or_a_pronoun_are_found() {
        let reader = Reader::new().unwrap();
        for beginning in [
            "a", "an", "the", "no", "what", "who", "whoever", "where", "nobody", "nothing",
        ] {
            let rust = format!("\n#[test]\nfn {beginning}_quote_expires() {{}}");
            let python = format!("\n\nasync def test_{beginning}_quote_expires(world):");
            for (file, text) in [("a.rs", rust), ("a.py", python)] {
                let found = reader.read(file, &text);
                let lines: Vec<usize> = found.iter().map(|found| found.line).collect();
                assert_eq!(lines, [3], "{text}");
            }
        }
    }

    #[test]
    fn names_that_begin_with_their_subject_are_not_found() {
        let reader = Reader::new().unwrap();
        for name in [
            "amount_is_exact",
            "another_key",
            "notional_is_capped",
            "whole_quote",
            "theft",
            "a",
        ] {
            assert!(
                reader
                    .read("a.rs", &format!("#[test] fn {name}() {{}}"))
                    .is_empty(),
                "{name}"
            );
            assert!(
                reader
                    .read("a.py", &format!("def test_{name}():"))
                    .is_empty(),
                "{name}"
            );
        }
        assert!(reader.read("a.py", "def a_helper():").is_empty());
    }
}
