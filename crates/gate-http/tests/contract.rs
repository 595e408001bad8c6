//! The committed contracts equal the generated ones, and have the documented operations and events.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::collections::BTreeSet;

use http_kit::openapi::to_value;
use serde_json::Value;

fn contract() -> Value {
    to_value(&gate_http::openapi().unwrap()).unwrap()
}

/// The operations of a part of the document: id, method and path.
fn operations(part: &Value) -> BTreeSet<(String, String, String)> {
    let paths = part.as_object().unwrap();
    let operation = |(path, item): (&String, &Value)| {
        let path = path.clone();
        let methods = item.as_object().unwrap().clone();
        methods.into_iter().map(move |(method, operation)| {
            let id = operation["operationId"].as_str().unwrap_or_default();
            (id.to_owned(), method, path.clone())
        })
    };
    paths.iter().flat_map(operation).collect()
}

fn named(list: &[(&str, &str, &str)]) -> BTreeSet<(String, String, String)> {
    let owned = list
        .iter()
        .map(|(id, method, path)| ((*id).to_owned(), (*method).to_owned(), (*path).to_owned()));
    owned.collect()
}

// rule: openapi.published
#[test]
fn committed_documents_are_up_to_date() {
    for (committed, generated, name) in [
        (
            include_str!("../../../docs/openapi/gate-v1.yaml"),
            gate_http::openapi_yaml().unwrap(),
            "gate-v1",
        ),
        (
            include_str!("../../../docs/openapi/gate-test-helpers-v1.yaml"),
            gate_http::test_helpers_yaml().unwrap(),
            "gate-test-helpers-v1",
        ),
        (
            include_str!("../../../docs/openapi/gate-embed-v1.yaml"),
            gate_http::embed_yaml().unwrap(),
            "gate-embed-v1",
        ),
    ] {
        assert!(
            committed == generated,
            "docs/openapi/{name}.yaml is stale: run `cargo xtask openapi`"
        );
    }
}

// rule: openapi.gate-operations
#[test]
fn operations_have_documented_ids() {
    let expected = named(&[
        ("listSessions", "get", "/v1/gate_sessions"),
        ("createSession", "post", "/v1/gate_sessions"),
        ("retrieveSession", "get", "/v1/gate_sessions/{id}"),
        ("cancelSession", "post", "/v1/gate_sessions/{id}/cancel"),
        ("previewQuotes", "post", "/v1/quotes/preview"),
        ("listCountries", "get", "/v1/capabilities/countries"),
        ("listCurrencies", "get", "/v1/capabilities/currencies"),
        ("listAssets", "get", "/v1/capabilities/assets"),
        ("getAsset", "get", "/v1/capabilities/assets/{symbol}"),
        (
            "listPaymentMethods",
            "get",
            "/v1/capabilities/payment-methods",
        ),
        (
            "listPayoutMethods",
            "get",
            "/v1/capabilities/payout-methods",
        ),
        ("checkEligibility", "get", "/v1/capabilities/eligibility"),
        ("listTransactions", "get", "/v1/transactions"),
        ("retrieveTransaction", "get", "/v1/transactions/{refid}"),
        ("createEmbedToken", "post", "/v1/embed/bootstrap"),
        ("createCustomer", "post", "/v1/customers"),
        ("listCustomers", "get", "/v1/customers"),
        ("getCustomer", "get", "/v1/customers/{id}"),
        ("updateCustomer", "patch", "/v1/customers/{id}"),
        ("deleteCustomer", "delete", "/v1/customers/{id}"),
        ("getBranding", "get", "/v1/branding"),
        ("updateBranding", "patch", "/v1/branding"),
        (
            "listPartnerWebhookDeliveries",
            "get",
            "/v1/webhooks/deliveries",
        ),
        (
            "replayWebhookDelivery",
            "post",
            "/v1/webhooks/deliveries/{id}/replay",
        ),
        ("sendTestWebhook", "post", "/v1/webhooks/test"),
        ("lockQuote", "post", "/v1/quotes"),
        ("retrieveSignedQuote", "get", "/v1/quotes/{id}"),
        ("createPayIn", "post", "/v1/rails/pay_ins"),
        ("retrievePayIn", "get", "/v1/rails/pay_ins/{id}"),
        ("createPayOut", "post", "/v1/rails/pay_outs"),
        ("retrievePayOut", "get", "/v1/rails/pay_outs/{id}"),
    ]);
    let document = contract();
    assert_eq!(operations(&document["paths"]), expected);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document["info"]["version"], "2026-05-25");
    let helpers = to_value(&gate_http::test_helpers().unwrap()).unwrap();
    let expected = named(&[
        (
            "completeTestSession",
            "post",
            "/v1/test_helpers/sessions/{id}/complete",
        ),
        (
            "failTestSession",
            "post",
            "/v1/test_helpers/sessions/{id}/fail",
        ),
    ]);
    assert_eq!(operations(&helpers["paths"]), expected);
    assert_eq!(helpers["info"]["version"], "2026-05-25");
}

// rule: openapi.gate-embed
#[test]
fn widget_calls_have_their_own_document() {
    let document = to_value(&gate_http::embed().unwrap()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(document["info"]["version"], "2026-05-25");
    let expected = named(&[
        (
            "cancelEmbedPayment",
            "post",
            "/v1/embed/payments/{id}/cancel",
        ),
        ("cancelEmbedSession", "post", "/v1/embed/cancel"),
        ("createEmbedPayment", "post", "/v1/embed/payments"),
        ("createEmbedQuote", "post", "/v1/embed/quotes"),
        ("createEmbedVerification", "post", "/v1/embed/verification"),
        ("listEmbedOptions", "get", "/v1/embed/options"),
        ("retrieveEmbedSession", "get", "/v1/embed/session"),
    ]);
    assert_eq!(operations(&document["paths"]), expected);
    let scheme = &document["components"]["securitySchemes"]["embedToken"];
    assert_eq!(scheme["name"], "X-Embed-Token");
    assert_eq!(scheme["in"], "header");
}

// rule: openapi.gate-hosted-events
#[test]
fn hosted_flow_events_are_documented_as_such() {
    let document = contract();
    for name in [
        "gate_session.processing",
        "gate_session.failed",
        "kyc.required",
    ] {
        let event = &document["webhooks"][name]["post"];
        let said = event["description"].as_str().unwrap();
        assert!(said.contains("hosted flow"), "{said}");
        let body = &event["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/SessionEvent");
    }
}

// rule: openapi.gate-events
#[test]
fn every_sent_event_is_published() {
    let document = contract();
    let events = document["webhooks"].as_object().unwrap();
    let names: BTreeSet<&str> = events.keys().map(String::as_str).collect();
    let expected = BTreeSet::from([
        "gate_session.created",
        "gate_session.kyc_package_accepted",
        "gate_session.completed",
        "gate_session.cancelled",
        "gate_session.expired",
        "gate_session.processing",
        "gate_session.failed",
        "kyc.required",
        "customer.created",
        "customer.updated",
        "customer.deleted",
        "webhook.test",
        "quote.consumed",
        "rail.pay_in.processing",
        "rail.pay_in.settled",
        "rail.pay_in.failed",
        "rail.pay_in.cancelled",
        "rail.pay_out.processing",
        "rail.pay_out.settled",
        "rail.pay_out.failed",
    ]);
    assert_eq!(names, expected);
    for event in events.values() {
        let headers = event["post"]["parameters"].as_array().unwrap();
        assert!(headers.iter().any(|it| it["name"] == "Gate-Signature"));
    }
}

// rule: openapi.gate-operations
#[test]
fn operation_documents_its_key() {
    let document = contract();
    for (_, method, path) in operations(&document["paths"]) {
        let security = &document["paths"][&path][&method]["security"];
        let scheme = if path == "/v1/embed/bootstrap" {
            "publishableKey"
        } else {
            "secretKey"
        };
        assert_eq!(security[0][scheme], serde_json::json!([]), "{path}");
        assert_eq!(security.as_array().unwrap().len(), 1, "{path}");
    }
}
