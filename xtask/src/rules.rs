//! `cargo xtask rules`: lists the tests of each rule of the contract, and fails if a rule has no test.

mod annotations;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use annotations::Annotated;
use table::Rule;

use crate::Result;
use crate::workspace::Workspace;

const SOURCE: &str = "docs/contract/rules.toml";

/// The tests that name a rule, as `file::function`, by the id of the rule.
type Tests = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let listed = fs::read_to_string(workspace.path(SOURCE));
    let rules = table::parse(&listed.map_err(|error| format!("{SOURCE}: {error}"))?)
        .map_err(|error| format!("{SOURCE}: {error}"))?;
    let tests = collect(workspace, &rules)?;
    let untested: Vec<&str> = table::untested(&rules, &tests)
        .map(|rule| rule.id.as_str())
        .collect();
    if !check {
        print!("{}", table::render(&rules, &tests));
        return Ok(());
    }
    if !untested.is_empty() {
        return Err(format!("rules without a test: {}", untested.join(", ")).into());
    }
    println!("{} rules, each with a test", rules.len());
    Ok(())
}

fn collect(workspace: &Workspace, rules: &[Rule]) -> Result<Tests> {
    let reader = annotations::Reader::new()?;
    let mut tests = Tests::new();
    let mut faults = Vec::new();
    for file in workspace.files()? {
        let Some(language) = annotations::language(&file) else {
            continue;
        };
        let Some(text) = workspace.text(&file)? else {
            continue;
        };
        let found = reader.read(&text, language);
        faults.extend(
            found
                .faults
                .iter()
                .map(|fault| format!("{file}:{}: {}", fault.line, fault.what)),
        );
        for annotated in found.tests {
            add(&mut tests, &mut faults, rules, &file, &annotated);
        }
    }
    if faults.is_empty() {
        return Ok(tests);
    }
    Err(format!("{} bad annotations\n{}", faults.len(), faults.join("\n")).into())
}

/// Adds an annotated test to its rules, or a fault if no such rule exists.
fn add(
    tests: &mut Tests,
    faults: &mut Vec<String>,
    rules: &[Rule],
    file: &str,
    annotated: &Annotated,
) {
    for id in &annotated.rules {
        if rules.iter().any(|rule| rule.id == *id) {
            let test = format!("{file}::{}", annotated.function);
            tests.entry(id.clone()).or_default().insert(test);
        } else {
            faults.push(format!(
                "{file}:{}: no rule `{id}` in {SOURCE}",
                annotated.line
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::annotations::Annotated;
    use super::table::Rule;
    use super::{Tests, add};

    #[test]
    fn unknown_rule_is_a_fault_and_known_rule_is_recorded() {
        let rules = [Rule {
            id: "a.b".into(),
            area: "a".into(),
            text: "t".into(),
        }];
        let annotated = Annotated {
            rules: vec!["a.b".into(), "a.c".into()],
            function: "holds".into(),
            line: 7,
        };
        let (mut tests, mut faults) = (Tests::new(), Vec::new());
        add(&mut tests, &mut faults, &rules, "x.rs", &annotated);
        assert_eq!(tests["a.b"].iter().collect::<Vec<_>>(), ["x.rs::holds"]);
        assert_eq!(
            faults,
            ["x.rs:7: no rule `a.c` in docs/contract/rules.toml"]
        );
    }
}
