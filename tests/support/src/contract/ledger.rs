//! The ledger: entries chain, deposits count once, and dropped transactions write nothing.

use kernel::{Amount, Mode, StoreError, StoreResult, Timestamp};
use pools_core::ledger::{
    Account, AccountKind, Entry, EntryId, Posting, Reason, Transfer, TransferRole,
};
use pools_core::ports::{Deposit, LedgerFilter, LedgerPage};
use pools_core::profile::Network;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{CannotComplete, Released, Reversed};
use pools_core::trade::Lease;
use pools_core::velocity::Velocity;

use crate::contract::fixture::Fixture;
use crate::contract::world::{
    MILLI, Member, ONE, World, amount, assert_guarded, delivered, eur, profile, tenant, usdt,
};

impl<F: Fixture> World<F> {
    async fn ledger(&self, member: &Member, filter: &LedgerFilter, limit: u32) -> LedgerPage {
        let page = self
            .ports()
            .store
            .ledger_page(&member.who, eur(), filter, limit)
            .await;
        page.unwrap().expect("an account")
    }

    /// Posts one entry in its own transaction.
    async fn post(&self, member: &Member, before: &Account, entry: &Entry) -> StoreResult<()> {
        let mut tx = self.ports().store.begin("post").await?;
        tx.entry_post(&member.who, before, entry).await?;
        tx.commit().await
    }

    fn entry(&self, transfer: Transfer, mark: Option<Posting>) -> Entry {
        Entry {
            id: EntryId::new(Mode::Test, self.now(), &self.entropy),
            transfer,
            mark,
            reference: "ref".to_owned(),
            trade: None,
            created_at: self.now(),
        }
    }
}

fn sequences(page: &LedgerPage) -> Vec<i64> {
    page.entries
        .iter()
        .map(|entry| entry.mark.unwrap().sequence)
        .collect()
}

fn transfer(debit: AccountKind, credit: AccountKind) -> Transfer {
    Transfer {
        debit,
        credit,
        amount: amount("1", eur()),
        reason: Reason::Adjustment,
    }
}

// rule: pools.ledger.chain, pools.ledger.order
pub async fn entries_chain_from_first(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let reads = world.ports().store.clone();
    assert!(world.account(&member.who, eur()).await.is_none());
    let all = LedgerFilter::default();
    let page = reads.ledger_page(&member.who, eur(), &all, 10).await;
    assert!(page.unwrap().is_none());
    let mut account = Account::empty(eur());
    for round in 1..=3 {
        account = world
            .fund(&member.who, amount("10.5", eur()), &format!("ref-{round}"))
            .await;
        assert_eq!(account.sequence, round);
        assert_eq!(world.account(&member.who, eur()).await, Some(account));
    }
    let page = world.ledger(&member, &LedgerFilter::default(), 10).await;
    assert_eq!((page.account, sequences(&page)), (account, vec![3, 2, 1]));
    let balances: Vec<String> = page
        .entries
        .iter()
        .map(|entry| entry.mark.unwrap().balance_after.to_string())
        .collect();
    assert_eq!(balances, ["31.50", "21.00", "10.50"]);
    let newest = &page.entries[0];
    assert_eq!(
        (newest.reference.as_str(), newest.trade, newest.created_at),
        ("ref-3", None, world.now())
    );
    assert_eq!(newest.transfer.amount, amount("10.5", eur()));
    world.assert_clean().await;
}

// rule: money.accounts, tenancy.nothing-crosses, cli.credit.scope
pub async fn accounts_are_separate_by_partner_mode_and_currency(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let other = world.member("other").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    for (who, asset) in [
        (&other.who, eur()),
        (&live.who, eur()),
        (&member.who, usdt()),
    ] {
        assert!(world.account(who, asset).await.is_none());
        let mut tx = world.ports().store.begin("lock").await.unwrap();
        assert_eq!(
            tx.account_lock(who, asset).await.unwrap(),
            Account::empty(asset)
        );
        assert!(tx.deposit_find(who, "start").await.unwrap().is_some() == (who == &member.who));
    }
}

/// The account's numbers are contiguous; entries of the settlement account are not visible to the partner.
// rule: pools.ledger.order
pub async fn pages_follow_account_numbers(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    for _ in 0..6 {
        let trade = world.trade(&member, Side::OnRamp, ONE).await;
        world.report(&member.who, trade.id, delivered()).await;
    }
    let all = world.ledger(&member, &LedgerFilter::default(), 200).await;
    assert_eq!(sequences(&all), [7, 6, 5, 4, 3, 2, 1]);
    let mut walked = Vec::new();
    let mut filter = LedgerFilter::default();
    loop {
        let page = world.ledger(&member, &filter, 3).await;
        let Some(last) = page.entries.last() else {
            break;
        };
        filter.before_sequence = Some(last.mark.unwrap().sequence);
        walked.extend(page.entries);
    }
    assert_eq!(walked, all.entries);
    let none = LedgerFilter {
        before_sequence: Some(1),
        ..LedgerFilter::default()
    };
    assert!(world.ledger(&member, &none, 3).await.entries.is_empty());
}

/// Both bounds are inclusive, even if several entries share an instant.
// rule: pools.ledger.filters
pub async fn ledger_bounds_are_inclusive(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    for round in 0..12 {
        world
            .fund(&member.who, amount("1", eur()), &format!("ref-{round}"))
            .await;
        if round % 3 == 2 {
            world.clock().advance(MILLI);
        }
    }
    let all = world
        .ledger(&member, &LedgerFilter::default(), 200)
        .await
        .entries;
    let mut bounds: Vec<Option<Timestamp>> =
        all.iter().map(|entry| Some(entry.created_at)).collect();
    bounds.dedup();
    bounds.extend([
        None,
        Some(world.now().plus(MILLI)),
        Some(all[11].created_at.minus(MILLI)),
    ]);
    for after in &bounds {
        for before in &bounds {
            for cursor in [None, Some(1), Some(5), Some(100)] {
                let filter = LedgerFilter {
                    before_sequence: cursor,
                    created_after: *after,
                    created_before: *before,
                };
                let expected: Vec<Entry> = all
                    .iter()
                    .filter(|entry| after.is_none_or(|after| entry.created_at >= after))
                    .filter(|entry| before.is_none_or(|before| entry.created_at <= before))
                    .filter(|entry| {
                        cursor.is_none_or(|cursor| entry.mark.unwrap().sequence < cursor)
                    })
                    .cloned()
                    .collect();
                assert_eq!(
                    world.ledger(&member, &filter, 200).await.entries,
                    expected,
                    "{filter:?}"
                );
            }
        }
    }
}

pub async fn changed_account_is_not_overwritten(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let empty = Account::empty(eur());
    let after = world.fund(&member.who, amount("10", eur()), "one").await;
    let (_, on_empty) = world.credit(&member.who, &empty, amount("5", eur()), "x", world.now());
    let lost = world.post(&member, &empty, &on_empty).await;
    assert!(matches!(lost, Err(StoreError::Retry)), "{lost:?}");
    world.fund(&member.who, amount("1", eur()), "two").await;
    let (_, stale) = world.credit(&member.who, &after, amount("5", eur()), "y", world.now());
    let lost = world.post(&member, &after, &stale).await;
    assert!(matches!(lost, Err(StoreError::Retry)), "{lost:?}");
    assert_eq!(world.available(&member.who, eur()).await, 11 * ONE);
    world.assert_clean().await;
}

/// The schema refuses entries that the rules never make.
pub async fn impossible_entries_are_refused(world: World<impl Fixture>) {
    use AccountKind::{Operator, Outside, Partner, Reserved};
    let member = world.funded("acme").await;
    let other = world.funded("other").await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let before = world.account(&member.who, eur()).await.unwrap();
    let next = Posting {
        sequence: before.sequence + 1,
        balance_after: before.available,
    };
    let with = |debit, credit, mark| world.entry(transfer(debit, credit), mark);
    let of_trade = |entry: Entry, part| Entry {
        trade: Some((trade.id, part)),
        ..entry
    };
    let nothing = Transfer {
        amount: Amount::zero(eur()),
        ..transfer(Outside, Operator)
    };
    let entries = [
        with(Operator, Operator, None),
        with(Outside, Partner, None),
        with(Outside, Operator, Some(next)),
        world.entry(nothing, None),
        with(
            Outside,
            Partner,
            Some(Posting {
                sequence: before.sequence,
                ..next
            }),
        ),
        of_trade(with(Partner, Reserved, Some(next)), TransferRole::Reserve),
        of_trade(with(Outside, Reserved, None), TransferRole::Close),
    ];
    for entry in &entries {
        let refused = world.post(&member, &before, entry).await;
        assert!(
            matches!(refused, Err(StoreError::Guard(_))),
            "{entry:?}: {refused:?}"
        );
    }
    let foreign = of_trade(with(Reserved, Operator, None), TransferRole::Close);
    assert_guarded(world.post(&other, &Account::empty(eur()), &foreign).await);
    let twin = Entry {
        id: entries[0].id,
        ..with(Outside, Operator, None)
    };
    world.post(&member, &before, &twin).await.unwrap();
    assert_guarded(world.post(&member, &before, &twin).await);
}

// rule: cli.credit.once, cli.credit.scope
pub async fn deposit_is_credited_once_per_reference(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let other = world.member("other").await;
    world.fund(&member.who, amount("10", eur()), "ref").await;
    let mut tx = world.ports().store.begin("again").await.unwrap();
    let found = tx.deposit_find(&member.who, "ref").await.unwrap().unwrap();
    assert_eq!(
        (found.amount, found.network, found.created_at),
        (amount("10", eur()), None, world.now())
    );
    assert!(tx.deposit_find(&member.who, "REF").await.unwrap().is_none());
    assert!(tx.deposit_find(&other.who, "ref").await.unwrap().is_none());
    assert_guarded(tx.deposit_insert(&member.who, &found).await);
    drop(tx);
    world.fund(&other.who, amount("3", eur()), "ref").await;
    world.assert_clean().await;
}

pub async fn crypto_receipt_reads_back_network(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let mut tx = world.ports().store.begin("receipt").await.unwrap();
    let before = tx.account_lock(&member.who, usdt()).await.unwrap();
    let (_, entry) = world.credit(
        &member.who,
        &before,
        amount("0.000001", usdt()),
        "0xabc",
        world.now(),
    );
    tx.entry_post(&member.who, &before, &entry).await.unwrap();
    let deposit = Deposit {
        reference: "0xabc".to_owned(),
        amount: entry.transfer.amount,
        network: Some(Network::Tron),
        entry: entry.id,
        created_at: world.now(),
    };
    tx.deposit_insert(&member.who, &deposit).await.unwrap();
    assert_eq!(
        tx.deposit_find(&member.who, "0xabc").await.unwrap(),
        Some(deposit)
    );
    tx.commit().await.unwrap();
}

/// A transaction that writes to every entity and is dropped.
// rule: pools.transact.atomic, pools.event.same-transaction
pub async fn dropped_transaction_writes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quote = world.buy(&member, 1).await;
    let trade = world.trade(&member, Side::OnRamp, ONE).await;
    let before = world.audit().await;
    let velocity = world.total(&member.who).await;

    let mut tx = world.ports().store.begin("dropped").await.unwrap();
    tx.quote_reject(&member.who, quote.id, world.now())
        .await
        .unwrap()
        .won()
        .unwrap();
    let lease = Lease {
        token: 5,
        until: world.now(),
    };
    tx.trade_claim(&member.who, trade.id, 1, lease)
        .await
        .unwrap()
        .won()
        .unwrap();
    let step = trade.advance(CannotComplete, world.now()).unwrap().unwrap();
    tx.trade_apply(&member.who, &trade, std::slice::from_ref(&step), 5)
        .await
        .unwrap()
        .won()
        .unwrap();
    world
        .follow(tx.as_mut(), &member.who, &trade, &step, world.now())
        .await
        .unwrap();
    tx.velocity_put(
        &member.who,
        &Velocity {
            total: 77,
            floor: world.now(),
        },
    )
    .await
    .unwrap();
    assert_eq!(
        tx.velocity_lock(&member.who).await.unwrap().unwrap().total,
        77
    );
    drop(tx);

    assert_eq!(world.stored(&member, trade.id).await, trade);
    assert_eq!(world.seen(&member.who, quote.id).await, quote);
    assert_eq!(world.total(&member.who).await, velocity);
    assert_eq!(world.audit().await.figures, before.figures);
    let events = world.events_of(&member.who, &trade.id.to_string()).await;
    assert!(events.is_empty());
    world.assert_clean().await;
}

pub async fn entry_insert_requires_partner(world: World<impl Fixture>) {
    let nobody = tenant("nobody", Mode::Test);
    let mut tx = world.ports().store.begin("nobody").await.unwrap();
    let before = tx.account_lock(&nobody, eur()).await.unwrap();
    let (_, entry) = world.credit(&nobody, &before, amount("1", eur()), "x", world.now());
    assert_guarded(tx.entry_post(&nobody, &before, &entry).await);
}

// rule: pools.ledger.buy-refund, pools.ledger.sell-refund, pools.ledger.sell-returned
// rule: pools.refund.mirrors, pools.trade.settle, pools.trade.fail, pools.trade.release
// rule: pools.trade.return
pub async fn every_trade_end_moves_value_once(world: World<impl Fixture>) {
    let ends = [
        vec![delivered()],
        vec![CannotComplete],
        vec![Released],
        vec![delivered(), Reversed(None)],
    ];
    let mut ungated = profile();
    ungated.balance_gate = false;
    for (at, end) in ends.iter().enumerate() {
        for side in [Side::OnRamp, Side::OffRamp] {
            let member = world.rich(&format!("{}-{at}", side.as_str())).await;
            let trade = world.trade(&member, side, 5 * ONE).await;
            // The setting of the balance gate at that time does not matter.
            world.reprofile(&member, &ungated).await;
            // Every report arrives twice.
            for report in end.iter().chain(end) {
                world.report(&member.who, trade.id, report.clone()).await;
            }
            let (euros, tethers) = match (at, side) {
                (0, Side::OnRamp) => (-5, 0),
                (0, Side::OffRamp) => (0, -5),
                (3, Side::OffRamp) => (5, -5),
                _ => (0, 0),
            };
            let start = 1_000_000;
            let available = world.available(&member.who, eur()).await;
            assert_eq!(available, (start + euros) * ONE, "{side:?} {end:?}");
            let available = world.available(&member.who, usdt()).await;
            assert_eq!(available, (start + tethers) * ONE, "{side:?} {end:?}");
            let (asset, reason, part) = match (at, side) {
                (0, _) => continue,
                (3, _) => (eur(), Reason::BuyRefund, TransferRole::Return),
                (_, Side::OnRamp) => (eur(), Reason::BuyRefund, TransferRole::Close),
                (_, Side::OffRamp) => (usdt(), Reason::SellRefund, TransferRole::Close),
            };
            let refund = world.entries(&member.who, asset).await.remove(0);
            assert_eq!(refund.transfer.reason, reason);
            assert_eq!(refund.trade, Some((trade.id, part)));
            assert_eq!(refund.reference, trade.quote.to_string());
        }
    }
    world.assert_clean().await;
}

pub async fn largest_balance_reads_back_exactly(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let most = amount("10000000000", eur());
    for round in 0..9 {
        world.fund(&member.who, most, &format!("f{round}")).await;
    }
    let limit = pools_core::ledger::BALANCE_LIMIT;
    assert_eq!(world.available(&member.who, eur()).await, limit);
    world.assert_clean().await;
}

pub async fn deposit_requires_entry(world: World<impl Fixture>) {
    let member = world.member("acme").await;
    let deposit = Deposit {
        reference: "wire".to_owned(),
        amount: amount("1", eur()),
        network: None,
        entry: EntryId::new(Mode::Test, world.now(), &world.entropy),
        created_at: world.now(),
    };
    let mut tx = world.ports().store.begin("deposit").await.unwrap();
    assert_guarded(tx.deposit_insert(&member.who, &deposit).await);
}

/// A refused statement leaves none of its own writes.
// rule: pools.transact.atomic
pub async fn refused_entry_writes_nothing(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let before = world.standing(&member.who).await;
    let mut tx = world.ports().store.begin("refused").await.unwrap();
    let account = tx.account_lock(&member.who, eur()).await.unwrap();
    let (one, now) = (amount("1", eur()), world.now());
    let (_, mut entry) = world.credit(&member.who, &account, one, "x", now);
    entry.id = world.entries(&member.who, eur()).await[0].id;
    assert_guarded(tx.entry_post(&member.who, &account, &entry).await);
    drop(tx);
    assert_eq!(world.standing(&member.who).await, before);
    world.assert_clean().await;
}
