//! Reads `rule:` comments above test functions.
//!
//! The reader searches with regular expressions and does not parse. Only comments, attributes and decorators are allowed between a `rule:`
//! comment and its function.

use std::ops::Range;

use regex::Regex;

use crate::Result;

/// A function of Rust below at least one line of a comment or an attribute: those lines, and the name.
const RUST_FUNCTION: &str = r"(?m)((?:^[ \t]*(?://.*|#\[[^\]]*\].*)\n)+)[ \t]*(?:(?:pub(?:\(\w+\))?|async|const) )*fn (\w+)";
const RUST_RULES: &str = r"(?m)^[ \t]*//+[ \t]*rule:(.*)$";

/// A function of Python below comments and decorators. A decorator may continue on indented lines and after its closing bracket.
const PYTHON_FUNCTION: &str =
    r"(?m)((?:^[ \t]*#.*\n)*(?:^[ \t]*@.*\n(?:^[ \t)\]@#].*\n)*?)?)^[ \t]*(?:async )?def (\w+)";
const PYTHON_RULES: &str = r"(?m)^[ \t]*#[ \t]*rule:(.*)$";

/// How a language writes comments, attributes and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    /// Plain functions: the cases of the store contract, which a macro turns into tests of each store, and the parts of the crash proof.
    RustCases,
    Python,
}

/// An annotation: its rules and its test function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Annotated {
    pub(super) rules: Vec<String>,
    pub(super) function: String,
    pub(super) line: usize,
}

/// An annotation without a rule or a test.
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

/// Reads the annotations of files. It compiles the expressions once.
pub(super) struct Reader {
    rust: [Regex; 2],
    python: [Regex; 2],
}

impl Reader {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            rust: [Regex::new(RUST_FUNCTION)?, Regex::new(RUST_RULES)?],
            python: [Regex::new(PYTHON_FUNCTION)?, Regex::new(PYTHON_RULES)?],
        })
    }

    pub(super) fn read(&self, text: &str, language: Language) -> Found {
        let [function, rules] = match language {
            Language::Rust | Language::RustCases => &self.rust,
            Language::Python => &self.python,
        };
        let functions = functions(function, text, language);
        let mut found = Found::default();
        for annotation in rules.captures_iter(text) {
            let (Some(whole), Some(ids)) = (annotation.get(0), annotation.get(1)) else {
                continue;
            };
            let before = text.get(..whole.start()).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let ids = ids.as_str().split(',').map(str::trim);
            let rules: Vec<String> = ids.filter(|id| !id.is_empty()).map(str::to_owned).collect();
            match test_of(&functions, whole.start()) {
                Ok(_) if rules.is_empty() => {
                    let what = "the annotation names no rule".to_owned();
                    found.faults.push(Fault { line, what });
                }
                Ok(function) => found.tests.push(Annotated {
                    rules,
                    function: function.to_owned(),
                    line,
                }),
                Err(what) => found.faults.push(Fault { line, what }),
            }
        }
        found
    }
}

/// A function and the place of the lines above it.
struct Function<'text> {
    above: Range<usize>,
    name: &'text str,
    is_test: bool,
}

fn functions<'text>(
    expression: &Regex,
    text: &'text str,
    language: Language,
) -> Vec<Function<'text>> {
    let found = expression.captures_iter(text).filter_map(|captures| {
        let (above, name) = (captures.get(1)?, captures.get(2)?.as_str());
        let is_test = match language {
            Language::Rust => above.as_str().lines().any(is_test_attribute),
            Language::RustCases => true,
            Language::Python => name.starts_with("test"),
        };
        let above = above.range();
        Some(Function {
            above,
            name,
            is_test,
        })
    });
    found.collect()
}

fn is_test_attribute(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("#[") && line.contains("test") && !line.starts_with("#[cfg")
}

/// Returns the name of the test that an annotation at this place belongs to, or the reason that there is no such test.
fn test_of<'text>(
    functions: &[Function<'text>],
    place: usize,
) -> std::result::Result<&'text str, String> {
    let function = functions.iter().find(|it| it.above.contains(&place));
    match function {
        Some(function) if function.is_test => Ok(function.name),
        Some(function) => Err(format!("`{}` is not a test", function.name)),
        None => Err("the annotation is not directly above a test function".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Language, Reader, language};

    fn read(text: &str, language: Language) -> Found {
        Reader::new().unwrap().read(text, language)
    }

    /// Each annotation as its line, its rules and its function.
    fn tests(text: &str, language: Language) -> Vec<String> {
        let found = read(text, language);
        assert_eq!(found.faults, [], "{text}");
        let tests = found.tests.into_iter();
        tests
            .map(|test| format!("{} {} {}", test.line, test.rules.join(" "), test.function))
            .collect()
    }

    #[test]
    fn annotated_rust_test_is_found_with_all_its_rules() {
        let text = "// rule: a.b, a.c\n// rule: a.d\n/// Why.\n#[tokio::test]\nasync fn holds() {}";
        assert_eq!(
            tests(text, Language::Rust),
            ["1 a.b a.c holds", "2 a.d holds"]
        );
        let below_attribute = "    #[test]\n    // rule: a.b\n    fn holds() {}";
        assert_eq!(tests(below_attribute, Language::Rust), ["2 a.b holds"]);
        let wrapped =
            "// rule: a.b\n#[tokio::test(\n  flavor = \"multi_thread\"\n)]\npub async fn x() {}";
        assert_eq!(tests(wrapped, Language::Rust), ["1 a.b x"]);
    }

    #[test]
    fn annotation_without_rule_or_test_is_a_fault() {
        for (text, language, line) in [
            ("// rule: ,\n#[test]\nfn x() {}", Language::Rust, 1),
            ("// rule: a.b\nfn plain() {}", Language::Rust, 1),
            (
                "// rule: a.b\n#[cfg(test)]\nfn plain() {}",
                Language::Rust,
                1,
            ),
            ("// rule: a.b\n\n#[test]\nfn x() {}", Language::Rust, 1),
            ("x\n// rule: a.b", Language::Rust, 2),
            (
                "#[test]\nfn a() {}\n// rule: a.b\nfn b() {}",
                Language::Rust,
                3,
            ),
            ("# rule: a.b\ndef helper():", Language::Python, 1),
        ] {
            let found = read(text, language);
            let lines: Vec<usize> = found.faults.iter().map(|fault| fault.line).collect();
            assert_eq!((found.tests, lines), (Vec::new(), vec![line]), "{text}");
        }
    }

    #[test]
    fn tests_without_annotation_are_left_alone() {
        let text = "#[test]\nfn x() {}\n// a rule: of thumb\nfn y() {}";
        assert_eq!(read(text, Language::Rust), Found::default());
    }

    #[test]
    fn contract_cases_need_no_attribute() {
        let text = "// rule: a.b\npub async fn wins_once(store: impl Fixture) {";
        assert_eq!(tests(text, Language::RustCases), ["1 a.b wins_once"]);
    }

    #[test]
    fn python_tests_are_found_below_decorators() {
        let text =
            "# rule: a.b\n@pytest.mark.parametrize(\n    \"x\", [1],\n)\nasync def test_x(x):";
        assert_eq!(tests(text, Language::Python), ["1 a.b test_x"]);
    }

    #[test]
    fn only_rust_and_the_python_suites_are_read() {
        for (file, expected) in [
            ("crates/kernel/src/id.rs", Some(Language::Rust)),
            (
                "tests/support/src/contract/quotes.rs",
                Some(Language::RustCases),
            ),
            ("tests/crash/src/kills.rs", Some(Language::RustCases)),
            ("tests/conformance/test_a.py", Some(Language::Python)),
            ("scripts/a.py", None),
            ("README.md", None),
        ] {
            assert_eq!(language(file), expected, "{file}");
        }
    }
}
