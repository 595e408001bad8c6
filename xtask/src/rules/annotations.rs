//! Reads `rule:` comments above test functions.
//!
//! The reader parses lines, not syntax. Only comments, attributes and decorators are allowed between a `rule:` comment and its function.

/// How a language writes comments, attributes and functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Language {
    #[default]
    Rust,
    /// Plain functions: the cases of the store contract, which a macro turns into tests of each store, and the parts of the crash proof.
    RustCases,
    Python,
}

/// A test function and the rules it names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Annotated {
    pub(super) rules: Vec<String>,
    pub(super) function: String,
    pub(super) line: usize,
}

/// An annotation without a test.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) what: String,
}

/// The annotations of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) tests: Vec<Annotated>,
    pub(super) faults: Vec<Fault>,
}

/// Returns the language of a file that may have annotations.
pub(super) fn language(file: &str) -> Option<Language> {
    let cases = ["tests/support/src/contract/", "tests/crash/src/"];
    if file.ends_with(".rs") && cases.iter().any(|folder| file.starts_with(folder)) {
        return Some(Language::RustCases);
    }
    if file.ends_with(".rs") {
        return Some(Language::Rust);
    }
    (file.starts_with("tests/conformance/") && file.ends_with(".py")).then_some(Language::Python)
}

pub(super) fn read(text: &str, language: Language) -> Found {
    let mut reader = Reader {
        language,
        ..Reader::default()
    };
    for (number, line) in text.lines().enumerate() {
        reader.line(number + 1, line.trim());
    }
    reader.give_up("the file ends");
    reader.found
}

/// The annotations and attributes since the last line that is neither.
#[derive(Debug, Default)]
struct Reader {
    language: Language,
    found: Found,
    rules: Vec<String>,
    since: usize,
    is_test: bool,
    open_brackets: usize,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        if self.open_brackets > 0 {
            self.attribute(line);
        } else if let Some(comment) = self.comment(line) {
            self.annotation(number, comment);
        } else if line.starts_with(if self.language == Language::Python {
            "@"
        } else {
            "#["
        }) {
            self.is_test |= line.contains("test") && !line.starts_with("#[cfg");
            self.attribute(line);
        } else if let Some(name) = function(line, self.language) {
            self.function(name);
        } else {
            self.give_up("another line is between them");
        }
    }

    fn comment<'line>(&self, line: &'line str) -> Option<&'line str> {
        let rest = match self.language {
            Language::Python => line.strip_prefix('#')?,
            Language::Rust | Language::RustCases => {
                line.strip_prefix("//")?.trim_start_matches('/')
            }
        };
        Some(rest.trim())
    }

    fn annotation(&mut self, number: usize, comment: &str) {
        let Some(ids) = comment.strip_prefix("rule:") else {
            return;
        };
        if self.rules.is_empty() {
            self.since = number;
        }
        let ids: Vec<&str> = ids
            .split(',')
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .collect();
        if ids.is_empty() {
            let what = "the annotation names no rule".to_owned();
            self.found.faults.push(Fault { line: number, what });
        }
        self.rules.extend(ids.into_iter().map(str::to_owned));
    }

    /// Reads a line of an attribute. The attribute ends after its last closing bracket.
    fn attribute(&mut self, line: &str) {
        let count = |wanted: [char; 2]| line.chars().filter(|c| wanted.contains(c)).count();
        self.open_brackets =
            (self.open_brackets + count(['(', '['])).saturating_sub(count([')', ']']));
    }

    fn function(&mut self, name: &str) {
        let test = match self.language {
            Language::Rust => self.is_test,
            Language::RustCases => true,
            Language::Python => name.starts_with("test"),
        };
        if !test {
            return self.give_up(&format!("`{name}` is not a test"));
        }
        let rules = std::mem::take(&mut self.rules);
        if !rules.is_empty() {
            self.found.tests.push(Annotated {
                rules,
                function: name.to_owned(),
                line: self.since,
            });
        }
        self.is_test = false;
    }

    fn give_up(&mut self, why: &str) {
        if !self.rules.is_empty() {
            let what = format!("the annotation is not directly above a test function: {why}");
            self.found.faults.push(Fault {
                line: self.since,
                what,
            });
            self.rules.clear();
        }
        self.is_test = false;
    }
}

/// Returns the name of the function that starts on this line.
fn function(line: &str, language: Language) -> Option<&str> {
    let (keyword, qualifiers): (&str, &[&str]) = match language {
        Language::Python => ("def ", &["async "]),
        Language::Rust | Language::RustCases => {
            ("fn ", &["pub ", "pub(crate) ", "async ", "const "])
        }
    };
    let mut rest = line;
    while let Some(shorter) = qualifiers.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    let name = rest.strip_prefix(keyword)?;
    let end = name
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    name.get(..end).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{Annotated, Found, Language, language, read};

    fn lines(lines: &[&str]) -> String {
        lines.join("\n")
    }

    fn one(rules: &[&str], function: &str, line: usize) -> Vec<Annotated> {
        let rules = rules.iter().map(|id| (*id).to_owned()).collect();
        vec![Annotated {
            rules,
            function: function.to_owned(),
            line,
        }]
    }

    fn faults(found: &Found) -> Vec<usize> {
        found.faults.iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn annotated_rust_test_is_found_with_all_its_rules() {
        let text = lines(&[
            "// rule: a.b, a.c",
            "// rule: a.d",
            "/// Why.",
            "#[tokio::test]",
            "async fn holds() {}",
        ]);
        assert_eq!(
            read(&text, Language::Rust).tests,
            one(&["a.b", "a.c", "a.d"], "holds", 1)
        );
    }

    #[test]
    fn annotation_may_follow_the_attribute() {
        let text = lines(&["    #[test]", "    // rule: a.b", "    fn holds() {}"]);
        assert_eq!(read(&text, Language::Rust).tests, one(&["a.b"], "holds", 2));
    }

    #[test]
    fn attribute_may_span_lines() {
        let text = lines(&[
            "// rule: a.b",
            "#[tokio::test(",
            "  flavor = \"multi_thread\"",
            ")]",
            "pub async fn x() {}",
        ]);
        assert_eq!(read(&text, Language::Rust).tests, one(&["a.b"], "x", 1));
    }

    #[test]
    fn annotated_function_that_is_not_a_test_is_a_fault() {
        assert_eq!(
            faults(&read("// rule: a.b\nfn plain() {}", Language::Rust)),
            [1]
        );
        assert_eq!(
            faults(&read(
                "// rule: a.b\n#[cfg(test)]\nfn plain() {}",
                Language::Rust
            )),
            [1]
        );
        assert_eq!(
            faults(&read("# rule: a.b\ndef helper():", Language::Python)),
            [1]
        );
    }

    #[test]
    fn annotation_away_from_its_test_is_a_fault() {
        assert_eq!(
            faults(&read("// rule: a.b\n\n#[test]\nfn x() {}", Language::Rust)),
            [1]
        );
        assert_eq!(faults(&read("x\n// rule: a.b", Language::Rust)), [2]);
    }

    #[test]
    fn test_attribute_applies_to_one_function() {
        let text = lines(&["#[test]", "fn a() {}", "// rule: a.b", "fn b() {}"]);
        assert_eq!(faults(&read(&text, Language::Rust)), [3]);
    }

    #[test]
    fn annotation_without_rules_is_a_fault() {
        assert_eq!(
            faults(&read("// rule: ,\n#[test]\nfn x() {}", Language::Rust)),
            [1]
        );
    }

    #[test]
    fn tests_without_annotation_are_left_alone() {
        assert_eq!(
            read(
                "#[test]\nfn x() {}\n// a rule: of thumb\nfn y() {}",
                Language::Rust
            ),
            Found::default()
        );
    }

    #[test]
    fn contract_cases_need_no_attribute() {
        let text = "// rule: a.b\npub async fn wins_once(store: impl Fixture) {";
        assert_eq!(
            read(text, Language::RustCases).tests,
            one(&["a.b"], "wins_once", 1)
        );
    }

    #[test]
    fn python_tests_are_found_below_decorators() {
        let text = lines(&[
            "# rule: a.b",
            "@pytest.mark.parametrize(",
            "    \"x\", [1],",
            ")",
            "async def test_x(x):",
        ]);
        assert_eq!(
            read(&text, Language::Python).tests,
            one(&["a.b"], "test_x", 1)
        );
    }

    #[test]
    fn only_rust_and_the_python_suites_are_read() {
        assert_eq!(language("crates/kernel/src/id.rs"), Some(Language::Rust));
        assert_eq!(
            language("tests/support/src/contract/quotes.rs"),
            Some(Language::RustCases)
        );
        assert_eq!(
            language("tests/crash/src/kills.rs"),
            Some(Language::RustCases)
        );
        assert_eq!(
            language("tests/conformance/test_a.py"),
            Some(Language::Python)
        );
        assert_eq!(language("scripts/a.py"), None);
        assert_eq!(language("README.md"), None);
    }
}
