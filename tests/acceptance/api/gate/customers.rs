//! Customers: created once per email, updated field by field, deleted once, and stored sealed.

use acceptance::{ACME, Answer, Call, Gate, GateClient, Logs, keys};
use serde_json::{Value, json};

use super::races::one_winner;
use super::sessions::walk;

const PATH: &str = "/v1/customers";
const UNKNOWN: &str = "cus_test_01HF7YAT00408104G208104081";

/// Every field of a create.
fn ann() -> Value {
    json!({
        "email": "Ann+1@Example.com", "external_id": "user-1", "phone": "+4915112345678",
        "first_name": "Ann", "last_name": "O’Brien", "country_code": "de", "metadata": { "tier": 1.10 },
    })
}

fn of(email: &str) -> Value {
    json!({ "email": email })
}

async fn create(client: &GateClient, body: &Value, key: &str) -> Answer {
    client.create_customer(body, key).await
}

/// Creates a customer with this email, under a key of the same name; returns its id.
async fn made(client: &GateClient, email: &str) -> String {
    let key = email.replace(' ', "");
    let customer = create(client, &of(email), &key).await.created();
    customer["id"].as_str().unwrap().to_owned()
}

fn at(id: &str) -> String {
    format!("{PATH}/{id}")
}

fn patch(id: &str, body: &Value) -> Call {
    Call::new("PATCH", &at(id)).json(body)
}

fn delete(id: &str) -> Call {
    Call::new("DELETE", &at(id))
}

async fn ids(client: &GateClient, query: &str) -> Vec<String> {
    let page = client.get(&format!("{PATH}?{query}")).await.ok();
    let id = |customer: &Value| customer["id"].as_str().unwrap().to_owned();
    page["data"].as_array().unwrap().iter().map(id).collect()
}

// rule: gate.customer.fields, gate.customer.country, gate.customer.created-event, request.unknown-fields
#[tokio::test]
async fn customer_is_created_and_read() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut body = ann();
    for ignored in ["kyc_status", "mode", "id", "partner_id", "created_at"] {
        body[ignored] = json!("verified");
    }
    let written = body.to_string().replace("1.1", "1.10");
    let call = Call::post(PATH).body(written).key("k");
    let call = call.header("content-type", "application/json");
    let customer = acme.send(call).await.created();
    let id = customer["id"].as_str().unwrap();
    assert!(id.starts_with("cus_test_"), "{id}");
    let expected = json!({
        "id": id, "object": "customer", "partner_id": "acme", "mode": "test", "external_id": "user-1",
        "email": "Ann+1@Example.com", "phone": "+4915112345678", "first_name": "Ann",
        "last_name": "O’Brien", "country_code": "DE", "metadata": { "tier": 1.10 },
        "kyc_status": "unverified", "created_at": "2026-05-25T12:00:00.000Z",
        "updated_at": "2026-05-25T12:00:00.000Z",
    });
    assert_eq!(customer, expected);
    let read = acme.get(&at(id)).await;
    let text = String::from_utf8_lossy(&read.bytes).into_owned();
    assert_eq!(read.ok(), expected);
    assert!(text.contains("{\"tier\":1.10}"), "{text}");
    let told = [("customer.created".to_owned(), expected)];
    assert_eq!(gate.events(ACME, id).await, told);
    // The minimal body; null equals absent.
    let bare =
        json!({ "email": "bob@example.com", "phone": null, "external_id": null, "metadata": null });
    let bare = create(&acme, &bare, "l").await.created();
    for field in [
        "external_id",
        "phone",
        "first_name",
        "last_name",
        "country_code",
    ] {
        assert_eq!(bare[field], Value::Null, "{field}");
    }
    assert_eq!(keys(&bare), keys(&customer));
    assert_eq!(bare["metadata"], json!({}));
    gate.notice(ACME, bare["id"].as_str().unwrap()).await;
    gate.finish().await;
}

// rule: gate.customer.fields, gate.customer.email-form, gate.customer.phone-form, gate.customer.country, error.names-the-field
#[tokio::test]
async fn each_field_has_its_rule() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let long = |length: usize| json!("é".repeat(length));
    for (field, value) in [
        ("email", json!("ann")),
        ("email", json!("ann@example")),
        ("email", json!("ann smith@example.com")),
        ("email", json!(format!("{}@example.com", "x".repeat(243)))),
        ("email", json!("")),
        ("email", Value::Null),
        ("email", json!(1)),
        ("external_id", json!("")),
        ("external_id", long(129)),
        ("phone", json!("0151 12345678")),
        ("phone", json!("+0151")),
        ("phone", json!("+1234567890123456")),
        ("first_name", long(129)),
        ("last_name", long(129)),
        ("country_code", json!("DEU")),
        ("country_code", json!("XX")),
        ("country_code", json!("")),
        ("metadata", json!([])),
        ("metadata", json!("text")),
    ] {
        let mut body = of("ann@example.com");
        body[field] = value;
        let answer = create(&acme, &body, "k").await;
        let answer = answer.refused(400, "invalid_request");
        answer.saying(&format!("`{field}`"));
    }
    let missing = create(&acme, &json!({ "first_name": "Ann" }), "k").await;
    missing.refused(400, "invalid_request").saying("`email`");
    let without = acme.send(Call::post(PATH).json(&ann())).await;
    without.refused(400, "idempotency_key_required");
    assert_eq!(gate.world().database().count("customers").await, 0);
    // No refusal used the key. The longest allowed values are accepted.
    let longest = json!({
        "email": format!("{}@example.com", "x".repeat(242)), "external_id": long(128),
        "first_name": long(128), "last_name": long(128), "phone": "+123456789012345",
    });
    let customer = create(&acme, &longest, "k").await.created();
    for (field, value) in longest.as_object().unwrap() {
        assert_eq!(customer[field], *value);
    }
    gate.notice(ACME, customer["id"].as_str().unwrap()).await;
    gate.finish().await;
}

// rule: gate.customer.unique, gate.customer.taken-for-good, tenancy.nothing-crosses
#[tokio::test]
async fn email_and_external_id_belong_to_one_customer_for_good() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = create(&acme, &ann(), "a").await.created();
    let id = first["id"].as_str().unwrap();
    let live = gate.other_mode().await;
    for round in 0..2 {
        for (body, field) in [
            (of("Ann+1@Example.com"), "`email`"),
            (of("aNN+1@eXAMPLE.cOM"), "`email`"),
            (ann(), "`email`"),
            (
                json!({ "email": "other@example.com", "external_id": "user-1" }),
                "`external_id`",
            ),
        ] {
            let answer = create(&acme, &body, "b").await;
            let answer = answer.refused(409, "customer_already_exists");
            answer.saying(field);
        }
        let whose = [(gate.rival(), "rival"), (live.acme(), "acme")];
        if round == 0 {
            for (client, partner) in whose {
                let theirs = create(&client, &ann(), "a").await.created();
                assert_eq!(theirs["partner_id"], partner);
            }
        }
        acme.send(delete(id)).await.ok();
    }
    // External ids are case-sensitive.
    let other = json!({ "email": "other@example.com", "external_id": "USER-1" });
    create(&acme, &other, "b").await.created();
    live.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.customer.unique, gate.customer.created-event
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_twenty_concurrent_creates_with_one_email_succeeds() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    let clients = [gate.acme(), replica.acme()];
    let creates = (0..20).map(|number| {
        let client = clients[number % 2].clone();
        let body = of(["ann@example.com", "Ann@Example.com"][number % 3 % 2]);
        async move { create(&client, &body, &format!("key-{number}")).await }
    });
    let winner = one_winner(creates, 409, "customer_already_exists").await;
    let winner = winner["id"].as_str().unwrap();
    assert_eq!(gate.notice(ACME, winner).await, ["customer.created"]);
    assert_eq!(gate.world().database().count("customers").await, 1);
    replica.close().await;
    gate.finish().await;
}

// rule: idempotency.gate-replay, idempotency.gate-any-body, idempotency.gate-optional
#[tokio::test]
async fn repeated_key_replays_the_first_response() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = create(&acme, &ann(), "k").await;
    let id = first["id"].as_str().unwrap().to_owned();
    let same = |again: &Answer, first: &Answer| {
        let named = |answer: &Answer| answer.header("x-request-id").map(str::to_owned);
        assert_eq!((again.status, &again.bytes), (first.status, &first.bytes));
        assert_eq!(named(again), named(first));
    };
    let other = create(&acme, &of("nobody"), "k").await;
    same(&other, &first);
    assert!(other.header("penstock-warning").is_some());
    gate.world().after(5);
    let changing = |name: &str| patch(&id, &json!({ "first_name": name })).key("k");
    let changed = acme.send(changing("Anna")).await;
    assert_eq!(changed["first_name"], "Anna");
    same(&acme.send(changing("Bob")).await, &changed);
    let gone = acme.send(delete(&id).key("k")).await;
    gate.world().after(5);
    same(&acme.send(delete(&id).key("k")).await, &gone);
    // Every route has its own keys, and a stored response stays.
    same(&create(&acme, &ann(), "k").await, &first);
    same(&acme.send(changing("Bob")).await, &changed);
    for call in [patch(&id, &json!({})).key(""), delete(&id).key("a b")] {
        acme.send(call)
            .await
            .refused(400, "idempotency_key_invalid");
    }
    let kinds = gate.notice(ACME, &id).await;
    assert_eq!(
        kinds,
        ["customer.created", "customer.updated", "customer.deleted"]
    );
    let ticket = gate.enter(ACME, "POST /v1/customers", "busy").await;
    let twin = create(&acme, &of("eve@example.com"), "busy").await;
    twin.refused(409, "idempotency_in_progress");
    drop(ticket);
    gate.finish().await;
}

// rule: gate.customer.patch, gate.customer.updated-event, gate.customer.patch-strict
#[tokio::test]
async fn update_changes_the_named_fields_only() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let mut expected = create(&acme, &ann(), "k").await.created();
    let id = expected["id"].as_str().unwrap().to_owned();
    gate.world().after(1_500);
    let later = "2026-05-25T12:00:01.500Z";
    let update = json!({ "first_name": "Anna", "last_name": null, "country_code": "fr" });
    for (field, value) in [("first_name", json!("Anna")), ("country_code", json!("FR"))] {
        expected[field] = value;
    }
    expected["last_name"] = Value::Null;
    expected["updated_at"] = json!(later);
    assert_eq!(acme.send(patch(&id, &update)).await.ok(), expected);
    let events = gate.events(ACME, &id).await;
    assert_eq!(events[1], ("customer.updated".to_owned(), expected.clone()));
    // Metadata is replaced as a whole and cleared by an empty object.
    for (metadata, after) in [
        (
            json!({ "a": { "b": [null, 1] } }),
            json!({ "a": { "b": [null, 1] } }),
        ),
        (Value::Null, json!({})),
    ] {
        let changed = acme
            .send(patch(&id, &json!({ "metadata": metadata })))
            .await
            .ok();
        assert_eq!(changed["metadata"], after);
        expected["metadata"] = after;
    }
    // An update without a change emits no event.
    gate.world().after(1_000);
    for same in [
        json!({}),
        json!({ "last_name": null, "country_code": "FR" }),
    ] {
        assert_eq!(acme.send(patch(&id, &same)).await.ok(), expected);
    }
    assert_eq!(gate.notice(ACME, &id).await.len(), 4);
    for (field, value) in [
        ("email", json!("bob@example.com")),
        ("external_id", json!("user-2")),
        ("phone", json!("+4915112345679")),
        ("kyc_status", json!("verified")),
        ("mode", json!("live")),
        ("first_names", json!("A")),
        ("first_name", json!("x".repeat(129))),
        ("last_name", json!(7)),
        ("country_code", json!("XX")),
        ("metadata", json!([])),
    ] {
        let body = json!({ "last_name": "Li", field: value });
        let answer = acme.send(patch(&id, &body)).await;
        answer
            .refused(400, "invalid_request")
            .saying(&format!("`{field}`"));
    }
    assert_eq!(acme.get(&at(&id)).await.ok(), expected);
    acme.send(patch(UNKNOWN, &json!({})))
        .await
        .refused(404, "resource_not_found");
    gate.finish().await;
}

// rule: gate.customer.delete, gate.customer.deleted-event
#[tokio::test]
async fn deleted_customer_is_absent() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let id = made(&acme, "ann@example.com").await;
    gate.world().after(250);
    let gone = acme.send(delete(&id)).await.ok();
    let expected = json!({
        "id": id, "object": "customer", "deleted": true, "deleted_at": "2026-05-25T12:00:00.250Z",
    });
    assert_eq!(gone, expected);
    gate.world().after(1_000);
    for again in [delete(&id), delete(&id).key("k")] {
        assert_eq!(acme.send(again).await.ok(), expected);
    }
    for call in [
        Call::get(&at(&id)),
        patch(&id, &json!({ "first_name": "A" })),
    ] {
        acme.send(call).await.refused(404, "resource_not_found");
    }
    assert!(ids(&acme, "").await.is_empty());
    assert!(ids(&acme, "email=ann@example.com").await.is_empty());
    acme.send(delete(UNKNOWN))
        .await
        .refused(404, "resource_not_found");
    let events = gate.events(ACME, &id).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[1], ("customer.deleted".to_owned(), expected));
    gate.finish().await;
}

// rule: gate.customer.sealed
#[tokio::test]
async fn damaged_customer_is_refused_and_its_row_is_logged() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let id = made(&acme, "ann@example.com").await;
    let row = id.replace("cus_test_", "");
    let put = async |index: &str| {
        let damage = "UPDATE customers SET external_id_mark";
        let sql = format!("{damage} = {index} WHERE id = '{row}'");
        gate.world().damage(&sql).await;
    };
    put("zeroblob(32)").await;
    for call in [
        Call::get(&at(&id)),
        patch(&id, &json!({ "first_name": "A" })),
        delete(&id),
    ] {
        acme.send(call).await.refused(500, "internal_error");
    }
    let text = logs.text();
    let told = format!("inconsistent row in customers, column email_mark: acme/{row}");
    assert!(text.contains(&told), "{text}");
    put("NULL").await;
    acme.get(&at(&id)).await.ok();
    gate.notice(ACME, &id).await;
    gate.finish().await;
}

// rule: gate.customer.no-lost-update
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_updates_and_deletion_lose_nothing() {
    let gate = Gate::new().await;
    for deletes in [false, true] {
        let id = made(&gate.acme(), &format!("{deletes}@example.com")).await;
        let mut racing = Vec::new();
        for field in ["first_name", "last_name", "country_code"] {
            for value in ["AT", "BE", "CH"] {
                let (acme, body, id) = (gate.acme(), json!({ field: value }), id.clone());
                racing.push(tokio::spawn(async move {
                    acme.send(patch(&id, &body)).await.status
                }));
            }
        }
        if deletes {
            let (acme, id) = (gate.acme(), id.clone());
            racing.push(tokio::spawn(
                async move { acme.send(delete(&id)).await.status },
            ));
        }
        let mut done = 0;
        for one in racing {
            let status = one.await.unwrap();
            assert!(status == 200 || (deletes && status == 404), "{status}");
            done += usize::from(status == 200);
        }
        let said = gate.notice(ACME, &id).await.len();
        let read = gate.acme().get(&at(&id)).await;
        if deletes {
            read.refused(404, "resource_not_found");
            assert_eq!(said, done + 1);
        } else {
            let customer = read.ok();
            for field in ["first_name", "last_name", "country_code"] {
                assert!(customer[field].is_string(), "{customer}");
            }
        }
    }
    gate.finish().await;
}

// rule: gate.customer.list, list.order, list.no-loss, list.malformed-cursor, list.foreign-cursor
#[tokio::test]
async fn customers_are_listed_filtered_and_paged() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for number in 0..5_u64 {
        gate.world().after(number % 2);
        let body = json!({ "email": format!("ann+{number}@example.com"), "external_id": format!("user {number}") });
        create(&acme, &body, &format!("key-{number}"))
            .await
            .created();
    }
    let whole = acme.get(PATH).await.ok();
    let envelope = (&whole["object"], &whole["has_more"], &whole["url"]);
    assert_eq!(envelope, (&json!("list"), &json!(false), &json!(PATH)));
    let all = ids(&acme, "").await;
    assert_eq!(all.len(), 5);
    assert_eq!(walk(&acme, PATH, "id").await, all);
    // The newest two were created at the same instant.
    let newest = whole["data"][0]["email"]
        .as_str()
        .unwrap()
        .replace('+', "%2B");
    for (query, found) in [
        (format!("email={newest}"), 1),
        (format!("email={}", newest.to_uppercase()), 1),
        ("email=nobody@example.com".to_owned(), 0),
        ("external_id=user%203".to_owned(), 1),
        ("external_id=USER%203".to_owned(), 0),
        (
            format!(
                "external_id=user%202&email=ann%2B2@example.com&starting_after={}",
                all[0]
            ),
            1,
        ),
        (
            "external_id=user%203&email=ann%2B4@example.com".to_owned(),
            0,
        ),
        (format!("external_id=user%200&starting_after={}", all[4]), 0),
        (format!("starting_after={UNKNOWN}"), 0),
        (
            "starting_after=cus_live_01HF7YAT00408104G208104081".to_owned(),
            0,
        ),
    ] {
        let page = acme.get(&format!("{PATH}?{query}")).await.ok();
        assert_eq!(page["data"].as_array().unwrap().len(), found, "{query}");
        assert_eq!(page["has_more"], false, "{query}");
    }
    for query in [
        "limit=0",
        "limit=101",
        "starting_after=1",
        "starting_after=gs_test_01HF7YAT00408104G208104081",
        "email=ann+1@example.com",
        "email=",
        "external_id=",
        "email=a@b.co&email=a@b.co",
    ] {
        let answer = acme.get(&format!("{PATH}?{query}")).await;
        let name = query.split('=').next().unwrap();
        answer.refused(400, "invalid_request").saying(name);
    }
    // A page continues after a customer that was deleted in the meantime.
    acme.send(delete(&all[1])).await.ok();
    let rest = ids(&acme, &format!("starting_after={}", all[1])).await;
    assert_eq!(rest, all[2..]);
    assert!(ids(&gate.rival(), "").await.is_empty());
    gate.world().notice_all().await;
    gate.finish().await;
}

/// A text as a database prints its bytes; some print upper case.
pub(super) fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

// rule: gate.customer.sealed, gate.customer.never-logged
#[tokio::test]
async fn personal_data_is_sealed_in_the_database_and_absent_from_logs() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let acme = gate.acme();
    let body = json!({
        "email": "Canary.Mail@example.com", "external_id": "canary-name", "phone": "+4917012345678",
        "first_name": "Canaryanne", "last_name": "Canaryson", "country_code": "LI",
        "metadata": { "canary-key": "canary-value" },
    });
    let made = create(&acme, &body, "k").await.created();
    let id = made["id"].as_str().unwrap();
    create(&acme, &body, "l")
        .await
        .refused(409, "customer_already_exists");
    create(&acme, &json!({ "email": "canary" }), "l").await;
    acme.send(patch(
        id,
        &json!({ "first_name": "Canarybeth", "phone": "canary" }),
    ))
    .await;
    acme.send(patch(id, &json!({ "first_name": "Canarybeth" })))
        .await
        .ok();
    for query in [
        "email=canary.mail@example.com",
        "external_id=canary-name",
        "email=canary",
    ] {
        acme.get(&format!("{PATH}?{query}")).await;
    }
    acme.send(delete(id).key("k")).await.ok();
    let log = logs.text().to_lowercase();
    assert!(log.lines().count() >= 8, "requests are logged");
    let rows = gate.world().database().digest().await;
    let rows: Vec<String> = rows.into_values().map(|rows| rows.to_lowercase()).collect();
    let files = gate.world().database().files().await.to_ascii_lowercase();
    for canary in ["canary", "17012345678"] {
        assert!(!log.contains(canary), "{canary} is logged");
        let upper = hex(&canary.to_uppercase());
        for shown in [canary.to_owned(), hex(canary), upper] {
            let told = rows.iter().any(|rows| rows.contains(&shown));
            assert!(!told, "a row contains {canary}");
        }
        let on_disk = files
            .windows(canary.len())
            .any(|at| at == canary.as_bytes());
        assert!(!on_disk, "the files contain {canary}");
    }
    gate.notice(ACME, id).await;
    gate.finish().await;
}
