//! Checks plain language: no comment, string literal or page contains a phrase of `phrases.rs`.

use regex::{Regex, RegexSet};

use super::Finding;
use super::phrases::{PHRASES, Phrase};
use super::prose::{self, Kind, Passage};
use crate::Result;

/// Paths that are not read. Decisions are history and are not rewritten; the list of phrases contains the phrases.
const SKIPPED: [&str; 2] = ["docs/decisions/", "xtask/src/tidy/phrases.rs"];

/// A mark at the end of a line exempts the line.
const ALLOWED_IN_RUST: &str = "// plain: allow";
const ALLOWED_IN_MARKDOWN: &str = "<!-- plain: allow -->";

/// Searches files for the phrases.
pub(super) struct Reader {
    any: RegexSet,
    each: Vec<(Regex, &'static Phrase)>,
}

/// The result for one file.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    /// The number of exempt lines.
    pub(super) allowed: usize,
    /// Exempt lines without a phrase.
    pub(super) faults: Vec<String>,
}

impl Reader {
    pub(super) fn new() -> Result<Self> {
        let each = PHRASES
            .iter()
            .map(|phrase| Ok((Regex::new(phrase.expression)?, phrase)));
        Ok(Self {
            any: RegexSet::new(PHRASES.iter().map(|phrase| phrase.expression))?,
            each: each.collect::<Result<_>>()?,
        })
    }

    pub(super) fn read(&self, file: &str, text: &str) -> Report {
        if SKIPPED.iter().any(|skipped| file.starts_with(skipped)) {
            return Report::default();
        }
        let (passages, mark) = if file.ends_with(".rs") {
            (prose::rust(text), ALLOWED_IN_RUST)
        } else if file.ends_with(".md") {
            (prose::markdown(text), ALLOWED_IN_MARKDOWN)
        } else {
            return Report::default();
        };
        let mut marked = Marked::read(text, mark);
        let findings = passages
            .iter()
            .flat_map(|passage| self.in_passage(file, passage, &mut marked))
            .collect();
        Report {
            findings,
            allowed: marked.lines.len(),
            faults: marked.unused(file),
        }
    }

    fn in_passage(&self, file: &str, passage: &Passage, marked: &mut Marked) -> Vec<Finding> {
        let mut findings = Vec::new();
        let matched = self.any.matches(&passage.text);
        let matched = matched.iter().filter_map(|number| self.each.get(number));
        let is_literal = passage.kind == Kind::Literal;
        let is_doc = passage.kind == Kind::DocComment;
        for (regex, phrase) in matched.filter(|(_, phrase)| is_doc || !phrase.in_docs_only) {
            for found in regex.find_iter(&passage.text) {
                let line = passage.line(found.start());
                // No comment can end a line within a literal, so the mark ends the literal's last line.
                if marked.allows(line) || is_literal && marked.allows(passage.last_line()) {
                    continue;
                }
                findings.push(Finding {
                    file: file.to_owned(),
                    line,
                    text: format!("`{}`: write {}", found.as_str(), phrase.instead),
                });
            }
        }
        findings
    }
}

/// The exempt lines of a file, each with whether it has a phrase.
struct Marked {
    lines: Vec<(usize, bool)>,
}

impl Marked {
    fn read(text: &str, mark: &str) -> Self {
        let lines = text.lines().zip(1..);
        let marked = lines.filter(|(line, _)| line.trim_end().ends_with(mark));
        Self {
            lines: marked.map(|(_, number)| (number, false)).collect(),
        }
    }

    fn allows(&mut self, line: usize) -> bool {
        let marked = self.lines.iter_mut().find(|(marked, _)| *marked == line);
        if let Some((_, used)) = marked {
            *used = true;
            return true;
        }
        false
    }

    fn unused(&self, file: &str) -> Vec<String> {
        let unused = self.lines.iter().filter(|(_, used)| !used);
        unused
            .map(|(line, _)| {
                format!("{file}:{line}: the line has no phrase that `plain: allow` exempts")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::phrases::EXAMPLES;
    use super::{ALLOWED_IN_MARKDOWN, ALLOWED_IN_RUST, Reader, Report};

    fn report(file: &str, text: &str) -> Report {
        Reader::new().unwrap().read(file, text)
    }

    fn lines(file: &str, text: &str) -> Vec<usize> {
        let findings = report(file, text).findings;
        findings.iter().map(|found| found.line).collect()
    }

    #[test]
    fn findings_name_file_line_phrase_and_what_to_write() {
        let [_, phrase, ..] = EXAMPLES;
        let found = report("a.md", &format!("# Title\n\nIt was {phrase}.\n"));
        let printed: Vec<String> = found.findings.iter().map(ToString::to_string).collect();
        let found = phrase.strip_prefix("asked ").unwrap();
        assert_eq!(
            printed,
            [format!("a.md:3: `{found}`: write failed, without success")]
        );
    }

    #[test]
    fn phrases_are_found_in_comments_and_strings() {
        for phrase in EXAMPLES {
            assert_eq!(lines("a.rs", &format!("\n/// {phrase}\nfn a() {{}}")), [2]);
        }
        let [phrase, ..] = EXAMPLES;
        for text in [
            format!("//! {phrase}"),
            format!("let a = 1; // {phrase}"),
            format!("/* {phrase} */"),
            format!("let a = \"{phrase}\";"),
            format!("let a = r#\"{phrase}\"#;"),
            format!("#[expect(lint, reason = \"{phrase}\")]"),
        ] {
            assert_eq!(lines("a.rs", &text), [1], "{text}");
        }
    }

    #[test]
    fn code_names_and_sql_are_not_prose() {
        let [phrase, ..] = EXAMPLES;
        let (name, _) = phrase.split_once(' ').unwrap();
        for text in [
            format!("fn {name}() {{}}"),
            format!("/// `{phrase}`"),
            format!("/// ```\n/// {phrase}\n/// ```"),
            format!("const A: &str = \"SELECT {name} FROM a\";"),
            format!("const A: &str = \"\n WHERE {name}\";"),
        ] {
            assert_eq!(lines("a.rs", &text), [] as [usize; 0], "{text}");
        }
        let page = format!("`{phrase}`\n\n```text\n{phrase}\n```\n[a]({name})\n");
        assert_eq!(lines("a.md", &page), [] as [usize; 0]);
        assert_eq!(lines("a.py", &format!("# {phrase}")), [] as [usize; 0]);
    }

    #[test]
    fn wrapped_phrases_are_found_on_their_first_line() {
        let [_, phrase, ..] = EXAMPLES;
        let wrapped = phrase.split(' ').collect::<Vec<_>>();
        assert_eq!(lines("a.md", &format!("So\n{}\n", wrapped.join("\n"))), [3]);
        assert_eq!(
            lines("a.rs", &format!("//! {}\n", wrapped.join("\n//! "))),
            [2]
        );
        let literal = format!("f(\"{}\")", wrapped.join(" \\\n    "));
        assert_eq!(lines("a.rs", &literal), [2]);
        let paragraphs = format!("/// {}\n", wrapped.join("\n///\n/// "));
        assert_eq!(lines("a.rs", &paragraphs), [] as [usize; 0]);
    }

    #[test]
    fn doc_comments_alone_start_with_their_subject() {
        let text = EXAMPLES
            .into_iter()
            .find(|text| text.starts_with("Of "))
            .unwrap();
        assert_eq!(lines("a.rs", &format!("/// {text}\nfn a() {{}}")), [1]);
        for other in [
            format!("// {text}"),
            format!("f(\"{text}\")"),
            format!("/// The bound.\n/// {text}"),
        ] {
            assert_eq!(lines("a.rs", &other), [] as [usize; 0], "{other}");
        }
    }

    #[test]
    fn marked_lines_are_exempt_and_counted() {
        let [phrase, ..] = EXAMPLES;
        for (file, text) in [
            ("a.rs", format!("/// {phrase} {ALLOWED_IN_RUST}")),
            ("a.rs", format!("f(\"{phrase}\"); {ALLOWED_IN_RUST}")),
            (
                "a.rs",
                format!("f(\"{phrase} \\\n  end\"); {ALLOWED_IN_RUST}"),
            ),
            ("a.md", format!("{phrase} {ALLOWED_IN_MARKDOWN}")),
        ] {
            let report = report(file, &text);
            assert_eq!((report.findings.len(), report.allowed), (0, 1), "{text}");
            assert!(report.faults.is_empty(), "{text}");
        }
        let other_line = format!("/// {phrase}\n/// More. {ALLOWED_IN_RUST}");
        assert_eq!(lines("a.rs", &other_line), [1]);
    }

    #[test]
    fn needless_marks_are_faults() {
        let report = report("a.rs", &format!("/// Fine. {ALLOWED_IN_RUST}"));
        assert_eq!(
            report.faults,
            ["a.rs:1: the line has no phrase that `plain: allow` exempts"]
        );
    }

    #[test]
    fn decisions_are_history_and_are_skipped() {
        let [phrase, ..] = EXAMPLES;
        assert_eq!(lines("docs/decisions/0001-a.md", phrase), [] as [usize; 0]);
        assert_eq!(lines("docs/decisions.md", phrase), [1]);
    }
}
