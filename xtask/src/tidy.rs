//! `cargo xtask tidy`: checks the house rules that a text search can enforce.

mod phrases;
mod plain;
mod prose;
mod test_names;

use std::fmt;
use std::path::Path;

use crate::source::code_only;
use crate::workspace::Workspace;
use crate::{Result, links, migrations, mutations};

const MAX_LINES: usize = 600;

/// Names that say nothing about the content. Such a file collects everything.
const EMPTY_NAMES: [&str; 4] = ["common", "helpers", "misc", "utils"];

/// The start of an ignored test. Clippy refuses other leftovers: `allow`, `todo!`, `unimplemented!`, `dbg!`.
const IGNORED: &str = "#[ignore";

/// Parts of paths of one machine. They are split, so that this file does not contain them.
const MACHINE_PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp/", "bash"),
];
const MARKER: &str = concat!("FIX", "ME");

/// The number of lines that may be exempt from the rule of plain language.
const MAX_ALLOWED: usize = 20;

/// A breach of a rule, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = workspace.files()?;
    let mut faults = read(workspace, &files)?;
    faults.extend(links::faults(workspace, &files)?);
    faults.extend(migrations::check_names(workspace));
    faults.extend(mutations::faults(workspace)?);
    if !faults.is_empty() {
        return Err(format!("{} faults\n{}", faults.len(), faults.join("\n")).into());
    }
    println!("{} files are tidy", files.len());
    Ok(())
}

fn read(workspace: &Workspace, files: &[String]) -> Result<Vec<String>> {
    let plain = plain::Reader::new()?;
    let test_names = test_names::Reader::new()?;
    let mut faults = Vec::new();
    let mut allowed = 0;
    for file in files {
        faults.extend(empty_name(file));
        faults.extend(old_module_name(file));
        let Some(text) = workspace.text(file)? else {
            continue;
        };
        faults.extend(in_text(file, &text));
        if file.ends_with(".rs") {
            faults.extend(in_rust(file, &text));
        }
        if file == "Cargo.toml" || file.ends_with("/Cargo.toml") {
            faults.extend(in_manifest(file, &text)?);
        }
        let report = plain.read(file, &text);
        faults.extend(report.findings.iter().map(ToString::to_string));
        allowed += report.allowed;
        faults.extend(report.faults);
        let misnamed = test_names.read(file, &text);
        faults.extend(misnamed.iter().map(ToString::to_string));
    }
    if allowed > MAX_ALLOWED {
        faults.push(format!(
            "{allowed} lines are marked `plain: allow`, at most {MAX_ALLOWED} may be"
        ));
    }
    Ok(faults)
}

fn empty_name(file: &str) -> Option<String> {
    let parts = Path::new(file)
        .iter()
        .map(|part| part.to_string_lossy().to_lowercase());
    let stems = parts.map(|part| part.split('.').next().unwrap_or_default().to_owned());
    let found = stems
        .into_iter()
        .find(|stem| EMPTY_NAMES.contains(&stem.as_str()))?;
    Some(format!(
        "{file}: `{found}` says nothing about the content; name the file after its entity"
    ))
}

/// Refuses a module `name/mod.rs`. Only the integration tests of a crate may share a module as `tests/name/mod.rs`.
fn old_module_name(file: &str) -> Option<String> {
    let parts: Vec<&str> = file.split('/').collect();
    match parts.as_slice() {
        ["crates", _, "tests", _, "mod.rs"] => None,
        [.., name, "mod.rs"] => Some(format!("{file}: call it `{name}.rs`, beside its folder")),
        _ => None,
    }
}

fn in_text(file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().filter(|path| line.contains(**path)) {
            faults.push(format!(
                "{file}:{}: `{path}` is a path of one machine",
                number + 1
            ));
        }
        if line.contains(MARKER) {
            faults.push(format!(
                "{file}:{}: {MARKER}: fix it, or write down why it is as it is",
                number + 1
            ));
        }
    }
    faults
}

fn in_rust(file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let length = text.lines().count();
    if length > MAX_LINES {
        faults.push(format!(
            "{file}: {length} lines, at most {MAX_LINES} are allowed: move an entity to its own file"
        ));
    }
    for (number, line) in code_only(text).lines().enumerate() {
        if line.contains(IGNORED) {
            faults.push(format!(
                "{file}:{}: an ignored test; run it or delete it",
                number + 1
            ));
        }
    }
    faults
}

fn in_manifest(file: &str, text: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = text.parse().map_err(|error| format!("{file}: {error}"))?;
    if !manifest.contains_key("package") {
        return Ok(Vec::new());
    }
    let inherited = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(toml::Value::as_bool);
    if inherited == Some(true) {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "{file}: add `[lints]` with `workspace = true`"
    )])
}

#[cfg(test)]
mod tests {
    use super::phrases::EXAMPLES;
    use super::{
        MACHINE_PATHS, MARKER, MAX_ALLOWED, empty_name, in_manifest, in_rust, in_text,
        old_module_name, read,
    };
    use crate::workspace::Workspace;

    #[test]
    fn read_reports_phrases_and_test_names_of_all_files() {
        let [phrase, ..] = EXAMPLES;
        let root = tempfile::tempdir().unwrap();
        let source = format!("//! {phrase}\n#[test]\nfn the_test() {{}}\n");
        std::fs::write(root.path().join("a.rs"), source).unwrap();
        std::fs::write(root.path().join("b.md"), phrase).unwrap();
        let files = ["a.rs", "b.md"].map(str::to_owned);
        let faults = read(&Workspace::at(root.path()), &files).unwrap();
        let places = ["a.rs:1: ", "a.rs:3: ", "b.md:1: "];
        assert_eq!(faults.len(), places.len(), "{faults:?}");
        for place in places {
            let mut at = faults.iter().filter(|fault| fault.starts_with(place));
            assert!(at.next().is_some(), "{place} {faults:?}");
        }
    }

    #[test]
    fn read_refuses_more_exemptions_than_the_limit() {
        let [phrase, ..] = EXAMPLES;
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(root.path());
        let too_many = |exemptions: usize| {
            let text = format!("{phrase} <!-- plain: allow -->\n").repeat(exemptions);
            std::fs::write(root.path().join("a.md"), text).unwrap();
            let faults = read(&workspace, &["a.md".to_owned()]).unwrap();
            faults.iter().any(|fault| fault.contains("are marked"))
        };
        assert!(!too_many(MAX_ALLOWED) && too_many(MAX_ALLOWED + 1));
    }

    #[test]
    fn modules_are_named_beside_their_folder() {
        for file in [
            "crates/a/src/b/mod.rs",
            "crates/a/tests/b/c/mod.rs",
            "tests/a/mod.rs",
        ] {
            assert!(old_module_name(file).is_some(), "{file}");
        }
        for file in [
            "crates/a/src/b.rs",
            "crates/a/src/amod.rs",
            "crates/a/tests/b/mod.rs",
        ] {
            assert!(old_module_name(file).is_none(), "{file}");
        }
    }

    #[test]
    fn names_that_say_nothing_are_refused_as_file_and_as_folder() {
        for file in [
            "crates/a/src/utils.rs",
            "tests/common/mod.rs",
            "a/Helpers.py",
            "misc.test.js",
        ] {
            assert!(empty_name(file).is_some(), "{file}");
        }
        for file in [
            "crates/a/src/utility.rs",
            "docs/uncommon.md",
            "a/commonplace/b.rs",
        ] {
            assert!(empty_name(file).is_none(), "{file}");
        }
    }

    #[test]
    fn ignored_tests_are_found_in_code_but_not_in_strings() {
        assert_eq!(in_rust("a.rs", "#[ignore = \"slow\"]").len(), 1);
        assert!(in_rust("a.rs", "let x = \"#[ignore]\"; // never #[ignore]").is_empty());
    }

    #[test]
    fn long_files_are_refused() {
        assert!(in_rust("a.rs", &"x\n".repeat(600)).is_empty());
        assert_eq!(in_rust("a.rs", &"x\n".repeat(601)).len(), 1);
    }

    #[test]
    fn machine_paths_and_markers_are_found_anywhere() {
        for path in MACHINE_PATHS {
            assert_eq!(in_text("a.md", &format!("see {path}x")).len(), 1);
        }
        assert_eq!(
            in_text("a.md", &format!("ok\n// {MARKER}")),
            [format!(
                "a.md:2: {MARKER}: fix it, or write down why it is as it is"
            )]
        );
        assert!(in_text("a.md", "networks, https://index.crates.io/, framework/x").is_empty());
    }

    #[test]
    fn every_package_inherits_the_lints() {
        let package = "[package]\nname = \"a\"\n";
        let faults = |text: &str| in_manifest("a", text).unwrap().len();
        assert_eq!(faults("[workspace]\nmembers = []"), 0);
        assert_eq!(faults(&format!("{package}[lints]\nworkspace = true")), 0);
        assert_eq!(faults(package), 1);
        assert_eq!(faults(&format!("{package}[lints.rust]\nx = \"warn\"")), 1);
        assert!(in_manifest("a", "[package").is_err());
    }
}
