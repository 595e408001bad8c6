//! What the user of the widget scans, as the gate says it over HTTP.

use serde_json::{Value, json};

use super::rail_answers::{gate_with_rail, poll};
use super::widget_payments::Widget;

const EVM: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const OTHER: &str = "0x52908400098527886E0F7030069857D2E4169EE7";

/// The URI of a transfer of USDT on Ethereum, for an amount in units of its contract.
fn uri(units: u64) -> String {
    let contract = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
    format!("ethereum:{contract}@1/transfer?address={EVM}&uint256={units}")
}

/// An amount of USDT in units of its contract.
fn units(amount: &Value) -> u64 {
    let amount = amount.as_str().unwrap();
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    format!("{whole}{fraction:0<6}").parse().unwrap()
}

// rule: gate.payment.scan
#[tokio::test]
async fn seller_scans_what_is_still_to_send_to_the_address_of_the_rail() {
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    let order = json!({ "side": "off_ramp", "network": "ethereum" });
    let quote = widget.ask_quote(order).await.created();
    // What the rail calls `scan` names another address.
    let lie = uri(1).replace(EVM, OTHER);
    rail.instructs(json!({ "address": EVM, "scan": lie }));
    let payout = json!({ "iban": "DE89370400440532013000" });
    let body = json!({ "quote_id": quote["id"], "payout": payout });
    let paid = widget.pay("k", body).await.created();
    let due = units(&quote["crypto_amount"]);
    let expected = json!({ "address": EVM, "scan": uri(due) });
    assert_eq!(paid["instructions"], expected);
    assert_eq!(widget.payment().await["instructions"], expected);
    let part = json!({ "amount": "1", "asset": "USDT", "network": "ethereum" });
    rail.reports(json!({ "status": "processing", "received": part }));
    poll(&gate).await;
    let payment = widget.payment().await;
    assert_eq!(payment["instructions"]["scan"], uri(due - 1_000_000));
    rail.reports(json!({ "status": "settled" }));
    poll(&gate).await;
    let ended = widget.payment().await;
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["instructions"], json!({ "address": EVM }));
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.scan-transfer
#[tokio::test]
async fn buyer_scans_the_code_of_the_transfer() {
    let (gate, rail) = gate_with_rail().await;
    let widget = Widget::open(&gate, json!({ "flow": "on_ramp" })).await;
    let account = json!({
        "account_holder": "Example Payments", "iban": "DE89370400440532013000", "reference": "r-1",
    });
    rail.instructs(account.clone());
    let paid = widget.buy("k").await;
    let code = "BCD\n002\n1\nSCT\n\nExample Payments\nDE89370400440532013000\nEUR100.00\n\n\nr-1";
    assert_eq!(paid["instructions"]["scan"], code);
    rail.cancels("cancelled");
    let id = paid["id"].as_str().unwrap();
    let cancelled = widget.cancel(id).await.ok();
    assert_eq!(cancelled["instructions"], account);
    gate.world().notice_all().await;
    gate.finish().await;
}
