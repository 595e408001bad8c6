//! What a record keeps of its rail: who holds it, what the rail has said, and what it says after the end.

use std::slice;
use std::time::Duration;

use gate_core::rail::{Finding, OpenItem, RailId, RailRecord, Received};
use kernel::{Amount, Asset, Cas, Mode, Timestamp, UpstreamName};
use partner_core::Tenant;
use partner_core::export::Window;

use crate::contract::exports::all;
use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, RAIL};
use crate::contract::world::{MILLI, World};

// rule: rail.watch, rail.findings
pub async fn ended_record_is_watched_daily_for_thirty_days(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (_, id) = rails.redeemed("one", "100.00").await;
    rails.settling.advance(&who, id).await.unwrap();
    let ended = world.record(&who, id).await.unwrap();
    let watched = || world.rails_watched(Mode::Test);
    assert_eq!(ended.watch_at, Some(world.now().plus(DAY)));
    world.clock().advance(DAY - MILLI);
    assert!(watched().await.is_empty());
    rails.watching.watch(&who, id).await.unwrap();
    assert_eq!(world.record(&who, id).await.unwrap(), ended);
    world.clock().advance(MILLI);
    assert_eq!(watched().await, [(who.clone(), id)]);
    assert!(world.rails_watched(Mode::Live).await.is_empty());
    rails.watching.watch(&who, id).await.unwrap();
    let found = OpenItem {
        finding: Finding::Returned,
        at: world.now(),
    };
    let noted = RailRecord {
        open_item: Some(found),
        watch_at: Some(world.now().plus(DAY)),
        ..ended.clone()
    };
    assert_eq!(world.record(&who, id).await.unwrap(), noted);
    let mut times = 1;
    while let [(who, id)] = &watched_after(&world, DAY).await[..] {
        rails.watching.watch(who, *id).await.unwrap();
        times += 1;
    }
    assert_eq!(times, 30);
    let last = RailRecord {
        watch_at: None,
        ..noted
    };
    assert_eq!(world.record(&who, id).await.unwrap(), last);
    // A notification asks once more.
    assert_eq!(world.woken(&who, id).await, Cas::Won);
    assert_eq!(watched().await, [(who.clone(), id)]);
    rails.watching.watch(&who, id).await.unwrap();
    assert_eq!(world.record(&who, id).await.unwrap(), last);
    world.assert_clean().await;
}

async fn watched_after<F: GateFixture>(world: &World<F>, span: Duration) -> Vec<(Tenant, RailId)> {
    world.clock().advance(span);
    world.rails_watched(Mode::Test).await
}

// rule: rail.received, rail.findings, rail.acknowledged-stays-begun, cli.verify.open-items
pub async fn what_a_rail_has_said_reads_back(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let who = rails.who().clone();
    let (_, id) = rails.redeemed("one", "100.00").await;
    let record = world.record(&who, id).await.unwrap();
    let (later, eur) = (world.now().plus(MILLI), Asset::fiat("EUR").unwrap());
    let store = world.fixture.gate().store.clone();
    let said = RailRecord {
        acknowledged_at: Some(later),
        received: Some(Received {
            amount: Amount::parse("20.00", eur).unwrap(),
            at: later,
        }),
        open_item: Some(OpenItem {
            finding: Finding::Underpaid,
            at: later,
        }),
        ..record.clone()
    };
    for after in [said, record.clone()] {
        let mut tx = world.gate_begin().await;
        let asked = tx.rail_ask(&who, &record.asking, &after).await.unwrap();
        assert_eq!(asked, Cas::Won);
        tx.commit().await.unwrap();
        assert_eq!(world.record(&who, id).await.unwrap(), after);
        let item = after.open_item.map(|item| (item.finding, 1));
        let counted = store.rail_open_items(Mode::Test).await.unwrap();
        assert_eq!(counted, Vec::from_iter(item));
        let line = after
            .open_item
            .map(|item| format!("test/acme payment {id}: underpaid since {}", item.at));
        let report = world.audit().await;
        assert_eq!(report.open_items, Vec::from_iter(line));
        assert!(report.clean(), "{:#?}", report.findings);
    }
    // A record that has not ended is not watched.
    let mut tx = world.gate_begin().await;
    let watched = RailRecord {
        watch_at: Some(later),
        ..record
    };
    assert_eq!(
        tx.rail_watch(&who, None, &watched).await.unwrap(),
        Cas::Lost
    );
    drop(tx);
    world.assert_clean().await;
}

// rule: cli.export.payments
pub async fn payments_export_has_each_payment_of_its_window_once(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let rival = world.open_rails("rival").await;
    let who = rails.who().clone();
    let mut made = Vec::new();
    for (name, amount) in [("one", "100.00"), ("two", "101.05"), ("three", "102.00")] {
        made.push(rails.redeemed(name, amount).await.1);
        world.clock().advance(Duration::from_secs(1));
    }
    rival.redeemed("other", "103.00").await;
    rails.settling.advance(&who, made[1]).await.unwrap();
    let exported = async |from: Timestamp, to: Timestamp, limit| {
        let window = Window::new(from, to).unwrap();
        let exports = &world.fixture.gate().exports;
        let pages = exports.payments_export(&who, window).await.unwrap();
        all(pages, limit).await
    };
    let mut stored = Vec::new();
    for id in &made {
        stored.push(world.record(&who, *id).await.unwrap());
    }
    let [first, second, third] = [0, 1, 2].map(|place| stored[place].created_at);
    for limit in [1, 2, 9] {
        assert_eq!(exported(first, third.plus(MILLI), limit).await, stored);
        assert_eq!(exported(second, third, limit).await, stored[1..2]);
        assert_eq!(exported(first.plus(MILLI), second, limit).await, []);
    }
}

// rule: rail.elsewhere, rail.name
pub async fn records_of_other_rails_are_counted_and_not_due(world: World<impl GateFixture>) {
    let rails = world.open_rails("acme").await;
    let gate = world.fixture.gate().store.clone();
    let (first, second) = (
        UpstreamName::built_in("rail-a"),
        UpstreamName::built_in("rail-b"),
    );
    for (name, amount) in [("one", "100.00"), ("two", "101.00"), ("three", "102.00")] {
        rails.redeemed(name, amount).await;
    }
    let ended = world.rails_due(Mode::Test).await[0].clone();
    rails.settling.advance(&ended.0, ended.1).await.unwrap();
    let elsewhere = async |names: &[UpstreamName]| {
        let held = gate.rails_elsewhere(Mode::Test, names).await.unwrap();
        let held = held
            .into_iter()
            .map(|(name, held)| format!("{name} {held}"));
        held.collect::<Vec<_>>()
    };
    let own = UpstreamName::built_in(RAIL);
    assert_eq!(elsewhere(slice::from_ref(&own)).await, [""; 0]);
    assert_eq!(elsewhere(&[]).await, [format!("{own} 2")]);
    let watched =
        async |names: &[UpstreamName]| gate.rails_watched_elsewhere(Mode::Test, names).await;
    assert_eq!(watched(slice::from_ref(&own)).await.unwrap(), []);
    assert_eq!(watched(&[]).await.unwrap(), [(own.clone(), 1)]);
    let move_away = "UPDATE rail_records SET rail = 'rail-a' WHERE status = 'processing'";
    world.fixture.damage(move_away).await;
    assert_eq!(
        elsewhere(&[own.clone(), second.clone()]).await,
        ["rail-a 2"]
    );
    assert_eq!(elsewhere(&[own, first]).await, [""; 0]);
    assert!(world.rails_due(Mode::Test).await.is_empty());
    let live = gate.rails_elsewhere(Mode::Live, &[]).await.unwrap();
    assert_eq!(live, []);
    // Asked by mistake, the rail is not asked about them.
    let moved = world.due_of(Mode::Test, "rail-a").await;
    assert_eq!(moved.len(), 2);
    for (who, id) in moved {
        let before = world.record(&who, id).await;
        rails.settling.advance(&who, id).await.unwrap();
        assert_eq!(world.record(&who, id).await, before);
    }
}
