//! Planted breaches. The audit reports each under exactly its name.

use std::collections::{BTreeMap, BTreeSet};

use partner_core::events::Service;
use pools_core::quote::Side;
use pools_core::trade::EngineReport::{self, CannotComplete, Reversed};
use pools_core::trade::Trade;

use crate::contract::fixture::Fixture;
use crate::contract::world::{MILLI, Member, ONE, World, amount, delivered, eur};
use crate::contract::{customer_breaches, gate_breaches, rail_breaches, verification_breaches};

/// One row of every kind, by its id in the tables.
pub(crate) struct Rows {
    partner: String,
    open: String,
    rejected: String,
    reserved: Trade,
    settled: Trade,
    failed: Trade,
    returned: Trade,
}

impl<F: Fixture> World<F> {
    /// A partner with all these rows.
    async fn eventful(&self, name: &str) -> Rows {
        let member = self.rich(name).await;
        self.fund(&member.who, amount("7", eur()), "second").await;
        let url = "https://a.example/";
        self.listen(&member, Service::Pools, url).await;
        // Events of the endpoint's first millisecond may be older than the endpoint.
        self.clock().advance(MILLI);
        let open = self.buy(&member, 1).await;
        let rejected = self.buy(&member, 1).await;
        self.reject(&member.who, rejected.id).await.won().unwrap();
        let rows = Rows {
            partner: name.to_owned(),
            open: open.id.ulid().to_string(),
            rejected: rejected.id.ulid().to_string(),
            reserved: self.ended(&member, &[]).await,
            settled: self.ended(&member, &[delivered()]).await,
            failed: self.ended(&member, &[CannotComplete]).await,
            returned: {
                let reports = [delivered(), Reversed(None)];
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

/// A breach: the invariant, the change of the rows, and the other invariants that the change also breaks.
pub(crate) struct Breach<R = Rows> {
    pub(crate) invariant: &'static str,
    sql: fn(&R) -> String,
    with: &'static [&'static str],
}

const fn breach(invariant: &'static str, sql: fn(&Rows) -> String) -> Breach {
    Breach::new(invariant, sql)
}

impl<R> Breach<R> {
    pub(crate) const fn new(invariant: &'static str, sql: fn(&R) -> String) -> Self {
        Self {
            invariant,
            sql,
            with: &[],
        }
    }

    pub(crate) const fn with(self, with: &'static [&'static str]) -> Self {
        Self {
            invariant: self.invariant,
            sql: self.sql,
            with,
        }
    }
}

/// The schema's `CHECK` constraints report the breach too.
pub(crate) const CHECKED: &[&str] = &["database-is-whole"];
/// The row reader rejects such a row.
const UNREADABLE: &[&str] = &["database-is-whole", "rows-can-be-read"];
/// An event copied under another id: its body is sealed for the original id, and it has no delivery.
pub(crate) const COPIED: &[&str] = &["event-body-is-of-its-event", "event-has-its-delivery"];

/// `UPDATE table SET change` for one row of the partner's.
pub(crate) fn update_of(partner: &str, table: &str, change: &str, row: &str) -> String {
    format!(
        "UPDATE {table} SET {change} WHERE mode = 'test' AND partner_id = '{partner}' AND {row}"
    )
}

fn update(rows: &Rows, table: &str, change: &str, row: &str) -> String {
    update_of(&rows.partner, table, change, row)
}

fn id(trade: &Trade) -> String {
    trade.id.ulid().to_string()
}

fn quote_of(trade: &Trade) -> String {
    trade.quote.ulid().to_string()
}

fn quote(rows: &Rows, change: &str, id: &str) -> String {
    update(rows, "quotes", change, &format!("id = '{id}'"))
}

fn part(trade: &Trade, part: &str) -> String {
    format!("trade_id = '{}' AND part = '{part}'", id(trade))
}

/// `DELETE FROM table` for one row of the partner's.
fn delete(rows: &Rows, table: &str, row: &str) -> String {
    let partner = &rows.partner;
    format!("DELETE FROM {table} WHERE mode = 'test' AND partner_id = '{partner}' AND {row}")
}

fn entry(rows: &Rows, asset: &str, debit: &str, credit: &str, reason: &str) -> String {
    format!(
        "INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, reference, created_at)
         VALUES ('test', '{}', '00000000000P1ANTED00000000', '{asset}', '{debit}', '{credit}', 1, '{reason}', 'planted', 0)",
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

const BREACHES: &[Breach] = &[
    breach("database-is-whole", |rows| {
        update(rows, "partners", "status = 'golden'", "TRUE")
    }),
    breach("rows-refer-to-rows", |_| {
        "INSERT INTO velocity (mode, partner_id, total, floor) VALUES ('test', 'nobody', '0', 0)"
            .to_owned()
    }),
    breach("rows-can-be-read", |rows| {
        quote(rows, "dest_address = 'planted'", &rows.open)
    }),
    breach("consumed-quote-has-one-trade", |rows| {
        quote(rows, "consumed_at = created_at", &rows.open)
    }),
    breach("trade-has-one-consumed-quote", |rows| {
        quote(rows, "consumed_at = NULL", &quote_of(&rows.settled))
    }),
    breach("quote-has-one-fate", |rows| {
        quote(rows, "rejected_at = consumed_at", &quote_of(&rows.settled))
    })
    .with(UNREADABLE),
    breach("quote-is-decided-in-time", |rows| {
        quote(rows, "rejected_at = expires_at", &rows.rejected)
    })
    .with(CHECKED),
    breach("trade-has-its-quotes-terms", |rows| {
        quote(rows, "network = 'tron'", &quote_of(&rows.reserved))
    }),
    breach("trade-has-its-quotes-terms", |rows| {
        quote(rows, "dest_network = 'bsc'", &quote_of(&rows.settled))
    }),
    breach("legs-follow-the-rate", |rows| {
        quote(rows, "crypto = crypto + 100", &rows.open)
    }),
    breach("legs-follow-the-rate", |rows| {
        quote(rows, "rate = '1.1'", &rows.rejected)
    }),
    breach("bps-within-limits", |rows| {
        quote(rows, "spread_bps = 51", &rows.open)
    })
    .with(CHECKED),
    breach("bps-within-limits", |rows| {
        quote(rows, "fee_bps = 5001", &rows.rejected)
    })
    .with(CHECKED),
    breach("trade-state-fits-its-facts", |rows| {
        let settled = format!("id = '{}'", id(&rows.settled));
        update(rows, "trades", "fill = NULL", &settled)
    })
    .with(UNREADABLE),
    breach("trade-moves-by-allowed-steps", |rows| {
        let steps = format!("trade_id = '{}'", id(&rows.settled));
        update(rows, "trade_transitions", "from_status = 'failed'", &steps)
    })
    // A foreign key refers to the table of permitted steps.
    .with(&["rows-refer-to-rows"]),
    breach("trade-steps-fit-its-state", |rows| {
        let steps = format!("trade_id = '{}'", id(&rows.failed));
        let late = "created_at = created_at + 1";
        update(rows, "trade_transitions", late, &steps)
    }),
    breach("trade-steps-fit-its-state", |rows| {
        let steps = format!("trade_id = '{}'", id(&rows.failed));
        delete(rows, "trade_transitions", &steps)
    }),
    breach("trade-steps-fit-its-state", |rows| {
        let failed = format!("id = '{}'", id(&rows.failed));
        let released = "status = 'released', released_at = failed_at, failed_at = NULL";
        update(rows, "trades", released, &failed)
    })
    .with(&["terminal-trade-has-one-event", "event-has-its-trade"]),
    breach("reserve-is-posted-once", |rows| {
        let entry = part(&rows.reserved, "reserve");
        update(rows, "ledger_entries", "reason = 'adjustment'", &entry)
    }),
    breach("reserve-is-posted-once", |rows| {
        delete(rows, "ledger_entries", &part(&rows.reserved, "reserve"))
    })
    .with(&[
        "ledger-chains",
        "accounts-sum-to-zero",
        "reserved-is-open-reserves",
    ]),
    breach("reserve-has-one-fate", |rows| {
        let entry = part(&rows.settled, "close");
        update(rows, "ledger_entries", "reason = 'adjustment'", &entry)
    }),
    breach("reserve-has-one-fate", |rows| {
        delete(rows, "ledger_entries", &part(&rows.settled, "close"))
    })
    .with(&["reserved-is-open-reserves"]),
    breach("return-is-refunded-once", |rows| {
        let entry = part(&rows.returned, "return");
        update(rows, "ledger_entries", "reason = 'adjustment'", &entry)
    }),
    breach("return-is-refunded-once", |rows| {
        delete(rows, "ledger_entries", &part(&rows.returned, "return"))
    })
    .with(&["ledger-chains", "accounts-sum-to-zero"]),
    breach("entry-of-trade-names-its-quote", |rows| {
        let entry = part(&rows.settled, "reserve");
        let another = "reference = 'pq_test_planted'";
        update(rows, "ledger_entries", another, &entry)
    }),
    breach("entry-of-trade-names-its-quote", |rows| {
        entry(rows, "EUR", "operator", "outside", "buy_refund")
    }),
    breach("deposit-is-its-entry", |rows| {
        let second = "reference = 'second'";
        update(rows, "deposits", "amount = amount + 1", second)
    }),
    breach("deposit-is-its-entry", |rows| {
        let second = "reference = 'second'";
        update(rows, "deposits", "created_at = created_at + 1", second)
    }),
    breach("what-may-come-back-has-room", |rows| {
        update(rows, "commitments", "total = total / 2", "asset = 'EUR'")
    }),
    breach("what-may-come-back-has-room", |rows| {
        delete(rows, "commitments", "asset = 'USDT'")
    }),
    breach("receipt-names-its-network", |rows| {
        update(rows, "deposits", "network = 'moon'", "asset = 'USDT'")
    }),
    breach("receipt-names-its-network", |rows| {
        update(rows, "deposits", "network = NULL", "asset = 'USDT'")
    })
    .with(&["deposit-is-its-entry"]),
    breach("deposit-is-compared-by-its-reference", |rows| {
        let second = "reference = 'second'";
        update(rows, "deposits", "compared = 'first'", second)
    }),
    breach("terminal-trade-has-one-event", |rows| {
        let event = format!("object_id = '{}'", rows.failed.id);
        update(rows, "events", "created_at = created_at - 1", &event)
    }),
    breach("terminal-trade-has-one-event", |rows| {
        delete(rows, "events", &format!("object_id = '{}'", rows.failed.id))
    })
    .with(&["delivery-is-of-its-event", "rows-refer-to-rows"]),
    breach("event-has-its-trade", |rows| {
        let kind = "pool.transaction.settled";
        event(rows, kind, &rows.reserved.id.to_string())
    })
    .with(COPIED),
    breach("event-has-its-delivery", |rows| {
        let delivery = format!("object_id = '{}'", rows.failed.id);
        delete(rows, "deliveries", &delivery)
    }),
    breach("event-body-is-of-its-event", |rows| {
        let event = format!("object_id = '{}'", rows.failed.id);
        update(rows, "events", "body = zeroblob(80)", &event)
    }),
    breach("secret-can-be-opened", |rows| {
        update(rows, "webhook_secrets", "sealed = zeroblob(80)", "TRUE")
    }),
    breach("delivery-is-of-its-event", |rows| {
        let delivery = format!("object_id = '{}'", rows.failed.id);
        update(rows, "deliveries", "object_id = 'planted'", &delivery)
    }),
    breach("delivery-is-of-its-event", |rows| {
        update(rows, "webhook_endpoints", "service = 'gate'", "TRUE")
    }),
    breach("idempotency-record-is-of-its-trade", |rows| {
        let record = format!("trade_id = '{}'", id(&rows.settled));
        update(rows, "idempotency_keys", "route = 'planted'", &record)
    }),
    breach("rows-stay-in-their-mode", |rows| {
        let object = format!("txn_live_{}", id(&rows.settled));
        event(rows, "planted", &object)
    })
    .with(COPIED),
    breach("ledger-chains", |rows| {
        let more = "balance_after = balance_after + 1";
        update(rows, "ledger_entries", more, "reference = 'second'")
    }),
    breach("ledger-chains", |rows| {
        let earlier = "created_at = created_at - 60000";
        update(rows, "ledger_entries", earlier, "reference = 'second'")
    })
    .with(&["deposit-is-its-entry"]),
    breach("ledger-chains", |rows| {
        let gap = "account_sequence = 1000";
        update(rows, "ledger_entries", gap, "reference = 'last'")
    })
    .with(&["balance-is-sum-of-entries"]),
    breach("balance-is-sum-of-entries", |rows| {
        let more = "available = available + 1";
        update(rows, "accounts", more, "asset = 'EUR'")
    })
    .with(&["accounts-sum-to-zero", "what-may-come-back-has-room"]),
    breach("balance-is-sum-of-entries", |rows| {
        update(rows, "accounts", "sequence = sequence + 1", "asset = 'EUR'")
    }),
    breach("balance-is-sum-of-entries", |rows| {
        delete(rows, "accounts", "asset = 'USDT'")
    })
    .with(&["accounts-sum-to-zero"]),
    // A debit that no account of the partner has.
    breach("accounts-sum-to-zero", |rows| {
        entry(rows, "GBP", "partner", "outside", "adjustment")
    })
    .with(CHECKED),
    breach("reserved-is-open-reserves", |rows| {
        entry(rows, "EUR", "operator", "reserved", "adjustment")
    }),
    breach("velocity-total-is-plain-sum", |rows| {
        update(rows, "velocity", "total = '1'", "total <> '1'")
    }),
    breach("velocity-total-is-plain-sum", |rows| {
        delete(rows, "velocity", "TRUE")
    }),
    // The row counts nothing and has the fitting flag.
    breach("velocity-floor-has-passed", |rows| {
        let later = "floor = 9000000000000, total = '0'";
        update(rows, "velocity", later, "TRUE")
    }),
    breach("deposits-have-one-owner", |rows| {
        let shared = "funding_reference = 'VICTIM-0'";
        update(rows, "pools_profiles", shared, "TRUE")
    }),
    breach("velocity-stays-within-cap", |rows| {
        update(rows, "pools_profiles", "velocity_cap = 1", "TRUE")
    }),
];

// rule: cli.verify
pub async fn every_planted_breach_is_reported_by_name(world: World<impl Fixture>) {
    world.ports().audit.velocity_window_keep().await.unwrap();
    let victim = async |name: String| world.eventful(&name).await;
    world.assert_found(BREACHES, victim).await;
}

impl<F: Fixture> World<F> {
    /// Plants one breach after the other, each in the rows of a partner of its own, which `victim` makes. Asserts that the audit
    /// reports each under exactly its names.
    pub(crate) async fn assert_found<R>(
        &self,
        breaches: &[Breach<R>],
        victim: impl AsyncFn(String) -> R,
    ) {
        let mut victims = Vec::new();
        for number in 0..breaches.len() {
            victims.push(victim(format!("victim-{number}")).await);
        }
        self.assert_clean().await;
        let mut before = self.counts().await;
        for (breach, rows) in breaches.iter().zip(&victims) {
            let sql = (breach.sql)(rows);
            self.fixture.damage(&sql).await;
            let after = self.counts().await;
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
        assert!(!self.audit().await.clean());
    }
}

// rule: cli.verify
pub async fn every_invariant_has_planted_breach(world: World<impl Fixture>) {
    let findings = world.audit().await.findings;
    let known: BTreeSet<&str> = findings.iter().map(|one| one.invariant).collect();
    assert_eq!(
        known.len(),
        findings.len(),
        "names of invariants are unique"
    );
    let pools = BREACHES.iter().map(|breach| breach.invariant);
    let gate = gate_breaches::BREACHES.iter();
    let customers = customer_breaches::BREACHES.iter();
    let gate = gate.map(|breach| breach.invariant);
    let gate = gate.chain(customers.map(|breach| breach.invariant));
    let rails = rail_breaches::BREACHES.iter();
    let gate = gate.chain(rails.map(|breach| breach.invariant));
    let verifications = verification_breaches::BREACHES.iter();
    let gate = gate.chain(verifications.map(|breach| breach.invariant));
    let planted: BTreeSet<&str> = pools.chain(gate).collect();
    assert_eq!(planted, known);
}

pub async fn breach_is_reported_with_its_row(world: World<impl Fixture>) {
    let rows = world.eventful("acme").await;
    let other = world.eventful("rival").await;
    let steps = format!("trade_id = '{}'", id(&rows.settled));
    let sql = delete(&rows, "trade_transitions", &steps);
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

pub async fn all_breaches_are_counted_and_twenty_described(world: World<impl Fixture>) {
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
