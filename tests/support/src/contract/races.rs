//! Races: in any order, the limits hold to the last unit and one of several callers wins.

use kernel::{Cas, StoreResult};
use pools_core::batch::{Refusal, TransactCommand, TransactOutcome};
use pools_core::ports::{Deposit, TradeFilter};
use pools_core::quote::{QuoteId, Side};
use pools_core::trade::EngineReport::CannotComplete;
use pools_core::trade::Lease;

use crate::contract::fixture::Fixture;
use crate::contract::world::{Decided, Member, ONE, World, amount, eur, terms};

impl<F: Fixture> World<F> {
    /// Commands for N purchases of one euro, in batches of all sizes.
    async fn purchases(&self, member: &Member, count: usize) -> Vec<Vec<TransactCommand>> {
        let new: Vec<_> = (0..count)
            .map(|_| self.new_quote(&member.who, terms(Side::OnRamp, ONE)))
            .collect();
        let quotes = self.ports().quotes.quotes_open(&new).await.unwrap();
        let mut commands: Vec<TransactCommand> = quotes
            .iter()
            .map(|quote| self.command(member, quote.id))
            .collect();
        let mut batches = Vec::new();
        for size in [1, 2, 64, 3, 5, 40, 1, 30].into_iter().cycle() {
            let rest = commands.split_off(commands.len().min(size));
            batches.push(std::mem::replace(&mut commands, rest));
            if commands.is_empty() {
                break;
            }
        }
        batches
    }
}

fn counted(decided: &[Decided], refusal: Refusal) -> (usize, usize) {
    let opened = |one: &&Decided| matches!(one, Ok(TransactOutcome::Opened(_)));
    let refused = |one: &&Decided| **one == Err(refusal);
    (
        decided.iter().filter(opened).count(),
        decided.iter().filter(refused).count(),
    )
}

// rule: money.never-negative, pools.transact.balance
pub async fn concurrent_batches_never_overspend(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    world.fund(&member.who, amount("100", eur()), "start").await;
    let batches = world.purchases(&member, 200).await;
    let decided = world.race(batches).await;
    let counted = counted(&decided, Refusal::InsufficientBalance);
    assert_eq!(counted, (100, 100));
    assert_eq!(world.available(&member.who, eur()).await, 0);
    assert_eq!(world.entries(&member.who, eur()).await.len(), 101);
    world.assert_clean().await;
}

// rule: pools.velocity.exact
pub async fn concurrent_batches_never_exceed_cap(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    world.cap(&member, 70 * ONE).await;
    let batches = world.purchases(&member, 150).await;
    let decided = world.race(batches).await;
    let counted = counted(&decided, Refusal::VelocityCapExceeded);
    assert_eq!(counted, (70, 80));
    world.assert_clean().await;
}

// rule: pools.reject.once
pub async fn concurrent_rejections_have_one_winner(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    for _ in 0..10 {
        let quote = world.buy(&member, 1).await;
        let reject = || world.reject(&member.who, quote.id);
        let (a, b, c, d) = tokio::join!(reject(), reject(), reject(), reject());
        let won = [a, b, c, d].iter().filter(|one| **one == Cas::Won).count();
        assert_eq!(won, 1);
    }
    world.assert_clean().await;
}

// rule: pools.trade.converge
pub async fn concurrent_claims_of_attempt_have_one_winner(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let claim = async |token: u64| {
        let mut tx = world.ports().store.begin("claim").await.unwrap();
        let lease = Lease {
            token,
            until: world.now().plus(crate::contract::WINDOW),
        };
        let outcome = tx.trade_claim(&member.who, trade.id, 1, lease).await;
        tx.commit().await.unwrap();
        outcome.unwrap()
    };
    let (a, b, c) = tokio::join!(claim(1), claim(2), claim(3));
    let outcomes = [a, b, c];
    let won: Vec<u64> = (1..)
        .zip(outcomes)
        .filter(|(_, outcome)| *outcome == Cas::Won)
        .map(|(token, _)| token)
        .collect();
    assert_eq!(won.len(), 1);
    let lease = world.stored(&member, trade.id).await.lease.unwrap();
    assert_eq!(lease.token, won[0]);
}

pub async fn concurrent_credits_all_count(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let fund = |name: &'static str| world.fund(&member.who, amount("1", eur()), name);
    tokio::join!(fund("a"), fund("b"), fund("c"), fund("d"), fund("e"));
    assert_eq!(world.available(&member.who, eur()).await, 5 * ONE);
    world.assert_clean().await;
}

// rule: cli.credit.once
pub async fn concurrent_deposits_under_one_reference_count_once(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let deposit = async || -> StoreResult<()> {
        let mut tx = world.ports().store.begin("deposit").await?;
        let before = tx.account_lock(&member.who, eur()).await?;
        let (one, now) = (amount("1", eur()), world.now());
        let (_, entry) = world.credit(&member.who, &before, one, "wire", now);
        tx.entry_post(&member.who, &before, &entry).await?;
        let deposit = Deposit {
            reference: "wire".to_owned(),
            amount: one,
            network: None,
            entry: entry.id,
            created_at: now,
        };
        tx.deposit_insert(&member.who, &deposit).await?;
        tx.commitment_put(&member.who, eur(), ONE).await?;
        tx.commit().await
    };
    let (a, b, c) = tokio::join!(deposit(), deposit(), deposit());
    let outcomes = [a, b, c];
    let booked = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(booked, 1, "{outcomes:?}");
    assert_eq!(world.available(&member.who, eur()).await, ONE);
    world.assert_clean().await;
}

/// Concurrent reads return committed states: an account with its entries, a consumed quote with its trade.
// rule: pools.ledger.chain
pub async fn concurrent_readers_see_committed_states(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quotes: Vec<QuoteId> = {
        let mut quotes = Vec::new();
        for _ in 0..40 {
            quotes.push(world.buy(&member, 1).await.id);
        }
        quotes
    };
    let write = async {
        for quote in &quotes {
            let opened = world.transact_one(world.command(&member, *quote)).await;
            let Ok(TransactOutcome::Opened(trade)) = opened else {
                panic!("{opened:?}");
            };
            let failed = CannotComplete;
            world.report(&member.who, trade.id, failed).await;
        }
    };
    let read = async {
        for quote in quotes.iter().cycle().take(200) {
            let port = &world.ports().store;
            let all = pools_core::ports::LedgerFilter::default();
            let page = port.ledger_page(&member.who, eur(), &all, 1).await;
            let page = page.unwrap().unwrap();
            let mark = page.entries[0].mark.unwrap();
            assert_eq!(mark.sequence, page.account.sequence);
            assert_eq!(mark.balance_after, page.account.available);
            let look = world.command(&member, *quote);
            let look = port
                .transact_snapshot(&look.scope, &look.pool, *quote)
                .await
                .unwrap();
            let consumed =
                look.value.quote.unwrap().outcome != pools_core::quote::QuoteOutcome::Open;
            assert_eq!(look.value.trade.is_some(), consumed);
        }
    };
    tokio::join!(write, read);
    let all = TradeFilter::default();
    let port = &world.ports().store;
    let trades = port.trades_page(&member.who, &all, 100).await.unwrap();
    assert_eq!(trades.len(), 40);
    world.assert_clean().await;
}
