//! Sessions, their ends and events, and the transactions that pay them.

use gate_core::amount::SessionAmount;
use gate_core::embed::SessionToken;
use gate_core::object::JsonObject;
use gate_core::ports::{GateTx, SessionFilter, TransactionFilter};
use gate_core::secret::SecretHash;
use gate_core::session::{
    Flow, Session, SessionEvent, SessionId, SessionState, SessionStatus, Step, Terms,
};
use gate_core::transaction::{RefId, Transaction, TransactionState, TransactionStatus};
use kernel::{Asset, Cas, Mode, StoreError, StoreResult};
use partner_core::Tenant;
use partner_core::events::{NewEvent, Service, new_delivery, seal_body};
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::sealing::Sealed;
use partner_core::stored_response::StoredResponse;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::DAY;
use crate::contract::world::{MILLI, World, assert_guarded, profile, sealer};

impl<F: GateFixture> World<F> {
    pub(crate) async fn gate_begin(&self) -> Box<dyn GateTx> {
        self.fixture.gate().store.gate_begin("case").await.unwrap()
    }

    fn session(&self, who: &Tenant) -> Session {
        let at = self.now();
        Session {
            id: SessionId::new(who.mode, at, &self.entropy),
            terms: Terms {
                amount: SessionAmount::parse("0100.10").unwrap(),
                currency: Asset::fiat("JPY").unwrap(),
                return_url: "https://shop.example/done#a".to_owned(),
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
            created_at: at,
            expires_at: at.plus(DAY),
            state: SessionState::Open,
            payment_in_progress: false,
            tokens_made: 0,
        }
    }

    async fn open_session(&self, who: &Tenant) -> Session {
        self.open_session_with(who, None).await
    }

    pub(crate) async fn open_session_with(
        &self,
        who: &Tenant,
        package: Option<&Sealed>,
    ) -> Session {
        let mut session = self.session(who);
        session.kyc_pre_verified = package.is_some();
        let mut tx = self.gate_begin().await;
        tx.session_insert(who, &session, package).await.unwrap();
        tx.commit().await.unwrap();
        session
    }

    async fn read(&self, who: &Tenant, id: SessionId) -> Option<Session> {
        let seen = self.fixture.gate().store.session_get(who, id);
        seen.await.unwrap().map(|seen| seen.value)
    }

    async fn step(&self, who: &Tenant, id: SessionId, state: SessionState) -> Cas {
        let mut tx = self.gate_begin().await;
        let event = SessionEvent::Cancelled;
        let outcome = tx.session_apply(who, id, &Step { state, event }).await;
        tx.commit().await.unwrap();
        outcome.unwrap()
    }

    pub(crate) fn gate_event(&self, who: &Tenant, object: &str, kind: &str, id: &str) -> NewEvent {
        let at = self.now();
        NewEvent {
            tenant: who.clone(),
            id: id.to_owned(),
            service: Service::Gate,
            kind: kind.to_owned(),
            object_id: object.to_owned(),
            body: seal_body(&sealer(), who, id, b"{}", &self.entropy).unwrap(),
            created_at: at,
            delivery: new_delivery(who.mode, at, &self.entropy),
        }
    }

    pub(crate) async fn say(&self, event: &NewEvent) -> StoreResult<()> {
        let mut tx = self.gate_begin().await;
        tx.event_insert(event).await?;
        tx.commit().await
    }
}

// rule: gate.session.bound, gate.session.amount-as-sent, gate.session.metadata-exact, gate.session.kyc-package
pub async fn session_reads_back_field_by_field(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let plain = world.open_session(&who).await;
    assert_eq!(world.read(&who, plain.id).await, Some(plain));
    let mut full = world.session(&who);
    full.kyc_pre_verified = true;
    full.terms = Terms {
        cancel_url: Some("https://shop.example/".to_owned()),
        target_token: Some("USDT".to_owned()),
        target_network: Some("TRON".to_owned()),
        flow: Some(Flow::Swap),
        wallet_address: Some("é".repeat(128)),
        user_reference: Some("\u{202e}user\n'\"".to_owned()),
        metadata: JsonObject::metadata("{\"n\":1.10,\"big\":1e400,\"é\":\"\\u2028\"}").unwrap(),
        ..full.terms
    };
    let mut tx = world.gate_begin().await;
    let package = Sealed(vec![1, 2, 3]);
    tx.session_insert(&who, &full, Some(&package))
        .await
        .unwrap();
    let locked = tx.session_lock(&who, full.id).await.unwrap();
    assert_eq!(locked.as_ref(), Some(&full));
    tx.commit().await.unwrap();
    assert_eq!(world.read(&who, full.id).await, Some(full));
}

// rule: gate.session.one-end, gate.session.lazy-expiry
pub async fn session_ends_once_before_its_deadline(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let end = world.now().plus(DAY);
    let before = end.minus(MILLI);
    let refid = RefId::new(who.mode, world.now(), &world.entropy);
    let late = |at| {
        [
            SessionState::Cancelled { at },
            SessionState::Completed { at, refid },
        ]
    };
    let session = world.open_session(&who).await;
    for impossible in late(end)
        .into_iter()
        .chain([SessionState::Expired { at: before }, SessionState::Open])
    {
        assert_eq!(world.step(&who, session.id, impossible).await, Cas::Lost);
    }
    assert_eq!(world.read(&who, session.id).await, Some(session));
    let [cancelled, completed] = late(before);
    for ended in [cancelled, completed, SessionState::Expired { at: end }] {
        let id = world.open_session(&who).await.id;
        assert_eq!(world.step(&who, id, ended).await, Cas::Won);
        for again in [cancelled, completed, SessionState::Expired { at: end }] {
            assert_eq!(world.step(&who, id, again).await, Cas::Lost);
        }
        assert_eq!(world.read(&who, id).await.map(|it| it.state), Some(ended));
    }
}

// rule: gate.bootstrap.token-limit
pub async fn tokens_of_session_are_counted_one_by_one(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let id = world.open_session(&who).await.id;
    let count = async |session, number| {
        let mut tx = world.gate_begin().await;
        let token = SessionToken { session, number };
        let outcome = tx.session_count_token(&who, token).await;
        tx.commit().await.unwrap();
        outcome.unwrap()
    };
    assert_eq!(count(id, 1).await, Cas::Won);
    // Another transaction has counted the token, or has not counted the one before.
    assert_eq!(count(id, 1).await, Cas::Lost);
    assert_eq!(count(id, 3).await, Cas::Lost);
    assert_eq!(count(id, 2).await, Cas::Won);
    let twin = SessionId::from_parts(Mode::Live, id.ulid());
    assert_eq!(count(twin, 3).await, Cas::Lost);
    assert_eq!(world.read(&who, id).await.unwrap().tokens_made, 2);
    let at = world.now();
    let cancelled = world.step(&who, id, SessionState::Cancelled { at });
    assert_eq!(cancelled.await, Cas::Won);
    assert_eq!(count(id, 3).await, Cas::Lost);
}

// rule: tenancy.foreign-is-absent, id.other-mode, mode.on-every-row
pub async fn foreign_session_is_absent(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let live = world.member_with("acme", Mode::Live, &profile()).await.who;
    let session = world.open_session(&who).await;
    let twin = SessionId::from_parts(Mode::Live, session.id.ulid());
    for (stranger, id) in [
        (&other, session.id),
        (&live, session.id),
        (&live, twin),
        (&who, twin),
    ] {
        assert_eq!(world.read(stranger, id).await, None);
        let mut tx = world.gate_begin().await;
        assert_eq!(tx.session_lock(stranger, id).await.unwrap(), None);
        drop(tx);
        let at = world.now();
        let outcome = world
            .step(stranger, id, SessionState::Cancelled { at })
            .await;
        assert_eq!(outcome, Cas::Lost);
    }
    assert_eq!(world.read(&who, session.id).await, Some(session));
}

// rule: gate.session.list, list.order, list.no-loss, list.foreign-cursor
pub async fn session_pages_are_contiguous(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let mut made = Vec::new();
    for at in 0..7 {
        if at % 3 == 0 {
            world.clock().advance(MILLI);
        }
        made.push(world.open_session(&who).await);
    }
    let foreign = world.open_session(&other).await;
    made.sort_by_key(|session| std::cmp::Reverse((session.created_at, session.id)));
    let ids: Vec<SessionId> = made.iter().map(|session| session.id).collect();
    let at = world.now();
    let cancelled = world.step(&who, ids[2], SessionState::Cancelled { at });
    assert_eq!(cancelled.await, Cas::Won);
    let page = async |after, status, limit| {
        let filter = SessionFilter {
            after,
            status,
            ..SessionFilter::default()
        };
        let store = &world.fixture.gate().store;
        let seen = store.sessions_page(&who, &filter, limit).await.unwrap();
        seen.value
            .iter()
            .map(|session| session.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(page(None, None, 100).await, ids);
    assert_eq!(page(None, None, 3).await, ids[..3]);
    assert_eq!(page(Some(ids[2]), None, 3).await, ids[3..6]);
    assert_eq!(page(Some(ids[6]), None, 3).await, []);
    assert_eq!(
        page(None, Some(SessionStatus::Cancelled), 3).await,
        [ids[2]]
    );
    assert_eq!(
        page(Some(ids[1]), Some(SessionStatus::Open), 2).await,
        ids[3..5]
    );
    assert_eq!(page(Some(foreign.id), None, 3).await, []);
    let twin = SessionId::from_parts(Mode::Live, ids[0].ulid());
    assert_eq!(page(Some(twin), None, 3).await, []);
}

/// Without the session the page would be short, and the list would seem to end with it.
// rule: list.no-loss
pub async fn unreadable_session_fails_its_page(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let mut made = Vec::new();
    for _ in 0..3 {
        world.clock().advance(MILLI);
        made.push(world.open_session(&who).await.id);
    }
    let oldest = made[0].ulid();
    let spoil = format!("UPDATE sessions SET amount = 'x' WHERE id = '{oldest}'");
    world.fixture.damage(&spoil).await;
    let store = &world.fixture.gate().store;
    let mut filter = SessionFilter::default();
    let newest = store.sessions_page(&who, &filter, 2).await.unwrap();
    assert_eq!(newest.value.len(), 2);
    filter.after = Some(made[1]);
    let last = store.sessions_page(&who, &filter, 2).await;
    assert!(
        matches!(last, Err(StoreError::Inconsistent { .. })),
        "{last:?}"
    );
}

// rule: gate.session.sweep, time.deadline-exclusive
pub async fn overdue_sessions_are_listed(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let first = world.open_session(&who).await.id;
    let foreign = world.open_session(&other).await.id;
    let ended = world.open_session(&who).await.id;
    let at = world.now();
    let cancelled = world.step(&who, ended, SessionState::Cancelled { at });
    assert_eq!(cancelled.await, Cas::Won);
    let gate = world.fixture.gate().store.clone();
    world.clock().advance(DAY - MILLI);
    assert!(gate.sessions_overdue(&who, 10).await.unwrap().is_empty());
    world.clock().advance(MILLI);
    let young = world.open_session(&who).await.id;
    assert_eq!(gate.sessions_overdue(&who, 10).await.unwrap(), [first]);
    let found = world.overdue_in(Mode::Test).await;
    assert_eq!(found, [(who.clone(), first), (other, foreign)]);
    assert!(world.overdue_in(Mode::Live).await.is_empty());
    let at = world.now();
    let expired = world.step(&who, first, SessionState::Expired { at });
    assert_eq!(expired.await, Cas::Won);
    assert!(gate.sessions_overdue(&who, 10).await.unwrap().is_empty());
    assert!(world.read(&who, young).await.is_some());
}

// rule: gate.transaction.list, gate.transaction.foreign, gate.session.one-end
pub async fn transactions_read_back_and_one_pays(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let other = world.member("other").await.who;
    let session = world.open_session(&who).await;
    let at = world.now();
    let new = |state| {
        let refid = RefId::new(who.mode, at, &world.entropy);
        Transaction::of_session(&session, refid, state, at)
    };
    let insert = async |transaction: &Transaction| {
        let mut tx = world.gate_begin().await;
        tx.transaction_insert(&who, transaction).await?;
        tx.commit().await
    };
    let failed = new(TransactionState::Failed);
    let full = Transaction {
        payment_method: Some("sepa".to_owned()),
        token: Some("USDT".to_owned()),
        network: Some("TRON".to_owned()),
        token_amount: Some("107.31".to_owned()),
        exchange_rate: Some("1.0850".to_owned()),
        total_fees: Some("1.00".to_owned()),
        local_rail_transaction_id: Some("rail-1".to_owned()),
        ..new(TransactionState::Completed { at })
    };
    insert(&failed).await.unwrap();
    insert(&full).await.unwrap();
    // A payment that a rail has started may complete in addition to the one that paid.
    let paid = new(TransactionState::Completed { at });
    insert(&paid).await.unwrap();
    assert_guarded(insert(&new(TransactionState::Completed { at })).await);
    let gate = world.fixture.gate().store.clone();
    let get =
        async |who: &Tenant, it: &Transaction| gate.transaction_get(who, it.refid).await.unwrap();
    assert_eq!(get(&who, &full).await, Some(full.clone()));
    assert_eq!(get(&other, &full).await, None);
    let page =
        async |filter: TransactionFilter| gate.transactions_page(&who, &filter, 10).await.unwrap();
    let mut all = vec![failed.clone(), full.clone(), paid];
    all.sort_by_key(|it| std::cmp::Reverse(it.refid));
    assert_eq!(page(TransactionFilter::default()).await, all);
    let by = TransactionFilter {
        status: Some(TransactionStatus::Failed),
        session: Some(session.id),
        ..TransactionFilter::default()
    };
    assert_eq!(page(by).await, [failed]);
    let rest = TransactionFilter {
        after: Some(all[0].refid),
        session: Some(session.id),
        ..TransactionFilter::default()
    };
    assert_eq!(page(rest).await, all[1..]);
}

// rule: idempotency.same-transaction
pub async fn dropped_gate_transaction_writes_nothing(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    let session = world.session(&who);
    let scope = Scope {
        tenant: who.clone(),
        route: "POST /a".to_owned(),
        key: IdempotencyKey::parse(b"key").unwrap(),
    };
    let response = StoredResponse {
        fingerprint: Fingerprint([1; 32]),
        sealed: Sealed(vec![1; 40]),
        created_at: session.created_at,
        expires_at: session.expires_at,
    };
    let mut tx = world.gate_begin().await;
    let put = tx.response_put(&scope, &response, None).await.unwrap();
    assert_eq!(put, Cas::Won);
    tx.session_insert(&who, &session, None).await.unwrap();
    let event = world.gate_event(&who, "gs", "gate_session.created", "e1");
    tx.event_insert(&event).await.unwrap();
    drop(tx);
    let seen = world.fixture.gate().store.response_get(&scope).await;
    assert_eq!(seen.unwrap().value, None);
    assert_eq!(world.read(&who, session.id).await, None);
    assert!(world.events_of(&who, "gs").await.is_empty());
}

// rule: gate.event.once
pub async fn session_emits_each_event_once(world: World<impl GateFixture>) {
    let who = world.member("acme").await.who;
    for kind in [
        "created",
        "kyc_package_accepted",
        "completed",
        "cancelled",
        "expired",
    ] {
        let kind = format!("gate_session.{kind}");
        let said = world.gate_event(&who, "gs", &kind, &format!("{kind}-1"));
        world.say(&said).await.unwrap();
        let again = world.gate_event(&who, "gs", &kind, &format!("{kind}-2"));
        assert_guarded(world.say(&again).await);
    }
}
