//! The map at the end of ARCHITECTURE.md and the steps of docs/changing.md name files that exist, and symbols that these contain.
//!
//! A cell or a step names a file as `` `crates/pools-core/src/quote.rs` ``, or a folder with a slash at its end. A symbol in parentheses
//! after the file, `` (`Quote`) ``, must occur in it as a whole word. An import in Rust does not count.

use xtask::Result;
use xtask::source::has_word;
use xtask::workspace::Workspace;

const PAGE: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Where does my change go?";
const STEPS: &str = "docs/changing.md";

/// The longest row of the map.
const MAX_ROW: usize = 200;

/// Changes that a stranger must find: a part of the row's first cell, and a file that the row or its steps name.
const CHANGES: [(&str, &str); 11] = [
    ("error code", "crates/pools-core/src/batch.rs"),
    ("rail", "crates/providers/src/sandbox_rail.rs"),
    ("trade state", "crates/store-sql/src/trades.rs"),
    ("capability", "crates/gate-http/src/capabilities.rs"),
    ("store a field", "crates/store-sql/src/quotes.rs"),
    ("database", "crates/runtime/src/store.rs"),
    ("default limit", "crates/runtime/src/config/setting.rs"),
    ("webhook event", "crates/gate-http/src/event_docs.rs"),
    ("source of rates", "crates/partner-core/src/ports.rs"),
    ("engine", "crates/pools-core/src/ports/engine.rs"),
    ("operator command", "crates/penstock/src/arguments.rs"),
];

/// The starts of an import or a re-export.
const IMPORTS: [&str; 4] = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];

/// A file or folder that a text names.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: String,
    symbols: Vec<String>,
}

/// The rows of the map.
fn rows(page: &str) -> Vec<&str> {
    let section = page.split(SECTION).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.skip(2).collect()
}

/// The cells of a row: what to change, and what to open first.
fn cells(row: &str) -> (&str, &str) {
    let cells = row.trim_matches(['|', ' ']);
    cells.split_once(" | ").unwrap_or((cells, ""))
}

/// The sections of the page of steps: heading and text.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let sections = page.split("\n## ").skip(1);
    sections
        .filter_map(|section| section.split_once('\n'))
        .collect()
}

/// The section that the first cell of a row links to.
fn steps<'page>(cell: &str, sections: &[(&'page str, &'page str)]) -> Option<&'page str> {
    let (_, anchor) = cell.strip_suffix(')')?.split_once("(docs/changing.md#")?;
    let section = sections
        .iter()
        .find(|(heading, _)| heading.to_lowercase().replace(' ', "-") == anchor);
    section.map(|(_, text)| *text)
}

/// The inline code of a text, with what precedes it. A line break is a space.
fn codes(text: &str) -> Vec<(String, String)> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = text.split('`').collect();
    let (pairs, _) = parts.as_chunks::<2>();
    pairs
        .iter()
        .map(|[text, code]| ((*text).to_owned(), (*code).to_owned()))
        .collect()
}

fn is_path(code: &str) -> bool {
    !code.contains(' ') && (code.contains('/') || code == "Cargo.toml" || code == "deny.toml")
}

fn places(text: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (before, code) in codes(text) {
        if is_path(&code) {
            places.push(Place {
                path: code,
                symbols: Vec::new(),
            });
        } else if (before == " (" || before == ", ")
            && let Some(place) = places.last_mut()
        {
            place.symbols.push(code);
        }
    }
    places
}

/// Rust source without its imports and re-exports, which name symbols of other files.
fn without_imports(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut is_import = false;
    for line in source.lines() {
        is_import |= IMPORTS
            .iter()
            .any(|start| line.trim_start().starts_with(start));
        if !is_import {
            kept.push_str(line);
            kept.push('\n');
        }
        is_import &= !line.contains(';');
    }
    kept
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
    let text = if place.path.ends_with(".rs") {
        without_imports(&text)
    } else {
        text
    };
    let missing = place.symbols.iter().find(|symbol| !has_word(&text, symbol));
    Ok(missing.map(|symbol| format!("{} does not contain `{symbol}`", place.path)))
}

/// The faults of all places of a text, which must name at least one.
fn faults(workspace: &Workspace, name: &str, text: &str) -> Result<Vec<String>> {
    let places = places(text);
    let mut faults = Vec::new();
    if places.is_empty() {
        faults.push(format!("{name}: no file is named"));
    }
    for place in places {
        let found = fault(workspace, &place)?;
        faults.extend(found.map(|fault| format!("{name}: {fault}")));
    }
    Ok(faults)
}

#[test]
fn architecture_map_names_files_and_symbols_that_exist() {
    let workspace = Workspace::find().unwrap();
    let page = workspace.text(PAGE).unwrap().unwrap();
    let rows = rows(&page);
    assert!(rows.len() >= 15, "{} rows: is the table gone?", rows.len());
    let mut found = Vec::new();
    for row in rows {
        let (change, first) = cells(row);
        found.extend(faults(&workspace, change, first).unwrap());
        let length = row.chars().count();
        if length > MAX_ROW {
            found.push(format!(
                "{change}: the row has {length} characters, at most {MAX_ROW} are allowed; move the rest to {STEPS}"
            ));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn steps_of_changes_name_files_and_symbols_that_exist() {
    let workspace = Workspace::find().unwrap();
    let page = workspace.text(STEPS).unwrap().unwrap();
    let sections = sections(&page);
    assert!(sections.len() >= 15, "{} sections", sections.len());
    let mut found = Vec::new();
    for (heading, text) in sections {
        found.extend(faults(&workspace, heading, text).unwrap());
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn architecture_map_links_to_every_section_of_steps() {
    let workspace = Workspace::find().unwrap();
    let (map, page) = (
        workspace.text(PAGE).unwrap().unwrap(),
        workspace.text(STEPS).unwrap().unwrap(),
    );
    let sections = sections(&page);
    let rows = rows(&map);
    let linked: Vec<&str> = rows
        .iter()
        .filter_map(|row| steps(cells(row).0, &sections))
        .collect();
    let missing: Vec<&str> = sections
        .iter()
        .filter(|(_, text)| !linked.contains(text))
        .map(|(heading, _)| *heading)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn changes_of_every_kind_are_found_in_the_map() {
    let workspace = Workspace::find().unwrap();
    let (map, page) = (
        workspace.text(PAGE).unwrap().unwrap(),
        workspace.text(STEPS).unwrap().unwrap(),
    );
    let (rows, sections) = (rows(&map), sections(&page));
    for (change, file) in CHANGES {
        let is_found = rows.iter().any(|row| {
            let (cell, first) = cells(row);
            let steps = steps(cell, &sections).unwrap_or_default();
            let (first, steps) = (places(first), places(steps));
            let mut named = first.iter().chain(&steps);
            cell.contains(change) && named.any(|place| place.path == file)
        });
        assert!(is_found, "no row about `{change}` leads to {file}");
    }
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
        .map(|(_, code)| code.as_str())
        .collect();
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn place_has_its_path_and_the_symbols_after_it() {
    let found = places(
        "`crates/a/src/b.rs`\n   (`C`, `D`), a folder `migrations/sqlite/`; `cargo xtask rules`",
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
fn symbol_is_absent_when_only_imported() {
    let source = "pub use engine::{\n    Depth, Engine,\n};\npub(crate) use open;\nstruct Order;\n";
    assert_eq!(without_imports(source), "struct Order;\n");
}

#[test]
fn row_leads_to_the_section_that_its_link_names() {
    let sections = sections("# Page\n\nIntroduction.\n\n## A\n\nOne.\n\n## Two words\n\nTwo.\n");
    let (cell, first) = cells("| [change it](docs/changing.md#two-words) | `a/b.rs` |");
    assert_eq!(first, "`a/b.rs`");
    assert_eq!(steps(cell, &sections), Some("\nTwo.\n"));
    assert_eq!(steps("change it", &sections), None);
    assert_eq!(
        steps("[change it](docs/changing.md#three)", &sections),
        None
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
