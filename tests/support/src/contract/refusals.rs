//! Refused transacts change nothing, whatever the reason.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Mode;
use partner_core::key::KeyId;
use partner_core::{Denial, Partner, PartnerStatus};
use pools_core::access::PoolsDenial;
use pools_core::batch::{Refusal, TransactCommand, TransactOutcome};
use pools_core::ports::Hold;
use pools_core::profile::{Kyc, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use pools_core::quote::{QuoteClosed, QuoteId, Side};

use crate::contract::fixture::Fixture;
use crate::contract::world::{
    Member, ONE, World, amount, assert_opened, eur, partner, pool, profile, terms,
};

impl<F: Fixture> World<F> {
    /// Refuses a command and checks that its partner, quote and key are unchanged.
    async fn assert_refused(&self, member: &Member, command: &TransactCommand, expected: Refusal) {
        let (before, quote) = (
            self.standing(&member.who).await,
            self.seen(&member.who, command.quote).await,
        );
        let decided = self.transact_one(command.clone()).await;
        assert_eq!(decided, Err(expected));
        assert_eq!(self.standing(&member.who).await, before);
        assert_eq!(self.seen(&member.who, command.quote).await, quote);
        let port = &self.ports().store;
        let look = port
            .transact_snapshot(&command.scope, &command.pool, command.quote)
            .await;
        let look = look.unwrap().value;
        assert_eq!((look.answered, look.trade), (None, None));
    }

    pub(crate) async fn repartner(&self, partner: &Partner) {
        let mut tx = self.provision_begin("repartner").await;
        tx.partner_put(Mode::Test, partner).await.unwrap();
        tx.commit().await.unwrap();
    }
}

// rule: pools.transact.refusal-leaves-nothing, pools.transact.balance
// rule: pools.transact.sale-needs-receipt, pools.transact.reservation-failed
// rule: pools.transact.engine-silent, idempotency.only-success
pub async fn refusal_for_funds_or_engine_changes_nothing(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    world.fund(&member.who, amount("5", eur()), "start").await;
    let dear = world.buy(&member, 6).await;
    let command = world.command(&member, dear.id);
    let refusal = Refusal::InsufficientBalance;
    world.assert_refused(&member, &command, refusal).await;
    let sale = world.quote(&member.who, terms(Side::OffRamp, ONE)).await;
    let command = world.command(&member, sale.id);
    let refusal = Refusal::InsufficientBalance;
    world.assert_refused(&member, &command, refusal).await;
    let quote = world.buy(&member, 5).await;
    let mut command = world.command(&member, quote.id);
    let rows = world.audit().await.figures;
    for (hold, refusal) in [
        (Some(Hold::Refused), Refusal::ReservationFailed),
        (Some(Hold::Unsent), Refusal::EngineUnavailable),
        (None, Refusal::EngineUnavailable),
    ] {
        command.hold = hold;
        world.assert_refused(&member, &command, refusal).await;
    }
    assert_eq!(world.audit().await.figures, rows);
    command.hold = Some(Hold::Held);
    assert_opened(&world.transact_one(command).await);
    assert_eq!(world.available(&member.who, eur()).await, 0);
    world.assert_clean().await;
}

// rule: pools.transact.not-found
pub async fn refusal_for_other_pool_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let elsewhere = PoolId::parse("USD-USDT").unwrap();
    let mut wider = profile();
    wider.allowed.insert(elsewhere);
    world.reprofile(&member, &wider).await;
    let quote = world.buy(&member, 1).await;
    let mut command = world.command(&member, quote.id);
    command.pool = elsewhere;
    let refusal = Refusal::QuoteUnknown;
    world.assert_refused(&member, &command, refusal).await;
    let nobodys = QuoteId::new(Mode::Test, world.now(), &world.entropy);
    let decided = world.transact_one(world.command(&member, nobodys)).await;
    assert_eq!(decided, Err(Refusal::QuoteUnknown));
}

// rule: pools.transact.side
pub async fn refusal_of_disabled_sale_changes_nothing(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    let quote = world.quote(&member.who, terms(Side::OffRamp, ONE)).await;
    let command = world.command(&member, quote.id);
    for terms in [BTreeMap::new(), [(pool(), PoolTerms::default())].into()] {
        let closed = PoolsProfile { terms, ..profile() };
        world.reprofile(&member, &closed).await;
        let refusal = Refusal::SideNotEnabled;
        world.assert_refused(&member, &command, refusal).await;
    }
    world.reprofile(&member, &profile()).await;
    assert_opened(&world.transact_one(command).await);
}

// rule: auth.revocation-beats-money
pub async fn refusal_of_revoked_key_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let other = world.another_key(&member).await;
    world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    world.revoke(member.key).await.won().unwrap();
    let refusal = Refusal::Denied(PoolsDenial::Access(Denial::KeyRevoked));
    world.assert_refused(&member, &command, refusal).await;
    assert_opened(&world.transact_one(world.command(&other, quote.id)).await);
}

// rule: auth.revocation-beats-money
pub async fn refusal_of_unknown_key_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quote = world.buy(&member, 1).await;
    let twin = KeyId::from_parts(Mode::Live, member.key.ulid());
    let nobodys = KeyId::new(Mode::Test, world.now(), &world.entropy);
    for key in [twin, nobodys] {
        let command = TransactCommand {
            key,
            ..world.command(&member, quote.id)
        };
        let refusal = Refusal::Denied(PoolsDenial::Access(Denial::KeyRevoked));
        world.assert_refused(&member, &command, refusal).await;
    }
}

// rule: access.organisation-suspended
pub async fn refusal_of_suspended_organization_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    world
        .repartner(&partner("acme", PartnerStatus::Suspended))
        .await;
    let refusal = Refusal::Denied(PoolsDenial::Access(Denial::OrganizationSuspended));
    world.assert_refused(&member, &command, refusal).await;
    world
        .repartner(&partner("acme", PartnerStatus::Active))
        .await;
    assert_opened(&world.transact_one(command).await);
}

// rule: access.not-enabled, access.suspended, access.kyc, access.pool-not-allowed
pub async fn refusal_for_lost_entitlement_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    world.trade(&member, Side::OnRamp, ONE).await;
    let quote = world.buy(&member, 1).await;
    let command = world.command(&member, quote.id);
    let whole = profile();
    let losses = [
        (
            PoolsProfile {
                enabled: false,
                ..whole.clone()
            },
            PoolsDenial::NotEnabled,
        ),
        (
            PoolsProfile {
                access: PoolsAccess::Suspended,
                ..whole.clone()
            },
            PoolsDenial::AccessSuspended,
        ),
        (
            PoolsProfile {
                kyc: Kyc::Pending,
                ..whole.clone()
            },
            PoolsDenial::KycNotApproved,
        ),
        (
            PoolsProfile {
                kyc: Kyc::Revoked,
                ..whole.clone()
            },
            PoolsDenial::KycNotApproved,
        ),
        (
            PoolsProfile {
                allowed: BTreeSet::new(),
                ..whole.clone()
            },
            PoolsDenial::PoolNotAllowed,
        ),
    ];
    for (lost, denial) in losses {
        world.reprofile(&member, &lost).await;
        world
            .assert_refused(&member, &command, Refusal::Denied(denial))
            .await;
    }
    world.reprofile(&member, &whole).await;
    assert_opened(&world.transact_one(command).await);
    world.assert_clean().await;
}

/// An uncommitted change has no effect on transacts.
pub async fn uncommitted_change_refuses_no_transact(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let mut tx = world.provision_begin("dropped").await;
    let revoked = tx.key_revoke(member.key, world.now()).await.unwrap();
    revoked.won().unwrap();
    let suspended = partner("acme", PartnerStatus::Suspended);
    tx.partner_put(Mode::Test, &suspended).await.unwrap();
    drop(tx);
    world.trade(&member, Side::OnRamp, ONE).await;
}

// rule: pools.transact.expired, pools.transact.rejected
pub async fn refusal_of_closed_quote_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let (expired, rejected) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    world.reject(&member.who, rejected.id).await.won().unwrap();
    let command = world.command(&member, rejected.id);
    let refusal = Refusal::QuoteClosed(QuoteClosed::Rejected);
    world.assert_refused(&member, &command, refusal).await;
    world.clock().set(expired.expires_at);
    let command = world.command(&member, expired.id);
    let refusal = Refusal::QuoteClosed(QuoteClosed::Expired);
    world.assert_refused(&member, &command, refusal).await;
    world.assert_clean().await;
}

// rule: pools.velocity.boundary
pub async fn refusal_by_cap_changes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    world.cap(&member, ONE).await;
    let mut above = terms(Side::OnRamp, ONE);
    above.notional = ONE + 1;
    let quote = world.quote(&member.who, above).await;
    let command = world.command(&member, quote.id);
    let refusal = Refusal::VelocityCapExceeded;
    world.assert_refused(&member, &command, refusal).await;
    let quote = world.buy(&member, 1).await;
    assert_opened(&world.transact_one(world.command(&member, quote.id)).await);
    world.assert_clean().await;
}

// rule: idempotency.reused, idempotency.scope
pub async fn key_scope_is_partner_and_route_without_credential(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let second = world.another_key(&member).await;
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let command = world.command_under(&member, one.id, "k", b"one");
    assert_opened(&world.transact_one(command).await);
    let reused = world.command_under(&second, two.id, "k", b"two");
    assert_eq!(world.transact_one(reused).await, Err(Refusal::KeyReused));
    let repeat = world.command_under(&second, one.id, "k", b"one");
    let decided = world.transact_one(repeat).await;
    assert!(
        matches!(decided, Ok(TransactOutcome::Existing(_))),
        "{decided:?}"
    );
    let mut elsewhere = world.command_under(&second, two.id, "k", b"two");
    elsewhere.scope.route = "POST /v1/pools/USD-USDT/transact".to_owned();
    assert_opened(&world.transact_one(elsewhere).await);
}
