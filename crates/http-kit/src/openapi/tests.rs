use serde_json::json;
use utoipa::openapi::{Content, Info, OpenApiBuilder, PathsBuilder};

use super::*;
use crate::codes::{RATE_LIMITED, SECRET_KEY_IN_QUERY, UNAUTHORIZED};

fn contract() -> Contract {
    let content = Content::new(Some(Ref::from_schema_name("Things")));
    let mut operation = OperationBuilder::new()
        .operation_id(Some("listThings"))
        .response(
            "200",
            ResponseBuilder::new()
                .description("Things.")
                .content("application/json", content),
        )
        .build();
    let codes = [UNAUTHORIZED, SECRET_KEY_IN_QUERY, RATE_LIMITED];
    describe(&mut operation, &[SECRET_KEY], codes.into_iter());
    let mut paths = Paths::new();
    paths.paths.insert(
        "/things/{id}".to_owned(),
        PathItem::new(HttpMethod::Get, operation),
    );
    let thing = ObjectBuilder::new()
        .property("id", ObjectBuilder::new().schema_type(Type::String))
        .required("id");
    Contract::new(OpenApi::new(Info::new("Things API", "2026-05-25"), paths))
        .schema("Thing", Schema::from(thing.build()))
        .schema("Things", list_of("Thing"))
}

fn complete() -> OpenApi {
    contract()
        .webhooks(
            &[WebhookDoc {
                name: "thing.done",
                summary: "A thing is done",
                description: "Sent once.",
                schema: "Thing",
                example: json!({"id": "t_1"}),
            }],
            "Things-Signature",
        )
        .headers(&["short"])
        .finish()
        .unwrap()
}

#[test]
fn contract_documents_shared_parts_of_every_operation() {
    let value = to_value(&complete()).unwrap();
    assert_eq!(value["openapi"], "3.1.0");
    let responses = &value["paths"]["/things/{id}"]["get"]["responses"];
    assert_eq!(responses["default"]["$ref"], "#/components/responses/Error");
    assert_eq!(
        responses["401"][X_CODES],
        json!(["unauthorized", "secret_key_in_query"])
    );
    for status in ["200", "401", "429"] {
        let headers = &responses[status]["headers"];
        let place = &headers["X-RateLimit-Reset-short"]["$ref"];
        assert_eq!(
            place, "#/components/headers/X-RateLimit-Reset-short",
            "{status}"
        );
        assert_eq!(headers.get("Retry-After-short").is_some(), status == "429");
        assert!(headers.get("X-Request-Id").is_some());
    }
    let error = &value["components"]["schemas"]["Error"];
    assert_eq!(error["required"].as_array().unwrap().len(), 6);
    let event = &value["webhooks"]["thing.done"]["post"];
    assert_eq!(
        event["parameters"][0]["$ref"],
        "#/components/parameters/Things-Signature"
    );
    assert_eq!(
        event["requestBody"]["content"]["application/json"]["example"]["id"],
        "t_1"
    );
}

#[test]
fn same_contract_gives_same_bytes() {
    let yaml = to_yaml(&complete()).unwrap();
    assert_eq!(yaml, to_yaml(&complete()).unwrap());
    assert!(yaml.starts_with("openapi: 3.1.0\n"), "{yaml}");
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
