//! The committed reference pages are what the code renders.
//!
//! `cargo xtask openapi` rewrites them.

#[test]
fn committed_pages_are_up_to_date() {
    let mut stale = Vec::new();
    for (package, documents, errors) in [
        (
            "pools-http",
            pools_http::documents(),
            pools_http::error_codes().collect::<Vec<_>>(),
        ),
        (
            "gate-http",
            gate_http::documents(),
            gate_http::error_codes().collect(),
        ),
    ] {
        let documents = documents.unwrap();
        let (contract, others) = documents.split_first().unwrap();
        let page = reference_page::render(contract, others, &errors).unwrap();
        let file = format!("crates/{package}/src/reference.html");
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_DOCS").is_some_and(|set| set == "1") {
            std::fs::write(&path, &page).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        if committed != page {
            stale.push(file);
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} are out of date; run `cargo xtask openapi`"
    );
}
