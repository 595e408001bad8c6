//! "Where does my change go?" in ARCHITECTURE.md names files that exist, and symbols that they contain.
//!
//! A row names a file as `` `crates/pools-core/src/quote.rs` ``, or a folder with a slash at its end. A symbol in parentheses behind
//! it, `` (`Quote`) ``, must occur in that file as a whole word.

use xtask::Result;
use xtask::source::has_word;
use xtask::workspace::Workspace;

const PAGE: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Where does my change go?";

/// A place that a row names.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: String,
    symbols: Vec<String>,
}

/// The second cell of each row of the section's table.
fn rows(page: &str) -> Vec<&str> {
    let section = page.split(SECTION).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.skip(2)
        .filter_map(|row| row.split(" | ").nth(1))
        .collect()
}

/// The inline code of a cell, with what precedes it.
fn codes(cell: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = cell.split('`').collect();
    let (pairs, _) = parts.as_chunks::<2>();
    pairs.iter().map(|[text, code]| (*text, *code)).collect()
}

fn is_path(code: &str) -> bool {
    !code.contains(' ') && (code.contains('/') || code == "Cargo.toml" || code == "deny.toml")
}

fn places(cell: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (before, code) in codes(cell) {
        if is_path(code) {
            places.push(Place {
                path: code.to_owned(),
                symbols: Vec::new(),
            });
        } else if (before == " (" || before == ", ")
            && let Some(place) = places.last_mut()
        {
            place.symbols.push(code.to_owned());
        }
    }
    places
}

/// What is wrong with a place; `None` if nothing is.
fn fault(workspace: &Workspace, place: &Place) -> Result<Option<String>> {
    let path = workspace.path(&place.path);
    if place.path.ends_with('/') {
        return Ok((!path.is_dir()).then(|| format!("{}: no such folder", place.path)));
    }
    let text = if path.is_file() {
        workspace.text(&place.path)?
    } else {
        None
    };
    let Some(text) = text else {
        return Ok(Some(format!("{}: no such text file", place.path)));
    };
    let missing = place.symbols.iter().find(|symbol| !has_word(&text, symbol));
    Ok(missing.map(|symbol| format!("{} does not contain `{symbol}`", place.path)))
}

#[test]
fn architecture_map_names_files_and_symbols_that_exist() {
    let workspace = Workspace::find().unwrap();
    let page = workspace.text(PAGE).unwrap().unwrap();
    let rows = rows(&page);
    assert!(rows.len() >= 15, "{} rows: is the table gone?", rows.len());
    let mut faults = Vec::new();
    for row in rows {
        let places = places(row);
        if places.is_empty() && !row.contains("](") {
            faults.push(format!("no file is named: {row}"));
        }
        for place in places {
            faults.extend(fault(&workspace, &place).unwrap());
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn architecture_names_no_source_file_that_is_gone() {
    let workspace = Workspace::find().unwrap();
    let page = workspace.text(PAGE).unwrap().unwrap();
    let files = workspace.files().unwrap();
    let exists = |name: &str| {
        files
            .iter()
            .any(|file| file == name || file.ends_with(&format!("/{name}")))
    };
    let codes = codes(&page);
    let sources = codes.iter().filter(|(_, code)| code.ends_with(".rs"));
    let gone: Vec<&str> = sources
        // The path of a crate's file is given without `src/`.
        .filter(|(_, code)| !exists(code) && !exists(&code.replacen('/', "/src/", 1)))
        .map(|(_, code)| *code)
        .collect();
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn place_has_its_path_and_the_symbols_behind_it() {
    let found = places(
        "`crates/a/src/b.rs` (`C`, `D`), a folder `migrations/sqlite/`; `cargo xtask rules`",
    );
    let place = |path: &str, symbols: &[&str]| Place {
        path: path.to_owned(),
        symbols: symbols.iter().map(|symbol| (*symbol).to_owned()).collect(),
    };
    assert_eq!(
        found,
        [
            place("crates/a/src/b.rs", &["C", "D"]),
            place("migrations/sqlite/", &[])
        ]
    );
}

#[test]
fn place_that_is_gone_or_lacks_its_symbol_is_a_fault() {
    let workspace = Workspace::find().unwrap();
    let fault = |cell| {
        let places = places(cell);
        fault(&workspace, &places[0]).unwrap()
    };
    assert_eq!(fault("`xtask/tests/map.rs` (`Place`)"), None);
    assert!(fault(concat!("`xtask/tests/map.rs` (`Abs", "ent`)")).is_some());
    assert!(fault("`xtask/tests/gone.rs`").is_some());
    assert!(fault("`xtask/gone/`").is_some());
}
