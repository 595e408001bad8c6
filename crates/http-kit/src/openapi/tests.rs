use utoipa::openapi::{InfoBuilder, OpenApiBuilder, PathsBuilder};

use super::*;
use crate::error_docs::SHARED_ERRORS;

#[test]
fn finish_reports_operation_without_errors() {
    let operation = |id: &str| OperationBuilder::new().operation_id(Some(id)).build();
    for method in [HttpMethod::Get, HttpMethod::Head, HttpMethod::Trace] {
        let mut paths = Paths::new();
        for id in ["known", "forgotten"] {
            let item = PathItem::new(method.clone(), operation(id));
            paths.paths.insert(format!("/{id}"), item);
        }
        let api = OpenApiBuilder::new()
            .info(InfoBuilder::new().build())
            .paths(paths)
            .build();
        let contract = Contract::new(api, SHARED_ERRORS.iter().copied());
        let error = contract.errors("known", &["unauthorized"]).finish();
        assert_eq!(
            error.err().map(|error| error.0),
            Some(vec!["operation `forgotten` documents no errors".to_owned()])
        );
    }
}

#[test]
fn finish_reports_operation_with_unknown_tag() {
    let operation = OperationBuilder::new()
        .operation_id(Some("listStars"))
        .tag("Stars")
        .build();
    let api = OpenApiBuilder::new()
        .paths(PathsBuilder::new().path("/stars", PathItem::new(HttpMethod::Get, operation)))
        .build();
    let contract = |groups| {
        Contract::new(api.clone(), SHARED_ERRORS.iter().copied())
            .errors("listStars", &["unauthorized"])
            .tags(groups)
            .finish()
    };
    assert!(contract(&[("Stars", "What shines.")]).is_ok());
    assert_eq!(
        contract(&[("Moons", "What reflects.")])
            .err()
            .map(|error| error.0),
        Some(vec![
            "operation `listStars` has the unknown tag `Stars`".to_owned()
        ])
    );
}

#[test]
fn dates_and_addresses_are_strings_in_yaml_1_1() {
    for (line, written) in [
        ("  version: 2026-05-25", "  version: '2026-05-25'\n"),
        (
            "    example: 2026-05-25T12:00:00.000Z",
            "    example: '2026-05-25T12:00:00.000Z'\n",
        ),
        ("  - 2026-05-25", "  - '2026-05-25'\n"),
        (
            "  description: 2026-05-25 is the version",
            "  description: 2026-05-25 is the version\n",
        ),
        ("  count: 2026", "  count: 2026\n"),
        ("  example: 0x5aAe", "  example: '0x5aAe'\n"),
    ] {
        assert_eq!(with_quotes(line), written);
    }
}
