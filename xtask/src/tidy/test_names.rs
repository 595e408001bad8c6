//! Checks the names of tests. A name starts with its subject, without an article or a pronoun.

use regex::Regex;

use super::Finding;
use crate::Result;
use crate::source::code_only;

/// The refused beginnings.
const BEGINNING: &str = "^(a|an|the|no|what|who|whoever|where|nobody|nothing)_";

/// The name of a function directly below an attribute whose path ends in `test`. Other attributes may be between them.
const RUST_TEST: &str = r"(?x)
    \#\[ (?: \w+ \s* :: \s* )* test \s* (?: \( [^\]]* )? \]
    \s* (?: \#\[ [^\]]* \] \s* )*
    (?: (?: pub (?: \( [^)]* \) )? | async | const ) \s+ )*
    fn \s+ (\w+)";

/// The name without the prefix that pytest requires.
const PYTHON_TEST: &str = r"(?m)^[ \t]*(?:async )?def test_(\w+)";

/// Reads the names of tests.
pub(super) struct Reader {
    beginning: Regex,
    rust: Regex,
    python: Regex,
}

impl Reader {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            beginning: Regex::new(BEGINNING)?,
            rust: Regex::new(RUST_TEST)?,
            python: Regex::new(PYTHON_TEST)?,
        })
    }

    pub(super) fn read(&self, file: &str, text: &str) -> Vec<Finding> {
        if file.ends_with(".rs") {
            return self.misnamed(file, &self.rust, &code_only(text));
        }
        if file.ends_with(".py") {
            return self.misnamed(file, &self.python, text);
        }
        Vec::new()
    }

    fn misnamed(&self, file: &str, test: &Regex, code: &str) -> Vec<Finding> {
        let names = test
            .captures_iter(code)
            .filter_map(|captures| captures.get(1));
        let found = names.filter_map(|name| {
            let (start, name) = (name.start(), name.as_str());
            let beginning = self.beginning.find(name)?.as_str();
            Some(Finding {
                file: file.to_owned(),
                line: code.get(..start)?.matches('\n').count() + 1,
                text: format!("`{name}`: start with the subject, not with `{beginning}`"),
            })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    /// Whether the source has a test whose name begins with an article.
    fn has_misnamed_test(source: &str) -> bool {
        !Reader::new().unwrap().read("a.rs", source).is_empty()
    }

    #[test]
    fn rust_tests_are_functions_under_a_test_attribute() {
        for source in [
            "#[test] fn a_b() {}",
            "#[tokio::test]\nasync fn a_b() {}",
            "#[tokio::test(flavor = \"multi_thread\", worker_threads = 2)]\nasync fn a_b() {}",
            "#[test]\n#[should_panic(expected = \"x [ y\")]\npub(crate) fn a_b() {}",
            "#[cfg(unix)] #[test]\n/// Why.\nfn a_b() {}",
            "proptest! { #[test] fn a_b(x in 0..3) {} }",
        ] {
            assert!(has_misnamed_test(source), "{source}");
        }
    }

    #[test]
    fn other_functions_are_not_rust_tests() {
        for source in [
            "#![test] fn a_b() {}",
            "#[cfg(test)] fn a_b() {}",
            "#[cfg(test)] mod tests { fn a_b() {} }",
            "#[attest] fn a_b() {}",
            "#[test] const A: u8 = 1; fn a_b() {}",
            "// #[test]\nfn a_b() {}",
            "f(\"#[test] fn a_b() {}\")",
        ] {
            assert!(!has_misnamed_test(source), "{source}");
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
            let rust = format!("#[test] fn {name}() {{}}");
            let python = format!("def test_{name}():");
            for (file, text) in [("a.rs", rust), ("a.py", python)] {
                assert!(reader.read(file, &text).is_empty(), "{name}");
            }
        }
        assert!(reader.read("a.py", "def a_helper():").is_empty());
    }
}
