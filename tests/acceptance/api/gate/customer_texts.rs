//! Email and `external_id` of customers: readers see every character, and each spelling of a text is the same text.

use acceptance::{ACME, Call, Gate, GateClient};
use serde_json::{Value, json};

pub(super) const PATH: &str = "/v1/customers";
const COMPOSED: &str = "J\u{f6}rg@stra\u{df}e.example";
const DECOMPOSED: &str = "jo\u{308}rg@stra\u{df}e.example";
const FOLDED: &str = "JO\u{308}RG@STRASSE.EXAMPLE";

pub(super) fn person(email: &str, external_id: &str) -> Value {
    json!({ "email": email, "external_id": external_id })
}

/// Every byte of a text, escaped for a query.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The ids of the customers with a field's text.
pub(super) async fn found(client: &GateClient, field: &str, text: &str) -> Vec<String> {
    let path = format!("{PATH}?{field}={}", escaped(text));
    let page = client.get(&path).await.ok();
    let id = |customer: &Value| customer["id"].as_str().unwrap().to_owned();
    page["data"].as_array().unwrap().iter().map(id).collect()
}

// rule: gate.customer.visible, error.names-the-field
#[tokio::test]
async fn text_with_a_character_that_readers_do_not_see_is_refused() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = person("cat@shop.example", "user-1");
    let first = acme.create_customer(&first, "first").await.created();
    for character in [
        '\u{200b}', '\u{2069}', '\u{202a}', '\u{34f}', '\u{ad}', '\u{fe0f}', '\u{7f}', '\u{2028}',
        '\u{e000}', '\u{378}',
    ] {
        for (body, field) in [
            (
                person(&format!("ca{character}t@shop.example"), "u"),
                "email",
            ),
            (
                person(&format!("cat@shop.example{character}"), "u"),
                "email",
            ),
            (
                person("dog@shop.example", &format!("{character}user-1")),
                "external_id",
            ),
        ] {
            let answer = acme.create_customer(&body, "k").await;
            let answer = answer.refused(400, "invalid_request");
            answer
                .saying(&format!("`{field}`: expected visible characters, found U+"))
                .saying(&format!("U+{:04X}", u32::from(character)));
        }
    }
    assert_eq!(gate.world().database().count("customers").await, 1);
    // No refusal used the key.
    let dog = person("dog@shop.example", "u");
    let dog = acme.create_customer(&dog, "k").await.created();
    for customer in [first, dog] {
        gate.notice(ACME, customer["id"].as_str().unwrap()).await;
    }
    gate.finish().await;
}

// rule: gate.customer.compared, gate.customer.unique
#[tokio::test]
async fn spellings_of_one_text_belong_to_one_customer() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = person(COMPOSED, "K\u{f6}ln 7");
    let customer = acme.create_customer(&first, "a").await.created();
    let id = customer["id"].as_str().unwrap();
    assert_eq!(customer["email"], COMPOSED, "returned unchanged");
    assert_eq!(customer["external_id"], "K\u{f6}ln 7");
    for email in [COMPOSED, DECOMPOSED, FOLDED] {
        let answer = acme.create_customer(&person(email, "u"), "b").await;
        let answer = answer.refused(409, "customer_already_exists");
        answer.saying("`email`");
        assert_eq!(found(&acme, "email", email).await, [id]);
    }
    for external_id in ["K\u{f6}ln 7", "Ko\u{308}ln 7", "Ko\u{308}ln\u{a0}7"] {
        let second = person("ann@shop.example", external_id);
        let answer = acme.create_customer(&second, "b").await;
        let answer = answer.refused(409, "customer_already_exists");
        answer.saying("`external_id`");
        assert_eq!(found(&acme, "external_id", external_id).await, [id]);
    }
    let other = person("jorg@strasse.example", "k\u{f6}ln 7");
    let other = acme.create_customer(&other, "b").await.created();
    for customer in [id, other["id"].as_str().unwrap()] {
        gate.notice(ACME, customer).await;
    }
    gate.finish().await;
}

// rule: gate.customer.compared, gate.customer.unique
#[tokio::test]
async fn customer_of_an_earlier_version_is_found_in_another_spelling() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = person(DECOMPOSED, "Ko\u{308}ln 7");
    let customer = acme.create_customer(&first, "a").await.created();
    let id = customer["id"].as_str().unwrap();
    let earlier = "UPDATE customers SET email_compared = NULL, external_id_compared = NULL";
    gate.world().damage(earlier).await;
    for email in [COMPOSED, DECOMPOSED] {
        assert_eq!(found(&acme, "email", email).await, [id]);
        let answer = acme.create_customer(&person(email, "u"), "b").await;
        answer.refused(409, "customer_already_exists");
    }
    let second = person("ann@shop.example", "K\u{f6}ln 7");
    let answer = acme.create_customer(&second, "b").await;
    answer.refused(409, "customer_already_exists");
    let change = Call::new("PATCH", &format!("{PATH}/{id}")).json(&json!({ "last_name": "Lee" }));
    assert_eq!(acme.send(change).await.ok()["last_name"], "Lee");
    gate.notice(ACME, id).await;
    gate.finish().await;
}
