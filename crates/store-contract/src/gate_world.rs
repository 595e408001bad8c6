//! The gate's use cases over a store, and a partner who may do everything.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::draft::Draft;
use gate_core::ports::SessionFilter;
use gate_core::session::{Session, SessionId};
use gate_core::usecases::acting::{ActError, Acting, Deed, Done};
use gate_core::usecases::branding::Rebranding;
use gate_core::usecases::create::{CreateError, Created, Creating};
use gate_core::usecases::expiry::Expiring;
use kernel::Mode;
use partner_core::answers::{Answer, Answers, Given, Unwritable};
use partner_core::gate::GateProfile;
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::origin::Origin;
use partner_core::ports::{InFlight, Ticket};
use partner_core::{Access, Tenant};

use crate::fixture::GateFixture;
use crate::world::{Member, Seeded, World, profile, sealer};

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lets every twin in: what is left is the store's to decide.
struct Everyone;

#[async_trait]
impl InFlight for Everyone {
    async fn enter(&self, _: &Scope) -> Option<Ticket> {
        Some(Ticket(Box::new(())))
    }
}

/// The use cases, for one partner.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) member: Member,
    pub(crate) creating: Creating,
    pub(crate) acting: Acting,
    pub(crate) rebranding: Rebranding,
    pub(crate) access: Arc<Access>,
}

impl<F: GateFixture> World<F> {
    pub(crate) async fn open_gate(&self, name: &str, mode: Mode, quota: Option<u64>) -> Gate {
        let member = self.member_with(name, mode, &profile()).await;
        let shop = Origin::parse("https://shop.example", mode).unwrap();
        let gate = GateProfile {
            enabled: true,
            allowed_domains: [shop].into(),
            flow_sessions: true,
            kyc_trusted: true,
            live_session_quota: quota,
            ..GateProfile::default()
        };
        let mut tx = self
            .ports()
            .provision
            .provision_begin("gate")
            .await
            .unwrap();
        tx.gate_profile_put(&member.who, &gate).await.unwrap();
        tx.commit().await.unwrap();
        let access = self.ports().directory.access_find(mode, &member.hash);
        let access = access.await.unwrap().unwrap();
        self.use_cases(member, access)
    }

    fn use_cases(&self, member: Member, access: Arc<Access>) -> Gate {
        let store = self.fixture.gate().store.clone();
        let entropy = Arc::new(Seeded::new(self.entropy.next()));
        let sealer = Arc::new(sealer());
        let sessions = Expiring {
            store: store.clone(),
            sealer: sealer.clone(),
            entropy: entropy.clone(),
        };
        let answers = Answers {
            in_flight: Arc::new(Everyone),
            reads: store.clone(),
            sealer,
            entropy,
            ttl: DAY,
        };
        Gate {
            member,
            creating: Creating {
                sessions: sessions.clone(),
                answers: answers.clone(),
                ttl: DAY,
            },
            acting: Acting {
                sessions,
                answers: answers.clone(),
            },
            rebranding: Rebranding { store, answers },
            access,
        }
    }

    pub(crate) async fn sessions(&self, who: &Tenant) -> Vec<Session> {
        let filter = SessionFilter::default();
        let page = self.fixture.gate().store.sessions_page(who, &filter, 100);
        page.await.unwrap().value
    }

    /// The types of the events about a session, in order.
    pub(crate) async fn said(&self, who: &Tenant, id: SessionId) -> Vec<String> {
        let events = self.ports().events.events_of(who, &id.to_string()).await;
        let kind = |event: partner_core::ports::StoredEvent| event.kind;
        events.unwrap().into_iter().map(kind).collect()
    }
}

/// What a create sends.
pub(crate) fn draft(amount: &str) -> Draft {
    Draft {
        amount: amount.to_owned(),
        currency: "EUR".to_owned(),
        return_url: "https://shop.example/done".to_owned(),
        ..Draft::default()
    }
}

pub(crate) fn key(name: &str) -> IdempotencyKey {
    IdempotencyKey::parse(name.as_bytes()).unwrap()
}

impl Gate {
    pub(crate) async fn create(self, name: String, draft: Draft) -> Result<Given, CreateError> {
        let given = self
            .creating
            .create(&self.access, key(&name), &draft, &created);
        given.await
    }

    /// A session, made under a key of this name.
    pub(crate) async fn opened(&self, name: &str, draft: Draft) -> SessionId {
        let given = self.clone().create(name.to_owned(), draft).await;
        let body = given.unwrap().into_answer().body;
        SessionId::parse(&String::from_utf8(body).unwrap()).unwrap()
    }

    /// Does something to a session; nothing named lets its expiry be noticed.
    pub(crate) async fn act(
        self,
        id: SessionId,
        name: Option<&str>,
        deed: Option<Deed>,
    ) -> Result<(), ActError> {
        let who = &self.access.tenant;
        match deed {
            Some(deed) => {
                let acting = self.acting.act(who, id, name.map(key), &deed, &done);
                acting.await.map(drop)
            }
            None => Ok(self.acting.sessions.settle(who, id).await.map(drop)?),
        }
    }
}

fn created(created: &Created) -> Result<Answer, Unwritable> {
    Ok(answer(created.session.id.to_string()))
}

fn done(done: &Done) -> Result<Answer, Unwritable> {
    Ok(answer(done.session.state.status().as_str().to_owned()))
}

pub(crate) fn answer(body: String) -> Answer {
    Answer {
        status: 201,
        request_id: "req_1".to_owned(),
        body: body.into_bytes(),
    }
}
