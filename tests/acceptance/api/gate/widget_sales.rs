//! Sales in the widget: what is paid out, what the partner sees of it, and what stays out of every output.

use acceptance::{ACME, Answer, Gate, Logs};
use serde_json::{Value, json};

use super::rails::{self, id, transaction_of};
use super::widget_payments::{Widget, kinds};

const IBAN: &str = "NL91ABNA0417164300";
const HOLDER: &str = "Erika Mustermann";

/// Sells with a new quote.
pub(super) async fn sell(widget: &Widget, key: &str) -> Answer {
    let quote = widget.ask_quote(json!({ "side": "off_ramp" })).await;
    let payout = json!({ "iban": IBAN, "account_holder": HOLDER });
    let body = json!({ "quote_id": quote.created()["id"], "payout": payout });
    widget.pay(key, body).await
}

// rule: gate.price.received, gate.payment.payout
#[tokio::test]
async fn sale_pays_out_the_sessions_amount() {
    let gate = Gate::new().await;
    let widget = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    let quote = widget
        .ask_quote(json!({ "side": "off_ramp" }))
        .await
        .created();
    assert_eq!(quote["fiat_amount"], "100.00");
    let refused = |payout: Value| {
        let body = json!({ "quote_id": quote["id"], "payout": payout });
        let widget = widget.clone();
        async move { widget.pay("bad", body).await }
    };
    let holder = "Erika Mustermann";
    let wrong = json!({ "iban": "DE00500105175407324931" });
    let answer = refused(wrong).await;
    answer
        .refused(400, "invalid_request")
        .saying("`payout.iban`");
    let unknown = json!({ "iban": "DE89370400440532013000", "account_holder": holder, "bic": "x" });
    let answer = refused(unknown).await;
    answer
        .refused(400, "invalid_request")
        .saying("`payout.bic`");
    refused(Value::Null).await.refused(400, "invalid_request");
    let good = json!({ "iban": "DE89370400440532013000" });
    let body = json!({ "quote_id": quote["id"], "payout": good });
    let paid = widget.pay("k", body).await.created();
    assert_eq!(paid["instructions"]["amount"], quote["crypto_amount"]);
    assert!(!paid.to_string().contains("DE89"), "{paid}");
    gate.settle_rails().await;
    assert_eq!(widget.session().await["status"], "completed");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.cancel, gate.payment.events
#[tokio::test]
async fn cancelled_sale_is_a_failed_pay_out_for_the_partner() {
    let gate = Gate::new().await;
    let acme = gate.acme();
    let terms = json!({ "flow": "off_ramp", "amount": "100.33" });
    let widget = Widget::open(&gate, terms).await;
    let paid = sell(&widget, "k").await.created();
    let cancelled = widget.cancel(&id(&paid)).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    let transaction = transaction_of(&acme, &widget.session).await;
    assert_eq!(transaction["status"], "cancelled");
    let record = transaction["local_rail_transaction_id"].as_str().unwrap();
    let pay_out = rails::read(&acme, rails::PAY_OUTS, record).await;
    // The address is for the user of the widget.
    assert_eq!(pay_out["instructions"], Value::Null);
    let stands = [&pay_out["status"], &pay_out["failure_code"]];
    assert_eq!(stands, ["failed", "user_cancelled"]);
    let events = gate.events(ACME, record).await;
    assert_eq!(
        kinds(&events),
        ["rail.pay_out.processing", "rail.pay_out.failed"]
    );
    assert_eq!(events[1].1["failure_code"], "user_cancelled");
    let of_session = widget.events().await;
    assert!(!kinds(&of_session).contains(&"gate_session.failed"));
    // The session can be paid again.
    sell(&widget, "again").await.created();
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.payment.payout, auth.keys-never-logged
#[tokio::test]
async fn payout_account_is_in_no_answer_event_log_or_file() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let widget = Widget::open(&gate, json!({ "flow": "off_ramp" })).await;
    let quote = widget
        .ask_quote(json!({ "side": "off_ramp" }))
        .await
        .created();
    let pay = async |key: &str, iban: &str| {
        let payout = json!({ "iban": iban, "account_holder": HOLDER });
        let body = json!({ "quote_id": quote["id"], "payout": payout });
        widget.pay(key, body).await
    };
    let refused = pay("bad", "DE00500105175407324931").await;
    let mut said = refused.refused(400, "invalid_request").body.to_string();
    // The key is repeated with another account.
    for iban in [IBAN, "DE02120300000000202051"] {
        said += &pay("k", iban).await.created().to_string();
    }
    gate.settle_rails().await;
    let session = widget.session().await;
    assert_eq!(session["status"], "completed");
    said += &session.to_string();
    let acme = gate.acme();
    let transaction = transaction_of(&acme, &widget.session).await;
    said += &transaction.to_string();
    let record = transaction["local_rail_transaction_id"].as_str().unwrap();
    said += &rails::read(&acme, rails::PAY_OUTS, record)
        .await
        .to_string();
    said += &widget
        .cancel(&id(&session["payment"]))
        .await
        .body
        .to_string();
    for object in [record, &widget.session] {
        for (_, event) in gate.events(ACME, object).await {
            said += &event.to_string();
        }
    }
    said += &logs.text();
    said += &String::from_utf8_lossy(&gate.world().database().files().await);
    let accounts = [
        IBAN,
        "ABNA0417164300",
        "120300000000202051",
        "500105175407324931",
    ];
    for secret in accounts.into_iter().chain([HOLDER]) {
        let shown = said.lines().find(|line| line.contains(secret));
        assert_eq!(shown, None, "{secret} is shown");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
