//! The origins of a partner's pages: what errors say about them, every port of a loopback host, and addresses as sent.

use acceptance::{ACME, ACME_PUBLISHABLE, Answer, Call, Gate, RIVAL_SHOP, SHOP, WIDGET, session};
use gate_core::profile::GateProfile;
use partner_core::origin::AllowedDomain;
use serde_json::{Value, json};

use super::widget::{SESSION, admitted, preflight, widget, with};

const BOOTSTRAP: &str = "/v1/embed/bootstrap";
const OUTCOME: &str = "/v1/embed/outcome";

/// Allows acme one more domain.
async fn allow(gate: &Gate, domain: &str) {
    let domain = AllowedDomain::stored(domain).unwrap();
    let add = |profile: &mut GateProfile| {
        profile.allowed_domains.insert(domain);
    };
    gate.world().operator().change_gate(ACME, add).await;
}

async fn ask(gate: &Gate, call: Call) -> Answer {
    let key = gate.world().of_mode(ACME_PUBLISHABLE);
    gate.send(call.bearer(&key)).await
}

fn from(page: &str) -> Call {
    Call::post(BOOTSTRAP).header("origin", page)
}

// rule: gate.origin.any-port, gate.origin.allowed, gate.bootstrap.origin, gate.cors.preflight, gate.cors.answer
#[tokio::test]
async fn every_port_of_loopback_host_may_start_the_widget_and_be_returned_to() {
    let gate = Gate::new().await;
    allow(&gate, "http://127.0.0.1:*").await;
    for (page, is_allowed) in [
        ("http://127.0.0.1:49300", true),
        ("http://127.0.0.1", true),
        ("http://localhost:49300", false),
        ("https://127.0.0.1:49300", false),
        ("http://127.0.0.1.evil.example:49300", false),
    ] {
        let asked = gate.preflight(preflight(BOOTSTRAP, page, "POST")).await;
        assert_eq!(admitted(&asked).is_some(), is_allowed, "{page}");
        let started = ask(&gate, from(page)).await;
        assert_eq!(admitted(&started).is_some(), is_allowed, "{page}");
        assert_eq!(started.status, if is_allowed { 200 } else { 403 }, "{page}");
        let made = gate.acme().create(&session(page), page).await;
        assert_eq!(made.status, if is_allowed { 201 } else { 400 }, "{page}");
        if is_allowed {
            let start = json!({ "clientSecret": made["client_secret"] });
            let started = ask(&gate, from(page).json(&start)).await.ok();
            assert_eq!(started["return_url"], format!("{page}/done"));
            gate.notice(ACME, made["id"].as_str().unwrap()).await;
        }
    }
    // An entry is no origin, so a request cannot present it as one.
    let refused = ask(&gate, from("http://127.0.0.1:*")).await;
    refused.refused(403, "origin_not_allowed");
    gate.finish().await;
}

// rule: gate.origin.any-port, gate.embed.framed
#[tokio::test]
async fn policy_and_page_name_every_port_of_loopback_host() {
    let gate = Gate::new().await;
    allow(&gate, "http://127.0.0.1:*").await;
    let query = format!("publishable_key={ACME_PUBLISHABLE}");
    let answer = gate.page(Call::get("/embed").query(&query)).await;
    let policy = answer.header("content-security-policy").unwrap();
    let named = format!("http://127.0.0.1:* {SHOP}");
    assert!(
        policy.ends_with(&format!("frame-ancestors {named}")),
        "{policy}"
    );
    let page = String::from_utf8(answer.bytes.to_vec()).unwrap();
    let listed = format!("<meta name=\"penstock-origins\" content=\"{named}\">");
    assert!(page.contains(&listed), "{page}");
    gate.finish().await;
}

// rule: gate.origin.names-all, gate.origin.https, gate.origin.allowed
#[tokio::test]
async fn refused_address_is_named_with_all_that_is_wrong() {
    let gate = Gate::new().await;
    let list = "is not in allowed_domains (https://shop.example); add it with `penstock apply`.";
    for (field, url, message) in [
        (
            "return_url",
            "http://127.0.0.1:49300/done",
            format!("`return_url`: `http://127.0.0.1:49300` {list}"),
        ),
        (
            "cancel_url",
            "http://myshop.test/done",
            format!(
                "`cancel_url`: expected an https URL, found `http://myshop.test`; also, `https://myshop.test` {list}"
            ),
        ),
        (
            "return_url",
            "http://shop.example/done",
            "`return_url`: expected an https URL, found `http://shop.example`.".to_owned(),
        ),
    ] {
        let mut body = session(SHOP);
        body[field] = json!(url);
        let answer = gate.acme().create(&body, "k").await;
        let answer = answer.refused(400, "invalid_request");
        assert_eq!(answer["message"], message);
    }
    gate.finish().await;
}

// rule: gate.origin.names-all, gate.bootstrap.origin
#[tokio::test]
async fn refused_page_is_named_with_the_allowed_domains() {
    let gate = Gate::new().await;
    let refused = async |call: Call| {
        let answer = ask(&gate, call).await.refused(403, "origin_not_allowed");
        answer["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused(from(RIVAL_SHOP)).await,
        "`https://rival.example` is not in allowed_domains (https://shop.example); add it with `penstock apply`."
    );
    let unknown = "`Origin` and `Referer` name no web page; expected an origin of allowed_domains (https://shop.example).";
    assert_eq!(refused(from("null")).await, unknown);
    assert_eq!(refused(from("capacitor://localhost")).await, unknown);
    assert_eq!(refused(Call::post(BOOTSTRAP)).await, unknown);
    gate.finish().await;
}

// rule: gate.origin.as-sent
#[tokio::test]
async fn addresses_of_the_way_back_are_returned_as_sent() {
    let gate = Gate::new().await;
    for (number, path) in [
        "/done?name=Ann%20Lee",
        "/done?name=Ann+Lee&paid&ref=7",
        "/done?next=/a/b&a=1;b=2",
        "/done?name=M%FCller&sig=%2f%2F%7e~",
        "/a/../done?&&x==#paid?x",
        "/done?gate_session_id=earlier&x=1",
        ":443/%64one?",
    ]
    .into_iter()
    .enumerate()
    {
        let (return_url, cancel_url) = (
            format!("{SHOP}{path}"),
            format!("HTTPS://SHOP.example{path}"),
        );
        let mut body = session(SHOP);
        body["return_url"] = json!(return_url);
        body["cancel_url"] = json!(cancel_url);
        body["metadata"] = json!({ "number": number });
        let (token, made) = widget(&gate, &body).await;
        let start = json!({ "clientSecret": made["client_secret"] });
        let id = made["id"].as_str().unwrap();
        let read = gate.acme().read(id).await.ok();
        let shown = gate.send(with(&token, Call::get(SESSION))).await.ok();
        let started = ask(&gate, from(WIDGET).json(&start)).await.ok();
        assert_eq!(started["return_url"], return_url);
        gate.acme().cancel(id).await.created();
        let ask_end = Call::post(OUTCOME).header("origin", SHOP).json(&start);
        let ended = ask(&gate, ask_end).await.ok();
        let events = gate.events(ACME, id).await;
        let told: Vec<&Value> = events.iter().map(|(_, data)| data).collect();
        for answer in [&made, &read, &shown, &ended].into_iter().chain(told) {
            assert_eq!(answer["return_url"], return_url, "{answer}");
            assert_eq!(answer["cancel_url"], cancel_url, "{answer}");
        }
    }
    gate.finish().await;
}
