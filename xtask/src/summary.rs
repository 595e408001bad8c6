//! Reads the counts of tests from the last lines of their runners.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// Reads the line of one binary: `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...`.
    pub(crate) fn of_libtest(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let mut counts = Self::default();
        for (number, what) in numbered(rest) {
            match what {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                "ignored" => counts.skipped += number,
                _ => {}
            }
        }
        Some(counts)
    }

    /// Reads the last line of pytest: `2 failed, 10 passed, 1 skipped, 1 error in 3.21s`, with or without rulers.
    pub(crate) fn of_pytest(line: &str) -> Option<Self> {
        let line = line.trim_matches(|c| c == '=' || c == ' ');
        let (before, seconds) = line.rsplit_once(" in ")?;
        let seconds = seconds.split(' ').next()?.strip_suffix('s')?;
        seconds.parse::<f64>().ok()?;
        let mut counts = Self::default();
        let mut any = before == "no tests ran";
        for (number, what) in numbered(before) {
            match what {
                "passed" | "xpassed" => counts.passed += number,
                "failed" | "error" | "errors" => counts.failed += number,
                "skipped" | "xfailed" => counts.skipped += number,
                "deselected" | "warning" | "warnings" => {}
                _ => return None,
            }
            any = true;
        }
        any.then_some(counts)
    }

    /// Reads the counts of a program of this project: `3 passed, 1 failed` or `3 passed, 1 failed, 2 skipped`.
    pub(crate) fn of_plain(line: &str) -> Option<Self> {
        let (passed, rest) = line.split_once(" passed, ")?;
        let (failed, skipped) = rest.split_once(" failed")?;
        let skipped = match skipped {
            "" => 0,
            more => more
                .strip_prefix(", ")?
                .strip_suffix(" skipped")?
                .parse()
                .ok()?,
        };
        Some(Self {
            passed: passed.parse().ok()?,
            failed: failed.parse().ok()?,
            skipped,
        })
    }

    /// Returns whether no test ran. Such a run proves nothing.
    pub(crate) fn is_empty(self) -> bool {
        self.passed + self.failed == 0
    }
}

/// Returns each number with the word after it.
fn numbered(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let words = text.split([' ', ',', ';']).filter(|word| !word.is_empty());
    let next = words.clone().skip(1);
    words
        .zip(next)
        .filter_map(|(number, what)| Some((number.parse().ok()?, what)))
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts {
            passed,
            failed,
            skipped,
        }
    }

    /// Reads lines. A line has numbers of passed, failed and skipped tests, or no counts.
    fn reads(read: fn(&str) -> Option<Counts>, lines: &[(&str, Option<[u64; 3]>)]) {
        for (line, expected) in lines {
            let expected =
                expected.map(|[passed, failed, skipped]| counts(passed, failed, skipped));
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn libtest_lines_are_counted() {
        let ended = "test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.01s";
        let failed = "test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured";
        let coloured = "test result: \u{1b}[32mok\u{1b}(B\u{1b}[m. 7 passed; 0 failed; 0 ignored";
        let lines = [
            (ended, Some([12, 0, 2])),
            (failed, Some([1, 4, 0])),
            (coloured, Some([7, 0, 0])),
            ("running 3 tests", None),
            ("test a::b ... ok", None),
            ("  test result: 3 passed", None),
        ];
        reads(Counts::of_libtest, &lines);
    }

    #[test]
    fn pytest_closing_lines_are_counted() {
        let all =
            "1 failed, 2 passed, 3 skipped, 4 deselected, 5 warnings, 6 errors in 61.20s (0:01:01)";
        let ruled = "===== 2 passed, 1 xfailed, 1 xpassed in 1.00s =====";
        let lines = [
            ("3 passed in 0.12s", Some([3, 0, 0])),
            (all, Some([2, 7, 3])),
            (ruled, Some([3, 0, 1])),
            ("no tests ran in 0.01s", Some([0, 0, 0])),
            ("tests/conformance/test_a.py ....  [100%]", None),
            ("4 apples in 3s", None),
            ("3 passed in the night", None),
            ("", None),
        ];
        reads(Counts::of_pytest, &lines);
    }

    #[test]
    fn plain_closing_lines_are_counted() {
        let lines = [
            ("3 passed, 1 failed", Some([3, 1, 0])),
            ("3 passed, 1 failed, 2 skipped", Some([3, 1, 2])),
            ("some passed, 1 failed", None),
            ("3 passed, 1 failed, 2 more", None),
            ("3 passed", None),
        ];
        reads(Counts::of_plain, &lines);
    }

    #[test]
    fn summary_names_skipped_tests_only_if_there_are_some() {
        let mut sum = counts(1, 0, 0);
        sum += counts(2, 1, 0);
        assert_eq!(sum.to_string(), "3 passed, 1 failed");
        sum += counts(0, 0, 2);
        assert_eq!(sum.to_string(), "3 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn run_of_ignored_tests_is_empty() {
        assert!(counts(0, 0, 3).is_empty());
        assert!(!counts(0, 1, 0).is_empty());
    }
}
