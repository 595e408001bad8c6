//! The background tasks of the gate work for every partner while another transaction has locked the rows of one.
//!
//! An embedded database has no lock of one partner: a lock stops every write. There these tests run without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::{ACME, Call, Gate, GateClient, RIVAL, RIVAL_SHOP, SHOP, Setup};
use gate_core::catalogue::Catalogue;
use gate_core::embed::SessionToken;
use gate_core::ports::Verifier;
use gate_core::session::SessionId;
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::verify_user::{StartRequest, VerifyUser};
use gate_core::verification::VerificationState;
use kernel::{Mode, Upstreams};
use partner_core::events::Service;
use partner_core::webhooks::delivery::DeliveryState;
use partner_core::webhooks::schedule::Schedule;
use partner_core::webhooks::target::AllowPrivate;
use runtime::background::{delete_unused_quotes, sweep_idempotency};
use runtime::polls::{settle_rails, settle_verifications, sweep_sessions};
use serde_json::json;
use sqlx::Connection as _;
use test_support::http::{Reply, Upstream};
use webhooks::{SystemResolver, Trust, Worker, WorkerConfig};

use super::rails::{DAY, PAY_INS, id, in_turn, purchase, redeem, session};
use super::widget::{plain, rival_token, widget, with};
use crate::isolation::{Running, until};

/// More objects than a background task reads at once.
const CROWD: usize = 130;
const FEW: usize = 20;
const SWEEP_INTERVAL: Duration = Duration::from_millis(50);

/// Creates sessions of an amount; returns their ids.
async fn opened(client: &GateClient, shop: &str, amount: &str, count: usize) -> Vec<String> {
    let changes = json!({ "return_url": format!("{shop}/done") });
    let mut ids = Vec::new();
    for number in 0..count {
        let key = format!("s{number}");
        ids.push(session(client, &key, amount, changes.clone()).await);
    }
    ids
}

/// Creates a pay-in with its own session; returns its id.
async fn paying(client: &GateClient, shop: &str, name: &str) -> String {
    let quote = purchase(client, &format!("{name}-q"), "100.00").await;
    let changes = json!({ "return_url": format!("{shop}/done") });
    let session = session(client, &format!("{name}-s"), "100.00", changes).await;
    let quote = id(&quote);
    let made = in_turn(|| redeem(client, PAY_INS, name, &quote, &session)).await;
    id(&made.created())
}

/// Waits until each of these objects has an event.
async fn until_said(gate: &Gate, partner: &str, objects: &[String], event: &str) {
    for object in objects {
        let is_said = async || {
            let said = gate.notice(partner, object).await;
            said.iter().any(|kind| kind == event)
        };
        until(&format!("{event} of {object}"), is_said).await;
    }
}

// rule: background.isolated, gate.session.sweep
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_other_partners_expire_while_one_partner_is_locked() {
    for table in ["books", "sessions"] {
        let gate = Gate::with(Setup::give_up_locked_rows).await;
        let crowd = opened(&gate.acme(), SHOP, "100.00", 2 * FEW).await;
        gate.world().after(1);
        let few = opened(&gate.rival(), RIVAL_SHOP, "100.00", 3).await;
        gate.world().after(DAY);
        let lock = gate.world().lock_rows(table, ACME).await;
        let (context, store) = (gate.sessions().clone(), gate.world().store());
        let pace = (Mode::Test, SWEEP_INTERVAL);
        let task = Running::start(|stop| sweep_sessions(context, pace, store, stop));
        let expired = "gate_session.expired";
        until_said(&gate, RIVAL, &few, expired).await;
        if let Some(lock) = lock {
            for session in &crowd {
                let said = gate.notice(ACME, session).await;
                assert_eq!(said, ["gate_session.created"], "{table}");
            }
            lock.close().await.unwrap();
        }
        until_said(&gate, ACME, &crowd, expired).await;
        task.end().await;
        gate.finish().await;
    }
}

// rule: background.isolated, gate.rail.settled
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_of_other_partners_settle_while_one_partner_is_locked() {
    for (table, count) in [("books", CROWD), ("rail_records", FEW)] {
        let gate = Gate::with(Setup::give_up_locked_rows).await;
        let mut crowd = Vec::new();
        for number in 0..count {
            crowd.push(paying(&gate.acme(), SHOP, &format!("p{number}")).await);
        }
        gate.world().after(1);
        let lock = gate.world().lock_rows(table, ACME).await;
        let settling = AdvanceRails {
            context: gate.sessions().clone(),
            rail: Arc::new(acceptance::sandbox_rail(gate.world())),
        };
        let store = gate.world().store();
        let task = Running::start(|stop| settle_rails(settling, Mode::Test, store, stop));
        let settled = "rail.pay_in.settled";
        for number in 0..3 {
            let payment = paying(&gate.rival(), RIVAL_SHOP, &format!("p{number}")).await;
            until_said(&gate, RIVAL, &[payment], settled).await;
        }
        if let Some(lock) = lock {
            for payment in &crowd {
                let said = gate.notice(ACME, payment).await;
                assert_eq!(said, ["rail.pay_in.processing"], "{table}");
            }
            lock.close().await.unwrap();
        }
        until_said(&gate, ACME, &crowd, settled).await;
        task.end().await;
        gate.world().notice_all().await;
        gate.finish().await;
    }
}

/// Starts the verifications of sessions that the verifier approves after some seconds.
async fn verifying(gate: &Gate, partner: &str, sessions: &[String]) -> Vec<SessionId> {
    let verifier: Arc<dyn Verifier> = gate.verifier().clone();
    let verifying = VerifyUser {
        context: gate.sessions().clone(),
        catalogue: Arc::new(Catalogue::built_in().unwrap()),
        verifiers: Upstreams {
            present: Some(verifier),
            former: None,
        },
    };
    let who = gate.world().operator().tenant(partner);
    let mut started = Vec::new();
    for session in sessions {
        let session = SessionId::parse(session).unwrap();
        let token = SessionToken { session, number: 1 };
        let starting = verifying.start(&who, token, StartRequest::default());
        starting.await.unwrap();
        started.push(session);
    }
    started
}

async fn is_approved(gate: &Gate, partner: &str, session: SessionId) -> bool {
    let who = gate.world().operator().tenant(partner);
    let found = gate.sessions().store.verification_get(&who, session).await;
    let state = found.unwrap().unwrap().state;
    matches!(state, VerificationState::Approved { .. })
}

async fn until_approved(gate: &Gate, partner: &str, sessions: &[SessionId]) {
    for session in sessions {
        let is_approved = async || is_approved(gate, partner, *session).await;
        until(&format!("approval of {session}"), is_approved).await;
    }
}

// rule: background.isolated, gate.verification.poll
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifications_of_other_partners_end_while_one_partner_is_locked() {
    for (table, count) in [("books", CROWD), ("verifications", FEW)] {
        let gate = Gate::with(Setup::give_up_locked_rows).await;
        let crowd = opened(&gate.acme(), SHOP, "100.63", count).await;
        let crowd = verifying(&gate, ACME, &crowd).await;
        gate.world().after(1);
        let few = opened(&gate.rival(), RIVAL_SHOP, "100.63", 3).await;
        let few = verifying(&gate, RIVAL, &few).await;
        gate.world().after(60_000);
        let lock = gate.world().lock_rows(table, ACME).await;
        let settling = AdvanceVerifications {
            context: gate.sessions().clone(),
            verifier: gate.verifier().clone(),
        };
        let store = gate.world().store();
        let task = Running::start(|stop| settle_verifications(settling, Mode::Test, store, stop));
        until_approved(&gate, RIVAL, &few).await;
        if let Some(lock) = lock {
            for session in &crowd {
                assert!(!is_approved(&gate, ACME, *session).await, "{table}");
            }
            lock.close().await.unwrap();
        }
        until_approved(&gate, ACME, &crowd).await;
        task.end().await;
        gate.world().notice_all().await;
        gate.finish().await;
    }
}

/// Responds to requests, but to those to `/acme` only once this is set.
fn receiver(released: &Arc<AtomicBool>) -> Upstream {
    let released = Arc::clone(released);
    Upstream::start(move |request| {
        while request.path() == "/acme" && !released.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Reply::with(200, &[], "")
    })
}

fn worker(gate: &Gate) -> Worker {
    let context = gate.sessions();
    Worker::new(WorkerConfig {
        mode: Mode::Test,
        service: Service::Gate,
        deliveries: gate.world().store(),
        sealer: Arc::clone(&context.sealer),
        clock: gate.world().ticking(),
        entropy: Arc::clone(&context.entropy),
        schedule: Schedule::new(Vec::new()),
        timeout: Duration::from_secs(60),
        allow_private: AllowPrivate::Loopback,
        resolver: Arc::new(SystemResolver),
        trust: Trust::System,
        grace: Duration::from_secs(3),
    })
}

async fn delivery(gate: &Gate, partner: &str, object: &str) -> DeliveryState {
    let who = gate.world().operator().tenant(partner);
    let found = gate.world().store().deliveries_of(&who, object).await;
    found.unwrap()[0].progress.state
}

async fn until_delivered(gate: &Gate, partner: &str, object: &str) {
    let is_delivered = async || {
        let state = delivery(gate, partner, object).await;
        matches!(state, DeliveryState::Succeeded { .. })
    };
    until(&format!("delivery of {object}"), is_delivered).await;
}

/// The receiver of acme responds after acme's rows were locked, so that the outcome cannot be recorded.
// rule: background.isolated, webhook.isolation
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_other_partners_are_delivered_while_one_partner_is_locked() {
    let gate = Gate::with(Setup::give_up_locked_rows).await;
    let released = Arc::<AtomicBool>::default();
    let receiver = receiver(&released);
    for partner in [ACME, RIVAL] {
        let url = format!("{}/{partner}", receiver.url());
        let operator = gate.world().operator();
        operator.put_endpoint_at(partner, Service::Gate, url).await;
    }
    let worker = worker(&gate);
    let task = Running::start(|stop| worker.run(stop.cancelled_owned()));
    let held = opened(&gate.acme(), SHOP, "100.00", 1).await.remove(0);
    let is_in_flight = async || {
        let state = delivery(&gate, ACME, &held).await;
        matches!(state, DeliveryState::InFlight(_))
    };
    until("the claim of acme's delivery", is_in_flight).await;
    let mut locks = Vec::new();
    for table in ["books", "deliveries"] {
        locks.extend(gate.world().lock_rows(table, ACME).await);
    }
    released.store(true, Ordering::SeqCst);
    for session in opened(&gate.rival(), RIVAL_SHOP, "100.00", 3).await {
        until_delivered(&gate, RIVAL, &session).await;
    }
    if !locks.is_empty() {
        let state = delivery(&gate, ACME, &held).await;
        assert!(matches!(state, DeliveryState::InFlight(_)), "{state:?}");
    }
    for lock in locks {
        lock.close().await.unwrap();
    }
    until_delivered(&gate, ACME, &held).await;
    task.end().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: background.isolated, idempotency.own-expiry
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_other_partners_are_swept_while_one_partner_is_locked() {
    let gate = Gate::with(Setup::give_up_locked_rows).await;
    opened(&gate.acme(), SHOP, "100.00", 3).await;
    opened(&gate.rival(), RIVAL_SHOP, "100.00", 3).await;
    gate.world().after(2 * DAY);
    let mut locks = Vec::new();
    for table in ["books", "answers"] {
        locks.extend(gate.world().lock_rows(table, ACME).await);
    }
    let of = (Mode::Test, Service::Gate);
    let (store, ttl) = (gate.world().store(), Duration::from_millis(DAY));
    let task = Running::start(|stop| sweep_idempotency(store, of, ttl, stop));
    let stored = async |partner: &str| {
        let count = format!("SELECT count(*) FROM answers WHERE partner_id = '{partner}'");
        gate.world().database().number(&count).await
    };
    until("the sweep of rival's keys", async || {
        stored(RIVAL).await == 0
    })
    .await;
    if !locks.is_empty() {
        assert_eq!(stored(ACME).await, 3);
    }
    for lock in locks {
        lock.close().await.unwrap();
    }
    task.end().await;
    gate.world().notice_all().await;
    gate.finish().await;
}

// rule: background.isolated, gate.embed-quote.deleted
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_quotes_of_other_partners_are_deleted_while_one_partner_is_locked() {
    for table in ["books", "signed_quotes"] {
        let gate = Gate::with(Setup::give_up_locked_rows).await;
        let order = json!({ "side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa" });
        let mut quotes = Vec::new();
        for token in [widget(&gate, &plain()).await.0, rival_token(&gate).await] {
            let quote = with(&token, Call::post("/v1/embed/quotes").json(&order));
            quotes.push(id(&gate.send(quote).await.created()));
            let end = with(&token, Call::post("/v1/embed/cancel"));
            gate.send(end).await.ok();
        }
        let is_known = async |client: GateClient, quote: &str| {
            let status = client.get(&format!("/v1/quotes/{quote}")).await.status;
            assert!(matches!(status, 200 | 404), "{status}");
            status == 200
        };
        let lock = gate.world().lock_rows(table, ACME).await;
        let store = gate.world().store();
        let task =
            Running::start(|stop| delete_unused_quotes(store.clone(), store, Mode::Test, stop));
        let is_deleted = async || !is_known(gate.rival(), &quotes[1]).await;
        until("the deletion of the rival's quote", is_deleted).await;
        if let Some(lock) = lock {
            assert!(is_known(gate.acme(), &quotes[0]).await, "{table}");
            lock.close().await.unwrap();
        }
        task.end().await;
        gate.world().notice_all().await;
        gate.finish().await;
    }
}
