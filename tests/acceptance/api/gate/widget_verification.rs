//! The widget's call that verifies its user.

use acceptance::{Call, Gate, keys};
use serde_json::json;

use super::widget_payments::Widget;

const VERIFICATION: &str = "/v1/embed/verification";

// rule: gate.verification.form-not-asked
#[tokio::test]
async fn answers_are_refused_without_form() {
    let gate = Gate::new().await;
    let answers = json!({ "answers": { "name": "Ann" } });
    for amount in ["100.00", "100.61", "100.62", "100.63"] {
        let widget = Widget::of_amount(&gate, amount).await;
        let refused = widget.send(Call::post(VERIFICATION).json(&answers)).await;
        refused.refused(400, "verification_form_not_asked");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: request.unknown-fields, gate.verification.stores-no-answers
#[tokio::test]
async fn personal_data_outside_answers_is_ignored() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    let body = json!({ "date_of_birth": "1815-12-10", "document": { "image": "aGVsbG8=" } });
    let started = widget.send(Call::post(VERIFICATION).json(&body)).await.ok();
    assert_eq!(
        keys(&started),
        ["expires_at", "form", "object", "reason", "status", "url"]
    );
    assert_eq!(
        (&started["status"], &started["form"]),
        (&json!("approved"), &json!(null))
    );
    for (kind, data) in widget.events().await {
        assert!(!data.to_string().contains("1815-12-10"), "{kind}");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
