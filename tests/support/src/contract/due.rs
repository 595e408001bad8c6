//! Reads of what is due: partner by partner, so that no partner fills a read, and past rows that cannot be read.

use std::fmt::Debug;
use std::time::Duration;

use gate_core::due::DueShare;
use gate_core::ports::HeldBy;
use gate_core::rail::RailId;
use gate_core::session::SessionId;
use kernel::{Mode, Readable, StoreResult, UpstreamName};
use partner_core::{PartnerId, Tenant};

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, RAIL, VERIFIER, draft};
use crate::contract::world::{MILLI, World};

const SECOND: Duration = Duration::from_secs(1);
/// Objects of each partner. The first has fewer than the second.
const OBJECTS: [(&str, usize); 3] = [("acme", 1), ("busy", 4), ("calm", 2)];

/// A share of at most this many objects of each partner, and in all.
fn share(after: Option<&str>, of_each: u32, limit: u32) -> DueShare {
    DueShare {
        after: after.map(|partner| PartnerId::parse(partner).unwrap()),
        of_each,
        limit,
    }
}

fn rail() -> UpstreamName {
    UpstreamName::built_in(RAIL)
}

fn verifier() -> UpstreamName {
    UpstreamName::built_in(VERIFIER)
}

fn held_by(upstream: &UpstreamName) -> HeldBy<'_> {
    let mode = Mode::Test;
    HeldBy { mode, upstream }
}

/// The objects of the partners of [`OBJECTS`], in the order in which they are due.
struct Made<I>(Vec<(Tenant, I)>);

impl<I: Copy + PartialEq + Debug> Made<I> {
    /// The first objects of each partner after another one.
    fn first(&self, after: &str, of_each: usize) -> Vec<(Tenant, I)> {
        let mut first: Vec<(Tenant, I)> = Vec::new();
        for (who, id) in &self.0 {
            let found = first.iter().filter(|(other, _)| other == who).count();
            if who.partner.as_str() > after && found < of_each {
                first.push((who.clone(), *id));
            }
        }
        first
    }

    /// Checks shares of a read.
    async fn check<F>(&self, read: impl Fn(DueShare) -> F)
    where
        F: Future<Output = StoreResult<Readable<(Tenant, I)>>>,
    {
        let rows = async |share| {
            let read = read(share).await.unwrap();
            assert!(read.unreadable.is_empty(), "{:?}", read.unreadable);
            read.rows
        };
        let all = u32::MAX;
        assert_eq!(rows(share(None, 9, all)).await, self.0);
        assert_eq!(rows(share(None, 2, all)).await, self.first("", 2));
        let after_acme = share(Some("acme"), 1, all);
        assert_eq!(rows(after_acme).await, self.first("acme", 1));
        assert!(rows(share(Some("calm"), 9, all)).await.is_empty());
        // A partner between two others need not exist.
        assert_eq!(rows(share(Some("b"), 9, all)).await, self.first("b", 9));
        let cut = rows(share(None, 4, 3)).await;
        let partners: Vec<&str> = cut.iter().map(|(who, _)| who.partner.as_str()).collect();
        assert_eq!(partners, ["acme", "busy", "busy"]);
    }
}

impl<F: GateFixture> World<F> {
    /// Makes a partner's last object the one that has been due for the longest.
    async fn bring_forward(&self, table: &str, column: &str, id: &str) {
        let sql = format!("UPDATE {table} SET {column} = {column} - 3600000 WHERE id = '{id}'");
        self.fixture.damage(&sql).await;
    }

    async fn overdue(&self) -> Made<SessionId> {
        let mut made = Vec::new();
        for (name, count) in OBJECTS {
            let who = self.member(name).await.who;
            let mut sessions = Vec::new();
            for _ in 0..count {
                self.clock().advance(MILLI);
                let id = self.open_session_with(&who, None).await.id;
                sessions.push((who.clone(), id));
            }
            sessions.rotate_right(1);
            let first = sessions[0].1.ulid().to_string();
            self.bring_forward("sessions", "expires_at", &first).await;
            made.extend(sessions);
        }
        self.clock().advance(DAY);
        Made(made)
    }

    async fn payments(&self) -> Made<RailId> {
        let mut made = Vec::new();
        for (name, count) in OBJECTS {
            let rails = self.open_rails(name).await;
            let who = rails.gate.member.who.clone();
            let mut records = Vec::new();
            for number in 0..count {
                self.clock().advance(MILLI);
                let (_, id) = rails.redeemed(&format!("p{number}"), "100.00").await;
                records.push((who.clone(), id));
            }
            records.rotate_right(1);
            let first = records[0].1.id().ulid().to_string();
            self.bring_forward("rail_records", "ask_at", &first).await;
            made.extend(records);
        }
        Made(made)
    }

    async fn pending(&self) -> Made<SessionId> {
        let mut made = Vec::new();
        for (name, count) in OBJECTS {
            let verifications = self.open_verifications(name).await;
            let who = verifications.gate.member.who.clone();
            for number in 0..count {
                self.clock().advance(MILLI);
                let name = format!("s{number}");
                let session = verifications.gate.opened(&name, draft("10.63")).await;
                verifications.started(session).await;
                made.push((who.clone(), session));
            }
        }
        self.clock().advance(SECOND);
        Made(made)
    }
}

// rule: background.isolated
pub async fn overdue_sessions_are_read_partner_by_partner(world: World<impl GateFixture>) {
    let overdue = world.overdue().await;
    let store = world.fixture.gate().store.clone();
    let read = |share| {
        let store = store.clone();
        async move { store.sessions_overdue_in(Mode::Test, &share).await }
    };
    overdue.check(read).await;
}

// rule: background.isolated
pub async fn due_payments_are_read_partner_by_partner(world: World<impl GateFixture>) {
    let payments = world.payments().await;
    let store = world.fixture.gate().store.clone();
    let read = |share| {
        let store = store.clone();
        async move { store.rails_due(held_by(&rail()), &share).await }
    };
    payments.check(read).await;
}

// rule: background.isolated
pub async fn due_verifications_are_read_partner_by_partner(world: World<impl GateFixture>) {
    let pending = world.pending().await;
    let store = world.fixture.gate().store.clone();
    let read = |share| {
        let store = store.clone();
        async move { store.verifications_due(held_by(&verifier()), &share).await }
    };
    pending.check(read).await;
}

/// Expects that a read leaves out one row, and names it.
fn expect_one_unreadable<I>(read: Readable<(Tenant, I)>, table: &str, column: &str, found: usize) {
    assert_eq!(read.rows.len(), found, "{table}");
    let errors: Vec<String> = read.unreadable.iter().map(ToString::to_string).collect();
    let [error] = &errors[..] else {
        panic!("{errors:?}")
    };
    let named = format!("{table}, column {column}");
    assert!(error.contains(&named), "{error}");
}

// rule: background.unreadable
pub async fn unreadable_row_hides_no_other_due_row(world: World<impl GateFixture>) {
    world.overdue().await;
    let spoil = async |table: &str, column: &str, id: String| {
        let sql = format!("UPDATE {table} SET {column} = '?' WHERE id = '{id}'");
        world.fixture.damage(&sql).await;
    };
    let store = world.fixture.gate().store.clone();
    let all = DueShare::of_each(9);
    let overdue = world.overdue_in(Mode::Test).await;
    spoil("sessions", "partner_id", overdue[0].1.ulid().to_string()).await;
    let read = store.sessions_overdue_in(Mode::Test, &all).await.unwrap();
    expect_one_unreadable(read, "sessions", "partner_id", overdue.len() - 1);

    let rails = world.open_rails("rails").await;
    for name in ["one", "two"] {
        rails.redeemed(name, "100.00").await;
    }
    let due = world.rails_due(Mode::Test).await;
    spoil("rail_records", "kind", due[0].1.id().ulid().to_string()).await;
    let read = store.rails_due(held_by(&rail()), &all).await.unwrap();
    expect_one_unreadable(read, "rail_records", "kind", due.len() - 1);

    world.pending().await;
    let due = world.verifications_due(Mode::Test).await;
    let (who, session) = &due[0];
    let verification = store.verification_get(who, *session).await.unwrap();
    let id = verification.unwrap().id.ulid().to_string();
    spoil("verifications", "partner_id", id).await;
    let read = store
        .verifications_due(held_by(&verifier()), &all)
        .await
        .unwrap();
    expect_one_unreadable(read, "verifications", "partner_id", due.len() - 1);
}
