//! Swaps in the widget: one asset for another, priced through the session's currency and paid like every other payment.

use acceptance::{ACME, Answer, Call, Gate};
use serde_json::{Value, json};

use super::rails::{PAY_INS, PAY_OUTS, id, redeem, session, transaction_of, with};
use super::widget_payments::{Widget, kinds, purchase};

/// A gate with a rate for each asset that these tests swap.
pub(super) async fn gate() -> Gate {
    let gate = Gate::new().await;
    let rates = gate.world().rates();
    rates.set("EUR-USDT", "1.0850", 25);
    rates.set("EUR-USDC", "1.1", 50);
    rates.set("EUR-BTC", "0.00001", 0);
    gate
}

/// A swap of USDC on Ethereum for USDT on Tron, with these changes.
async fn ask(widget: &Widget, changes: Value) -> Answer {
    let order = json!({
        "side": "swap", "source_asset": "USDC", "source_network": "ethereum", "asset": "USDT", "network": "tron",
    });
    let body = with(order, &changes);
    widget
        .send(Call::post("/v1/embed/quotes").json(&body))
        .await
}

pub(super) async fn quoted(widget: &Widget) -> Value {
    ask(widget, json!({})).await.created()
}

// rule: gate.embed-quote.swap, gate.price.swap
#[tokio::test]
async fn swap_is_quoted_through_the_sessions_currency() {
    let gate = gate().await;
    let widget = Widget::open(&gate, json!({ "flow": "swap" })).await;
    let quote = quoted(&widget).await;
    let fees = json!({ "total": "1.50", "service": "0.50", "network": "1.00", "currency": "EUR" });
    for (field, expected) in [
        ("object", json!("signed_quote")),
        ("side", json!("swap")),
        ("currency", json!("EUR")),
        ("source_asset", json!("USDC")),
        ("source_network", json!("ethereum")),
        // 100 / 0.90454545, rounded up: the rate of a sale of USDC.
        ("source_amount", json!("110.552765")),
        ("asset", json!("USDT")),
        ("network", json!("tron")),
        // (100 - 1.50) x 1.0822875, rounded down: the rate of a purchase of USDT.
        ("crypto_amount", json!("106.605318")),
        ("fiat_amount", json!("100.00")),
        // 1.0850 x 0.9975 / 1.1 x 0.995
        ("exchange_rate", json!("0.97897823")),
        ("payment_method", Value::Null),
        ("fees", fees),
    ] {
        assert_eq!(quote[field], expected, "{field}");
    }
    // The partner reads the same quote.
    let path = format!("/v1/quotes/{}", id(&quote));
    assert_eq!(gate.acme().get(&path).await.ok(), quote);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.swap, gate.payment.events, gate.rail.completes, gate.transaction.rail
#[tokio::test]
async fn swap_is_paid_and_completes_its_session() {
    let gate = gate().await;
    for flow in [json!("swap"), Value::Null] {
        let widget = Widget::open(&gate, json!({ "flow": flow })).await;
        let quote = quoted(&widget).await;
        let answer = widget.pay("k", purchase(&quote)).await;
        let bytes = answer.bytes.clone();
        let paid = answer.created();
        for field in [
            "side",
            "source_asset",
            "source_network",
            "source_amount",
            "asset",
            "network",
            "payment_method",
            "fiat_amount",
            "crypto_amount",
            "exchange_rate",
            "fees",
        ] {
            assert_eq!(paid[field], quote[field], "{field}");
        }
        // The user sends the source, on the source's chain.
        let instructions = &paid["instructions"];
        assert_eq!(instructions["asset"], "USDC");
        assert_eq!(instructions["network"], "ethereum");
        assert_eq!(instructions["amount"], quote["source_amount"]);
        assert!(instructions["address"].as_str().unwrap().starts_with("0x"));
        assert_eq!(widget.pay("k", purchase(&quote)).await.bytes, bytes);
        assert_eq!(widget.payment().await, paid);
        gate.settle_rails().await;
        let ended = widget.session().await;
        assert_eq!(ended["status"], "completed");
        assert_eq!(ended["payment"]["status"], "completed");
        let expected = [
            "gate_session.created",
            "gate_session.processing",
            "gate_session.completed",
        ];
        assert_eq!(kinds(&widget.events().await), expected);
        let transaction = transaction_of(&gate.acme(), &widget.session).await;
        for (field, expected) in [
            ("refid", &paid["tx_refid"]),
            ("action", &json!("swap")),
            ("status", &json!("completed")),
            ("token", &json!("USDT")),
            ("network", &json!("tron")),
            ("payment_method", &Value::Null),
            ("token_amount", &quote["crypto_amount"]),
            ("fiat_amount", &json!("100.00")),
        ] {
            assert_eq!(&transaction[field], expected, "{field}");
        }
        let refid = paid["tx_refid"].as_str().unwrap();
        let read = gate.acme().get(&format!("/v1/transactions/{refid}")).await;
        assert_eq!(read.ok(), transaction);
        // A partner with rails learns of the quote. A swap has no event of its own.
        let record = transaction["local_rail_transaction_id"].as_str().unwrap();
        assert!(record.starts_with("sw_test_"), "{record}");
        assert!(gate.events(ACME, record).await.is_empty());
        let consumed = gate.events(ACME, &id(&quote)).await;
        assert_eq!(kinds(&consumed), ["quote.consumed"]);
        assert_eq!(consumed[0].1["source_amount"], quote["source_amount"]);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed-quote.swap, gate.embed-quote.bound
#[tokio::test]
async fn each_bad_swap_is_refused_by_its_code() {
    let gate = gate().await;
    let target = json!({ "target_token": "USDT", "target_network": "tron", "flow": "swap" });
    let widget = Widget::open(&gate, target).await;
    for (field, value, code) in [
        ("source_asset", Value::Null, "invalid_request"),
        ("source_network", Value::Null, "invalid_request"),
        ("payment_method", json!("sepa"), "invalid_request"),
        ("amount", json!("5"), "amount_not_allowed"),
        ("source_asset", json!("DOGE"), "unknown_currency"),
        ("asset", json!("DOGE"), "unknown_currency"),
        ("source_network", json!("tron"), "network_not_supported"),
    ] {
        let answer = ask(&widget, json!({ field: value })).await;
        answer.refused(400, code);
    }
    // An asset is never swapped for itself, on whatever chain.
    for (asset, network) in [("USDT", "tron"), ("usdt", "ethereum")] {
        let same = json!({ "source_asset": asset, "source_network": network });
        let answer = ask(&widget, same).await;
        answer.refused(400, "invalid_request");
    }
    for other in [
        json!({ "asset": "BTC", "network": "bitcoin" }),
        json!({ "network": "ethereum" }),
        json!({ "side": "on_ramp", "source_asset": null, "source_network": null, "payment_method": "sepa" }),
    ] {
        let answer = ask(&widget, other).await;
        answer.refused(409, "quote_session_mismatch");
    }
    let ramp = Widget::open(&gate, json!({ "flow": "on_ramp" })).await;
    ask(&ramp, json!({}))
        .await
        .refused(409, "quote_session_mismatch");
    let sourced = json!({ "side": "on_ramp", "payment_method": "sepa" });
    ask(&ramp, sourced).await.refused(400, "invalid_request");
    for pair in ["EUR-USDC", "EUR-USDT"] {
        gate.world().rates().lose(pair);
        let unpriced = ask(&widget, json!({})).await;
        unpriced.refused(409, "rate_unavailable");
        gate.world().rates().set(pair, "1", 0);
    }
    // The value does not cover the fees.
    let small = Widget::open(&gate, json!({ "amount": "0.50" })).await;
    ask(&small, json!({}))
        .await
        .refused(400, "amount_out_of_range");
    gate.finish().await;
}

// rule: gate.payment.swap
#[tokio::test]
async fn swap_needs_an_address_of_its_target() {
    let gate = gate().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = quoted(&widget).await;
    let pay = async |changes: Value| {
        let body = with(purchase(&quote), &changes);
        widget.pay("k", body).await
    };
    let evm = "0x52908400098527886E0F7030069857D2E4169EE7";
    let mistyped = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv9";
    let payout = json!({ "iban": "DE89370400440532013000" });
    for (field, value, code) in [
        ("wallet_address", Value::Null, "invalid_request"),
        // The address of the source's chain.
        ("wallet_address", json!(evm), "invalid_address"),
        (
            "wallet_address",
            json!(mistyped),
            "address_checksum_mismatch",
        ),
        ("payout", payout, "invalid_request"),
    ] {
        let refused = pay(json!({ field: value })).await;
        refused.refused(400, code).saying(&format!("`{field}`"));
    }
    pay(json!({})).await.created();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.swap, gate.payment.cancel
#[tokio::test]
async fn swap_fails_is_cancelled_or_expires_like_other_payments() {
    let gate = gate().await;
    let paying = async |amount: &str| {
        let widget = Widget::of_amount(&gate, amount).await;
        let quote = quoted(&widget).await;
        let paid = widget.pay("k", purchase(&quote)).await.created();
        gate.settle_rails().await;
        (widget, paid)
    };
    let (widget, _) = paying("100.31").await;
    let ended = widget.session().await;
    assert_eq!(ended["status"], "open");
    assert_eq!(ended["payment"]["failure_code"], "provider_declined");
    let (kind, _) = widget.events().await.pop().unwrap();
    assert_eq!(kind, "gate_session.failed");
    let (unpaid, _) = paying("100.32").await;
    assert_eq!(unpaid.payment().await["status"], "cancelled");
    let (slow, paid) = paying("100.33").await;
    assert_eq!(slow.payment().await["status"], "processing");
    let cancelled = slow.cancel(&id(&paid)).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    let transaction = transaction_of(&gate.acme(), &slow.session).await;
    assert_eq!(transaction["status"], "cancelled");
    let (kind, _) = slow.events().await.pop().unwrap();
    assert_eq!(kind, "gate_session.processing");
    // The session is open again.
    let quote = quoted(&slow).await;
    gate.world().after(60_000);
    let late = slow.pay("late", purchase(&quote)).await;
    late.refused(409, "quote_expired");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.swap-rails
#[tokio::test]
async fn rail_routes_know_no_swap() {
    let gate = gate().await;
    let acme = gate.acme();
    let widget = Widget::open(&gate, json!({ "flow": "swap" })).await;
    let quote = quoted(&widget).await;
    let other = session(&acme, "other", "100.00", json!({ "flow": "swap" })).await;
    for path in [PAY_INS, PAY_OUTS] {
        for session in [&widget.session, &other] {
            let answer = redeem(&acme, path, "k", &id(&quote), session).await;
            answer.refused(404, "resource_not_found");
        }
    }
    let paid = widget.pay("k", purchase(&quote)).await.created();
    let record = transaction_of(&acme, &widget.session).await;
    let record = record["local_rail_transaction_id"].as_str().unwrap();
    assert_eq!(record, id(&paid).replace("pay_", "sw_"));
    for (path, prefix) in [(PAY_INS, "pi_"), (PAY_OUTS, "po_")] {
        for id in [record.to_owned(), record.replace("sw_", prefix)] {
            let answer = acme.get(&format!("{path}/{id}")).await;
            answer.refused(404, "resource_not_found");
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
