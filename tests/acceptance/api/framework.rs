//! Behaviour of every route: the envelope, strict bodies, request ids, response headers.

use std::collections::BTreeSet;

use acceptance::{ACME, ACME_SECRET, Answer, Call, Contract, QueueFault, World, purchase};
use serde_json::json;

use crate::routes::{self, Ids};

/// Both routes that read a body, with a valid body that a test extends.
async fn bodies(world: &World) -> [(String, String, String); 2] {
    let quote = world.acme().buy("EUR-USDT", "10").await;
    let order = purchase("EUR-USDT", "10").to_string();
    [
        (
            "/v1/pools/EUR-USDT/quote".to_owned(),
            order,
            "fiatCurrency".to_owned(),
        ),
        (
            "/v1/pools/EUR-USDT/transact".to_owned(),
            json!({ "quoteId": quote }).to_string(),
            "quoteId".to_owned(),
        ),
    ]
}

async fn send(world: &World, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    let call = Call::post(path)
        .body(body.into())
        .header("content-type", "application/json");
    world.send(call.bearer(ACME_SECRET).key("k")).await
}

// rule: error.route-not-found, auth.unknown-route-first
#[tokio::test]
async fn unknown_routes_are_not_found() {
    let world = World::new().await;
    for path in [
        "/v1",
        "/v1/",
        "/v2/pools",
        "/pools",
        "/v1/pool",
        "/v1/pools/",
        "/v1/pools/EUR-USDT",
        "/v1/pools/EUR-USDT/",
        "/v1/pools/EUR-USDT/quotes",
        "/v1/pools/quotes",
        "/v1/pools/quotes/a/b",
        "/v1/pools/trades/a/b",
        "//v1/pools",
        "/v1//pools",
        "/V1/pools",
        "/v1/pools/EUR-USDT/capabilities/",
        "/openapi/",
        "/openapi/gate-v1.yaml",
        "/openapi/gate-v1.json",
        "/metrics",
        "/docs/x",
        "/v1/pools/..%2f..%2fetc%2fpasswd",
        "/.env",
        "/v1/test_helpers",
    ] {
        for call in [
            Call::get(path).query("k=sk_test_"),
            Call::post(path).body("{"),
        ] {
            world.send(call).await.refused(404, "route_not_found");
        }
    }
    world.finish().await;
}

// rule: error.method-not-allowed, auth.unknown-route-first
#[tokio::test]
async fn wrong_methods_are_refused() {
    let world = World::new().await;
    for (operation, call) in routes::all(None) {
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW",
        ] {
            if operation.method == method {
                continue;
            }
            let answer = world
                .send(Call::new(method, call.path()))
                .await
                .refused(405, "method_not_allowed");
            let allowed: BTreeSet<&str> = answer
                .header("allow")
                .expect("Allow")
                .split(',')
                .map(str::trim)
                .collect();
            assert!(
                allowed.contains(operation.method.as_str()),
                "{method} {}: {allowed:?}",
                call.path()
            );
            assert!(
                allowed.is_subset(&BTreeSet::from([operation.method.as_str(), "HEAD"])),
                "{allowed:?}"
            );
        }
    }
    world.finish().await;
}

// rule: error.media-type
#[tokio::test]
async fn other_content_types_are_refused() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    for (path, body, _) in bodies(&world).await {
        for kind in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("application/jsonp"),
            Some("application/json-patch+json"),
            Some(""),
            Some("json"),
        ] {
            let call = Call::post(&path).body(body.clone()).key("k");
            let call = match kind {
                Some(kind) => call.header("content-type", kind),
                None => call,
            };
            world
                .acme()
                .send(call)
                .await
                .refused(415, "unsupported_media_type");
        }
        let twice = Call::post(&path)
            .body(body.clone())
            .header("content-type", "application/json");
        let twice = twice.header("content-type", "application/json").key("k");
        world
            .acme()
            .send(twice)
            .await
            .refused(415, "unsupported_media_type");
        for kind in [
            "application/json; charset=utf-8",
            "Application/JSON",
            "application/json;x=y",
        ] {
            world
                .acme()
                .send(
                    Call::post(&path)
                        .body(body.clone())
                        .header("content-type", kind)
                        .key("k"),
                )
                .await
                .ok();
        }
    }
    world.finish().await;
}

// rule: error.content-encoding
#[tokio::test]
async fn encoded_bodies_are_refused() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let ids = Ids {
        quote: world.acme().buy("EUR-USDT", "10").await,
        trade: "txn_test_01HF7YAT00408104G208104081".to_owned(),
    };
    let all = routes::all(Some(&ids)).into_iter();
    let reading: Vec<_> = all.filter(|(operation, _)| operation.takes_body).collect();
    assert!(reading.len() >= 2, "{reading:?}");
    for (_, call) in reading {
        let encoded = |encoding: &str| call.clone().header("content-encoding", encoding);
        for (encoding, named) in [
            ("gzip", "gzip"),
            ("BR", "BR"),
            ("identity, deflate", "deflate"),
        ] {
            let answer = world.acme().send(encoded(encoding)).await;
            let refused = answer.refused(415, "unsupported_media_type");
            refused.saying(&format!("`Content-Encoding: {named}`"));
        }
        world.acme().send(encoded("identity")).await.ok();
    }
    world.finish().await;
}

// rule: error.body-too-large
#[tokio::test]
async fn large_bodies_are_refused() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    for (path, body, _) in bodies(&world).await {
        for (size, status) in [(64 * 1024, 200), (64 * 1024 + 1, 413), (1024 * 1024, 413)] {
            let padded = format!("{body}{}", " ".repeat(size - body.len()));
            let answer = send(&world, &path, padded).await;
            if status == 413 {
                answer.refused(413, "body_too_large");
            } else {
                answer.ok();
            }
        }
    }
    world.finish().await;
}

// rule: error.invalid-json, request.utf8, error.names-no-software
#[tokio::test]
async fn bodies_other_than_json_objects_are_refused() {
    let world = World::new().await;
    for (path, body, _) in bodies(&world).await {
        for bad in [
            "",
            "{",
            "null",
            "[]",
            "{} x",
            "{\"a\":NaN}",
            "{\"a\":\"\\ud800\"}",
            "\u{feff}{}",
            "<a/>",
        ] {
            send(&world, &path, bad).await.refused(400, "invalid_json");
        }
        let cut = &body[..body.len() - 1];
        send(&world, &path, cut).await.refused(400, "invalid_json");
        let bytes = &b"{\"a\":\"\xff\"}"[..];
        send(&world, &path, bytes)
            .await
            .refused(400, "invalid_json");
    }
    world.finish().await;
}

// rule: request.duplicate-keys
#[tokio::test]
async fn repeated_json_keys_are_refused_at_any_depth() {
    let world = World::new().await;
    for (path, body, field) in bodies(&world).await {
        let inner = &body[1..body.len() - 1];
        for more in [
            format!("\"{field}\":\"EUR\""),
            "\"x\":1,\"x\":1".to_owned(),
            "\"x\":{\"y\":1,\"y\":2}".to_owned(),
            "\"x\":[[{\"y\":1,\"y\":1}]]".to_owned(),
            "\"x\":1,\"\\u0078\":2".to_owned(),
        ] {
            let answer = send(&world, &path, format!("{{{inner},{more}}}")).await;
            assert_eq!(answer.status, 400, "{more}");
        }
        send(
            &world,
            &path,
            format!("{{{inner},\"x\":{{\"y\":1}},\"y\":{{\"y\":1}}}}"),
        )
        .await;
    }
    world.finish().await;
}

// rule: request.nul
#[tokio::test]
async fn nul_is_refused_in_any_string() {
    let world = World::new().await;
    for (path, body, _) in bodies(&world).await {
        let inner = &body[1..body.len() - 1];
        for more in [
            "\"x\":\"a\\u0000b\"",
            "\"x\\u0000\":1",
            "\"x\":[{\"y\":\"\\u0000\"}]",
            "\"x\":\"\0\"",
        ] {
            let answer = send(&world, &path, format!("{{{inner},{more}}}")).await;
            assert_eq!(answer.status, 400, "{more}");
        }
    }
    for parameter in ["limit", "cursor", "side", "status", "created_after"] {
        let path = format!("/v1/pools/trades?{parameter}=%00");
        world
            .acme()
            .get(&path)
            .await
            .refused(400, "invalid_request");
    }
    world.finish().await;
}

// rule: request.depth
#[tokio::test]
async fn nesting_deeper_than_32_is_refused() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    for (path, body, _) in bodies(&world).await {
        let inner = &body[1..body.len() - 1];
        // The body itself is the first level.
        for (levels, good) in [(31, true), (32, false), (10_000, false)] {
            for (open, close) in [("[", "]"), ("{\"y\":", "}")] {
                let open = open.repeat(levels);
                let nested = if close == "]" {
                    open
                } else {
                    format!("{open}1")
                };
                let answer = send(
                    &world,
                    &path,
                    format!("{{{inner},\"x\":{nested}{}}}", close.repeat(levels)),
                )
                .await;
                assert_eq!(
                    answer.status,
                    if good { 200 } else { 400 },
                    "{levels} {close}"
                );
            }
        }
    }
    world.finish().await;
}

// rule: request.unknown-fields
#[tokio::test]
async fn unread_fields_may_hold_any_value() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let digits = "9".repeat(20_000);
    for (path, body, _) in bodies(&world).await {
        let inner = &body[1..body.len() - 1];
        for more in [
            "\"x\":1e400",
            "\"x\":-1e-400",
            "\"x\":123456789012345678901234567890.123",
            "\"x\":\"\u{202e}\u{2028}💧\"",
            "\"\":null",
            "\"x\":[]",
            "\"__proto__\":{}",
            "\"x\":\"\\ud83d\\udca7\"",
            &format!("\"x\":{digits}"),
            &format!("\"x\":0.{digits}"),
        ] {
            send(&world, &path, format!("{{{inner},{more}}}"))
                .await
                .ok();
        }
    }
    world.finish().await;
}

// rule: response.request-id, response.request-id-own, id.request
#[tokio::test]
async fn request_id_is_made_by_the_server() {
    let world = World::new().await;
    let mut seen = BTreeSet::new();
    for given in [None, Some("req_01HF7YAT00408104G208104081"), Some("é")] {
        for path in [
            "/v1/pools",
            "/v1/pools/quotes/x",
            "/nowhere",
            "/docs",
            "/health",
        ] {
            let call = Call::get(path).bearer(ACME_SECRET);
            let call = match given {
                Some(given) => call.header("x-request-id", given),
                None => call,
            };
            let answer = world.send(call).await;
            let id = answer.header("x-request-id").unwrap().to_owned();
            assert!(id.starts_with("req_") && Some(&*id) != given, "{id}");
            assert!(seen.insert(id), "request ids are unique");
        }
    }
    world.finish().await;
}

// rule: response.no-cors, response.no-store, response.nosniff
#[tokio::test]
async fn routes_send_no_cors_headers() {
    let world = World::new().await;
    // Every response of these tests is also checked for absent CORS headers and for
    // `no-store`.
    for (operation, call) in routes::all(None) {
        let preflight = Call::new("OPTIONS", call.path()).header("origin", "https://shop.example");
        let preflight =
            preflight.header("access-control-request-method", operation.method.as_str());
        world
            .send(preflight)
            .await
            .refused(405, "method_not_allowed");
        let answer = world
            .send(
                call.header("origin", "https://shop.example")
                    .bearer(ACME_SECRET),
            )
            .await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    world.finish().await;
}

// rule: error.panic-contained, error.internal-generic, error.default-codes
#[tokio::test]
async fn panic_is_500_and_other_requests_succeed() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let acme = world.acme();
    let quote = acme.buy("EUR-USDT", "10").await;
    let before = world.database().digest().await;
    world
        .engine()
        .meanwhile(|_| async { panic!("the canary of a panic") });
    let answer = acme
        .transact("EUR-USDT", &quote, "k")
        .await
        .refused(500, "internal_error");
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("canary"));
    acme.ask("EUR-USDT", &purchase("EUR-USDT", "10"))
        .await
        .refused(500, "internal_error");
    acme.get("/v1/pools").await.ok();
    assert_eq!(world.database().digest().await, before);
    world.engine().in_peace();
    // The key is no longer in flight, and the same key succeeds.
    assert_eq!(
        acme.transact("EUR-USDT", &quote, "k").await.ok()["idempotent"],
        false
    );
    world.finish().await;
}

// rule: error.overloaded, error.internal-generic
#[tokio::test]
async fn store_failure_is_503() {
    let world = World::new().await;
    world.operator().credit(ACME, "100.00", "EUR").await;
    let quote = world.acme().buy("EUR-USDT", "10").await;
    for (fault, code) in [
        (QueueFault::Full, "overloaded"),
        (QueueFault::Away, "service_unavailable"),
        (QueueFault::LostUnheard, "outcome_unknown"),
    ] {
        world.fail_next_commit(fault);
        let answer = world
            .acme()
            .transact("EUR-USDT", &quote, "k")
            .await
            .refused(503, code);
        let text = String::from_utf8_lossy(&answer.bytes).to_lowercase();
        assert!(
            !text.contains("disk") && !text.contains("connection broke"),
            "{text}"
        );
    }
    world.finish().await;
}

// rule: request.repeated-query, request.unknown-query
#[tokio::test]
async fn malformed_queries_are_refused() {
    let world = World::new().await;
    for path in ["/v1/pools/trades", "/v1/pools/ledger", "/v1/pools/funding"] {
        for bad in ["%", "x=%ff"] {
            world
                .acme()
                .get(&format!("{path}?{bad}"))
                .await
                .refused(400, "invalid_request");
        }
        let many: Vec<String> = (0..500).map(|at| format!("a{at}=b")).collect();
        world
            .acme()
            .get(&format!("{path}?{}", many.join("&")))
            .await
            .ok();
    }
    world.finish().await;
}

// rule: error.doc-anchor, error.six-fields, error.type-of-status
#[tokio::test]
async fn every_code_is_explained_where_its_address_points() {
    let world = World::new().await;
    let page = world.send(Call::get("/docs")).await;
    let page = String::from_utf8(page.bytes.to_vec()).unwrap();
    let operations = &Contract::published().operations;
    let codes: BTreeSet<&String> = operations
        .iter()
        .flat_map(|operation| operation.statuses.values().flatten())
        .collect();
    assert!(codes.len() > 40, "{codes:?}");
    for code in codes {
        assert!(
            page.contains(&format!("id=\"{code}\"")),
            "{code} has no anchor"
        );
    }
    for code in [
        "route_not_found",
        "method_not_allowed",
        "headers_too_large",
        "request_timeout",
    ] {
        assert!(
            page.contains(&format!("id=\"{code}\"")),
            "{code} has no anchor"
        );
    }
    world.finish().await;
}
