//! Signed quotes and the rails that redeem them.

use acceptance::{ACME, Answer, Call, Gate, GateClient, SHOP};
use serde_json::{Value, json};

use super::races::one_winner;

pub(super) const QUOTES: &str = "/v1/quotes";
pub(super) const PAY_INS: &str = "/v1/rails/pay_ins";
pub(super) const PAY_OUTS: &str = "/v1/rails/pay_outs";
pub(super) const DAY: u64 = 24 * 60 * 60 * 1000;

pub(super) fn with(mut body: Value, changes: &Value) -> Value {
    for (field, value) in changes.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

/// An order of a signed quote.
pub(super) fn order() -> Value {
    json!({
        "currency": "EUR", "asset": "USDT", "amount": "100.00", "side": "on_ramp", "payment_method": "sepa",
    })
}

pub(super) async fn lock(client: &GateClient, key: &str, changes: Value) -> Answer {
    let call = Call::post(QUOTES).json(&with(order(), &changes));
    client.send(call.key(key)).await
}

pub(super) async fn purchase(client: &GateClient, key: &str, amount: &str) -> Value {
    let locked = in_turn(|| lock(client, key, json!({ "amount": amount }))).await;
    locked.created()
}

pub(super) async fn sale(client: &GateClient, key: &str, amount: &str) -> Value {
    let locked = lock(client, key, json!({ "amount": amount, "side": "off_ramp" })).await;
    locked.created()
}

pub(super) async fn session(
    client: &GateClient,
    key: &str,
    amount: &str,
    changes: Value,
) -> String {
    let body = json!({ "amount": amount, "currency": "EUR", "return_url": format!("{SHOP}/done") });
    let body = with(body, &changes);
    let made = in_turn(|| client.create(&body, key)).await;
    id(&made.created())
}

pub(super) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

pub(super) async fn redeem(
    client: &GateClient,
    path: &str,
    key: &str,
    quote: &str,
    session: &str,
) -> Answer {
    let body = json!({ "quote_id": quote, "session_id": session });
    client.send(Call::post(path).json(&body).key(key)).await
}

/// Sends a request, and sends it again while its partner's lock is not free in time. The last of many requests waits long on a busy
/// machine.
pub(super) async fn in_turn<F: Future<Output = Answer>>(send: impl Fn() -> F) -> Answer {
    let mut answer = send().await;
    for _ in 0..30 {
        if answer.status != 503 {
            break;
        }
        answer = send().await;
    }
    answer
}

pub(super) async fn read(client: &GateClient, path: &str, id: &str) -> Value {
    client.get(&format!("{path}/{id}")).await.ok()
}

/// Creates and redeems a pay-in of an amount; returns the session and the record.
pub(super) async fn paying(client: &GateClient, name: &str, amount: &str) -> (String, Value) {
    let quote = purchase(client, &format!("{name}-q"), amount).await;
    let session = session(client, &format!("{name}-s"), amount, json!({})).await;
    let made = redeem(client, PAY_INS, name, &id(&quote), &session).await;
    (session, made.created())
}

pub(super) async fn transaction_of(client: &GateClient, session: &str) -> Value {
    let list = format!("/v1/transactions?session_id={session}");
    client.get(&list).await.ok()["data"][0].clone()
}

// rule: gate.quote.answer, gate.quote.ttl, gate.price.purchase, gate.price.fees, gate.quote.replay
#[tokio::test]
async fn quote_locks_the_rate_and_is_created_once() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let first = lock(&acme, "q", json!({})).await;
    let bytes = first.bytes.clone();
    let quote = first.created();
    // 1.0850 x 0.9975; service 0.5 %, network fee of TRON in EUR from the catalogue.
    assert_eq!(quote["exchange_rate"], "1.0822875");
    assert_eq!(quote["fees"]["service"], "0.50");
    assert_eq!(
        [&quote["fiat_amount"], &quote["network"], &quote["status"]],
        ["100.00", "tron", "active"]
    );
    for field in ["source_asset", "source_network", "source_amount"] {
        assert_eq!(quote.get(field), None, "{field}");
    }
    assert_eq!(quote["created_at"], "2026-05-25T12:00:00.000Z");
    assert_eq!(quote["expires_at"], "2026-05-25T12:01:00.000Z");
    // A repeat with another body is replayed.
    gate.world().rates().lose("EUR-USDT");
    let repeated = lock(&acme, "q", json!({ "amount": "7" })).await;
    assert_eq!(repeated.bytes, bytes);
    let read_back = read(&acme, QUOTES, &id(&quote)).await;
    assert_eq!(read_back, quote);
    let path = format!("{QUOTES}/{}", id(&quote));
    gate.rival()
        .get(&path)
        .await
        .refused(404, "resource_not_found");
    gate.world().after(59_999);
    assert_eq!(read(&acme, QUOTES, &id(&quote)).await["status"], "active");
    gate.world().after(1);
    assert_eq!(read(&acme, QUOTES, &id(&quote)).await["status"], "expired");
    gate.finish().await;
}

// rule: gate.quote.refusals, gate.order.catalogue, gate.order.digits, gate.quote.no-rate, gate.quote.key
#[tokio::test]
async fn refused_lock_leaves_the_key_free() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (field, value, code) in [
        ("currency", json!("XXX"), "unknown_currency"),
        ("asset", json!("DOGE"), "unknown_currency"),
        ("network", json!("Tron"), "network_not_supported"),
        ("country_code", json!("ZZ"), "invalid_request"),
        ("country_code", json!("JP"), "country_not_supported"),
        ("country_code", json!("GB"), "corridor_not_available"),
        ("payment_method", json!("ach"), "invalid_request"),
        ("amount", json!("0"), "invalid_request"),
        ("amount", json!("01"), "invalid_request"),
        ("amount", json!(5), "invalid_request"),
        ("amount", json!("1.001"), "amount_precision"),
        ("amount", json!("10000000000.01"), "amount_out_of_range"),
        ("amount", json!("0.01"), "amount_out_of_range"),
    ] {
        let refusal = lock(&acme, "q", json!({ field: value })).await;
        refusal.refused(400, code).saying(field);
    }
    for unpriced in [json!({ "amount": "100.13" }), json!({ "asset": "BTC" })] {
        let refusal = lock(&acme, "q", unpriced).await;
        refusal.refused(409, "rate_unavailable");
    }
    acme.send(Call::post(QUOTES).json(&order()))
        .await
        .refused(400, "idempotency_key_required");
    lock(&acme, "q", json!({})).await.created();
    gate.finish().await;
}

// rule: gate.rail.entitlement
#[tokio::test]
async fn rails_need_their_own_entitlement() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let (_, record) = paying(&acme, "p", "100.00").await;
    let operator = gate.world().operator();
    operator.change_gate(ACME, |gate| gate.rails = false).await;
    let quote = record["quote_id"].as_str().unwrap();
    let refused = |answer: Answer| drop(answer.refused(403, "rails_not_enabled"));
    refused(lock(&acme, "p-q", json!({})).await);
    refused(acme.get(&format!("{QUOTES}/{quote}")).await);
    refused(redeem(&acme, PAY_INS, "p", quote, "gs").await);
    refused(redeem(&acme, PAY_OUTS, "p", quote, "gs").await);
    refused(acme.get(&format!("{PAY_INS}/{}", id(&record))).await);
    refused(acme.get(&format!("{PAY_OUTS}/{}", id(&record))).await);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.rail.record, gate.rail.atomic, gate.rail.settled, gate.rail.completes, gate.rail.replay, gate.transaction.rail, gate.event.once
#[tokio::test]
async fn pay_in_settles_and_completes_its_session() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let (session, made) = paying(&acme, "p", "100.00").await;
    assert_eq!([&made["object"], &made["kind"]], ["rail_pay_in", "pay_in"]);
    assert_eq!(
        [&made["status"], &made["settled_at"]],
        [&json!("processing"), &Value::Null]
    );
    let note = made["instructions"]["note"].as_str().unwrap();
    assert!(note.starts_with("Sandbox"), "{note}");
    let quote = made["quote_id"].as_str().unwrap();
    let consumed = read(&acme, QUOTES, quote).await;
    assert_eq!(
        [&consumed["status"], &consumed["consumed_at"]],
        [&json!("consumed"), &made["created_at"]]
    );
    assert_eq!(
        gate.events(ACME, quote).await,
        [("quote.consumed".to_owned(), consumed)]
    );
    let begun = transaction_of(&acme, &session).await;
    assert_eq!(
        [&begun["status"], &begun["completed_at"]],
        [&json!("processing"), &Value::Null]
    );
    gate.world().after(300);
    gate.settle_rails().await;
    gate.settle_rails().await;
    let settled = read(&acme, PAY_INS, &id(&made)).await;
    let at = "2026-05-25T12:00:00.300Z";
    assert_eq!(
        settled,
        with(
            made.clone(),
            &json!({ "status": "settled", "settled_at": at, "updated_at": at })
        )
    );
    // A repeat is replayed and redeems nothing, whatever its body names.
    let repeated = redeem(&acme, PAY_INS, "p", "qt", "gs").await;
    assert_eq!(repeated.created(), made);
    let ended = transaction_of(&acme, &session).await;
    let expected = json!({
        "object": "transaction",
        "refid": ended["refid"],
        "session_id": session,
        "action": "on_ramp",
        "status": "completed",
        "token": "USDT",
        "network": "tron",
        "currency": "EUR",
        "payment_method": "sepa",
        "fiat_amount": made["fiat_amount"],
        "token_amount": made["crypto_amount"],
        "exchange_rate": made["exchange_rate"],
        "total_fees": made["fees"]["total"],
        "local_rail_transaction_id": made["id"],
        "created_at": made["created_at"],
        "completed_at": at,
    });
    assert_eq!(ended, expected);
    assert_eq!(acme.read(&session).await.ok()["status"], "completed");
    let events = gate.events(ACME, &id(&made)).await;
    assert_eq!(
        events,
        [
            ("rail.pay_in.processing".to_owned(), made),
            ("rail.pay_in.settled".to_owned(), settled),
        ]
    );
    let (kind, data) = gate.events(ACME, &session).await.pop().unwrap();
    assert_eq!(kind, "gate_session.completed");
    assert_eq!(data["tx_refid"], ended["refid"]);
    gate.finish().await;
}

// rule: gate.rail.states, gate.rail.failure, gate.rail.sandbox, gate.transaction.rail
#[tokio::test]
async fn failed_or_cancelled_payment_leaves_its_session_open() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    for (amount, status, code) in [
        ("100.31", "failed", json!("provider_declined")),
        ("100.32", "cancelled", Value::Null),
    ] {
        let (session, made) = paying(&acme, amount, amount).await;
        gate.world().after(10);
        gate.settle_rails().await;
        let ended = read(&acme, PAY_INS, &id(&made)).await;
        assert_eq!(
            [&ended["status"], &ended["failure_code"]],
            [&json!(status), &code]
        );
        assert_eq!(ended["settled_at"], Value::Null);
        assert_ne!(ended["updated_at"], ended["created_at"]);
        assert_eq!(transaction_of(&acme, &session).await["status"], status);
        assert_eq!(acme.read(&session).await.ok()["status"], "open");
        let said = gate.notice(ACME, &id(&made)).await;
        assert_eq!(
            said,
            ["rail.pay_in.processing", &format!("rail.pay_in.{status}")]
        );
        // The quote stays consumed.
        let quote = made["quote_id"].as_str().unwrap();
        let again = redeem(&acme, PAY_INS, &format!("{amount}-again"), quote, &session).await;
        again.refused(409, "quote_consumed");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.rail.pay-out, gate.price.sale
#[tokio::test]
async fn pay_out_settles_without_instructions() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let quote = sale(&acme, "q", "100").await;
    assert_eq!(
        [&quote["crypto_amount"], &quote["fees"]["network"]],
        ["100", "0.00"]
    );
    let fiat = quote["fiat_amount"].as_str().unwrap();
    let flow = json!({ "flow": "off_ramp", "target_token": "usdt", "target_network": "tron" });
    // A session of a sale may be bound to either leg.
    let session = session(&acme, "s", fiat, flow).await;
    let made = redeem(&acme, PAY_OUTS, "p", &id(&quote), &session)
        .await
        .created();
    assert_eq!(
        [&made["object"], &made["kind"]],
        ["rail_pay_out", "pay_out"]
    );
    assert_eq!(made["instructions"], Value::Null);
    gate.settle_rails().await;
    assert_eq!(read(&acme, PAY_OUTS, &id(&made)).await["status"], "settled");
    let path = format!("{PAY_INS}/{}", id(&made));
    acme.get(&path).await.refused(404, "resource_not_found");
    let said = gate.notice(ACME, &id(&made)).await;
    assert_eq!(said, ["rail.pay_out.processing", "rail.pay_out.settled"]);
    assert_eq!(acme.read(&session).await.ok()["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

/// Two processes redeem two quotes for one session, each of them several times.
// rule: gate.rail.one-winner, gate.rail.atomic, gate.event.once, gate.session.one-payment
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_twenty_concurrent_redemptions_wins() {
    let gate = Gate::new().await;
    let replica = gate.replica().await;
    let clients = [gate.acme(), replica.acme()];
    let quotes = [
        id(&purchase(&clients[0], "q-0", "100.00").await),
        id(&purchase(&clients[0], "q-1", "100.00").await),
    ];
    let session = session(&clients[0], "s", "100.00", json!({})).await;
    let redemptions = (0..20).map(|number| {
        let (client, quote) = (clients[number % 2].clone(), quotes[number / 2 % 2].clone());
        let session = session.clone();
        async move {
            let key = format!("p-{number}");
            in_turn(|| redeem(&client, PAY_INS, &key, &quote, &session)).await
        }
    });
    let record = one_winner(redemptions, 409, "session_payment_in_progress").await;
    gate.settle_rails().await;
    let quote = record["quote_id"].as_str().unwrap();
    assert_eq!(gate.notice(ACME, quote).await, ["quote.consumed"]);
    let said = gate.notice(ACME, &id(&record)).await;
    assert_eq!(said, ["rail.pay_in.processing", "rail.pay_in.settled"]);
    let said = gate.notice(ACME, &session).await;
    assert_eq!(said, ["gate_session.created", "gate_session.completed"]);
    replica.close().await;
    gate.finish().await;
}

// rule: gate.rail.session-first, gate.rail.not-found, gate.rail.order
#[tokio::test]
async fn session_is_checked_before_the_quote() {
    let gate = Gate::new().await;
    let (acme, rival) = (gate.acme(), gate.rival());
    let quote = id(&purchase(&acme, "q", "100.00").await);
    let open = session(&acme, "s", "100.00", json!({})).await;
    let closed = session(&acme, "closed", "100.00", json!({})).await;
    acme.send(Call::post(&format!("/v1/gate_sessions/{closed}/cancel")))
        .await
        .created();
    let unknown = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";
    for quote in [unknown, &quote] {
        let answer = redeem(&acme, PAY_INS, "p", quote, &closed).await;
        answer.refused(409, "session_not_open");
    }
    for (quote, session) in [
        (quote.as_str(), "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK"),
        (quote.as_str(), "nonsense"),
        (unknown, open.as_str()),
        ("nonsense", open.as_str()),
    ] {
        let answer = redeem(&acme, PAY_INS, "p", quote, session).await;
        answer.refused(404, "resource_not_found");
    }
    let foreign = redeem(&rival, PAY_INS, "p", &quote, &open).await;
    foreign.refused(404, "resource_not_found");
    gate.world().after(60_000);
    let late = redeem(&acme, PAY_INS, "p", &quote, &open).await;
    late.refused(409, "quote_expired");
    // The request applies an overdue expiry of the session.
    gate.world().after(24 * 60 * 60 * 1000);
    let late = redeem(&acme, PAY_INS, "p", &quote, &open).await;
    late.refused(409, "session_not_open");
    let said = gate.notice(ACME, &open).await;
    assert_eq!(said, ["gate_session.created", "gate_session.expired"]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.rail.match, gate.rail.wrong-side
#[tokio::test]
async fn session_and_quote_must_agree() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let quote = id(&purchase(&acme, "q", "100.00").await);
    for (number, (amount, changes)) in [
        ("100.01", json!({})),
        ("100.00", json!({ "currency": "USD" })),
        ("100.00", json!({ "flow": "off_ramp" })),
        ("100.00", json!({ "flow": "swap" })),
        ("100.00", json!({ "target_token": "USDC" })),
        ("100.00", json!({ "target_network": "ETHEREUM" })),
    ]
    .into_iter()
    .enumerate()
    {
        let session = session(&acme, &format!("s-{number}"), amount, changes).await;
        let answer = redeem(&acme, PAY_INS, "p", &quote, &session).await;
        answer.refused(409, "quote_session_mismatch");
    }
    let same = json!({ "flow": "on_ramp", "target_token": "usdt", "target_network": "tron" });
    let session = session(&acme, "s", "100", same).await;
    let wrong = redeem(&acme, PAY_OUTS, "p", &quote, &session).await;
    wrong.refused(409, "quote_session_mismatch");
    redeem(&acme, PAY_INS, "p", &quote, &session)
        .await
        .created();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.rail.forbidden-fields
#[tokio::test]
async fn redemption_takes_quote_and_session_only() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let named = json!({ "quote_id": "qt", "session_id": "gs" });
    for field in [
        "amount",
        "fiat_amount",
        "currency",
        "asset",
        "payment_method",
        "email",
        "first_name",
        "iban",
        "payout_account",
        "wallet_address",
        "kyc_package",
    ] {
        let body = with(named.clone(), &json!({ field: "x" }));
        for path in [PAY_INS, PAY_OUTS] {
            let call = Call::post(path).json(&body).key("p");
            acme.send(call)
                .await
                .refused(400, "invalid_request")
                .saying(field);
        }
    }
    gate.finish().await;
}

// rule: gate.rail.none, gate.rail.approved
#[tokio::test]
async fn redemption_without_a_rail_is_validated_then_refused() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    let acme = live.acme();
    let operator = live.world().operator();
    operator
        .change_gate(ACME, |gate| gate.kyc_trusted = true)
        .await;
    let quote = purchase(&acme, "q", "100.00").await;
    assert!(id(&quote).starts_with("qt_live_"));
    for path in [PAY_INS, PAY_OUTS] {
        let unknown = redeem(&acme, path, "p", "qt", "gs").await;
        unknown.refused(404, "resource_not_found");
    }
    let stranger = session(&acme, "s", "100.00", json!({})).await;
    let refused = redeem(&acme, PAY_INS, "p", &id(&quote), &stranger).await;
    refused.refused(403, "user_not_approved");
    let verified = json!({ "kyc_package": { "level": "full" } });
    let verified = session(&acme, "v", "100.00", verified).await;
    let wrong = redeem(&acme, PAY_OUTS, "p", &id(&quote), &verified).await;
    wrong.refused(409, "quote_session_mismatch");
    let refused = redeem(&acme, PAY_INS, "p", &id(&quote), &verified).await;
    refused.refused(501, "rails_not_available");
    assert_eq!(read(&acme, QUOTES, &id(&quote)).await["status"], "active");
    live.close().await;
    gate.world().notice_all().await;
    gate.finish().await;
}
