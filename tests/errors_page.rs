//! The check of a page of errors, which is generated from the same list of codes as a service's `/docs` page.

use http_kit::{ErrorCode, errors_page};

/// Compares the page with the committed file, or rewrites the file if `UPDATE_DOCS` is 1. `cargo xtask openapi` does both.
pub(crate) fn check(file: &str, introduction: &str, codes: &[&ErrorCode]) {
    let page = errors_page(introduction, codes.iter().copied());
    for code in codes {
        let heading = format!("### {}", code.text);
        let found = page.lines().filter(|line| *line == heading).count();
        assert_eq!(found, 1, "{}", code.text);
    }
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_DOCS").is_some_and(|set| set == "1") {
        let rewritten = std::fs::write(&path, &page);
        assert!(rewritten.is_ok(), "docs/{file}: {rewritten:?}");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/{file} is out of date; run `cargo xtask openapi`"
    );
}
