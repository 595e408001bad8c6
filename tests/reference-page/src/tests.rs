//! Tests of the page, with a small contract that has the parts of the real ones.

use http_kit::codes::SHARED_ERRORS;

use super::*;

const CONTRACT: &str = r##"{
  "openapi": "3.1.0",
  "info": {
    "title": "Things API",
    "version": "2026-05-25",
    "description": "Things.\n\n- one\n- two"
  },
  "paths": {
    "/things/{id}": {
      "get": {
        "operationId": "listThings",
        "summary": "List <things>",
        "description": "Reads `things`.",
        "security": [{ "secretKey": [] }],
        "responses": {
          "200": {
            "description": "Things.",
            "headers": { "X-Request-Id": { "$ref": "#/components/headers/X-Request-Id" } },
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Things" } } }
          },
          "401": {
            "description": "The key is missing.",
            "x-error-codes": ["unauthorized", "secret_key_in_query"]
          },
          "429": { "$ref": "#/components/responses/Error429" }
        }
      }
    }
  },
  "webhooks": {
    "thing.done": {
      "post": {
        "operationId": "thing_done",
        "summary": "A thing is done",
        "description": "Sent once.",
        "parameters": [{ "$ref": "#/components/parameters/Things-Signature" }],
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {
              "schema": { "$ref": "#/components/schemas/Thing" },
              "example": { "id": "t_1" }
            }
          }
        }
      }
    }
  },
  "components": {
    "schemas": {
      "Thing": {
        "type": "object",
        "required": ["id"],
        "properties": {
          "id": { "type": "string", "description": "Its <id>." },
          "next": { "$ref": "#/components/schemas/Thing" }
        }
      },
      "Things": { "type": "array", "items": { "$ref": "#/components/schemas/Thing" } }
    },
    "headers": {
      "X-Request-Id": { "description": "The id of this request.", "schema": { "type": "string" } }
    },
    "parameters": {
      "Things-Signature": {
        "name": "Things-Signature",
        "in": "header",
        "required": true,
        "description": "The signature of the body.",
        "schema": { "type": "string" }
      }
    },
    "responses": {
      "Error429": { "description": "Too many requests.", "x-error-codes": ["rate_limited"] }
    }
  }
}"##;

#[test]
fn page_is_complete_and_self_contained() {
    let html = page_of(
        &serde_json::from_str(CONTRACT).unwrap(),
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
        "Takes a secret key.",
        "href=\"#unauthorized\"",
        "href=\"#rate_limited\"",
        "The id of this request.",
        "A thing is done",
        "Things-Signature",
        "&quot;t_1&quot;",
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
