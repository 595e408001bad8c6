//! Where the widget delivers to: the payout accounts of sales and the addresses of purchases.

use acceptance::{Call, Gate};
use serde_json::{Value, json};

use super::rails::with;
use super::widget_payments::Widget;

/// A quote of the widget.
async fn quoted(widget: &Widget, order: &Value) -> Value {
    let call = Call::post("/v1/embed/quotes").json(order);
    widget.send(call).await.created()
}

// rule: gate.payment.payout-forms
#[tokio::test]
async fn each_payout_method_takes_the_fields_of_its_account() {
    let gate = Gate::new().await;
    for pair in ["GBP-USDT", "USD-USDT"] {
        gate.world().rates().set(pair, "1.1", 25);
    }
    let uk = json!({ "sort_code": "123456", "account_number": "12345678" });
    let us = json!({
        "routing_number": "021000021", "account_number": "1234567", "account_type": "savings",
        "account_holder": "Jo Doe",
    });
    let bad_uk = [
        (json!({ "iban": "DE89370400440532013000" }), "iban"),
        (json!({ "sort_code": "12-34-56" }), "sort_code"),
        (json!({ "account_number": "1234567" }), "account_number"),
        (json!({ "account_holder": "E" }), "account_holder"),
    ];
    let bad_us = [
        (json!({ "routing_number": "021000022" }), "routing_number"),
        (json!({ "account_type": "current" }), "account_type"),
        (json!({ "account_number": "123" }), "account_number"),
        (json!({ "sort_code": "123456" }), "sort_code"),
    ];
    for (currency, method, good, bad) in [
        ("GBP", "faster_payments", uk, bad_uk),
        ("USD", "ach", us, bad_us),
    ] {
        let terms = json!({ "flow": "off_ramp", "currency": currency });
        let widget = Widget::open(&gate, terms).await;
        let order = json!({
            "side": "off_ramp", "asset": "USDT", "network": "tron", "payment_method": method,
        });
        let quote = quoted(&widget, &order).await;
        let pay = async |payout: Value| {
            let body = json!({ "quote_id": quote["id"], "payout": payout });
            widget.pay("k", body).await
        };
        for (changes, field) in bad {
            let wrong = with(good.clone(), &changes);
            let refused = pay(wrong).await.refused(400, "invalid_request");
            refused.saying(&format!("`payout.{field}`"));
        }
        let number = good["account_number"].as_str().unwrap().to_owned();
        let paid = pay(good).await.created();
        assert!(!paid.to_string().contains(&number), "{paid}");
        gate.settle_rails().await;
        assert_eq!(widget.session().await["status"], "completed");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.address-nobodys, gate.payment.address-contract
#[tokio::test]
async fn wallet_at_which_coins_are_lost_is_refused_with_a_sentence_of_its_own() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let order = json!({
        "side": "on_ramp", "asset": "USDT", "network": "ethereum", "payment_method": "sepa",
    });
    let quote = quoted(&widget, &order).await;
    let pay = async |wallet: &str| {
        let body = json!({ "quote_id": quote["id"], "wallet_address": wallet });
        widget.pay("k", body).await
    };
    let nobodys = "no one has the key of this address; coins sent to it are lost.";
    let usdt = "this is the address of USDT itself on ethereum, not of a wallet; coins sent to it are lost.";
    let usdc = "this is the address of USDC itself on ethereum";
    for (wallet, words) in [
        ("0x0000000000000000000000000000000000000000", nobodys),
        ("0x0000000000000000000000000000000000000009", nobodys),
        ("0x000000000000000000000000000000000000DEAD", nobodys),
        ("0xdAC17F958D2ee523a2206206994597C13D831ec7", usdt),
        ("0xDAC17F958D2EE523A2206206994597C13D831EC7", usdt),
        ("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", usdc),
    ] {
        let refused = pay(wallet).await.refused(400, "invalid_address");
        refused.saying(&format!("`wallet_address`: {words}"));
    }
    // The contract of USDT on another network.
    pay("0xc2132D05D31c914a87C6611C10748AEb04B58e8F")
        .await
        .created();
    gate.settle_rails().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.embed-quote.wallet
#[tokio::test]
async fn quote_is_refused_if_the_session_has_no_wallet_on_the_network() {
    let gate = Gate::new().await;
    for (wallet, code, words) in [
        (
            "0xdAC17F958D2ee523a2206206994597C13D831ec7",
            "invalid_address",
            "this is the address of USDT itself on ethereum",
        ),
        (
            "0x000000000000000000000000000000000000dEaD",
            "invalid_address",
            "no one has the key of this address",
        ),
        (
            "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
            "invalid_address",
            "expected an EVM address",
        ),
        (
            "0x52908400098527886E0F7030069857D2E4169eE7",
            "address_checksum_mismatch",
            "the address is mixed-case",
        ),
    ] {
        let widget = Widget::open(&gate, json!({ "wallet_address": wallet })).await;
        let refused = widget.ask_quote(json!({ "network": "ethereum" })).await;
        let refused = refused.refused(400, code);
        refused.saying(&format!("The session's `wallet_address`: {words}"));
        // A sale delivers nothing to the address.
        let sale = json!({ "side": "off_ramp", "network": "ethereum" });
        widget.ask_quote(sale).await.created();
    }
    gate.finish().await;
}

// rule: gate.payment.address
#[tokio::test]
async fn purchase_of_bitcoin_needs_an_address_of_its_main_network() {
    let gate = Gate::new().await;
    gate.world().rates().set("EUR-BTC", "0.00001", 0);
    let widget = Widget::of_amount(&gate, "100.00").await;
    let order = json!({
        "side": "on_ramp", "asset": "BTC", "network": "bitcoin", "payment_method": "sepa",
    });
    let quote = quoted(&widget, &order).await;
    let pay = async |wallet: &str| {
        let body = json!({ "quote_id": quote["id"], "wallet_address": wallet });
        widget.pay("k", body).await
    };
    for (wallet, code) in [
        (
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "invalid_address",
        ),
        ("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "invalid_address"),
        (
            "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
            "invalid_address",
        ),
        ("satoshi.btc", "invalid_address"),
        (
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
            "address_checksum_mismatch",
        ),
        (
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
            "address_checksum_mismatch",
        ),
    ] {
        pay(wallet).await.refused(400, code);
    }
    let paid = pay("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
        .await
        .created();
    assert_eq!(paid["network"], "bitcoin");
    gate.settle_rails().await;
    assert_eq!(widget.session().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}
