//! Shared values and builders of the tests.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gate_core::access::GateAccess;
use gate_core::amount::SessionAmount;
use gate_core::catalogue::Catalogue;
use gate_core::draft::Draft;
use gate_core::idempotent::Idempotent;
use gate_core::object::JsonObject;
use gate_core::profile::GateProfile;
use gate_core::secret::SecretHash;
use gate_core::session::{Session, SessionId, SessionState, Terms};
use gate_core::token::TokenKey;
use gate_core::transaction::RefId;
use gate_core::usecases::act_on_session::{ActOnSession, ActionRequest, ActionResult};
use gate_core::usecases::bootstrap_embed::BootstrapEmbed;
use gate_core::usecases::create_session::{CreateSession, Created};
use gate_core::usecases::customers::Customers;
use gate_core::usecases::expiry::GateContext;
use gate_core::usecases::queries::GateQueries;
use gate_core::usecases::send_test_event::SendTestEvent;
use gate_core::usecases::update_branding::UpdateBranding;
use kernel::{Asset, Entropy, Mode, Timestamp};
use partner_core::idempotency::{IdempotencyKey, Operation, OperationKey};
use partner_core::key::{KeyId, KeyKind, KeyRecord};
use partner_core::origin::Origin;
use partner_core::sealing::{DerivedKeys, MasterKey, Sealer};
use partner_core::stored_response::{RenderError, RenderedResponse, ResponseStore};
use partner_core::{Access, Partner, PartnerId, PartnerStatus, Tenant};
use secrecy::ExposeSecret as _;

use crate::memory::Memory;

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
pub(crate) const HOUR: Duration = Duration::from_secs(60 * 60);
pub(crate) const WIDGET: &str = "https://widget.example";
/// The operation that creates sessions.
pub(crate) const CREATE: &str = "POST /v1/gate_sessions";
pub(crate) const SHOP: &str = "https://shop.example";

/// The start of every test: noon of May 28.
pub(crate) fn noon() -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000).unwrap()
}

pub(crate) fn after(millis: u64) -> Timestamp {
    noon().plus(Duration::from_millis(millis))
}

/// Runs a future that is ready at its first poll.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future is not ready at its first poll"),
    }
}

/// Deterministic randomness: every id differs, and every run has the same ids.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Entropy for Counter {
    fn fill(&self, buffer: &mut [u8]) {
        let count = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        buffer.fill(0);
        for (slot, byte) in buffer.iter_mut().rev().zip(count.into_iter().rev()) {
            *slot = byte;
        }
    }
}

pub(crate) fn key_id(mode: Mode, number: u64) -> KeyId {
    let counter = Counter(AtomicU64::new(number));
    KeyId::new(mode, noon(), &counter)
}

/// A partner with all entitlements and one allowed page.
pub(crate) fn access(partner: &str, mode: Mode) -> GateAccess {
    let record = KeyRecord {
        id: key_id(mode, partner.len() as u64),
        kind: KeyKind::Secret,
        prefix: "sk_test_Ab3d".to_owned(),
        last4: "9xYz".to_owned(),
        generated: true,
        created_at: noon(),
        revoked_at: None,
        label: None,
        expires_at: None,
    };
    let id = PartnerId::parse(partner).unwrap();
    let partner = Partner {
        id,
        name: partner.to_owned(),
        status: PartnerStatus::Active,
    };
    let gate = GateProfile {
        enabled: true,
        allowed_domains: [Origin::parse(SHOP, mode).unwrap()].into(),
        flow_sessions: true,
        kyc_trusted: true,
        ..GateProfile::default()
    };
    Access::new(mode, record, partner, gate)
}

pub(crate) fn acme() -> GateAccess {
    access("acme", Mode::Test)
}

pub(crate) fn draft() -> Draft {
    Draft {
        amount: "100.00".to_owned(),
        currency: "EUR".to_owned(),
        return_url: format!("{SHOP}/done"),
        ..Draft::default()
    }
}

pub(crate) fn session_at(state: SessionState) -> Session {
    let id = SessionId::parse("gs_test_01HF7YAT00408104G208104081").unwrap();
    Session {
        id,
        terms: Terms {
            amount: SessionAmount::parse("100.00").unwrap(),
            currency: Asset::fiat("EUR").unwrap(),
            return_url: format!("{SHOP}/done"),
            cancel_url: None,
            target_token: None,
            target_network: None,
            flow: None,
            wallet_address: None,
            user_reference: None,
            metadata: JsonObject::empty(),
        },
        secret: SecretHash([7; 32]),
        kyc_pre_verified: false,
        created_at: noon(),
        expires_at: noon().plus(DAY),
        state,
        payment_in_progress: false,
    }
}

pub(crate) fn refid() -> RefId {
    RefId::parse("test_tx_01HF7YAT00408104G208104081").unwrap()
}

/// An idempotency key of an operation, such as `POST /v1/customers`.
pub(crate) fn key(operation: &str, text: &str) -> OperationKey {
    let (method, path) = operation.split_once(' ').unwrap();
    OperationKey {
        operation: Operation::new(method, path),
        key: IdempotencyKey::parse(text.as_bytes()).unwrap(),
    }
}

/// An idempotency key of the operation of a session action.
pub(crate) fn action_key(id: SessionId, action: &ActionRequest, text: &str) -> OperationKey {
    let operation = match action {
        ActionRequest::Cancel => format!("POST /v1/gate_sessions/{id}/cancel"),
        ActionRequest::Complete => format!("POST /v1/test_helpers/sessions/{id}/complete"),
        ActionRequest::Fail { .. } => format!("POST /v1/test_helpers/sessions/{id}/fail"),
    };
    key(&operation, text)
}

/// Every use case over one store.
pub(crate) struct Gate {
    pub(crate) memory: Memory,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) sessions: GateContext,
    pub(crate) creating: CreateSession,
    pub(crate) acting: ActOnSession,
    pub(crate) reading: GateQueries,
    pub(crate) rebranding: UpdateBranding,
    pub(crate) customers: Customers,
    pub(crate) bootstrapping: BootstrapEmbed,
    pub(crate) test_sending: SendTestEvent,
    pub(crate) tokens: TokenKey,
}

impl Gate {
    pub(crate) fn new(all: &[GateAccess]) -> Self {
        let memory = Memory::new(noon(), all);
        let store = Arc::new(memory.clone());
        let master = MasterKey::new([1; 32]);
        let sealer = Arc::new(Sealer::new(&master));
        let entropy: Arc<dyn Entropy> = Arc::new(Counter::default());
        let tokens = TokenKey::new(&DerivedKeys::of(&master));
        let sessions = GateContext {
            store: store.clone(),
            sealer: sealer.clone(),
            entropy: entropy.clone(),
            render: |_, resource, _| {
                serde_json::value::to_raw_value(&format!("{resource:?}"))
                    .map_err(|error| RenderError(error.into()))
            },
        };
        let idempotent = Idempotent {
            store: store.clone(),
            responses: ResponseStore {
                in_flight: store.clone(),
                reads: store.clone(),
                sealer: sealer.clone(),
                entropy: entropy.clone(),
                ttl: DAY,
            },
        };
        Self {
            memory,
            sealer: sealer.clone(),
            creating: CreateSession {
                context: sessions.clone(),
                idempotent: idempotent.clone(),
                ttl: DAY,
            },
            acting: ActOnSession {
                context: sessions.clone(),
                idempotent: idempotent.clone(),
            },
            reading: GateQueries {
                context: sessions.clone(),
            },
            rebranding: UpdateBranding {
                idempotent: idempotent.clone(),
            },
            customers: Customers {
                context: sessions.clone(),
                idempotent,
            },
            bootstrapping: BootstrapEmbed {
                context: sessions.clone(),
                tokens: tokens.clone(),
                ttl: HOUR,
                widget: Origin::stored(WIDGET),
                catalogue: Arc::new(Catalogue::built_in().unwrap()),
            },
            test_sending: SendTestEvent {
                context: sessions.clone(),
                desk: store,
            },
            sessions,
            tokens,
        }
    }

    /// Creates a session and returns its id and its client secret.
    pub(crate) fn open(&self, access: &GateAccess, name: &str) -> (SessionId, String) {
        let given = ready(
            self.creating
                .create(access, key(CREATE, name), &draft(), &created),
        );
        let body = given.unwrap().into_rendered().0;
        let body = String::from_utf8(body).unwrap();
        let (id, secret) = body.split_once(' ').unwrap();
        (SessionId::parse(id).unwrap(), secret.to_owned())
    }
}

/// Renders a new session as its id and its client secret.
pub(crate) fn created(created: &Created) -> Result<RenderedResponse, RenderError> {
    let secret = created.client_secret.expose_secret();
    let text = format!("{} {secret}", created.session.id);
    Ok(RenderedResponse(text.into_bytes()))
}

/// Renders an action as the session's status and the failed intent.
pub(crate) fn done(done: &ActionResult) -> Result<RenderedResponse, RenderError> {
    let status = done.session.state.status().as_str();
    let intent = done.intent.as_ref();
    let failed = intent.map(|intent| format!(" {}", intent.failure_code));
    let text = format!("{status}{}", failed.unwrap_or_default());
    Ok(RenderedResponse(text.into_bytes()))
}

pub(crate) fn tenant(access: &GateAccess) -> &Tenant {
    &access.tenant
}
