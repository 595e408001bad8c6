//! How many findings of a rule each package or folder may still have. The counts only fall.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Finding;
use crate::Result;
use crate::workspace::Workspace;

const FILE: &str = "xtask/ceilings.toml";
const HEADER: &str = "\
# How many findings of `cargo xtask tidy` each package or folder may still have. Without a row the ceiling is 0.
# After corrections run `cargo xtask tidy --lower-ceilings`, which never raises a row.
";
const LOWER: &str = "run `cargo xtask tidy --lower-ceilings`";

/// Folders whose folders are packages and suites.
const PACKAGES: [&str; 2] = ["crates/", "tests/"];

/// Counts by package or folder.
type Counts = BTreeMap<String, usize>;

/// The committed ceilings, by rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ceilings(BTreeMap<String, Counts>);

impl Ceilings {
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let text = workspace.text(FILE)?.unwrap_or_default();
        Self::parse(&text).map_err(|error| format!("{FILE}: {error}").into())
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(Self(toml::from_str(text)?))
    }

    pub(super) fn write(&self, workspace: &Workspace) -> Result<()> {
        Ok(std::fs::write(workspace.path(FILE), self.to_string()?)?)
    }

    fn to_string(&self) -> Result<String> {
        let mut text = HEADER.to_owned();
        for (rule, rows) in &self.0 {
            write!(text, "\n[{rule}]\n")?;
            for (group, ceiling) in rows {
                writeln!(text, "\"{group}\" = {ceiling}")?;
            }
        }
        Ok(text)
    }

    /// Compares the findings of a rule with its ceilings. A group above its ceiling is reported with all its findings.
    pub(super) fn faults(&self, rule: &str, findings: &[Finding]) -> Vec<String> {
        let counts = count(findings);
        let rows = self.0.get(rule);
        let named = rows.into_iter().flat_map(BTreeMap::keys);
        let all: BTreeSet<&String> = counts.keys().chain(named).collect();
        let mut faults = Vec::new();
        for group in all {
            let count = counts.get(group).copied().unwrap_or_default();
            let row = rows.and_then(|rows| rows.get(group)).copied();
            let ceiling = row.unwrap_or_default();
            match count.cmp(&ceiling) {
                Ordering::Greater => {
                    let here = findings
                        .iter()
                        .filter(|found| group_of(&found.file) == *group);
                    faults.extend(here.map(ToString::to_string));
                    faults.push(format!("{group}: {count} {rule}, the ceiling is {ceiling}"));
                }
                Ordering::Equal if row != Some(0) => {}
                _ => faults.push(format!(
                    "{FILE}: {group}: {count} {rule}, the ceiling is {ceiling}: {LOWER}"
                )),
            }
        }
        faults
    }

    /// Lowers the rows of a rule to the counts of its findings.
    pub(super) fn lower(&mut self, rule: &str, findings: &[Finding]) {
        let counts = count(findings);
        let Some(rows) = self.0.get_mut(rule) else {
            return;
        };
        for (group, ceiling) in rows.iter_mut() {
            let count = counts.get(group).copied().unwrap_or_default();
            *ceiling = count.min(*ceiling);
        }
        rows.retain(|_, ceiling| *ceiling > 0);
        self.0.retain(|_, rows| !rows.is_empty());
    }
}

/// What the ceilings count by: a folder of `crates` or `tests`, else the first folder of the path. A file of the root is a
/// group of its own.
fn group_of(file: &str) -> &str {
    let depth = if PACKAGES.iter().any(|folder| file.starts_with(folder)) {
        2
    } else {
        1
    };
    let end = file.match_indices('/').nth(depth - 1);
    end.and_then(|(end, _)| file.get(..end)).unwrap_or(file)
}

fn count(findings: &[Finding]) -> Counts {
    let mut counts = Counts::new();
    for found in findings {
        *counts.entry(group_of(&found.file).to_owned()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{Ceilings, group_of};
    use crate::tidy::Finding;

    fn findings(files: &[&str]) -> Vec<Finding> {
        let finding = |file: &&str| Finding {
            file: (*file).to_owned(),
            line: 7,
            text: "`x`: write y".to_owned(),
        };
        files.iter().map(finding).collect()
    }

    fn faults(ceilings: &str, files: &[&str]) -> Vec<String> {
        let ceilings = Ceilings::parse(ceilings).unwrap();
        ceilings.faults("phrases", &findings(files))
    }

    #[test]
    fn files_belong_to_their_package_or_folder() {
        for (file, expected) in [
            ("crates/a/src/b.rs", "crates/a"),
            ("tests/b/clients/c.py", "tests/b"),
            ("tests/README.md", "tests/README.md"),
            ("docs/contract/a.md", "docs"),
            ("xtask/src/a/b.rs", "xtask"),
            ("README.md", "README.md"),
        ] {
            assert_eq!(group_of(file), expected);
        }
    }

    #[test]
    fn counts_at_their_ceiling_are_no_faults() {
        let two = ["crates/a/src/b.rs", "crates/a/src/c.rs"];
        let rows = "[phrases]\n\"crates/a\" = 2\n[test-names]\n\"docs\" = 1\n";
        assert_eq!(faults(rows, &two), [] as [String; 0]);
        assert_eq!(faults("", &[]), [] as [String; 0]);
    }

    #[test]
    fn counts_above_their_ceiling_list_every_finding_of_the_group() {
        let files = ["crates/a/src/b.rs", "crates/a/src/c.rs", "docs/d.md"];
        let rows = "[phrases]\n\"crates/a\" = 1\n\"docs\" = 1\n";
        assert_eq!(
            faults(rows, &files),
            [
                "crates/a/src/b.rs:7: `x`: write y",
                "crates/a/src/c.rs:7: `x`: write y",
                "crates/a: 2 phrases, the ceiling is 1",
            ]
        );
        assert_eq!(
            faults("", &["docs/d.md"]),
            [
                "docs/d.md:7: `x`: write y",
                "docs: 1 phrases, the ceiling is 0"
            ]
        );
    }

    #[test]
    fn ceilings_above_their_count_are_faults() {
        let fault = |group: &str, count: usize, ceiling: usize| {
            [format!(
                "xtask/ceilings.toml: {group}: {count} phrases, the ceiling is {ceiling}: \
                 run `cargo xtask tidy --lower-ceilings`"
            )]
        };
        assert_eq!(
            faults("[phrases]\ndocs = 3\n", &["docs/d.md"]),
            fault("docs", 1, 3)
        );
        assert_eq!(faults("[phrases]\ngone = 3\n", &[]), fault("gone", 0, 3));
        assert_eq!(faults("[phrases]\ndocs = 0\n", &[]), fault("docs", 0, 0));
    }

    #[test]
    fn lowering_never_raises_and_deletes_rows_without_findings() {
        let rows = "[phrases]\n\"crates/a\" = 3\ndocs = 1\ngone = 2\n";
        let mut ceilings = Ceilings::parse(rows).unwrap();
        let files = ["crates/a/b.rs", "docs/d.md", "docs/e.md", "README.md"];
        ceilings.lower("phrases", &findings(&files));
        let lowered = Ceilings::parse("[phrases]\n\"crates/a\" = 1\ndocs = 1\n").unwrap();
        assert_eq!(ceilings, lowered);
        assert_eq!(
            Ceilings::parse(&ceilings.to_string().unwrap()).unwrap(),
            lowered
        );
        ceilings.lower("phrases", &[]);
        assert_eq!(ceilings, Ceilings::default());
    }
}
