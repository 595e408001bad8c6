//! The widget's call that verifies its user: its start, the form and its answers, and the refusal of payments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acceptance::{ACME, Answer, Call, Gate, Logs};
use gate_core::catalogue::Catalogue;
use gate_core::embed::SessionToken;
use gate_core::object::JsonObject;
use gate_core::ports::Verifier;
use gate_core::session::SessionId;
use gate_core::usecases::verify_user::{StartRequest, VerifyUser};
use gate_core::verification::VerificationReport as Report;
use gate_core::verification::form::{Form, FormField};
use kernel::{Mode, Upstreams};
use serde_json::{Value, json};

use super::widget::SESSION;
use super::widget_payments::{Widget, kinds, purchase};

const VERIFICATION: &str = "/v1/embed/verification";
const PAYMENTS: &str = "/v1/embed/payments";
const ASKED_ONCE: [&str; 2] = ["gate_session.created", "kyc.required"];

/// A form with the field `name`.
fn form() -> Form {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}}}"#;
    let name = ("name".to_owned(), FormField::default());
    Form::new(JsonObject::form(schema).unwrap(), BTreeMap::from([name]))
}

pub(super) fn rejection() -> Report {
    Report::Rejected {
        reason: Some("The document has expired.".to_owned()),
    }
}

pub(super) async fn start(widget: &Widget) -> Answer {
    widget.send(Call::post(VERIFICATION)).await
}

/// Submits answers that match the form.
async fn submit(widget: &Widget) -> Answer {
    let answers = json!({ "answers": { "name": "Ann" } });
    widget.send(Call::post(VERIFICATION).json(&answers)).await
}

pub(super) async fn status(widget: &Widget) -> Value {
    widget.session().await["verification"]["status"].clone()
}

/// Expects that the widget shows nothing more to its user.
fn expect_nothing_to_do(started: &Value) {
    for field in ["url", "form", "expires_at"] {
        assert_eq!(started[field], Value::Null, "{field}");
    }
}

// rule: gate.verification.form-not-asked, gate.verification.sandbox
#[tokio::test]
async fn answers_are_refused_without_form() {
    let gate = Gate::new().await;
    for (amount, calls, decided) in [
        ("100.61", &["start"][..], "approved"),
        ("100.62", &["start"], "rejected"),
        ("100.63", &["start"], "pending"),
        ("100.00", &[], "not_required"),
    ] {
        let widget = Widget::of_amount(&gate, amount).await;
        let refused = submit(&widget).await;
        refused.refused(400, "verification_form_not_asked");
        assert_eq!(gate.verifier().calls(), calls, "{amount}");
        // The report of the start counts.
        let shown = widget.session().await["verification"].clone();
        assert_eq!(shown, json!({ "status": decided, "reason": null }));
        if decided == "pending" {
            let again = submit(&widget).await;
            again.refused(400, "verification_form_not_asked");
            assert_eq!(gate.verifier().calls(), calls);
        }
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.answers
#[tokio::test]
async fn answers_are_submitted_after_the_start() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    let verifier = gate.verifier();
    let pending = || Some(Report::Pending);
    verifier.asks_for(form());
    // The provider says again what the user must do.
    verifier.says([pending(), pending(), pending()]);
    let given = submit(&widget).await.ok();
    assert_eq!(verifier.calls(), ["start", "submit", "start"]);
    assert_eq!(given["status"], "pending");
    assert_eq!(given["form"]["properties"]["name"]["type"], "string");
    assert!(given["url"].is_string() && given["expires_at"].is_string());
    // The answers arrived, although the provider does not say what comes next.
    verifier.says([pending(), pending(), None]);
    let given = submit(&widget).await.ok();
    assert_eq!(given["status"], "pending");
    expect_nothing_to_do(&given);
    assert_eq!(verifier.calls(), ["start", "submit", "start"]);
    for silence in [vec![pending(), None], vec![None]] {
        verifier.says(silence);
        let silent = submit(&widget).await;
        silent.refused(503, "service_unavailable");
    }
    assert_eq!(verifier.calls(), ["start", "submit", "start"]);
    verifier.says([pending(), Some(rejection())]);
    let given = submit(&widget).await.ok();
    assert_eq!(given["status"], "rejected");
    assert_eq!(verifier.calls(), ["start", "submit"]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.answers
#[tokio::test]
async fn repeated_answers_get_the_decision_and_are_not_submitted() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    let verifier = gate.verifier();
    verifier.asks_for(form());
    verifier.says([Some(Report::Pending)]);
    start(&widget).await.ok();
    // The provider has decided since, and the user repeats answers whose response was lost.
    verifier.says([Some(Report::Approved)]);
    for _ in 0..2 {
        assert_eq!(submit(&widget).await.ok()["status"], "approved");
    }
    assert_eq!(verifier.calls(), ["start", "start"]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.form-checked
#[tokio::test]
async fn answers_that_do_not_match_the_form_are_not_submitted() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    gate.verifier().asks_for(form());
    gate.verifier().says([Some(Report::Pending)]);
    let answers = json!({ "answers": { "date_of_birth": "1815-12-10" } });
    let refused = widget.send(Call::post(VERIFICATION).json(&answers)).await;
    refused
        .refused(400, "invalid_request")
        .saying("`answers.date_of_birth`");
    assert_eq!(gate.verifier().calls(), ["start"]);
    assert_eq!(status(&widget).await, "pending");
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: request.unknown-fields, gate.verification.stores-no-answers
#[tokio::test]
async fn personal_data_outside_answers_is_ignored() {
    let (logs, _caught) = Logs::catch();
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    let body = json!({ "date_of_birth": "1815-12-10", "document": { "image": "aGVsbG8=" } });
    let started = widget.send(Call::post(VERIFICATION).json(&body)).await.ok();
    assert_eq!(
        (&started["status"], &started["form"]),
        (&json!("approved"), &json!(null))
    );
    let mut kept = logs.text() + &started.to_string();
    for (_, data) in widget.events().await {
        kept += &data.to_string();
    }
    kept += &String::from_utf8_lossy(&gate.world().database().files().await);
    for personal in ["1815-12-10", "aGVsbG8="] {
        assert!(!kept.contains(personal), "{personal} is kept");
    }
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.start, gate.verification.refusal
#[tokio::test]
async fn ended_verification_is_returned_without_a_call() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.62").await;
    gate.verifier().says([Some(rejection())]);
    for _ in 0..2 {
        let given = start(&widget).await.ok();
        assert_eq!(given["status"], "rejected");
        assert_eq!(given["reason"], "The document has expired.");
        expect_nothing_to_do(&given);
    }
    assert_eq!(gate.verifier().calls(), ["start"]);
    let quote = widget.quote().await;
    let refused = widget.pay("k", purchase(&quote)).await;
    refused.refused(403, "verification_rejected");
    assert_eq!(kinds(&widget.events().await), ASKED_ONCE);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.verification.silence, gate.verification.start, gate.verification.refusal
#[tokio::test]
async fn silence_decides_nothing_and_start_can_be_repeated() {
    let gate = Gate::new().await;
    let widget = Widget::of_amount(&gate, "100.61").await;
    let quote = widget.quote().await;
    gate.verifier().says([None, None]);
    for _ in 0..2 {
        let silent = start(&widget).await;
        silent.refused(503, "service_unavailable");
        assert_eq!(status(&widget).await, "pending");
        let refused = widget.pay("k", purchase(&quote)).await;
        refused.refused(403, "verification_required");
    }
    // The provider may know the case, so it is asked for a report.
    gate.world().after(12_000);
    gate.verifier().says([None]);
    super::verification_polls::poll(&gate).await;
    assert_eq!(status(&widget).await, "pending");
    assert_eq!(start(&widget).await.ok()["status"], "approved");
    assert_eq!(
        gate.verifier().calls(),
        ["start", "start", "report", "start"]
    );
    widget.pay("k", purchase(&quote)).await.created();
    let events = widget.events().await;
    assert_eq!(kinds(&events)[..2], ASKED_ONCE);
    assert_eq!(kinds(&events)[2..], ["gate_session.processing"]);
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: gate.session.not-open, gate.session.lazy-expiry
#[tokio::test]
async fn verification_of_ended_session_does_not_start() {
    let gate = Gate::with(|setup| setup.session_ttl = Duration::from_secs(60)).await;
    let cancelled = Widget::of_amount(&gate, "100.61").await;
    gate.acme().cancel(&cancelled.session).await.created();
    let expired = Widget::of_amount(&gate, "100.62").await;
    gate.world().after(60_000);
    for (widget, ended) in [(cancelled, "cancelled"), (expired, "expired")] {
        let refused = start(&widget).await;
        refused.refused(409, "session_not_open").saying(ended);
        let end = format!("gate_session.{ended}");
        let events = widget.events().await;
        assert_eq!(kinds(&events), ["gate_session.created", &end]);
    }
    assert!(gate.verifier().calls().is_empty());
    gate.finish().await;
}

/// A gate of mode live, so without a verifier, behind an edge that names the user's country. Users from Germany are not
/// verified.
async fn live() -> Gate {
    let country = "name = \"Germany\"\ncurrency = \"EUR\"\nsupported = true\nverification = ";
    let always = format!("{country}\"always\"");
    Gate::with(|setup| {
        setup.mode = Mode::Live;
        setup.proxies = vec!["127.0.0.1/32".to_owned()];
        assert!(setup.catalogue.contains(&always));
        setup.catalogue = setup
            .catalogue
            .replace(&always, &format!("{country}\"never\""));
    })
    .await
}

fn from(country: Option<&str>, call: Call) -> Call {
    match country {
        Some(code) => call.header("cf-ipcountry", code),
        None => call,
    }
}

async fn status_from(widget: &Widget, country: Option<&str>) -> Value {
    let session = widget.send(from(country, Call::get(SESSION))).await.ok();
    session["verification"]["status"].clone()
}

async fn pay_from(widget: &Widget, country: Option<&str>, quote: &Value) -> Answer {
    let call = Call::post(PAYMENTS).json(&purchase(quote)).key("k");
    widget.send(from(country, call)).await
}

/// Starts the session's verification in a process that has a verifier, which reports this.
async fn start_elsewhere(gate: &Gate, widget: &Widget, report: Report) {
    let verifier: Arc<dyn Verifier> = gate.verifier().clone();
    gate.verifier().says([Some(report)]);
    let starting = VerifyUser {
        context: gate.sessions().clone(),
        catalogue: Arc::new(Catalogue::built_in().unwrap()),
        verifiers: Upstreams {
            present: Some(verifier),
            former: None,
        },
    };
    let who = gate.world().operator().tenant(ACME);
    let session = SessionId::parse(&widget.session).unwrap();
    let token = SessionToken { session, number: 1 };
    starting
        .start(&who, token, StartRequest::default())
        .await
        .unwrap();
}

// rule: gate.verification.none, gate.verification.event-once
#[tokio::test]
async fn start_without_verifier_stays_required() {
    let gate = live().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    for _ in 0..2 {
        let started = start(&widget).await.ok();
        assert_eq!(started["status"], "required");
        expect_nothing_to_do(&started);
        assert_eq!(kinds(&widget.events().await), ASKED_ONCE);
    }
    let refused = submit(&widget).await;
    refused.refused(400, "verification_form_not_asked");
    let quote = widget.quote().await;
    let refused = widget.pay("k", purchase(&quote)).await;
    refused.refused(403, "verification_required");
    let verified = json!({ "kyc_package": { "level": 2 } });
    let verified = Widget::open(&gate, verified).await;
    assert_eq!(start(&verified).await.ok()["status"], "not_required");
    let expected = ["gate_session.created", "gate_session.kyc_package_accepted"];
    assert_eq!(kinds(&verified.events().await), expected);
    gate.finish().await;
}

// rule: gate.verification.none
#[tokio::test]
async fn verification_keeps_its_state_after_its_verifier_is_removed() {
    let gate = live().await;
    for (amount, report, status) in [
        ("100.00", Report::Pending, "pending"),
        ("101.00", rejection(), "rejected"),
    ] {
        let widget = Widget::of_amount(&gate, amount).await;
        start_elsewhere(&gate, &widget, report).await;
        let started = start(&widget).await.ok();
        assert_eq!(started["status"], status);
        expect_nothing_to_do(&started);
        assert_eq!(kinds(&widget.events().await), ASKED_ONCE);
    }
    gate.finish().await;
}

// rule: gate.verification.needed
#[tokio::test]
async fn live_user_is_verified_unless_the_country_is_exempt() {
    let gate = live().await;
    let widget = Widget::of_amount(&gate, "100.00").await;
    let quote = widget.quote().await;
    // The payment lacks only a rail.
    let exempt = pay_from(&widget, Some("DE"), &quote).await;
    exempt.refused(501, "rails_not_available");
    let path = format!("/v1/quotes/{}", quote["id"].as_str().unwrap());
    assert_eq!(gate.acme().get(&path).await.ok()["status"], "active");
    assert_eq!(kinds(&widget.events().await), ["gate_session.created"]);
    for (country, expected) in [
        (Some("DE"), "not_required"),
        (Some("FR"), "required"),
        (Some("AQ"), "required"),
        (None, "required"),
    ] {
        let shown = status_from(&widget, country).await;
        assert_eq!(shown, expected, "{country:?}");
    }
    for country in [None, Some("FR")] {
        let refused = pay_from(&widget, country, &quote).await;
        refused.refused(403, "verification_required");
    }
    assert_eq!(kinds(&widget.events().await), ASKED_ONCE);
    gate.finish().await;
}

// rule: gate.verification.country-change
#[tokio::test]
async fn stored_verification_is_not_bypassed_from_an_exempt_country() {
    let gate = live().await;
    for (amount, report, status, code) in [
        ("100.00", None, "required", "verification_required"),
        (
            "101.00",
            Some(Report::Pending),
            "pending",
            "verification_required",
        ),
        (
            "102.00",
            Some(rejection()),
            "rejected",
            "verification_rejected",
        ),
    ] {
        let widget = Widget::of_amount(&gate, amount).await;
        let quote = widget.quote().await;
        match report {
            None => drop(pay_from(&widget, None, &quote).await.refused(403, code)),
            Some(report) => start_elsewhere(&gate, &widget, report).await,
        }
        let germany = Some("DE");
        let refused = pay_from(&widget, germany, &quote).await;
        refused.refused(403, code);
        assert_eq!(status_from(&widget, germany).await, status);
        let started = widget.send(from(germany, Call::post(VERIFICATION))).await;
        assert_eq!(started.ok()["status"], status);
        assert_eq!(kinds(&widget.events().await), ASKED_ONCE);
    }
    gate.world().notice_all().await;
    gate.finish().await;
}
