//! The gate service over a world's database.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use coordination::{MemoryInFlight, MemoryThrottle};
use gate_core::access::GateAccess;
use gate_core::ports::{Rail, Verifier};
use gate_core::rail::RailId;
use gate_core::token::TokenKey;
use gate_core::usecases::bootstrap_embed::BootstrapEmbed;
use gate_core::usecases::context::GateContext;
use gate_core::usecases::create_session::CreateSession;
use gate_core::usecases::customers::Customers;
use gate_core::usecases::list_options::ListOptions;
use gate_core::usecases::lock_quote::LockQuote;
use gate_core::usecases::pay_session::PaySession;
use gate_core::usecases::preview_quotes::PreviewQuotes;
use gate_core::usecases::queries::GateQueries;
use gate_core::usecases::send_test_event::SendTestEvent;
use gate_core::usecases::show_outcome::ShowOutcome;
use gate_core::usecases::show_session::ShowSession;
use gate_core::usecases::update_branding::UpdateBranding;
use gate_core::usecases::wake_rail::WakeRail;
use gate_http::{EdgeHeader, Parts, Signer, WidgetSetup};
use http_kit::{ServiceInfo, TrustedProxies};
use kernel::{Clock, Entropy, Timestamp, Upstreams};
use partner_core::events::{Service, event_place};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::key::PresentedKey;
use partner_core::origin::Origin;
use partner_core::ports::{Directory, InFlight, Ticket};
use partner_core::sealing::{DerivedKeys, MasterKey};
use partner_core::usecases::deliveries::Delivered;
use partner_core::webhooks::notification::NotificationSecret;
use partner_core::{PartnerId, Tenant};
use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::contract::{Contract, Operation};
use crate::gate_use_cases::{GateUpstreams, GateUseCases};
use crate::rail::SilencedRail;
use crate::setup::{self, Setup};
use crate::verifier::ScriptedVerifier;
use crate::world::World;

/// The gate service on the database of a world's pools service. Cheap to clone.
/// [`Gate::finish`] must be called at the end.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    world: World,
    /// Built by the first request, with the rail that [`Gate::rail`] is by then.
    router: OnceLock<Router>,
    use_cases: GateUseCases,
    in_flight: Arc<MemoryInFlight>,
    rail: Arc<SilencedRail>,
    verifier: Arc<ScriptedVerifier>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl Gate {
    /// The default gate: acme with everything provisioned, and rival.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A gate with changed settings.
    pub async fn with(change: impl FnOnce(&mut Setup)) -> Self {
        let gate = Self::over(World::with(change).await);
        gate.provision().await;
        gate
    }

    /// The same database opened by another process of the service.
    pub async fn replica(&self) -> Self {
        Self::over(self.world().replica().await)
    }

    /// The same database opened by a process with these rails instead of [`Gate::rail`].
    pub async fn with_rails(&self, rails: Upstreams<dyn Rail>) -> Self {
        let world = self.world().replica().await;
        Self::over_with(world, |upstreams| upstreams.rails = rails)
    }

    /// The same database opened by a process with these verifiers instead of [`Gate::verifier`].
    pub async fn with_verifiers(&self, verifiers: Upstreams<dyn Verifier>) -> Self {
        let world = self.world().replica().await;
        Self::over_with(world, |upstreams| upstreams.verifiers = verifiers)
    }

    /// The other mode on the same database, provisioned like this one.
    pub async fn other_mode(&self) -> Self {
        let gate = Self::over(self.world().other_mode().await);
        gate.provision().await;
        gate
    }

    fn over(world: World) -> Self {
        Self::over_with(world, |_| {})
    }

    fn over_with(world: World, change: impl FnOnce(&mut GateUpstreams)) -> Self {
        let operator = world.operator();
        let in_flight = Arc::new(MemoryInFlight::new());
        let verifier = Arc::new(ScriptedVerifier::new(operator.clock.clone()));
        let rail = Arc::new(SilencedRail::new(&world));
        let mut upstreams = GateUpstreams::of_tests(&world, rail.clone(), verifier.clone());
        change(&mut upstreams);
        let store = operator.store.clone();
        let use_cases = GateUseCases::new(&world, store, in_flight.clone(), upstreams);
        Self(Arc::new(Inner {
            world,
            router: OnceLock::new(),
            use_cases,
            in_flight,
            rail,
            verifier,
        }))
    }

    async fn provision(&self) {
        let operator = self.world().operator();
        for (partner, page) in [
            (setup::ACME, setup::SHOP),
            (setup::RIVAL, setup::RIVAL_SHOP),
        ] {
            let profile = setup::gate_profile(page);
            operator.put_gate_profile(partner, &profile).await;
        }
        operator.put_endpoint(setup::ACME, Service::Gate).await;
    }

    fn router(&self) -> Router {
        let Inner {
            world, use_cases, ..
        } = &*self.0;
        let build = || router(world, use_cases);
        self.0.router.get_or_init(build).clone()
    }

    /// The gate's world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// The use case that expires sessions.
    #[must_use]
    pub fn sessions(&self) -> &GateContext {
        &self.0.use_cases.context
    }

    /// The use cases that pay a session, as the service runs them.
    #[must_use]
    pub fn use_cases(&self) -> &GateUseCases {
        &self.0.use_cases
    }

    /// The authentication result for a key.
    pub async fn access(&self, key: &str) -> Arc<GateAccess> {
        let key = PresentedKey::parse(key).expect("a key");
        let directory = &self.world().operator().gate_directory;
        let found = directory.access_find(key.mode, &key.hash).await;
        found.expect("a read").expect("a known key")
    }

    /// The rail, which the service uses in mode test only.
    #[must_use]
    pub fn rail(&self) -> &SilencedRail {
        &self.0.rail
    }

    /// The verifier, which the service uses in mode test only.
    #[must_use]
    pub fn verifier(&self) -> &Arc<ScriptedVerifier> {
        &self.0.verifier
    }

    /// A client with this key.
    #[must_use]
    pub fn client(&self, key: &str) -> GateClient {
        GateClient {
            gate: self.clone(),
            key: self.world().of_mode(key),
        }
    }

    /// Acme's client.
    #[must_use]
    pub fn acme(&self) -> GateClient {
        self.client(setup::ACME_SECRET)
    }

    /// Rival's client.
    #[must_use]
    pub fn rival(&self) -> GateClient {
        self.client(setup::RIVAL_SECRET)
    }

    /// Sends a request and checks the response against the contract.
    pub async fn send(&self, call: Call) -> Answer {
        let answer = Answer::of(self.router(), &call).await;
        let tiers: &[&str] = match &self.world().setup().gate_limits {
            None => &[],
            // The route limit counts known keys; guessed keys count in the tiers.
            Some(_) if has_a_ceiling(&call) => &["short", "medium"],
            Some(_) if has_its_own_limit(&call) => &["short"],
            Some(_) => &["short", "medium", "long"],
        };
        Contract::gate().check(&call, &answer, tiers);
        answer
    }

    /// Sends a request to the widget's origin, which is no operation of the contract.
    pub async fn page(&self, call: Call) -> Answer {
        Answer::of(widget_router(self.world()), &call).await
    }

    /// Sends a browser's preflight, which is not an operation of the contract.
    pub async fn preflight(&self, call: Call) -> Answer {
        Answer::of(self.router(), &call).await
    }

    /// The current time of the world.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.world().parts().0.clock.now()
    }

    /// Sends a notification of the rail, which is no operation of the partners' contract.
    pub async fn notify(&self, call: Call) -> Answer {
        Answer::of(self.router(), &call).await
    }

    /// How often the rail was asked about one of acme's payments.
    pub async fn polls(&self, id: &str) -> u32 {
        let id = RailId::parse_any(id).expect("the id of a rail record");
        let who = Tenant {
            partner: PartnerId::parse(setup::ACME).expect("a partner"),
            mode: self.world().setup().mode,
        };
        let found = self.sessions().store.rail_get(&who, id).await;
        found.expect("the store").expect("a record").asking.attempts
    }

    /// The deliveries of both services about an object.
    pub async fn deliveries_of(&self, partner: &str, object: &str) -> Vec<String> {
        let operator = self.world().operator();
        let who = operator.tenant(partner);
        let found = operator.store.deliveries_of(&who, object);
        let found = found.await.expect("deliveries");
        found.into_iter().map(|one| one.id.to_string()).collect()
    }

    /// Blocks twins of a write until the ticket is dropped, as the write itself does.
    pub async fn enter(&self, partner: &str, route: &str, key: &str) -> Ticket {
        let scope = Scope {
            tenant: self.world().operator().tenant(partner),
            route: route.to_owned(),
            key: IdempotencyKey::parse(key.as_bytes()).expect("a key"),
        };
        let ticket = self.0.in_flight.enter(&scope).await;
        ticket.expect("a scope that is not in flight")
    }

    /// The events about an object, in order: type and `data`. They count as noticed.
    pub async fn events(&self, partner: &str, object: &str) -> Vec<(String, Value)> {
        let (operator, _, sealer) = self.world().parts();
        let who = operator.tenant(partner);
        let stored = operator.store.events_of(&who, object).await;
        let mut events = Vec::new();
        for event in stored.expect("events") {
            let body = sealer.open(&event_place(&who, &event.id), &event.body);
            let body = body.expect("an event that opens");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            let envelope = (&body["id"], &body["object"], &body["type"]);
            let expected = (&json!(event.id), &json!("event"), &json!(event.kind));
            assert_eq!(envelope, expected);
            Contract::gate().judge_event(&event.kind, &body);
            assert_eq!(body["created_at"], event.created_at.to_string());
            self.world().notice_event(event.id);
            events.push((event.kind, body["data"].clone()));
        }
        events
    }

    /// The types of the events about an object, in order. They count as noticed.
    pub async fn notice(&self, partner: &str, object: &str) -> Vec<String> {
        let events = self.events(partner, object).await;
        events.into_iter().map(|(kind, _)| kind).collect()
    }

    /// Ends the test: checks every invariant of the database and that no event was left unnoticed.
    pub async fn finish(self) {
        self.world().clone().finish().await;
    }

    /// Ends a replica. The original world checks its events.
    pub async fn close(self) {
        self.world().clone().close().await;
    }
}

/// Other routes are under the global tiers.
fn has_its_own_limit(call: &Call) -> bool {
    let operation = Contract::gate().operation(&call.method, &call.path);
    operation.is_some_and(|operation| {
        operation.template.contains("/capabilities/")
            || is_of_widget(operation)
            || matches!(
                operation.id.as_str(),
                "createSession"
                    | "cancelSession"
                    | "listSessions"
                    | "listTransactions"
                    | "previewQuotes"
            )
    })
}

/// Whether an operation takes the token of a widget.
fn is_of_widget(operation: &Operation) -> bool {
    operation.credentials == ["embedToken"]
}

/// Whether an operation takes the publishable key of a page, whose own limit is under a ceiling of its key.
fn has_a_ceiling(call: &Call) -> bool {
    let operation = Contract::gate().operation(&call.method, &call.path);
    operation.is_some_and(|operation| operation.credentials == ["publishableKey"])
}

/// A partner's client with one key.
#[derive(Debug, Clone)]
pub struct GateClient {
    gate: Gate,
    key: String,
}

impl GateClient {
    /// Sends a request with the key.
    pub async fn send(&self, call: Call) -> Answer {
        self.gate.send(call.bearer(&self.key)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Call::get(path)).await
    }

    /// Creates a session with any body.
    pub async fn create(&self, body: &Value, key: &str) -> Answer {
        let call = Call::post("/v1/gate_sessions").json(body).key(key);
        self.send(call).await
    }

    /// Creates a plain session; returns its fields.
    pub async fn open(&self, key: &str) -> Value {
        self.create(&session(self.shop()), key).await.created()
    }

    /// Creates a plain session; returns its id.
    pub async fn open_id(&self, key: &str) -> String {
        let session = self.open(key).await;
        session["id"].as_str().expect("an id").to_owned()
    }

    /// Creates a customer with any body.
    pub async fn create_customer(&self, body: &Value, key: &str) -> Answer {
        self.send(Call::post("/v1/customers").json(body).key(key))
            .await
    }

    /// The origin of the partner's pages.
    fn shop(&self) -> &'static str {
        let rival = setup::RIVAL_SECRET.rsplit('_').next().expect("a word");
        if self.key.ends_with(rival) {
            setup::RIVAL_SHOP
        } else {
            setup::SHOP
        }
    }

    /// Reads a session.
    pub async fn read(&self, id: &str) -> Answer {
        self.get(&format!("/v1/gate_sessions/{id}")).await
    }

    /// A session's status.
    pub async fn status(&self, id: &str) -> String {
        let session = self.read(id).await.ok();
        session["status"].as_str().expect("a status").to_owned()
    }

    /// Cancels a session.
    pub async fn cancel(&self, id: &str) -> Answer {
        self.send(Call::post(&format!("/v1/gate_sessions/{id}/cancel")))
            .await
    }

    /// Completes a session manually.
    pub async fn complete(&self, id: &str) -> Answer {
        self.send(Call::post(&format!(
            "/v1/test_helpers/sessions/{id}/complete"
        )))
        .await
    }

    /// Fails a session's payment manually.
    pub async fn fail(&self, id: &str) -> Answer {
        self.send(Call::post(&format!("/v1/test_helpers/sessions/{id}/fail")))
            .await
    }
}

/// The body of a plain session with return URLs on this origin.
#[must_use]
pub fn session(page: &str) -> Value {
    json!({ "amount": "100.00", "currency": "EUR", "return_url": format!("{page}/done") })
}

fn router(world: &World, use_cases: &GateUseCases) -> Router {
    let operator = world.operator();
    let setup = world.setup();
    let clock: Arc<dyn Clock> = operator.clock.clone();
    let entropy: Arc<dyn Entropy> = operator.entropy.clone();
    let store = operator.store.clone();
    let PaySession {
        context,
        idempotent,
        catalogue,
        verifying,
        ..
    } = &use_cases.paying;
    let bootstrapping = BootstrapEmbed {
        context: context.clone(),
        tokens: TokenKey::new(&DerivedKeys::of(&MasterKey::new([7; 32]))),
        ttl: Duration::from_secs(60 * 60),
        widget: Origin::stored(setup::WIDGET),
        catalogue: Arc::clone(catalogue),
    };
    let parts = Parts {
        mode: setup.mode,
        directory: operator.gate_directory.clone(),
        catalogue: Arc::clone(catalogue),
        previewing: PreviewQuotes {
            store: store.clone(),
            entropy: Arc::clone(&entropy),
            catalogue: Arc::clone(catalogue),
            rates: world.rates().clone(),
            ttl: setup.preview_ttl,
        },
        edge: EdgeHeader::new(Some("CF-IPCountry")),
        creating: CreateSession {
            context: context.clone(),
            idempotent: idempotent.clone(),
            ttl: setup.session_ttl,
        },
        acting: use_cases.acting.clone(),
        rebranding: UpdateBranding {
            idempotent: idempotent.clone(),
        },
        customers: Customers {
            context: context.clone(),
            idempotent: idempotent.clone(),
        },
        locking: LockQuote {
            context: context.clone(),
            idempotent: idempotent.clone(),
            catalogue: Arc::clone(catalogue),
            rates: world.rates().clone(),
            ttl: setup.signed_quote_ttl,
        },
        redeeming: use_cases.redeeming.clone(),
        quoting: use_cases.quoting.clone(),
        paying: use_cases.paying.clone(),
        cancelling: use_cases.cancelling.clone(),
        pretending: use_cases.pretending.clone(),
        reading: GateQueries {
            context: context.clone(),
        },
        outcomes: ShowOutcome {
            bootstrapping: bootstrapping.clone(),
        },
        bootstrapping,
        showing: ShowSession {
            context: context.clone(),
            verifying: verifying.clone(),
            directory: operator.gate_directory.clone(),
        },
        verifying: verifying.clone(),
        options: ListOptions {
            catalogue: Arc::clone(catalogue),
            rates: world.rates().clone(),
        },
        delivered: Delivered {
            deliveries: store.clone(),
            service: Service::Gate,
        },
        test_sending: SendTestEvent {
            context: context.clone(),
            deliveries: store.clone(),
        },
    };
    let proxies = setup.proxies.iter();
    let service = gate_http::Setup {
        parts,
        waking: WakeRail {
            context: context.clone(),
        },
        signers: signers(&use_cases.cancelling.rails),
        throttle: Arc::new(MemoryThrottle::new(Arc::clone(&clock))),
        limits: setup.gate_limits.clone(),
        proxies: TrustedProxies::new(proxies.map(|net| net.parse().expect("a network"))),
        site: ServiceInfo::new("https://gate.test/docs", clock, entropy),
        readiness: store,
    };
    gate_http::service(service).expect("a consistent contract")
}

/// The rails of a gate, each with the secret of its notifications.
fn signers(rails: &Upstreams<dyn Rail>) -> Vec<Signer> {
    let signer = |rail: &Option<Arc<dyn Rail>>, secret: &'static str| {
        let rail = rail.as_ref()?.name();
        let secret = Arc::new(NotificationSecret::new(secret.into()));
        Some(Signer { rail, secret })
    };
    let present = signer(&rails.present, setup::RAIL_SECRET);
    let former = signer(&rails.former, setup::FORMER_RAIL_SECRET);
    present.into_iter().chain(former).collect()
}

/// The widget's origin over the same database.
fn widget_router(world: &World) -> Router {
    let operator = world.operator();
    let clock: Arc<dyn Clock> = operator.clock.clone();
    let entropy: Arc<dyn Entropy> = operator.entropy.clone();
    gate_http::widget(WidgetSetup {
        mode: world.setup().mode,
        gate: Origin::stored(setup::GATE).expect("an origin"),
        widget: Origin::stored(setup::WIDGET).expect("an origin"),
        directory: operator.gate_directory.clone(),
        throttle: Arc::new(MemoryThrottle::new(Arc::clone(&clock))),
        readiness: operator.store.clone(),
        site: ServiceInfo::new("https://gate.test/docs", clock, entropy),
    })
}
