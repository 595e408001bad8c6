//! Verification of a session's user: need, start and refusal of payments.

mod polls;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::catalogue::{Catalogue, CountryCode};
use gate_core::object::JsonObject;
use gate_core::ports::{GateStore as _, VerificationOrder, VerificationStart, Verifier};
use gate_core::session::{NotOpen, Session, SessionId, SessionRefusal, SessionStatus};
use gate_core::usecases::act_on_session::ActionRequest;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::verify_user::{
    StartedVerification, VerificationRefusal, VerifyError, VerifyUser,
};
use gate_core::verification::form::{AnswerError, Form, FormField};
use gate_core::verification::{
    Contradiction, Verification, VerificationReport, VerificationState, VerificationStatus,
};
use kernel::Mode;

use crate::fixtures::{CREATE, DAY, Gate, access, acme, created, done, draft, key, ready, tenant};
use VerificationReport as Report;
use VerificationStatus as Status;

const CATALOGUE: &str = include_str!("../../src/catalogue/built_in.toml");

/// A provider that gives scripted responses and records its calls.
#[derive(Default)]
struct Scripted {
    responses: Mutex<VecDeque<Option<Report>>>,
    calls: Mutex<Vec<&'static str>>,
    contradicted: Mutex<Vec<Contradiction>>,
    /// Whether it asks for no form.
    formless: AtomicBool,
    /// Runs while the provider is asked.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Scripted {
    fn say(&self, responses: &[Option<Report>]) {
        self.responses.lock().unwrap().extend(responses.to_vec());
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    fn next(&self, call: &'static str) -> Option<Report> {
        self.calls.lock().unwrap().push(call);
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        let next = self.responses.lock().unwrap().pop_front();
        next.unwrap_or_else(|| panic!("{call} was not expected"))
    }
}

#[async_trait]
impl Verifier for Scripted {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        Some(VerificationStart {
            report: self.next("start")?,
            url: Some(format!("https://verifier.example/{}", order.id)),
            form: (!self.formless.load(Ordering::Relaxed)).then(form),
            expires_at: Some(order.created_at.plus(DAY)),
            reference: Some("case-1".to_owned()),
        })
    }

    async fn submit(&self, _: &VerificationOrder, _: &JsonObject) -> Option<Report> {
        self.next("submit")
    }

    async fn report(&self, _: &VerificationOrder) -> Option<Report> {
        self.next("report")
    }

    fn contradicted(&self, contradiction: &Contradiction) {
        self.contradicted.lock().unwrap().push(*contradiction);
    }
}

const FORM: &str = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}";

/// A form with the field `name`.
fn form() -> Form {
    let name = ("name".to_owned(), FormField::default());
    Form::new(JsonObject::form(FORM).unwrap(), BTreeMap::from([name]))
}

struct World {
    gate: Gate,
    verifier: Arc<Scripted>,
    verifying: VerifyUser,
    advancing: AdvanceVerifications,
    access: gate_core::access::GateAccess,
}

fn rejection() -> Report {
    Report::Rejected {
        reason: "The document has expired.".to_owned(),
    }
}

impl World {
    fn of(access: gate_core::access::GateAccess) -> Self {
        let gate = Gate::new(std::slice::from_ref(&access));
        let verifier = Arc::new(Scripted::default());
        Self {
            verifying: VerifyUser {
                context: gate.sessions.clone(),
                catalogue: Arc::new(Catalogue::built_in().unwrap()),
                verifier: Some(verifier.clone()),
            },
            advancing: AdvanceVerifications {
                context: gate.sessions.clone(),
                verifier: verifier.clone(),
            },
            gate,
            verifier,
            access,
        }
    }

    fn test() -> Self {
        Self::of(acme())
    }

    /// A session of an amount for a user.
    fn open(&self, name: &str, amount: &str, user: Option<&str>) -> SessionId {
        let draft = gate_core::draft::Draft {
            amount: amount.to_owned(),
            user_reference: user.map(str::to_owned),
            ..draft()
        };
        let creating = self
            .gate
            .creating
            .create(&self.access, key(CREATE, name), &draft, &created);
        let body = ready(creating).unwrap().into_rendered().0;
        let body = String::from_utf8(body).unwrap();
        SessionId::parse(body.split_once(' ').unwrap().0).unwrap()
    }

    fn session(&self, id: SessionId) -> Session {
        let at = (self.access.tenant.clone(), id);
        self.gate.memory.rows().sessions[&at].clone()
    }

    fn stored(&self, id: SessionId) -> Option<Verification> {
        let at = (self.access.tenant.clone(), id);
        self.gate.memory.rows().verifications.get(&at).cloned()
    }

    fn status(&self, id: SessionId) -> Status {
        let session = self.session(id);
        let reading = self.verifying.status(tenant(&self.access), &session, None);
        ready(reading).unwrap().status
    }

    fn start(&self, id: SessionId) -> Result<StartedVerification, VerifyError> {
        ready(self.verifying.start(tenant(&self.access), id, None, None))
    }

    fn submit(&self, id: SessionId) -> Result<StartedVerification, VerifyError> {
        self.submit_these(id, "{\"name\":\"Ann\"}")
    }

    fn submit_these(
        &self,
        id: SessionId,
        answers: &str,
    ) -> Result<StartedVerification, VerifyError> {
        let answers = JsonObject::form(answers).unwrap();
        let who = tenant(&self.access);
        ready(self.verifying.start(who, id, Some(&answers), None))
    }

    /// A payment that is refused only for its verification. It commits in any case.
    fn pay(&self, id: SessionId, country: Option<CountryCode>) -> Result<(), VerificationRefusal> {
        let who = tenant(&self.access);
        ready(async {
            let mut tx = self.gate.memory.gate_begin("pay").await.unwrap();
            let session = tx.session_lock(who, id).await.unwrap().unwrap();
            let now = tx.now().await.unwrap();
            let required = self
                .verifying
                .require(tx.as_mut(), who, &session, country, now);
            let outcome = required.await.unwrap();
            tx.commit().await.unwrap();
            outcome
        })
    }

    fn poll(&self, id: SessionId) {
        ready(self.advancing.advance(tenant(&self.access), id)).unwrap();
    }

    fn due(&self) -> Vec<SessionId> {
        let due = ready(self.advancing.due(self.access.tenant.mode, 9)).unwrap();
        due.into_iter().map(|(_, id)| id).collect()
    }

    fn pass(&self, seconds: u64) {
        self.gate.memory.pass(Duration::from_secs(seconds));
    }

    /// The number of `kyc.required` events of a session.
    fn asked(&self, id: SessionId) -> usize {
        let kinds = self.gate.memory.events_of(&id.to_string());
        kinds.iter().filter(|kind| *kind == "kyc.required").count()
    }
}

// rule: gate.verification.event-once, gate.verification.refusal
#[test]
fn first_refusal_stores_verification_and_emits_one_event() {
    let world = World::test();
    let id = world.open("a", "10.61", None);
    assert_eq!(world.status(id), Status::Required);
    assert_eq!(world.stored(id), None);
    for _ in 0..3 {
        assert_eq!(world.pay(id, None), Err(VerificationRefusal::Required));
        assert_eq!(world.asked(id), 1);
    }
    assert_eq!(world.stored(id).unwrap().state, VerificationState::Required);
    assert_eq!(world.status(id), Status::Required);
    // It has not started, so it is not polled.
    world.pass(3_600);
    assert!(world.due().is_empty());
    world.verifier.say(&[Some(Report::Approved)]);
    assert_eq!(world.start(id).unwrap().shown.status, Status::Approved);
    assert_eq!((world.asked(id), world.pay(id, None)), (1, Ok(())));
}

// rule: gate.verification.event-once, gate.verification.start
#[test]
fn start_is_repeated_under_one_id_and_emits_one_event() {
    let world = World::test();
    let id = world.open("a", "10.63", None);
    world
        .verifier
        .say(&[Some(Report::Pending), Some(Report::Pending)]);
    let first = world.start(id).unwrap();
    let stored = world.stored(id).unwrap();
    assert_eq!(first.shown.status, Status::Pending);
    let url = format!("https://verifier.example/{}", stored.id);
    assert_eq!(first.url.as_deref(), Some(url.as_str()));
    assert_eq!(first.form.as_ref().unwrap().as_str(), FORM);
    assert!(first.expires_at.is_some());
    assert_eq!(stored.reference.as_deref(), Some("case-1"));
    assert_eq!(world.start(id).unwrap(), first);
    assert_eq!(world.verifier.calls(), ["start", "start"]);
    assert_eq!(world.stored(id).unwrap().id, stored.id);
    assert_eq!(world.asked(id), 1);
    assert_eq!(world.pay(id, None), Err(VerificationRefusal::Required));
    assert_eq!(world.asked(id), 1);
}

// rule: gate.verification.refusal, gate.verification.start
#[test]
fn ended_verification_is_returned_without_a_call() {
    let world = World::test();
    let id = world.open("a", "10.62", None);
    world.verifier.say(&[Some(rejection())]);
    for _ in 0..2 {
        let given = world.start(id).unwrap();
        assert_eq!(given.shown.status, Status::Rejected);
        assert_eq!(
            given.shown.reason.as_deref(),
            Some("The document has expired.")
        );
        assert_eq!(
            (given.url, given.form, given.expires_at),
            (None, None, None)
        );
    }
    assert_eq!(world.verifier.calls(), ["start"]);
    assert_eq!(world.pay(id, None), Err(VerificationRefusal::Rejected));
    assert_eq!(world.status(id), Status::Rejected);
    assert_eq!(world.asked(id), 1);
}

// rule: gate.verification.silence
#[test]
fn silence_decides_nothing_and_start_can_be_repeated() {
    let world = World::test();
    let id = world.open("a", "10.61", None);
    world.verifier.say(&[None, None]);
    for _ in 0..2 {
        assert!(matches!(world.start(id), Err(VerifyError::VerifierSilent)));
        assert_eq!(world.status(id), Status::Pending);
        assert_eq!(world.pay(id, None), Err(VerificationRefusal::Required));
    }
    // The provider may know it, so it is asked.
    world.pass(12);
    assert_eq!(world.due(), [id]);
    world.verifier.say(&[None]);
    world.poll(id);
    assert_eq!(world.status(id), Status::Pending);
    world.verifier.say(&[Some(Report::Approved)]);
    assert_eq!(world.start(id).unwrap().shown.status, Status::Approved);
    assert_eq!(world.asked(id), 1);
}

// rule: gate.verification.answers
#[test]
fn answers_are_submitted_after_the_start() {
    let world = World::test();
    let id = world.open("a", "10.61", None);
    let pending = || Some(Report::Pending);
    // The start says which form is asked for.
    world.verifier.say(&[pending(), pending(), pending()]);
    let given = world.submit(id).unwrap();
    assert_eq!(world.verifier.calls(), ["start", "submit", "start"]);
    assert_eq!(given.shown.status, Status::Pending);
    assert!(given.form.is_some());
    // The answers arrived, although the provider does not say what comes next.
    world.verifier.say(&[pending(), pending(), None]);
    let given = world.submit(id).unwrap();
    assert_eq!((given.shown.status, given.form), (Status::Pending, None));
    assert_eq!(world.verifier.calls(), ["start", "submit", "start"]);
    assert_eq!(
        world.stored(id).unwrap().reference.as_deref(),
        Some("case-1")
    );
    world.verifier.say(&[pending(), None]);
    assert!(matches!(world.submit(id), Err(VerifyError::VerifierSilent)));
    world.verifier.say(&[None]);
    assert!(matches!(world.submit(id), Err(VerifyError::VerifierSilent)));
    world.verifier.say(&[pending(), Some(rejection())]);
    assert_eq!(world.submit(id).unwrap().shown.status, Status::Rejected);
    assert_eq!(
        world.verifier.calls(),
        ["start", "submit", "start", "start", "submit"]
    );
}

// rule: gate.verification.answers
#[test]
fn answers_are_not_submitted_to_a_decided_case() {
    let world = World::test();
    let id = world.open("a", "10.61", None);
    world.verifier.say(&[Some(Report::Pending)]);
    world.start(id).unwrap();
    // The provider has decided since, and the user repeats answers whose response was lost.
    world.verifier.say(&[Some(Report::Approved)]);
    assert_eq!(world.submit(id).unwrap().shown.status, Status::Approved);
    assert_eq!(world.submit(id).unwrap().shown.status, Status::Approved);
    assert_eq!(world.verifier.calls(), ["start", "start"]);
}

// rule: gate.verification.form-not-asked
#[test]
fn answers_are_refused_while_no_form_is_asked_for() {
    let world = World::test();
    world.verifier.formless.store(true, Ordering::Relaxed);
    let refused = |id| {
        let outcome = world.submit(id);
        assert!(
            matches!(outcome, Err(VerifyError::FormNotAsked)),
            "{outcome:?}"
        );
    };
    let pending = world.open("a", "10.63", None);
    for _ in 0..2 {
        world.verifier.say(&[Some(Report::Pending)]);
        refused(pending);
        assert_eq!(world.verifier.calls(), ["start"]);
        assert_eq!(world.status(pending), Status::Pending);
    }
    // A verification that its start decides never asked for a form; the decision counts.
    let decided = world.open("b", "10.61", None);
    world.verifier.say(&[Some(Report::Approved)]);
    refused(decided);
    assert_eq!(world.status(decided), Status::Approved);
    let exempt = world.open("c", "10.00", None);
    refused(exempt);
    assert_eq!(world.stored(exempt), None);
    assert_eq!(world.verifier.calls(), ["start"]);
}

// rule: gate.verification.form-checked
#[test]
fn answers_that_do_not_match_the_form_are_not_submitted() {
    let world = World::test();
    let id = world.open("a", "10.61", None);
    world.verifier.say(&[Some(Report::Pending)]);
    let outcome = world.submit_these(id, "{\"date_of_birth\":\"1815-12-10\"}");
    let field = "date_of_birth".to_owned();
    assert!(
        matches!(&outcome, Err(VerifyError::Answers(AnswerError::Unknown(name))) if *name == field),
        "{outcome:?}"
    );
    assert_eq!(world.verifier.calls(), ["start"]);
    assert_eq!(world.status(id), Status::Pending);
}

// rule: gate.verification.none, gate.verification.event-once
#[test]
fn start_without_verifier_stays_required() {
    let mut world = World::test();
    world.verifying.verifier = None;
    let id = world.open("a", "10.61", None);
    for _ in 0..2 {
        let given = world.start(id).unwrap();
        assert_eq!(given.shown.status, Status::Required);
        assert_eq!(
            (given.url, given.form, given.expires_at),
            (None, None, None)
        );
        assert_eq!(world.stored(id).unwrap().state, VerificationState::Required);
        assert_eq!(world.asked(id), 1);
    }
    assert_eq!(world.pay(id, None), Err(VerificationRefusal::Required));
    assert!(matches!(world.submit(id), Err(VerifyError::FormNotAsked)));
    assert_eq!((world.status(id), world.asked(id)), (Status::Required, 1));
    let exempt = world.open("b", "10.00", None);
    assert_eq!(
        world.start(exempt).unwrap().shown.status,
        Status::NotRequired
    );
    assert_eq!((world.stored(exempt), world.asked(exempt)), (None, 0));
}

// rule: gate.verification.none
#[test]
fn verification_keeps_its_state_after_its_verifier_is_removed() {
    let mut world = World::test();
    let [pending, rejected] = [("a", Report::Pending), ("b", rejection())].map(|(name, report)| {
        let id = world.open(name, "10.61", None);
        world.verifier.say(&[Some(report)]);
        world.start(id).unwrap();
        id
    });
    world.verifying.verifier = None;
    for (id, status) in [(pending, Status::Pending), (rejected, Status::Rejected)] {
        let given = world.start(id).unwrap();
        assert_eq!((given.shown.status, given.url), (status, None));
        assert_eq!(world.asked(id), 1);
    }
}

// rule: gate.verification.needed
#[test]
fn user_without_need_is_not_asked() {
    let world = World::test();
    let id = world.open("a", "100.00", None);
    assert_eq!(world.start(id).unwrap().shown.status, Status::NotRequired);
    assert_eq!(world.pay(id, None), Ok(()));
    assert_eq!(world.status(id), Status::NotRequired);
    assert_eq!((world.stored(id), world.asked(id)), (None, 0));
    assert!(world.verifier.calls().is_empty());
}

// rule: gate.verification.needed
#[test]
fn live_user_is_verified_unless_the_country_is_exempt() {
    let mut world = World::of(access("acme", Mode::Live));
    let germany =
        "code = \"DE\"\nname = \"Germany\"\ncurrency = \"EUR\"\nsupported = true\nverification = ";
    let exempt = CATALOGUE.replace(
        &format!("{germany}\"always\""),
        &format!("{germany}\"never\""),
    );
    world.verifying.catalogue = Arc::new(Catalogue::parse(&exempt).unwrap());
    let id = world.open("a", "100.00", None);
    let de = CountryCode::parse("DE");
    let who = tenant(&world.access);
    let shown = |id, country| {
        let session = world.session(id);
        let reading = world.verifying.status(who, &session, country);
        ready(reading).unwrap().status
    };
    assert_eq!(shown(id, de), Status::NotRequired);
    assert_eq!(world.pay(id, de), Ok(()));
    assert_eq!((world.stored(id), world.asked(id)), (None, 0));
    for country in [None, CountryCode::parse("FR"), CountryCode::parse("XX")] {
        assert_eq!(shown(id, country), Status::Required);
        assert_eq!(world.pay(id, country), Err(VerificationRefusal::Required));
    }
    assert_eq!(world.asked(id), 1);
}

// rule: gate.verification.country-change
#[test]
fn stored_verification_is_not_bypassed_from_an_exempt_country() {
    let mut world = World::of(access("acme", Mode::Live));
    let always = "supported = true\nverification = \"always\"";
    let exempt = CATALOGUE.replacen(always, &always.replace("always", "never"), 1);
    assert_ne!(exempt, CATALOGUE);
    let catalogue = Catalogue::parse(&exempt).unwrap();
    let codes = ["DE", "FR", "NL", "ES", "IT", "GB", "US"];
    let mut countries = codes.into_iter().filter_map(CountryCode::parse);
    let never = gate_core::verification::VerificationRule::Never;
    let exempt = countries.find(|it| *catalogue.verification_rule(Some(*it)) == never);
    assert!(exempt.is_some());
    world.verifying.catalogue = Arc::new(catalogue);
    let who = tenant(&world.access);
    for (name, report, status, refusal) in [
        ("a", None, Status::Required, VerificationRefusal::Required),
        (
            "b",
            Some(Report::Pending),
            Status::Pending,
            VerificationRefusal::Required,
        ),
        (
            "c",
            Some(rejection()),
            Status::Rejected,
            VerificationRefusal::Rejected,
        ),
    ] {
        let id = world.open(name, "100.00", None);
        match report {
            None => assert_eq!(world.pay(id, None), Err(refusal)),
            Some(report) => {
                world.verifier.say(&[Some(report)]);
                world.start(id).unwrap();
            }
        }
        assert_eq!(world.pay(id, exempt), Err(refusal), "{status:?}");
        let reading = ready(world.verifying.status(who, &world.session(id), exempt));
        assert_eq!(reading.unwrap().status, status);
        if status != Status::Required {
            world.verifier.say(&[Some(Report::Pending)]);
            let starting = world.verifying.start(who, id, None, exempt);
            assert_eq!(ready(starting).unwrap().shown.status, status);
        }
        assert_eq!(world.asked(id), 1);
    }
}

// rule: gate.session.not-open, gate.session.lazy-expiry
#[test]
fn verification_of_ended_session_does_not_start() {
    let world = World::test();
    let cancelled = world.open("a", "10.61", None);
    let who = tenant(&world.access);
    let cancelling = world
        .gate
        .acting
        .act(who, cancelled, None, &ActionRequest::Cancel, &done);
    ready(cancelling).unwrap();
    let expired = world.open("b", "10.61", None);
    world.gate.memory.pass(DAY);
    for (id, ended) in [
        (cancelled, SessionStatus::Cancelled),
        (expired, SessionStatus::Expired),
    ] {
        let outcome = world.start(id);
        assert!(
            matches!(outcome, Err(VerifyError::Session(SessionRefusal::NotOpen(NotOpen(status)))) if status == ended),
            "{outcome:?}"
        );
        assert_eq!(world.stored(id), None);
    }
    assert_eq!(
        world.session(expired).state.status(),
        SessionStatus::Expired
    );
    let foreign = SessionId::parse("gs_test_01HF7YAT00408104G208104081").unwrap();
    assert!(matches!(world.start(foreign), Err(VerifyError::NotFound)));
}

// rule: gate.verification.event-once
#[test]
fn lost_race_emits_no_second_event() {
    let world = World::test();
    let id = world.open("a", "10.61", None);
    world.gate.memory.lose(2);
    world.verifier.say(&[Some(Report::Approved)]);
    world.start(id).unwrap();
    assert_eq!(world.asked(id), 1);
    assert_eq!(world.verifier.calls(), ["start"]);
}
