//! The committed documents test the rest.

use utoipa::openapi::{OpenApiBuilder, PathsBuilder};

use super::*;

#[test]
fn finish_reports_operation_with_unknown_tag() {
    let operation = OperationBuilder::new()
        .operation_id(Some("listStars"))
        .tag("Stars")
        .build();
    let api = OpenApiBuilder::new()
        .paths(PathsBuilder::new().path("/stars", PathItem::new(HttpMethod::Get, operation)))
        .build();
    let contract = |groups| Contract::new(api.clone()).tags(groups).finish();
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
