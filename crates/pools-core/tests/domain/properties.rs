//! Properties that hold after every history of quotes, batches, polls, credits and changed terms.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::{Amount, Asset};
use partner_core::Access;
use partner_core::PartnerId;
use pools_core::access::may_transact_in;
use pools_core::batch::{BatchState, TransactCommand, TransactOutcome, decide_batch};
use pools_core::ledger::{AccountKind, Entry, TransferRole};
use pools_core::ports::Hold;
use pools_core::profile::{PoolsAccess, PoolsProfile};
use pools_core::quote::{QuoteOutcome, Side};
use pools_core::trade::{EngineReport, Trade, TradeId, TradeState};
use pools_core::velocity::cutoff;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::fixtures::DAY;
use crate::world::{Ask, KEYS, POOLS, Rows, Try, World};

#[derive(Debug, Clone)]
enum Act {
    Pass(u64),
    Give(Ask),
    Batch(Vec<Try>),
    Poll(usize, EngineReport),
    Credit(usize, &'static str, i64),
    Reject(usize),
    Gate(usize),
    OffRamp(usize),
    Suspend(usize, bool),
    Revoke(usize, bool),
}

fn attempt() -> impl Strategy<Value = Try> {
    let hold = prop_oneof![
        6 => Just(Some(Hold::Held)),
        1 => Just(Some(Hold::Refused)),
        1 => Just(Some(Hold::Unsent)),
        1 => Just(None),
    ];
    let stray = |all: usize| prop_oneof![9 => Just(None), 1 => (0..all).prop_map(Some)];
    (
        stray(KEYS.len()),
        0..5_usize,
        stray(POOLS.len()),
        0..12_u8,
        hold,
    )
        .prop_map(|(key, quote, pool, name, hold)| Try {
            key,
            quote,
            pool,
            name,
            hold,
        })
}

fn report() -> impl Strategy<Value = EngineReport> {
    prop_oneof![
        Just(EngineReport::InProgress),
        "[a-z]{1,3}".prop_map(|fill| EngineReport::Delivered(fill.into())),
        Just(EngineReport::CannotComplete),
        Just(EngineReport::Released),
        Just(EngineReport::Reversed(None)),
        "[a-z]{1,3}".prop_map(|fill| EngineReport::Reversed(Some(fill))),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let side = prop_oneof![Just(Side::OnRamp), Just(Side::OffRamp)];
    (0..KEYS.len(), 0..POOLS.len(), side, 100..30_000_i64).prop_map(
        |(key, pool, side, hundredths)| Ask {
            key,
            pool,
            side,
            hundredths,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    let pass = prop_oneof![
        4 => 0..3_000_u64,
        1 => 14_990..15_010_u64,
        1 => 3_600_000..90_000_000_u64,
    ];
    let asset = prop_oneof![2 => Just("EUR"), 1 => Just("USDT"), 1 => Just("USDC")];
    let key = 0..KEYS.len();
    prop_oneof![
        4 => pass.prop_map(Act::Pass),
        8 => ask().prop_map(Act::Give),
        8 => prop::collection::vec(attempt(), 1..8).prop_map(Act::Batch),
        6 => (0..64_usize, report()).prop_map(|(which, report)| Act::Poll(which, report)),
        4 => (key.clone(), asset, 1..300_000_i64).prop_map(|(key, asset, much)| Act::Credit(key, asset, much)),
        1 => (0..3_usize).prop_map(Act::Reject),
        1 => key.clone().prop_map(Act::Gate),
        1 => key.clone().prop_map(Act::OffRamp),
        1 => (key.clone(), prop::bool::weighted(0.2)).prop_map(|(key, on)| Act::Suspend(key, on)),
        1 => (key, prop::bool::weighted(0.2)).prop_map(|(key, on)| Act::Revoke(key, on)),
    ]
}

/// Performs one act. A batch is also run command by command, with the same result.
fn perform(world: &mut World, act: Act) -> Result<(), TestCaseError> {
    match act {
        Act::Pass(millis) => world.now = world.now.plus(Duration::from_millis(millis)),
        Act::Give(ask) => world.give(&ask),
        Act::Batch(tries) => {
            let batch: Vec<TransactCommand> = tries
                .iter()
                .filter_map(|wanted| world.command(wanted))
                .collect();
            let mut alone = world.clone();
            let outcomes = world.transact(&batch);
            for (command, outcome) in batch.iter().zip(outcomes) {
                prop_assert_eq!(one_by_one(&mut alone, command)?, outcome);
            }
            prop_assert_eq!(&alone.rows, &world.rows);
        }
        Act::Poll(which, report) => {
            world.poll(which, report.clone());
            prop_assert!(
                !world.poll(which, report),
                "a report that has been applied moves nothing"
            );
        }
        Act::Credit(key, asset, much) => world.credit(key, Asset::parse(asset).unwrap(), much),
        Act::Reject(at) => world.reject(at),
        Act::Gate(key) => change(world, key, |access| access.profile.balance_gate ^= true),
        Act::OffRamp(key) => change(world, key, |access| {
            for terms in access.profile.terms.values_mut() {
                terms.off_ramp ^= true;
            }
        }),
        Act::Suspend(key, on) => change(world, key, |access| {
            access.profile.access = if on {
                PoolsAccess::Suspended
            } else {
                PoolsAccess::Active
            };
        }),
        Act::Revoke(key, on) => {
            let revoked_at = on.then_some(world.now);
            let key = world.keys[key];
            world.access.get_mut(&key).unwrap().key.revoked_at = revoked_at;
        }
    }
    Ok(())
}

/// Changes the terms of a key's partner, behind all of its keys.
fn change(world: &mut World, key: usize, change: impl Fn(&mut Access<PoolsProfile>)) {
    let partner = world.partner(key);
    let keys = world.access.values_mut();
    keys.filter(|access| access.partner.id == partner)
        .for_each(change);
}

fn copied(state: &BatchState) -> Rows {
    Rows {
        quotes: state.quotes.clone(),
        trades: state.trades.clone(),
        accounts: state.accounts.clone(),
        velocity: state.velocity.clone(),
        answered: state.answered.clone(),
        ..Rows::default()
    }
}

type Decided = Result<TransactOutcome, pools_core::batch::Refusal>;

/// Runs one command in its own transaction. A command that opens no trade changes nothing.
fn one_by_one(world: &mut World, command: &TransactCommand) -> Result<Decided, TestCaseError> {
    let mut state = world.state();
    let before = copied(&state);
    let outcome = decide_batch(&mut state, std::slice::from_ref(command), world.now).remove(0);
    match &outcome {
        Ok(TransactOutcome::Opened(trade)) => {
            let access = &world.access[&command.key];
            prop_assert_eq!(may_transact_in(access, &command.pool, world.now), Ok(()));
            prop_assert_eq!(command.hold, Some(Hold::Held));
            let quote = &before.quotes[&(access.partner.id.clone(), command.quote)];
            prop_assert!(quote.outcome == QuoteOutcome::Open && world.now < quote.expires_at);
            prop_assert_eq!(&trade.terms, &quote.terms);
            prop_assert_eq!(state.opened.len(), 1);
        }
        Ok(TransactOutcome::Existing(_)) | Err(_) => {
            prop_assert!(state.opened.is_empty());
            prop_assert_eq!(copied(&state), before);
        }
    }
    world.write(&state);
    Ok(outcome)
}

type Balances = BTreeMap<(PartnerId, Asset, AccountKind), i128>;

/// Replays every entry from the beginning.
fn replay(world: &World) -> Result<Balances, TestCaseError> {
    let mut balances = Balances::new();
    let mut sequences: BTreeMap<(&PartnerId, Asset), i64> = BTreeMap::new();
    for (partner, Entry { transfer, mark, .. }) in &world.rows.entries {
        let asset = transfer.amount.asset();
        let units = i128::from(transfer.amount.units());
        prop_assert!(units > 0, "nothing moves by zero");
        let at = |kind| (partner.clone(), asset, kind);
        *balances.entry(at(transfer.debit)).or_default() -= units;
        *balances.entry(at(transfer.credit)).or_default() += units;
        let own = balances
            .get(&at(AccountKind::Partner))
            .copied()
            .unwrap_or_default();
        prop_assert!(own >= 0, "a partner's account never goes below zero");
        let legs = [transfer.debit, transfer.credit];
        prop_assert_eq!(mark.is_some(), legs.contains(&AccountKind::Partner));
        if let Some(mark) = mark {
            let sequence = sequences.entry((partner, asset)).or_default();
            *sequence += 1;
            prop_assert_eq!(
                (mark.sequence, i128::from(mark.balance_after.units())),
                (*sequence, own)
            );
        }
    }
    for ((partner, asset), account) in &world.rows.accounts {
        let own = balances.get(&(partner.clone(), *asset, AccountKind::Partner));
        prop_assert_eq!(
            i128::from(account.available.units()),
            own.copied().unwrap_or_default()
        );
        prop_assert_eq!(Some(&account.sequence), sequences.get(&(partner, *asset)));
    }
    Ok(balances)
}

fn money_is_conserved(world: &World) -> Result<(), TestCaseError> {
    let balances = replay(world)?;
    let mut sums: BTreeMap<Asset, i128> = BTreeMap::new();
    let mut reserved: BTreeMap<(PartnerId, Asset), i128> = BTreeMap::new();
    for ((partner, asset, kind), units) in balances {
        *sums.entry(asset).or_default() += units;
        if kind == AccountKind::Reserved {
            reserved.insert((partner, asset), units);
        }
    }
    prop_assert!(
        sums.values().all(|sum| *sum == 0),
        "all accounts sum to zero: {:?}",
        sums
    );
    for ((partner, _), trade) in &world.rows.trades {
        if let (TradeState::Reserved, Some(amount)) = (&trade.state, trade.reserved) {
            *reserved
                .entry((partner.clone(), amount.asset()))
                .or_default() -= i128::from(amount.units());
        }
    }
    prop_assert!(
        reserved.values().all(|rest| *rest == 0),
        "the open trades are what is reserved"
    );
    Ok(())
}

/// The amount of a return: a purchase's reserve, or the fiat of a sale.
fn returned(trade: &Trade) -> Option<Amount> {
    match trade.terms.side {
        Side::OnRamp => trade.reserved,
        Side::OffRamp => Some(trade.terms.fiat),
    }
}

/// The transfer roles that a trade must have in the ledger, by its state.
fn parts_due(trade: &Trade) -> BTreeSet<TransferRole> {
    let mut due = BTreeSet::new();
    if trade.reserved.is_some() {
        due.insert(TransferRole::Reserve);
        if trade.state != TradeState::Reserved {
            due.insert(TransferRole::Close);
        }
    }
    if matches!(trade.state, TradeState::Returned { .. }) && returned(trade).is_some() {
        due.insert(TransferRole::Return);
    }
    due
}

fn every_reserve_has_one_fate(world: &World) -> Result<(), TestCaseError> {
    let mut parts: BTreeMap<TradeId, BTreeMap<TransferRole, &Entry>> = BTreeMap::new();
    for (_, entry) in &world.rows.entries {
        if let Some((trade, part)) = entry.trade {
            let twice = parts.entry(trade).or_default().insert(part, entry);
            prop_assert!(twice.is_none(), "no part is played twice");
        }
    }
    for trade in world.rows.trades.values() {
        let played = parts.remove(&trade.id).unwrap_or_default();
        prop_assert_eq!(
            &played.keys().copied().collect::<BTreeSet<_>>(),
            &parts_due(trade)
        );
        for (part, entry) in played {
            let amount = if part == TransferRole::Return {
                returned(trade)
            } else {
                trade.reserved
            };
            prop_assert_eq!(Some(entry.transfer.amount), amount);
            prop_assert_eq!(&entry.reference, &trade.quote.to_string());
        }
    }
    prop_assert!(parts.is_empty(), "no entry without its trade");
    Ok(())
}

fn quotes_and_trades_agree(world: &World) -> Result<(), TestCaseError> {
    for (at, quote) in &world.rows.quotes {
        let trade = world.rows.trades.get(at);
        match quote.outcome {
            QuoteOutcome::Consumed(when) => {
                prop_assert_eq!(trade.map(|trade| trade.created_at), Some(when))
            }
            QuoteOutcome::Open | QuoteOutcome::Rejected(_) => prop_assert!(trade.is_none()),
        }
        if let QuoteOutcome::Consumed(when) | QuoteOutcome::Rejected(when) = quote.outcome {
            prop_assert!(when < quote.expires_at);
        }
    }
    Ok(())
}

fn velocity_is_the_plain_sum(world: &World) -> Result<(), TestCaseError> {
    let state = world.state();
    for access in world.access.values() {
        let partner = &access.partner.id;
        let cutoff = cutoff(world.now, DAY);
        let inside = world
            .counting(partner)
            .filter(|trade| trade.created_at > cutoff);
        let plain: i128 = inside.map(|trade| i128::from(trade.terms.notional)).sum();
        let total = state
            .velocity
            .get(partner)
            .map_or(0, |velocity| velocity.total);
        prop_assert_eq!(total, plain);
        prop_assert!(
            access
                .profile
                .velocity_cap
                .is_none_or(|cap| plain <= i128::from(cap))
        );
    }
    Ok(())
}

/// Before its record expires, a key has opened no trade for a second request.
fn no_key_serves_two_requests(world: &World) -> Result<(), TestCaseError> {
    for (at, (scope, first)) in world.rows.all_records.iter().enumerate() {
        for (_, second) in world
            .rows
            .all_records
            .iter()
            .skip(at + 1)
            .filter(|(other, _)| other == scope)
        {
            prop_assert!(second.expires_at >= first.expires_at.plus(DAY));
        }
    }
    Ok(())
}

proptest! {
    // rule: money.zero-sum, money.never-negative, money.reserved-account, money.accounts, pools.transact.once, pools.transact.batch-equals-single, pools.transact.refusal-leaves-nothing, pools.velocity.window, pools.velocity.boundary, pools.velocity.given-back, pools.velocity.off, idempotency.reused, pools.ledger.chain, pools.refund.mirrors, pools.trades.equals-quote
    #[test]
    fn every_history_keeps_ledger_rules(acts in prop::collection::vec(act(), 1..120)) {
        let mut world = World::new();
        for act in acts {
            perform(&mut world, act)?;
            money_is_conserved(&world)?;
            every_reserve_has_one_fate(&world)?;
            quotes_and_trades_agree(&world)?;
            velocity_is_the_plain_sum(&world)?;
            no_key_serves_two_requests(&world)?;
        }
    }
}

/// Counts the outcomes of commands and the states of trades.
fn came_up(world: &World, act: &Act, seen: &mut BTreeMap<String, u32>) {
    let mut note = |what: String| *seen.entry(what).or_default() += 1;
    for trade in world.rows.trades.values() {
        note(format!("{:?} {:?}", trade.terms.side, trade.state.status()));
    }
    if let Act::Batch(tries) = act {
        let mut world = world.clone();
        let batch: Vec<TransactCommand> = tries
            .iter()
            .filter_map(|wanted| world.command(wanted))
            .collect();
        for outcome in world.transact(&batch) {
            note(match outcome {
                Ok(TransactOutcome::Opened(_)) => "opened".to_owned(),
                Ok(TransactOutcome::Existing(_)) => "existing".to_owned(),
                Err(refusal) => format!("{refusal:?}"),
            });
        }
    }
}

/// The property above needs histories that reach every outcome and state.
#[test]
fn generated_histories_reach_every_outcome_and_state() {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(act(), 1..120);
    let mut seen = BTreeMap::new();
    for _ in 0..60 {
        let mut world = World::new();
        for act in histories.new_tree(&mut runner).unwrap().current() {
            came_up(&world, &act, &mut seen);
            perform(&mut world, act).unwrap();
        }
    }
    let outcomes = "Denied(Access(KeyRevoked)), Denied(AccessSuspended), EngineUnavailable, InsufficientBalance, \
        KeyReused, OffRamp Failed, OffRamp Released, OffRamp Reserved, OffRamp Returned, OffRamp Settled, \
        OnRamp Failed, OnRamp Released, OnRamp Reserved, OnRamp Returned, OnRamp Settled, \
        QuoteClosed(Expired), QuoteClosed(Rejected), QuoteUnknown, ReservationFailed, SideNotEnabled, \
        VelocityCapExceeded, existing, opened";
    let names: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(names.join(", "), outcomes);
}
