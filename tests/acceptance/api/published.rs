//! The published contract, and the pages and probes that are not part of the API.

use std::collections::{BTreeMap, BTreeSet};

use acceptance::{Answer, Call, Contract, Gate, World, documents};
use serde_json::Value;

fn document(name: &str) -> Value {
    let mut documents = documents().into_iter();
    documents.find(|(known, _)| *known == name).unwrap().1
}

// rule: openapi.routes-agree
#[tokio::test]
async fn every_published_route_is_served_and_no_other() {
    let world = World::new().await;
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for operation in &Contract::published().operations {
        let known = methods.entry(&operation.template).or_default();
        known.insert(operation.method.as_str());
    }
    for (template, known) in methods {
        let path = template
            .replace("{id}", "EUR-USDT")
            .replace("{quoteId}", "x")
            .replace("{transactId}", "x");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = world.send(Call::new(method, &path)).await;
            // A served route refuses a request without a key instead of returning 404.
            assert_eq!(
                answer.status,
                if known.contains(method) { 401 } else { 405 },
                "{method} {path}"
            );
        }
    }
    world.finish().await;
}

// rule: error.other-service, error.route-not-found
#[tokio::test]
async fn path_of_the_other_service_is_refused_with_its_name() {
    let gate = Gate::new().await;
    for (name, document) in documents() {
        let is_pools = name.starts_with("pools");
        let other = if is_pools { "pools" } else { "gate" };
        for template in document["paths"].as_object().unwrap().keys() {
            let path = template.replace(['{', '}'], "");
            let call = Call::get(&path);
            let answer = if is_pools {
                gate.send(call).await
            } else {
                gate.world().send(call).await
            };
            let refused = answer.refused(404, "route_not_found");
            refused.saying(&format!("belongs to the {other} service"));
        }
    }
    let unknown = gate.send(Call::get("/v1/gate_sessions/a/b")).await;
    unknown
        .refused(404, "route_not_found")
        .saying("API reference");
    let unknown = gate.world().send(Call::get("/v1/pools/a/b/c")).await;
    unknown
        .refused(404, "route_not_found")
        .saying("API reference");
    gate.finish().await;
}

// rule: openapi.routes-agree, openapi.gate-embed
#[tokio::test]
async fn every_published_call_of_the_widget_is_served_and_no_other() {
    let gate = Gate::new().await;
    let widget = document("gate-embed-v1");
    let paths = widget["paths"].as_object().unwrap();
    assert!(paths.len() >= 3);
    for (path, item) in paths {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = gate.send(Call::new(method, path)).await;
            let known = item.get(method.to_lowercase()).is_some();
            // A served route refuses a request without a token.
            let expected = if known { 401 } else { 405 };
            assert_eq!(answer.status, expected, "{method} {path}");
        }
        let answer = gate.send(Call::get(&path.replace("/v1/", "/"))).await;
        answer.refused(404, "route_not_found");
    }
    let contract = document("gate-v1");
    let paths = contract["paths"].as_object().unwrap();
    let of_pages = paths.keys().filter(|it| it.contains("/embed/"));
    let known = ["/v1/embed/bootstrap", "/v1/embed/outcome"];
    assert_eq!(of_pages.collect::<Vec<_>>(), known);
    gate.finish().await;
}

// rule: openapi.published
#[tokio::test]
async fn documents_are_served_unchanged() {
    let gate = Gate::new().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi/");
    for (name, _) in documents() {
        let call = Call::get(&format!("/openapi/{name}.yaml"));
        let answer = match name {
            "pools-v1" => gate.world().send(call).await,
            _ => gate.send(call).await,
        };
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(answer.header("content-type"), Some("application/yaml"));
        let published = std::fs::read(format!("{folder}{name}.yaml")).unwrap();
        assert!(
            answer.bytes == published,
            "{name} is stale: run `cargo xtask openapi`"
        );
    }
    gate.finish().await;
}

// rule: openapi.gate-hosted-events
#[test]
fn hosted_flow_events_are_documented_as_such() {
    for name in [
        "gate_session.processing",
        "gate_session.failed",
        "kyc.required",
    ] {
        let event = &Contract::gate().document["webhooks"][name]["post"];
        let said = event["description"].as_str().unwrap();
        assert!(said.contains("hosted flow"), "{said}");
        let body = &event["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/SessionEvent");
    }
}

// rule: openapi.gate-operations, openapi.gate-embed
#[test]
fn operation_documents_its_credential() {
    let paths = Contract::gate().document["paths"].as_object().unwrap();
    for (path, methods) in paths {
        let scheme = match path.as_str() {
            "/v1/embed/bootstrap" | "/v1/embed/outcome" => "publishableKey",
            _ => "secretKey",
        };
        for operation in methods.as_object().unwrap().values() {
            let security = &operation["security"];
            assert_eq!(security, &serde_json::json!([{ scheme: [] }]), "{path}");
        }
    }
    let widget = document("gate-embed-v1");
    let scheme = &widget["components"]["securitySchemes"]["embedToken"];
    assert_eq!(
        (&scheme["name"], &scheme["in"]),
        (&"X-Embed-Token".into(), &"header".into())
    );
}

// rule: openapi.json
#[tokio::test]
async fn every_document_is_served_as_json_too() {
    let gate = Gate::new().await;
    let get = |path: &'static str| Call::get(path);
    let pools = gate.world().send(get("/openapi/pools-v1.json")).await;
    assert_eq!(pools.header("content-type"), Some("application/json"));
    assert_eq!(pools.body, Contract::published().document);
    let contract = gate.send(get("/openapi/gate-v1.json")).await;
    assert_eq!(contract.body, Contract::gate().document);
    for path in [
        "/openapi/gate-test-helpers-v1.json",
        "/openapi/gate-embed-v1.json",
    ] {
        let answer = gate.send(get(path)).await;
        assert_eq!(answer["openapi"], "3.1.0", "{path}");
    }
    gate.finish().await;
}

// rule: docs.entrance
#[tokio::test]
async fn root_redirects_browsers_to_the_reference() {
    let gate = Gate::new().await;
    let led = |answer: Answer| {
        let target = answer.header("location").map(str::to_owned);
        (answer.status, target)
    };
    for (path, pools, ramp) in [
        ("/", "/docs", "/docs"),
        ("/docs/", "/docs", "/docs"),
        (
            "/openapi",
            "/openapi/pools-v1.json",
            "/openapi/gate-v1.json",
        ),
        (
            "/openapi.json",
            "/openapi/pools-v1.json",
            "/openapi/gate-v1.json",
        ),
    ] {
        let found = led(gate.world().send(Call::get(path)).await);
        assert_eq!(found, (307, Some(pools.to_owned())), "{path}");
        let found = led(gate.send(Call::get(path)).await);
        assert_eq!(found, (307, Some(ramp.to_owned())), "{path}");
    }
    let icon = gate.send(Call::get("/favicon.ico")).await;
    assert_eq!(
        (icon.status, icon.header("content-type")),
        (200, Some("image/svg+xml"))
    );
    gate.finish().await;
}

async fn page_of(answer: Answer) -> String {
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn committed_pages_are_what_the_services_serve() {
    let gate = Gate::new().await;
    let pools = page_of(gate.world().send(Call::get("/docs")).await).await;
    let committed = include_str!("../../../crates/pools-http/src/reference.html");
    assert!(pools == committed, "the page of the pools is another");
    let ramp = page_of(gate.send(Call::get("/docs")).await).await;
    let committed = include_str!("../../../crates/gate-http/src/reference.html");
    assert!(ramp == committed, "the page of the gate is another");
    gate.finish().await;
}

// rule: docs.links
#[tokio::test]
async fn page_links_every_document_that_its_service_serves() {
    let gate = Gate::new().await;
    let names = ["gate-v1", "gate-test-helpers-v1", "gate-embed-v1"];
    let page = page_of(gate.send(Call::get("/docs")).await).await;
    for name in names {
        for ending in ["yaml", "json"] {
            let path = format!("/openapi/{name}.{ending}");
            assert!(page.contains(&format!("href=\"{path}\"")), "{path}");
            assert_eq!(gate.send(Call::get(&path)).await.status, 200, "{path}");
        }
    }
    assert_eq!(page.matches("href=\"/openapi/").count(), 2 * names.len());
    let page = page_of(gate.world().send(Call::get("/docs")).await).await;
    assert_eq!(page.matches("href=\"/openapi/").count(), 2);
    gate.finish().await;
}

// rule: docs.meanings
#[tokio::test]
async fn every_field_and_parameter_has_a_meaning_on_the_page() {
    let gate = Gate::new().await;
    let pools = gate.world().send(Call::get("/docs")).await;
    let ramp = gate.send(Call::get("/docs")).await;
    let mut rows = 0;
    for answer in [pools, ramp] {
        for row in page_of(answer).await.split("<tr ").skip(1) {
            let cells: Vec<&str> = row
                .split("<td ")
                .skip(1)
                .filter_map(|cell| Some(cell.split_once('>')?.1))
                .collect();
            rows += 1;
            for cell in &cells {
                let text = cell.split("</td>").next().unwrap();
                assert!(!text.trim().is_empty(), "an empty cell: {row}");
            }
            if let Some(last) = cells.last().filter(|_| cells.len() > 2) {
                assert!(
                    !last.starts_with("<p class=\"dim\">"),
                    "constraints without a meaning: {row}"
                );
            }
        }
    }
    assert!(rows > 500, "{rows}");
    gate.finish().await;
}

// rule: openapi.operations, response.camel-case
#[tokio::test]
async fn document_statements_about_itself_hold() {
    let document = &Contract::published().document;
    assert_no_discriminator(&document["components"]["schemas"]);
    for operation in &Contract::published().operations {
        let id = &operation.id;
        assert!(operation.statuses.contains_key("200"), "{id}");
        for status in ["401", "403", "429", "default"] {
            assert!(operation.statuses.contains_key(status), "{id} {status}");
        }
        let named = operation.template.contains('{');
        assert_eq!(
            operation.statuses.contains_key("404"),
            named || id == "getFundingInstructions",
            "{id}"
        );
        let method = operation.method.as_str().to_lowercase();
        let security = &document["paths"][&operation.template][&method]["security"];
        assert!(
            security.as_array().is_some_and(|ways| !ways.is_empty()),
            "{id} names its kind of key"
        );
    }
}

fn assert_no_discriminator(schemas: &Value) {
    for (name, schema) in schemas.as_object().unwrap() {
        if name == "Error" {
            continue;
        }
        for field in schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(field, _)| field)
        {
            assert!(field != "object" && !field.contains('_'), "{name}.{field}");
        }
    }
}

// rule: health.alive, health.ready
#[tokio::test]
async fn probes_need_no_key() {
    let world = World::new().await;
    for (path, word) in [("/health", "ok"), ("/health/ready", "ready")] {
        let answer = world.send(Call::get(path)).await;
        assert_eq!(
            (answer.status, &answer["status"]),
            (200, &word.into()),
            "{path}"
        );
    }
    let replica = world.replica().await;
    replica.operator().close_store().await;
    let answer = replica.send(Call::get("/health/ready")).await;
    assert_eq!(
        (answer.status, answer.body["code"].as_str()),
        (503, Some("not_ready"))
    );
    assert_eq!(replica.send(Call::get("/health")).await.status, 200);
    // The readiness probe reports the missing database in the envelope, without naming it.
    let answer = replica.acme().get("/v1/pools").await;
    assert_eq!(
        (answer.status, answer["type"].as_str()),
        (503, Some("server_error"))
    );
    replica.close().await;
    world.finish().await;
}

// rule: error.doc-anchor
#[tokio::test]
async fn reference_page_runs_no_script() {
    let world = World::new().await;
    let answer = world.send(Call::get("/docs")).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let policy = answer.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    let page = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(
        !page.contains("<script") && !page.contains("http://"),
        "no script and no plain HTTP resource"
    );
    for operation in &Contract::published().operations {
        let (id, path) = (&operation.id, &operation.template);
        assert!(page.contains(id) && page.contains(path), "{id}");
    }
    world.finish().await;
}

// rule: openapi.answers-agree, response.no-internals, response.money-as-strings, response.camel-case
#[tokio::test]
async fn validator_finds_responses_outside_the_document() {
    let world = World::new().await;
    let call = Call::get("/v1/pools/EUR-USDT/capabilities").bearer(acceptance::ACME_SECRET);
    let good = world.send(call.clone()).await;
    let passes = |change: fn(&mut acceptance::Answer)| {
        let (call, mut answer) = (call.clone(), good.clone());
        change(&mut answer);
        let check =
            std::panic::AssertUnwindSafe(|| Contract::published().check(&call, &answer, &[]));
        std::panic::catch_unwind(check).is_ok()
    };
    assert!(passes(|_| {}));
    let broken: [fn(&mut acceptance::Answer); 10] = [
        |answer| answer.body["provider"] = "venue-7".into(),
        |answer| drop(answer.body.as_object_mut().unwrap().remove("tier")),
        |answer| answer.body["tier"] = Value::Null,
        |answer| answer.body["drawFeeBps"] = 30.5.into(),
        |answer| answer.body["minOrderUsdt"] = "10".into(),
        |answer| answer.status = 201,
        |answer| drop(answer.headers.remove("x-request-id")),
        |answer| drop(answer.headers.remove("cache-control")),
        |answer| {
            drop(
                answer
                    .headers
                    .insert("content-type", "text/json".parse().unwrap()),
            )
        },
        |answer| {
            drop(
                answer
                    .headers
                    .insert("access-control-allow-origin", "*".parse().unwrap()),
            )
        },
    ];
    for change in broken {
        assert!(!passes(change));
    }
    world.finish().await;
}
