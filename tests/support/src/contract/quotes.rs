//! Quotes: one outcome each, decided before they expire, and visible to their partner only.

use std::time::Duration;

use kernel::{Cas, Mode};
use partner_core::Tenant;
use pools_core::batch::{Refusal, TransactOutcome};
use pools_core::ports::NewQuote;
use pools_core::quote::{Quote, QuoteClosed, QuoteId, QuoteOutcome, QuoteStatus, Side};

use crate::contract::fixture::Fixture;
use crate::contract::world::{
    MILLI, Member, ONE, QUOTE_TTL, World, amount, assert_guarded, assert_opened, eur, profile,
    terms,
};

impl<F: Fixture> World<F> {
    /// A funded partner.
    pub(crate) async fn funded(&self, name: &str) -> Member {
        let member = self.member(name).await;
        self.fund(&member.who, amount("1000000", eur()), "start")
            .await;
        member
    }

    pub(crate) async fn seen(&self, who: &Tenant, id: QuoteId) -> Quote {
        let seen = self.ports().store.quote_get(who, id).await;
        seen.unwrap().unwrap().value
    }

    pub(crate) async fn reject(&self, who: &Tenant, id: QuoteId) -> Cas {
        let mut tx = self.ports().store.begin("reject").await.unwrap();
        let locked = tx.quote_lock(who, id).await.unwrap();
        let now = tx.now().await.unwrap();
        let outcome = tx.quote_reject(who, id, now).await.unwrap();
        assert!(locked.is_some() || outcome == Cas::Lost);
        tx.commit().await.unwrap();
        outcome
    }
}

// rule: pools.quote.firm, pools.quote-record.locked
pub async fn opened_quote_reads_back(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let batch = [
        world.new_quote(&member.who, terms(Side::OnRamp, 107 * ONE)),
        world.new_quote(&member.who, terms(Side::OffRamp, ONE)),
    ];
    let opened = world.ports().quotes.quotes_open(&batch).await.unwrap();
    assert_eq!(opened.len(), 2);
    for (new, quote) in batch.iter().zip(&opened) {
        assert_eq!((new.id, &new.terms), (quote.id, &quote.terms));
        assert_eq!(
            (quote.created_at, quote.expires_at),
            (world.now(), world.now().plus(QUOTE_TTL))
        );
        assert_eq!(&world.seen(&member.who, quote.id).await, quote);
    }
    let mut tx = world.ports().store.begin("lock").await.unwrap();
    let locked = tx.quote_lock(&member.who, opened[0].id).await;
    assert_eq!(locked.unwrap().as_ref(), Some(&opened[0]));
}

// rule: time.deadline-exclusive
pub async fn reads_carry_store_instant(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let quote = world.buy(&member, 1).await;
    world.clock().advance(QUOTE_TTL);
    let seen = world.ports().store.quote_get(&member.who, quote.id).await;
    let seen = seen.unwrap().unwrap();
    assert_eq!(seen.at, quote.expires_at);
    assert_eq!(seen.value.status(seen.at), QuoteStatus::Expired);
}

/// Another partner, the other mode, an id of the other mode, and an unknown id.
// rule: tenancy.nothing-crosses, id.other-mode, pools.transact.not-found, mode.on-every-row
pub async fn foreign_quote_is_absent(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let other = world.funded("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let quote = world.buy(&member, 1).await;
    let twin = QuoteId::from_parts(Mode::Live, quote.id.ulid());
    let nobodys = QuoteId::new(Mode::Test, world.now(), &world.entropy);
    for (who, id) in [
        (&other.who, quote.id),
        (&live.who, quote.id),
        (&live.who, twin),
        (&member.who, twin),
        (&member.who, nobodys),
    ] {
        let reads = &world.ports().store;
        assert!(reads.quote_get(who, id).await.unwrap().is_none());
        let behind = reads.quote_get_behind_writes(who, id).await;
        assert!(behind.unwrap().is_none());
        assert_eq!(world.reject(who, id).await, Cas::Lost);
    }
    for (thief, id) in [
        (&other, quote.id),
        (&live, quote.id),
        (&live, twin),
        (&member, twin),
    ] {
        let command = world.command(thief, id);
        let look = world
            .ports()
            .store
            .transact_snapshot(&command.scope, &command.pool, id)
            .await
            .unwrap();
        assert!(look.value.quote.is_none());
        assert_eq!(
            world.transact_one(command).await,
            Err(Refusal::QuoteUnknown)
        );
    }
    let outcome = world.seen(&member.who, quote.id).await.outcome;
    assert_eq!(outcome, QuoteOutcome::Open);
}

// rule: pools.reject.once, pools.reject.rejected, pools.transact.rejected
pub async fn reject_succeeds_once(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quote = world.buy(&member, 1).await;
    assert_eq!(world.reject(&member.who, quote.id).await, Cas::Won);
    let at = world.now();
    world.clock().advance(MILLI);
    assert_eq!(world.reject(&member.who, quote.id).await, Cas::Lost);
    let outcome = world.seen(&member.who, quote.id).await.outcome;
    assert_eq!(outcome, QuoteOutcome::Rejected(at));
    let refused = world.transact_one(world.command(&member, quote.id)).await;
    assert_eq!(refused, Err(Refusal::QuoteClosed(QuoteClosed::Rejected)));
}

// rule: pools.reject.consumed
pub async fn consumed_quote_cannot_be_rejected(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    assert_eq!(world.reject(&member.who, trade.quote).await, Cas::Lost);
    let outcome = world.seen(&member.who, trade.quote).await.outcome;
    assert_eq!(outcome, QuoteOutcome::Consumed(trade.created_at));
}

// rule: pools.reject.or-consume
pub async fn consume_and_reject_have_one_winner(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    for round in 0..20 {
        let quote = world.buy(&member, 1).await;
        let command = world.command(&member, quote.id);
        let (decided, rejected) = if round % 2 == 0 {
            tokio::join!(
                world.transact_one(command),
                world.reject(&member.who, quote.id)
            )
        } else {
            let (rejected, decided) = tokio::join!(
                world.reject(&member.who, quote.id),
                world.transact_one(command)
            );
            (decided, rejected)
        };
        match (
            decided,
            rejected,
            world.seen(&member.who, quote.id).await.outcome,
        ) {
            (Ok(TransactOutcome::Opened(_)), Cas::Lost, QuoteOutcome::Consumed(_)) => {}
            (
                Err(Refusal::QuoteClosed(QuoteClosed::Rejected)),
                Cas::Won,
                QuoteOutcome::Rejected(_),
            ) => {}
            other => panic!("round {round}: {other:?}"),
        }
    }
    world.assert_clean().await;
}

/// A quote is executable up to its last millisecond, and not at the instant of expiry.
// rule: pools.transact.expired, pools.reject.expired, time.deadline-exclusive
pub async fn expired_quote_is_refused_at_exact_millisecond(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quotes = [world.buy(&member, 1).await, world.buy(&member, 1).await];
    world.clock().set(quotes[0].expires_at.minus(MILLI));
    let command = world.command(&member, quotes[0].id);
    assert_opened(&world.transact_one(command).await);
    world.clock().advance(MILLI);
    let late = world
        .transact_one(world.command(&member, quotes[1].id))
        .await;
    assert_eq!(late, Err(Refusal::QuoteClosed(QuoteClosed::Expired)));
    assert_eq!(world.reject(&member.who, quotes[1].id).await, Cas::Lost);

    let third = world.buy(&member, 1).await;
    world.clock().set(third.expires_at.minus(MILLI));
    assert_eq!(world.reject(&member.who, third.id).await, Cas::Won);
}

/// A reader that would return `expired` waits for the transaction that may consume the quote.
// rule: pools.quote-record.monotone
pub async fn read_behind_writes_waits_for_open_transaction(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let quote = world.buy(&member, 1).await;
    let mut tx = world.ports().store.begin("hold").await.unwrap();
    tx.quote_lock(&member.who, quote.id).await.unwrap();
    tx.quote_reject(&member.who, quote.id, world.now())
        .await
        .unwrap()
        .won()
        .unwrap();

    let reads = world.ports().store.clone();
    let who = member.who.clone();
    let mut waiting =
        tokio::spawn(async move { reads.quote_get_behind_writes(&who, quote.id).await });
    let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(early.is_err(), "returned while the quote was locked");
    let outcome = world.seen(&member.who, quote.id).await.outcome;
    assert_eq!(outcome, QuoteOutcome::Open);
    tx.commit().await.unwrap();
    let seen = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(seen.value.outcome, QuoteOutcome::Rejected(world.now()));
}

pub async fn quote_insert_requires_partner(world: World<impl Fixture>) {
    let nobody = crate::contract::world::tenant("nobody", Mode::Test);
    let new = world.new_quote(&nobody, terms(Side::OnRamp, ONE));
    assert_guarded(world.ports().quotes.quotes_open(&[new]).await);
}

pub async fn quote_batch_is_atomic(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let good = world.new_quote(&member.who, terms(Side::OnRamp, ONE));
    let mut worthless = terms(Side::OnRamp, ONE);
    worthless.notional = 0;
    let twin = NewQuote {
        id: good.id,
        ..world.new_quote(&member.who, terms(Side::OnRamp, ONE))
    };
    for bad in [world.new_quote(&member.who, worthless), twin] {
        assert_guarded(world.ports().quotes.quotes_open(&[good.clone(), bad]).await);
        let read = world.ports().store.quote_get(&member.who, good.id).await;
        assert!(read.unwrap().is_none());
    }
    world.ports().quotes.quotes_open(&[good]).await.unwrap();
}

// rule: pools.quote-record.locked, pools.quote-record.pure
pub async fn every_quote_field_reads_back(world: World<impl Fixture>) {
    use pools_core::destination::{DestNetwork, Destination, EvmAddress, EvmNetwork};
    use pools_core::profile::{Network, PoolId};
    let member = world.member("acme").await;
    let quoted = Network::ALL.map(DestNetwork::Quoted);
    let named = EvmNetwork::ALL.map(DestNetwork::Named);
    let addresses = [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
    ];
    let rates = ["0.00000012345678", "9999999999.99999999", "1"];
    let mut batch = Vec::new();
    for (at, network) in quoted.into_iter().chain(named).enumerate() {
        let pool = PoolId::parse(["EUR-USDT", "GBP-BTC", "JPY-ETH"][at % 3]).unwrap();
        let destination = Destination {
            address: EvmAddress::parse(addresses[at % 2]).unwrap().into(),
            network,
        };
        batch.push(world.new_quote(
            &member.who,
            pools_core::quote::Terms {
                pool,
                network: Network::ALL[at % 5],
                fiat: amount(["1", "10000000000"][at % 2], pool.fiat()),
                crypto: amount("0.000001", pool.crypto()),
                rate: kernel::Rate::parse(rates[at % 3]).unwrap(),
                spread_bps: [0, 50][at % 2],
                fee_bps: [5_000, 0][at % 2],
                notional: [1, i64::MAX][at % 2],
                destination: Some(destination),
                ..terms(Side::OnRamp, ONE)
            },
        ));
    }
    let opened = world.ports().quotes.quotes_open(&batch).await.unwrap();
    for (new, quote) in batch.iter().zip(&opened) {
        let read = world.seen(&member.who, quote.id).await;
        // If both lists name a network, only its text is stored.
        let word = |terms: &pools_core::quote::Terms| {
            let destination = terms.destination.clone().unwrap();
            (destination.address, destination.network.as_str())
        };
        assert_eq!(word(&read.terms), word(&new.terms));
        let destination = read.terms.destination.clone();
        let terms = pools_core::quote::Terms {
            destination,
            ..new.terms.clone()
        };
        assert_eq!(
            read,
            Quote {
                terms,
                ..quote.clone()
            }
        );
    }
}

/// Quotes that were never executed are deleted some time after expiry and are then unknown; a trade keeps its quote. Each step
/// visits a bounded number of quotes, and each quote once.
// rule: pools.quote.retention
pub async fn old_unexecuted_quotes_are_deleted(world: World<impl Fixture>) {
    const KEPT: Duration = Duration::from_secs(3600);
    let (member, other) = (world.funded("acme").await, world.funded("other").await);
    let (who, retention) = (&member.who, &world.ports().retention);
    let overdue = async || {
        retention
            .quotes_overdue(Mode::Test, KEPT, 10)
            .await
            .unwrap()
            .rows
    };
    let forget = async |limit| {
        let forgotten = retention.quotes_forget(who, KEPT, limit).await.unwrap();
        (forgotten.deleted, forgotten.more)
    };
    let mut old = Vec::new();
    for _ in 0..5 {
        old.push(world.buy(&member, 1).await.id);
        world.clock().advance(MILLI);
    }
    assert!(
        world
            .transact_one(world.command(&member, old[1]))
            .await
            .is_ok()
    );
    assert!(world.reject(who, old[2]).await == Cas::Won);
    let expired = world.seen(who, old[0]).await.expires_at;
    world.clock().set(expired.plus(KEPT).minus(MILLI));
    assert_eq!(overdue().await, []);
    assert_eq!(forget(10).await, (0, false));
    world.clock().set(expired.plus(KEPT).plus(MILLI * 3));
    let young = world.buy(&member, 1).await.id;
    world.buy(&other, 1).await;
    assert_eq!(overdue().await, std::slice::from_ref(who));
    let live = retention.quotes_overdue(Mode::Live, KEPT, 10).await;
    assert_eq!(live.unwrap().rows, []);
    // Four of the five are overdue: one is executed, one rejected.
    assert_eq!(forget(2).await, (1, true));
    assert_eq!(forget(2).await, (2, true));
    assert_eq!(forget(2).await, (0, false));
    let mut there = Vec::new();
    for id in old.iter().chain([&young]) {
        let found = world.ports().store.quote_get(who, *id).await.unwrap();
        there.push(found.is_some());
    }
    assert_eq!(there, [false, true, false, false, true, true]);
    let gone = world.transact_one(world.command(&member, old[0])).await;
    assert_eq!(gone, Err(Refusal::QuoteUnknown));
    world.clock().advance(MILLI);
    assert_eq!(forget(2).await, (1, false));
    assert_eq!(overdue().await, []);
    world.assert_clean().await;
}
