//! Tests of the page, with a small contract built by the same functions as the real contracts.

use serde_json::json;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem, Paths};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, Info, OpenApi, Ref, ResponseBuilder, Schema};

use super::*;
use crate::codes::{RATE_LIMITED, SECRET_KEY_IN_QUERY, SHARED_ERRORS, UNAUTHORIZED};
use crate::openapi::{Contract, SECRET_KEY, WebhookDoc, describe, list_of, to_value, to_yaml};

fn contract() -> Contract {
    let content = Content::new(Some(Ref::from_schema_name("Things")));
    let mut operation = OperationBuilder::new()
        .operation_id(Some("listThings"))
        .summary(Some("List <things>"))
        .description(Some("Reads `things`."))
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
    let mut info = Info::new("Things API", "2026-05-25");
    info.description = Some("Things.\n\n- one\n- two".to_owned());
    let thing = ObjectBuilder::new()
        .property(
            "id",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .description(Some("Its <id>.")),
        )
        .property("next", Ref::from_schema_name("Thing"))
        .required("id");
    Contract::new(OpenApi::new(info, paths))
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
fn same_contract_renders_same_bytes() {
    let yaml = to_yaml(&complete()).unwrap();
    assert_eq!(yaml, to_yaml(&complete()).unwrap());
    assert!(yaml.starts_with("openapi: 3.1.0\n"), "{yaml}");
}

#[test]
fn page_is_complete_and_self_contained() {
    let html = render_docs(
        &to_value(&complete()).unwrap(),
        SHARED_ERRORS,
        &[Linked {
            title: "Things API".to_owned(),
            yaml_path: "/openapi/things-v1.yaml".to_owned(),
            json_path: "/openapi/things-v1.json".to_owned(),
        }],
    );
    for needed in [
        "<title>Things API</title>",
        "id=\"listThings\"",
        "List &lt;things&gt;",
        "Its &lt;id&gt;.",
        "href=\"#unauthorized\"",
        "A thing is done",
        "Things-Signature",
        "<code>[].id</code>",
        "href=\"/openapi/things-v1.yaml\"",
        "href=\"/openapi/things-v1.json\"",
        "<td role=\"cell\" data-label=\"Type\">string</td>",
        "id=\"event-",
        "prefers-color-scheme:dark",
        "curl -X GET &quot;$BASE_URL/things/",
        "href=\"#glossary\"",
        "<td role=\"cell\">velocity cap</td><td role=\"cell\">",
        "<td role=\"cell\">mode</td><td role=\"cell\"><code>test</code> (no real money)",
    ] {
        assert!(html.contains(needed), "{needed}");
    }
    for code in SHARED_ERRORS {
        let anchor = format!("id=\"{}\"", code.text);
        assert!(html.contains(&anchor), "{anchor}");
    }
    // The fields of a response are not marked as required.
    assert!(!html.contains("class=\"required\""));
    for foreign in [
        "<script",
        "http-equiv",
        "src=",
        "@import",
        "<link",
        "List <things>",
    ] {
        assert!(!html.contains(foreign), "{foreign}");
    }
}
