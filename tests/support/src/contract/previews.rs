//! Locked previews: stored unchanged, used by one session before they expire, swept when they are old.

use std::time::Duration;

use gate_core::draft::Draft;
use gate_core::preview::{Preview, PreviewId, PreviewRefusal, PreviewTerms};
use gate_core::session::{Flow, SessionId};
use gate_core::usecases::create_session::CreateError;
use kernel::rates::Side;
use kernel::{Asset, Cas, Mode, Timestamp};
use partner_core::Tenant;
use partner_core::events::Service;
use tokio::task::JoinSet;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::draft;
use crate::contract::world::{MILLI, World, expired_keys};

const LIFE: Duration = Duration::from_secs(300);

impl<F: GateFixture> World<F> {
    /// Stores a preview of 100.10 EUR for USDT.
    pub(crate) async fn locked(&self, who: &Tenant) -> Preview {
        let at = self.now();
        let preview = Preview {
            id: PreviewId::generate(&self.entropy),
            bound: PreviewTerms {
                side: Side::OnRamp,
                currency: Asset::fiat("EUR").unwrap(),
                asset: "USDT".to_owned(),
                units: 10_010_000_000,
            },
            created_at: at,
            expires_at: at.plus(LIFE),
            used: None,
        };
        let mut tx = self.gate_begin().await;
        tx.preview_insert(who, &preview).await.unwrap();
        tx.commit().await.unwrap();
        preview
    }

    async fn preview(&self, who: &Tenant, id: PreviewId) -> Option<Preview> {
        let mut tx = self.gate_begin().await;
        tx.preview_lock(who, id).await.unwrap()
    }

    async fn preview_used(
        &self,
        who: &Tenant,
        id: PreviewId,
        session: SessionId,
        now: Timestamp,
    ) -> Cas {
        let mut tx = self.gate_begin().await;
        let used = tx.preview_use(who, id, session, now).await.unwrap();
        tx.commit().await.unwrap();
        used
    }
}

/// A session with the preview's terms.
pub(crate) fn agreeing(id: PreviewId) -> Draft {
    Draft {
        flow: Some(Flow::OnRamp),
        target_token: Some("usdt".to_owned()),
        quote_preview_id: Some(id.to_string()),
        ..draft("100.1")
    }
}

// rule: gate.preview.once, gate.preview.expiry, tenancy.foreign-is-absent, mode.on-every-row
pub async fn preview_reads_back_and_is_used_once_before_expiry(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let who = &gate.access.tenant;
    let given = world.locked(who).await;
    assert_eq!(world.preview(who, given.id).await.as_ref(), Some(&given));
    let live = Tenant {
        mode: Mode::Live,
        ..who.clone()
    };
    let rival = world.open_gate("rival", Mode::Test, None).await;
    for stranger in [&live, &rival.access.tenant] {
        assert_eq!(world.preview(stranger, given.id).await, None);
    }
    let unnamed = || Draft {
        quote_preview_id: None,
        ..agreeing(given.id)
    };
    let session = gate.opened("one", unnamed()).await;
    let other = gate.opened("two", unnamed()).await;
    let late = given.expires_at;
    let used = async |who, session, now| world.preview_used(who, given.id, session, now).await;
    assert_eq!(used(who, session, late).await, Cas::Lost);
    assert_eq!(
        used(&rival.access.tenant, session, given.created_at).await,
        Cas::Lost
    );
    let now = world.now();
    assert_eq!(used(who, session, now).await, Cas::Won);
    assert_eq!(used(who, other, now).await, Cas::Lost);
    let read = world.preview(who, given.id).await.unwrap();
    assert_eq!(read.used, Some((session, now)));
    world.assert_clean().await;
}

// rule: gate.preview.once, gate.preview.match
pub async fn concurrent_sessions_with_one_preview_count_once(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let who = &gate.access.tenant;
    let preview = world.locked(who).await;
    let mut racing = JoinSet::new();
    for number in 0..20 {
        racing.spawn(
            gate.clone()
                .create(format!("key-{number}"), agreeing(preview.id)),
        );
    }
    let given = racing.join_all().await;
    assert_eq!(given.iter().filter(|given| given.is_ok()).count(), 1);
    for refused in given.into_iter().filter_map(Result::err) {
        let used = matches!(refused, CreateError::Preview(PreviewRefusal::Used));
        assert!(used, "{refused}");
    }
    let sessions = world.sessions(who).await;
    let [session] = &sessions[..] else {
        panic!("{sessions:?}")
    };
    let used = world.preview(who, preview.id).await.unwrap().used;
    assert_eq!(used.map(|(session, _)| session), Some(session.id));
    world.assert_clean().await;
}

// rule: gate.preview.swept
pub async fn usable_preview_is_not_swept(world: World<impl GateFixture>) {
    let gate = world.open_gate("acme", Mode::Test, None).await;
    let who = &gate.access.tenant;
    let preview = world.locked(who).await;
    let used = gate.opened("used", agreeing(world.locked(who).await.id));
    let session = used.await;
    let gate = expired_keys(Service::Gate);
    world.clock().set(preview.expires_at);
    assert_eq!(world.sweep_keys(gate, 10).await.deleted, 0);
    world.clock().advance(MILLI);
    assert_eq!(world.sweep_keys(gate, 10).await.deleted, 2);
    assert_eq!(world.preview(who, preview.id).await, None);
    let sessions = world.sessions(who).await;
    assert_eq!(
        sessions.iter().map(|it| it.id).collect::<Vec<_>>(),
        [session]
    );
}
