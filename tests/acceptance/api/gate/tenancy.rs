//! Two partners and two modes of one database: objects of one are absent for the other.
//!
//! The operations come from the published documents, so a new operation is tested as soon as it is
//! published, and an operation on objects of a new kind fails until the kind is added here.

use acceptance::{
    ACME, ACME_PUBLISHABLE, Answer, Call, Contract, Gate, GateClient, Operation, RIVAL,
    RIVAL_PUBLISHABLE, RIVAL_SHOP, SHOP,
};
use partner_core::webhooks::delivery::AttemptOutcome;
use serde_json::json;
use test_support::recorded::{kind_of, recorded, unknown_for};

/// Ids of one partner's objects, by kind.
#[derive(Debug, Clone)]
struct Ids {
    /// An open session and a completed session.
    sessions: [String; 2],
    refid: String,
    delivery: String,
    customer: String,
    signed_quote: String,
    pay_in: String,
    pay_out: String,
    /// Objects of the pools service, which the gate does not know.
    quote: String,
    trade: String,
}

const UNKNOWN_SESSION: &str = "gs_test_01HF7YAT00408104G208104081";
const UNKNOWN_DELIVERY: &str = "wd_test_01HF7YAT00408104G208104081";

impl Ids {
    fn all(&self) -> Vec<&str> {
        let Self {
            sessions: [open, completed],
            refid,
            delivery,
            customer,
            signed_quote,
            pay_in,
            pay_out,
            quote,
            trade,
        } = self;
        let gate = [open, completed, refid, delivery, customer];
        let rails = [signed_quote, pay_in, pay_out];
        let all = gate.into_iter().chain(rails).chain([quote, trade]);
        all.map(String::as_str).collect()
    }
}

/// An unknown id of the kind in an operation's path; `None` if the path names no object of one partner. Tests of the widget's calls
/// have their own tokens.
fn unknown(operation: &Operation) -> Option<String> {
    if operation.credentials == ["embedToken"] {
        return None;
    }
    let parameters = operation.template.matches('{').count();
    assert!(parameters <= 1, "{}: more than one object", operation.id);
    let path = &recorded(&operation.id).path;
    let unknown = path.split('/').find_map(unknown_for);
    // All partners share the catalogue.
    let names_object =
        operation.template.contains('{') && !operation.template.contains("/capabilities/");
    assert_eq!(
        unknown.is_some(),
        names_object,
        "{}: `kind_of` does not know the id in {path}",
        operation.id
    );
    unknown
}

/// The recorded request of an operation from this page, with this id in place of every id.
fn call(operation: &Operation, id: &str, page: &str) -> Call {
    let mut record = recorded(&operation.id).about(|text| match kind_of(text) {
        Some(_) => Some(id.to_owned()),
        None if text.contains("shop.example") => Some(page.to_owned()),
        None if text == "Acme" => Some("Mine".to_owned()),
        None => None,
    });
    // The recorded client secret is that of a session that does not exist here.
    if record
        .body
        .as_ref()
        .is_some_and(|body| body.get("clientSecret").is_some())
    {
        record.body = None;
    }
    Call::of(&record)
}

fn operations() -> &'static [Operation] {
    let operations = &Contract::gate().operations;
    assert!(operations.len() >= 14, "{}", operations.len());
    operations
}

fn order(side: &str) -> serde_json::Value {
    json!({ "currency": "EUR", "asset": "USDT", "amount": "100", "side": side, "payment_method": "sepa" })
}

/// A signed quote, a pay-in of a session that stays open, and a pay-out of another session.
async fn railed(client: &GateClient, session: &str) -> [String; 3] {
    let sold_for = client.open_id("sold").await;
    let id = |object: serde_json::Value| object["id"].as_str().unwrap().to_owned();
    let lock = async |key: &str, side: &str| {
        let call = Call::post("/v1/quotes").json(&order(side)).key(key);
        id(client.send(call).await.created())
    };
    let redeem = async |rail: &str, quote: String, session: &str| {
        let named = json!({ "quote_id": quote, "session_id": session });
        let call = Call::post(&format!("/v1/rails/{rail}")).json(&named);
        id(client.send(call.key("rail")).await.created())
    };
    let quote = lock("quote", "on_ramp").await;
    let bought = lock("bought", "on_ramp").await;
    let sold = lock("sold", "off_ramp").await;
    let [pay_in, pay_out] = [
        redeem("pay_ins", bought, session).await,
        redeem("pay_outs", sold, &sold_for).await,
    ];
    [quote, pay_in, pay_out]
}

/// One object of every kind for a partner.
async fn stock(gate: &Gate, client: &GateClient, partner: &str) -> Ids {
    let [open, paid] = [client.open_id("a").await, client.open_id("b").await];
    client.complete(&paid).await.ok();
    let events = gate.events(partner, &paid).await;
    let refid = events[1].1["tx_refid"].as_str().unwrap().to_owned();
    gate.notice(partner, &open).await;
    let delivery = match gate.deliveries_of(partner, &open).await.first() {
        Some(id) => id.clone(),
        None => UNKNOWN_DELIVERY.to_owned(),
    };
    let customer =
        json!({ "email": format!("{partner}@example.com"), "last_name": format!("of {partner}") });
    let customer = client.create_customer(&customer, "c").await.created();
    let customer = customer["id"].as_str().unwrap().to_owned();
    gate.notice(partner, &customer).await;
    let [signed_quote, pay_in, pay_out] = railed(client, &open).await;
    let world = gate.world();
    world.operator().credit(partner, "1000.00", "EUR").await;
    let pools = if partner == ACME {
        world.acme()
    } else {
        world.rival()
    };
    let (quote, trade) = pools.trade("EUR-USDT", "100").await;
    Ids {
        sessions: [open, paid],
        refid,
        delivery,
        customer,
        signed_quote,
        pay_in,
        pay_out,
        quote,
        trade,
    }
}

/// Acme with every object; undeliverable events are dead letters.
async fn stocked() -> (Gate, Ids) {
    let gate = Gate::new().await;
    let ids = stock(&gate, &gate.acme(), ACME).await;
    gate.world().notice_all().await;
    gate.conclude(AttemptOutcome::GivenUp, Some(500), None)
        .await;
    (gate, ids)
}

fn other_mode(id: &str) -> String {
    let id = id.replace("_test_", "_live_");
    id.strip_prefix("test_tx_")
        .map_or(id.clone(), |ulid| format!("live_tx_{ulid}"))
}

fn names(answer: &Answer) -> Vec<String> {
    answer.headers.keys().map(ToString::to_string).collect()
}

/// Expects every read of these ids by `client` to return the same as for unknown ids.
async fn expect_absent(client: &GateClient, ids: &[String], page: &str, mode: &str) {
    for operation in operations() {
        let Some(unknown) = unknown(operation) else {
            continue;
        };
        let sandbox = operation.template.contains("/test_helpers/");
        if sandbox && mode == "live" {
            continue;
        }
        let reference = client.send(call(operation, &unknown, page)).await;
        let reference = reference.refused(404, "resource_not_found");
        for id in ids {
            let found = client.send(call(operation, id, page)).await;
            let found = found.refused(404, "resource_not_found");
            assert_eq!(
                found.anonymous(),
                reference.anonymous(),
                "{} {id}",
                operation.id
            );
            assert_eq!(names(&found), names(&reference), "{} {id}", operation.id);
        }
    }
}

// rule: tenancy.foreign-is-absent, tenancy.nothing-crosses, id.other-mode, id.kinds-differ, mode.on-every-row, gate.session.retrieve, gate.transaction.foreign
#[tokio::test]
async fn foreign_id_reads_as_unknown() {
    let (gate, ids) = stocked().await;
    let live = gate.other_mode().await;
    let before = gate.world().database().digest().await;
    let own: Vec<String> = ids.all().into_iter().map(str::to_owned).collect();
    let swapped: Vec<String> = own.iter().map(|id| other_mode(id)).collect();
    let all = [own, swapped.clone()].concat();
    expect_absent(&gate.rival(), &all, RIVAL_SHOP, "test").await;
    expect_absent(&live.acme(), &all, SHOP, "live").await;
    expect_absent(&live.rival(), &all, RIVAL_SHOP, "live").await;
    // In the other mode they are absent even for their owner.
    expect_absent(&gate.acme(), &swapped, SHOP, "test").await;
    // So are the ids of another kind.
    let kind = |id: &str| id.split('_').next().map(str::to_owned);
    for operation in operations() {
        let Some(unknown) = unknown(operation) else {
            continue;
        };
        for id in ids
            .all()
            .into_iter()
            .filter(|id| kind(id) != kind(&unknown))
        {
            let answer = gate.acme().send(call(operation, id, SHOP)).await;
            answer.refused(404, "resource_not_found");
        }
    }
    let after = gate.world().database().digest().await;
    assert_eq!(after, before, "the refusals change no row");
    live.close().await;
    gate.finish().await;
}

// rule: tenancy.nothing-crosses, list.foreign-cursor
#[tokio::test]
async fn foreign_cursor_returns_an_empty_page() {
    let (gate, ids) = stocked().await;
    let rival = gate.rival();
    stock(&gate, &rival, RIVAL).await;
    let [open, paid] = &ids.sessions;
    for query in [
        format!("gate_sessions?starting_after={open}"),
        format!("gate_sessions?starting_after={}", other_mode(open)),
        format!("gate_sessions?starting_after={UNKNOWN_SESSION}"),
        format!("transactions?starting_after={}", ids.refid),
        format!("transactions?session_id={paid}"),
        format!("transactions?session_id={}", other_mode(paid)),
        format!("customers?starting_after={}", ids.customer),
        "customers?email=acme@example.com".to_owned(),
    ] {
        let page = rival.get(&format!("/v1/{query}")).await.ok();
        assert_eq!(
            (&page["data"], &page["has_more"]),
            (&json!([]), &json!(false)),
            "{query}"
        );
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

/// Rival requests its own objects and those of acme, and names acme as its partner.
// rule: tenancy.nothing-crosses, access.not-by-api, request.unknown-fields
#[tokio::test]
async fn responses_hold_no_data_of_another_partner() {
    let (gate, ids) = stocked().await;
    let (rival, browser) = (gate.rival(), gate.client(RIVAL_PUBLISHABLE));
    let own = stock(&gate, &rival, RIVAL).await;
    let of_acme = [&ids.all()[..], &["acme", "shop.example"]].concat();
    for operation in operations() {
        let client = if operation.credentials == ["publishableKey"] {
            &browser
        } else {
            &rival
        };
        for id in own.all() {
            let answer = client.send(call(operation, id, RIVAL_SHOP)).await;
            let text = String::from_utf8_lossy(&answer.bytes).to_lowercase();
            for word in &of_acme {
                let shown = text.contains(&word.to_lowercase());
                assert!(!shown, "{} shows {word}", operation.id);
            }
        }
        for id in ids.all() {
            let call = call(operation, id, RIVAL_SHOP)
                .query("partner_id=acme&partner=acme&mode=live")
                .header("x-partner-id", ACME)
                .header("x-mode", "live");
            let answer = client.send(call).await;
            assert!(!answer.body.to_string().contains("\"acme\""), "{answer:?}");
        }
    }
    let page = gate.acme().get("/v1/gate_sessions").await.ok();
    let sessions = page["data"].as_array().unwrap();
    let mut statuses: Vec<&str> = sessions
        .iter()
        .map(|it| it["status"].as_str().unwrap())
        .collect();
    statuses.sort_unstable();
    assert_eq!(
        statuses,
        ["completed", "open", "open"],
        "acme's objects are unchanged"
    );
    assert_eq!(
        gate.client(ACME_PUBLISHABLE)
            .get("/v1/branding")
            .await
            .status,
        403
    );
    gate.world().notice_all().await;
    gate.finish().await;
}
