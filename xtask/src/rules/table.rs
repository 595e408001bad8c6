//! The list of rules, and the page that lists them with their tests.

use serde::Deserialize;

use super::Tests;
use crate::Result;

/// A rule of the contract that can be broken independently of the others.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) area: String,
    pub(super) text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    rule: Vec<Rule>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Rule>> {
    let Document { rule: rules } = toml::from_str(text)?;
    let faults = faults(&rules);
    if faults.is_empty() {
        return Ok(rules);
    }
    Err(faults.join("\n").into())
}

/// Tests name ids, so ids must be unique and simple. Areas are headings, so the rules of an area must be adjacent.
fn faults(rules: &[Rule]) -> Vec<String> {
    let mut faults = Vec::new();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
    for (n, rule) in rules.iter().enumerate() {
        let earlier = rules.get(..n).unwrap_or_default();
        if !rule.id.contains('.') || !rule.id.chars().all(plain) {
            faults.push(format!(
                "`{}` is not a dotted id of lower-case words",
                rule.id
            ));
        }
        if rule.area.trim().is_empty() || rule.text.trim().is_empty() {
            faults.push(format!("`{}` has an empty area or text", rule.id));
        }
        if earlier.iter().any(|other| other.id == rule.id) {
            faults.push(format!("`{}` stands twice", rule.id));
        }
        let reopened = earlier.last().is_some_and(|last| last.area != rule.area)
            && earlier.iter().any(|other| other.area == rule.area);
        if reopened {
            faults.push(format!(
                "`{}`: area `{}` is not in one piece",
                rule.id, rule.area
            ));
        }
        if rule.text.contains(['|', '\n']) {
            faults.push(format!(
                "`{}`: the text of a table cell has no `|` and no line break",
                rule.id
            ));
        }
    }
    faults
}

pub(super) fn untested<'a>(rules: &'a [Rule], tests: &'a Tests) -> impl Iterator<Item = &'a Rule> {
    rules.iter().filter(|rule| !tests.contains_key(&rule.id))
}

pub(super) fn render(rules: &[Rule], tests: &Tests) -> String {
    let missing: Vec<&Rule> = untested(rules, tests).collect();
    let mut page = String::from(
        "# Rules and the tests that fail if a rule is broken\n\n\
         From `docs/contract/rules.toml` and the `rule:` comments above the tests.\n\n",
    );
    page.push_str(&format!(
        "## Without a test: {} of {}\n\n",
        missing.len(),
        rules.len()
    ));
    for rule in &missing {
        page.push_str(&format!("- `{}`\n", rule.id));
    }
    if missing.is_empty() {
        page.push_str("None.\n");
    }
    let mut area = "";
    for rule in rules {
        if rule.area != area {
            area = &rule.area;
            page.push_str(&format!(
                "\n## {area}\n\n| rule | what holds | tests |\n| --- | --- | --- |\n"
            ));
        }
        let tests: Vec<String> = tests
            .get(&rule.id)
            .into_iter()
            .flatten()
            .map(|test| format!("`{test}`"))
            .collect();
        page.push_str(&format!(
            "| `{}` | {} | {} |\n",
            rule.id,
            rule.text,
            tests.join("<br>")
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{Tests, parse, render};

    fn row(id: &str, area: &str) -> String {
        format!("[[rule]]\nid = \"{id}\"\narea = \"{area}\"\ntext = \"Text of {id}.\"\n")
    }

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn rules_are_read_in_their_order() {
        let rules = parse(&[row("b.x", "B"), row("a.x", "A")].concat()).unwrap();
        let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids, ["b.x", "a.x"]);
    }

    #[test]
    fn broken_list_is_refused() {
        assert!(refused("").contains("missing field `rule`"));
        assert!(refused("[[rule]]\nid = \"a.b\"\narea = \"A\"\n").contains("missing field `text`"));
        assert!(refused(&[row("a.x", "A"), row("a.x", "A")].concat()).contains("stands twice"));
        assert!(refused(&row("a.x", " ")).contains("empty area or text"));
        assert!(refused(&row("A x", "A")).contains("not a dotted id"));
        let split = [row("a.x", "A"), row("b.x", "B"), row("a.y", "A")].concat();
        assert!(refused(&split).contains("not in one piece"));
    }

    #[test]
    fn page_starts_with_rules_that_have_no_test() {
        let rules = parse(&[row("a.x", "A"), row("a.y", "A"), row("b.x", "B")].concat()).unwrap();
        let mut tests = Tests::new();
        tests
            .entry("a.y".into())
            .or_default()
            .extend(["f.rs::one".to_owned(), "f.rs::two".to_owned()]);
        let page = render(&rules, &tests);
        assert!(page.contains("## Without a test: 2 of 3\n\n- `a.x`\n- `b.x`\n\n## A\n"));
        assert!(page.contains("| `a.y` | Text of a.y. | `f.rs::one`<br>`f.rs::two` |\n"));
        assert!(page.contains("| `a.x` | Text of a.x. |  |\n"));
        assert_eq!(page.matches("| rule | what holds | tests |").count(), 2);
    }
}
