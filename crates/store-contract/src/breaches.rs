//! Planted breaches, each found under exactly its name.

use std::collections::{BTreeMap, BTreeSet};

use kernel::Mode;
use partner_core::events::Service;
use pools_core::quote::Side;
use pools_core::trade::{EngineReport, Trade};

use crate::fixture::Fixture;
use crate::world::{Member, ONE, World, amount, eur};

/// One row of every kind, by its id as it stands in the tables.
struct Rows {
    partner: String,
    open: String,
    rejected: String,
    reserved: Trade,
    settled: Trade,
    failed: Trade,
    returned: Trade,
}

impl<F: Fixture> World<F> {
    /// A partner to whom everything has happened.
    async fn eventful(&self, name: &str) -> Rows {
        let member = self.rich(name).await;
        self.fund(&member.who, amount("7", eur()), "second").await;
        let url = "https://a.example/";
        let endpoint = self.endpoint(Mode::Test, Service::Pools, url);
        self.set_endpoint(&member, &endpoint).await;
        let open = self.buy(&member, 1).await;
        let rejected = self.buy(&member, 1).await;
        self.reject(&member.who, rejected.id).await.won().unwrap();
        let rows = Rows {
            partner: name.to_owned(),
            open: open.id.ulid().to_string(),
            rejected: rejected.id.ulid().to_string(),
            reserved: self.ended(&member, &[]).await,
            settled: self
                .ended(&member, &[EngineReport::Delivered("fill".to_owned())])
                .await,
            failed: self.ended(&member, &[EngineReport::CannotComplete]).await,
            returned: {
                let reports = [
                    EngineReport::Delivered("fill".to_owned()),
                    EngineReport::Reversed,
                ];
                self.ended(&member, &reports).await
            },
        };
        self.fund(&member.who, amount("8", eur()), "last").await;
        rows
    }

    async fn ended(&self, member: &Member, reports: &[EngineReport]) -> Trade {
        let mut trade = self.trade(member, Side::OnRamp, ONE).await;
        for report in reports {
            trade = self.report(&member.who, trade.id, report.clone()).await;
        }
        trade
    }

    async fn counts(&self) -> BTreeMap<&'static str, u64> {
        let findings = self.audit().await.findings;
        findings
            .iter()
            .map(|one| (one.invariant, one.count))
            .collect()
    }
}

/// A breach: the invariant, what is done to the rows, and which other invariants cannot but be
/// broken with it.
struct Breach {
    invariant: &'static str,
    sql: fn(&Rows) -> String,
    with: &'static [&'static str],
}

const fn breach(invariant: &'static str, sql: fn(&Rows) -> String) -> Breach {
    Breach {
        invariant,
        sql,
        with: &[],
    }
}

/// `UPDATE table SET change` for one row of the partner's.
fn update(rows: &Rows, table: &str, change: &str, row: &str) -> String {
    let partner = &rows.partner;
    format!(
        "UPDATE {table} SET {change} WHERE mode = 'test' AND partner_id = '{partner}' AND {row}"
    )
}

fn id(trade: &Trade) -> String {
    trade.id.ulid().to_string()
}

fn quote_of(trade: &Trade) -> String {
    format!("id = '{}'", trade.quote.ulid())
}

fn part(trade: &Trade, part: &str) -> String {
    format!("trade_id = '{}' AND part = '{part}'", id(trade))
}

fn entry(rows: &Rows, asset: &str, debit: &str, credit: &str) -> String {
    format!(
        "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, reference, created_at)
         VALUES ('test', '{}', 'planted', '{asset}', '{debit}', '{credit}', 1, 'adjustment', 'planted', 0)",
        rows.partner
    )
}

fn event(rows: &Rows, kind: &str, object: &str) -> String {
    format!(
        "INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
         SELECT mode, partner_id, 'planted', service, '{kind}', '{object}', body, created_at
         FROM events WHERE mode = 'test' AND partner_id = '{}' AND object_id = '{}'",
        rows.partner, rows.settled.id
    )
}

/// What only a store itself can be damaged in: its own tests plant it.
const OF_THE_STORE: [&str; 1] = ["database-is-whole"];

const BREACHES: &[Breach] = &[
    breach("rows-refer-to-rows", |_| {
        "INSERT INTO velocity (mode, partner_id, total, floor) VALUES ('test', 'nobody', '0', 0)"
            .to_owned()
    }),
    breach("consumed-quote-has-one-trade", |rows| {
        let open = format!("id = '{}'", rows.open);
        update(rows, "quotes", "consumed_at = created_at", &open)
    }),
    breach("trade-has-one-consumed-quote", |rows| {
        update(
            rows,
            "quotes",
            "consumed_at = NULL",
            &quote_of(&rows.settled),
        )
    }),
    breach("quote-has-one-fate", |rows| {
        let quote = quote_of(&rows.settled);
        update(rows, "quotes", "rejected_at = consumed_at", &quote)
    }),
    breach("quote-is-decided-in-time", |rows| {
        let rejected = format!("id = '{}'", rows.rejected);
        update(rows, "quotes", "rejected_at = expires_at", &rejected)
    }),
    breach("trade-has-its-quotes-terms", |rows| {
        update(
            rows,
            "quotes",
            "network = 'tron'",
            &quote_of(&rows.reserved),
        )
    }),
    breach("trade-has-its-quotes-terms", |rows| {
        update(
            rows,
            "quotes",
            "dest_network = 'bsc'",
            &quote_of(&rows.settled),
        )
    }),
    breach("trade-state-fits-its-facts", |rows| {
        let settled = format!("id = '{}'", id(&rows.settled));
        update(rows, "trades", "fill = NULL", &settled)
    }),
    Breach {
        invariant: "trade-moves-by-allowed-steps",
        sql: |rows| {
            let steps = format!("trade_id = '{}'", id(&rows.settled));
            update(rows, "trade_transitions", "from_status = 'failed'", &steps)
        },
        // The step refers to the table of those that are allowed.
        with: &["rows-refer-to-rows"],
    },
    breach("trade-steps-fit-its-state", |rows| {
        let steps = format!("trade_id = '{}'", id(&rows.failed));
        update(
            rows,
            "trade_transitions",
            "created_at = created_at + 1",
            &steps,
        )
    }),
    breach("reserve-is-posted-once", |rows| {
        let entry = part(&rows.reserved, "reserve");
        update(rows, "ledger_entries", "reason = 'adjustment'", &entry)
    }),
    breach("reserve-has-one-fate", |rows| {
        let entry = part(&rows.settled, "close");
        update(rows, "ledger_entries", "reason = 'adjustment'", &entry)
    }),
    breach("return-is-refunded-once", |rows| {
        let entry = part(&rows.returned, "return");
        update(rows, "ledger_entries", "reason = 'adjustment'", &entry)
    }),
    breach("entry-of-trade-names-its-quote", |rows| {
        let entry = part(&rows.settled, "reserve");
        update(
            rows,
            "ledger_entries",
            "reference = 'pq_test_planted'",
            &entry,
        )
    }),
    breach("deposit-is-its-entry", |rows| {
        update(
            rows,
            "deposits",
            "amount = amount + 1",
            "reference = 'second'",
        )
    }),
    breach("terminal-trade-has-one-event", |rows| {
        let event = format!("object_id = '{}'", rows.failed.id);
        update(rows, "events", "created_at = created_at + 1", &event)
    }),
    breach("delivery-is-of-its-event", |rows| {
        let delivery = format!("object_id = '{}'", rows.failed.id);
        update(rows, "deliveries", "object_id = 'planted'", &delivery)
    }),
    breach("idempotency-record-is-of-its-trade", |rows| {
        let record = format!("trade_id = '{}'", id(&rows.settled));
        update(rows, "idempotency_keys", "route = 'planted'", &record)
    }),
    breach("ledger-chains", |rows| {
        let entry = "reference = 'second'";
        update(
            rows,
            "ledger_entries",
            "balance_after = balance_after + 1",
            entry,
        )
    }),
    breach("ledger-chains", |rows| {
        let entry = "reference = 'second'";
        update(rows, "ledger_entries", "created_at = created_at - 1", entry)
    }),
    breach("velocity-total-is-plain-sum", |rows| {
        update(rows, "velocity", "total = '1'", "total <> '1'")
    }),
    Breach {
        invariant: "balance-is-sum-of-entries",
        sql: |rows| {
            update(
                rows,
                "accounts",
                "available = available + 1",
                "asset = 'EUR'",
            )
        },
        with: &["accounts-sum-to-zero"],
    },
    breach("balance-is-sum-of-entries", |rows| {
        update(rows, "accounts", "sequence = sequence + 1", "asset = 'EUR'")
    }),
    Breach {
        invariant: "balance-is-sum-of-entries",
        sql: |rows| {
            let partner = &rows.partner;
            format!("DELETE FROM accounts WHERE partner_id = '{partner}' AND asset = 'USDT'")
        },
        with: &["accounts-sum-to-zero"],
    },
    // A debit that no account of the partner's knows of.
    breach("accounts-sum-to-zero", |rows| {
        entry(rows, "GBP", "partner", "outside")
    }),
    breach("reserved-is-open-reserves", |rows| {
        entry(rows, "EUR", "operator", "reserved")
    }),
    breach("bps-within-limits", |rows| {
        let open = format!("id = '{}'", rows.open);
        update(rows, "quotes", "spread_bps = 51", &open)
    }),
    breach("bps-within-limits", |rows| {
        let rejected = format!("id = '{}'", rows.rejected);
        update(rows, "quotes", "fee_bps = 5001", &rejected)
    }),
    breach("rows-stay-in-their-mode", |rows| {
        let object = format!("txn_live_{}", id(&rows.settled));
        event(rows, "planted", &object)
    }),
    breach("event-has-its-trade", |rows| {
        let kind = "pool.transaction.settled";
        event(rows, kind, &rows.reserved.id.to_string())
    }),
];

// rule: cli.verify
pub async fn every_planted_breach_is_found_under_its_name(store: impl Fixture) {
    let world = World::new(store);
    let mut victims = Vec::new();
    for number in 0..BREACHES.len() {
        victims.push(world.eventful(&format!("victim-{number}")).await);
    }
    world.assert_clean().await;
    let mut before = world.counts().await;
    for (breach, rows) in BREACHES.iter().zip(&victims) {
        let sql = (breach.sql)(rows);
        world.fixture.damage(&sql).await;
        let after = world.counts().await;
        let found: BTreeSet<&str> = after
            .iter()
            .filter(|(name, count)| before.get(*name) != Some(count))
            .map(|(name, _)| *name)
            .collect();
        let mut expected = BTreeSet::from([breach.invariant]);
        expected.extend(breach.with);
        assert_eq!(found, expected, "{sql}");
        before = after;
    }
    assert!(!world.audit().await.clean());
}

// rule: cli.verify
pub async fn every_invariant_has_a_planted_breach(store: impl Fixture) {
    let world = World::new(store);
    let findings = world.audit().await.findings;
    let known: BTreeSet<&str> = findings.iter().map(|one| one.invariant).collect();
    assert_eq!(
        known.len(),
        findings.len(),
        "a name stands for one invariant"
    );
    let planted: BTreeSet<&str> = BREACHES.iter().map(|breach| breach.invariant).collect();
    let unplanted: BTreeSet<&str> = known.difference(&planted).copied().collect();
    assert!(unplanted.is_subset(&OF_THE_STORE.into()), "{unplanted:?}");
    let unknown: Vec<_> = planted.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

pub async fn a_breach_is_described_with_its_row(store: impl Fixture) {
    let world = World::new(store);
    let rows = world.eventful("acme").await;
    let other = world.eventful("rival").await;
    let settled = format!("id = '{}'", id(&rows.settled));
    let sql = update(&rows, "trades", "fill = NULL", &settled);
    world.fixture.damage(&sql).await;
    let findings = world.audit().await.findings;
    let broken: Vec<_> = findings.iter().filter(|one| one.count > 0).collect();
    assert_eq!(broken.len(), 1);
    assert_eq!((broken[0].count, broken[0].breaches.len()), (1, 1));
    let told = &broken[0].breaches[0];
    assert!(
        told.contains("acme") && told.contains(&id(&rows.settled)),
        "{told}"
    );
    assert!(!told.contains(&id(&other.settled)), "{told}");
}

pub async fn many_breaches_are_counted_and_twenty_described(store: impl Fixture) {
    let world = World::new(store);
    let member = world.rich("acme").await;
    for _ in 0..25 {
        world.buy(&member, 1).await;
    }
    world
        .fixture
        .damage("UPDATE quotes SET consumed_at = created_at")
        .await;
    let broken = world.counts().await;
    assert_eq!(broken.get("consumed-quote-has-one-trade"), Some(&25));
    let findings = world.audit().await.findings;
    let described: Vec<usize> = findings.iter().map(|one| one.breaches.len()).collect();
    assert_eq!(described.iter().max(), Some(&20));
}
