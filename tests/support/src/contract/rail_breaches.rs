//! Planted breaches of signed quotes and rail records. The audit reports each under exactly its name.

use std::time::Duration;

use gate_core::rail::RailId;
use gate_core::session::SessionId;
use gate_core::signed_quote::SignedQuoteId;

use crate::contract::breaches::{Breach, CHECKED, COPIED, update_of};
use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::draft;
use crate::contract::payments::Payments;
use crate::contract::rails::Rails;
use crate::contract::world::World;

/// Quotes and records of every kind of one partner.
pub(crate) struct Rows {
    partner: String,
    open: SignedQuoteId,
    processing: RailId,
    settled: RailId,
    failed: RailId,
    completed: SessionId,
    paying: SessionId,
    hosted: RailId,
    bought: SessionId,
    sold: RailId,
    swap: RailId,
    swapped: SessionId,
    declined: SessionId,
    quoted: SessionId,
}

impl<F: GateFixture> World<F> {
    /// A partner with all these quotes.
    async fn railed(&self, name: &str) -> Rows {
        let gate = self.open_listening_gate(name).await;
        self.publishable_key(&gate.member.who).await;
        let rails = Rails::of(gate);
        let open = rails.locked("open", "100.00").await;
        let (completed, settled) = rails.redeemed("settled", "100.00").await;
        let (_, failed) = rails.redeemed("failed", "100.05").await;
        self.clock().advance(Duration::from_secs(1));
        for id in [settled, failed] {
            let who = &rails.gate.access.tenant;
            rails.settling.advance(who, id).await.unwrap();
        }
        let (paying, processing) = rails.redeemed("processing", "100.00").await;
        let widget = Payments::of(rails, true);
        let (bought, hosted) = widget.bought("bought", "100.00").await;
        let (_, sold) = widget.sold("sold", "100.00").await;
        let (swapped, swap) = widget.swapped("swapped", "100.00").await;
        let (declined, id) = widget.bought("declined", "100.05").await;
        let settling = &widget.rails.settling;
        let who = &widget.rails.gate.access.tenant;
        settling.advance(who, id).await.unwrap();
        let quoted = widget.rails.gate.opened("quoted", draft("100.00")).await;
        for _ in 0..2 {
            widget.quoted(quoted).await;
        }
        Rows {
            partner: name.to_owned(),
            open,
            processing,
            settled,
            failed,
            completed,
            paying,
            hosted,
            bought,
            sold,
            swap,
            swapped,
            declined,
            quoted,
        }
    }
}

fn update(rows: &Rows, table: &str, change: &str, row: &str) -> String {
    update_of(&rows.partner, table, change, row)
}

fn quote(rows: &Rows, change: &str) -> String {
    let row = format!("id = '{}'", rows.open.ulid());
    update(rows, "signed_quotes", change, &row)
}

fn record(rows: &Rows, change: &str, id: RailId) -> String {
    let row = format!("id = '{}'", id.id().ulid());
    update(rows, "rail_records", change, &row)
}

fn transaction(rows: &Rows, change: &str, id: RailId) -> String {
    let row = format!("local_rail_transaction_id = '{id}'");
    update(rows, "transactions", change, &row)
}

fn event(rows: &Rows, change: &str, object: &str, kind: &str) -> String {
    let row = format!("object_id = '{object}' AND type = '{kind}'");
    update(rows, "events", change, &row)
}

/// Copies the event that the payment of the swap's session began, of the millisecond before, as an event of this type about another
/// object.
fn copied(rows: &Rows, kind: &str, object: &str) -> String {
    format!(
        "INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
         SELECT mode, partner_id, 'planted', service, '{kind}', '{object}', body, created_at - 1
         FROM events WHERE mode = 'test' AND partner_id = '{}' AND object_id = '{}'
             AND type = 'gate_session.processing'",
        rows.partner, rows.swapped
    )
}

const EARLIER: &str = "created_at = created_at - 1";

const fn breach(invariant: &'static str, sql: fn(&Rows) -> String) -> Breach<Rows> {
    Breach::new(invariant, sql)
}

pub(crate) const BREACHES: &[Breach<Rows>] = &[
    breach("consumed-quote-has-its-record", |rows| {
        quote(rows, "consumed_at = created_at")
    }),
    breach("rail-record-says-how-it-stands", |rows| {
        let object = rows.settled.to_string();
        event(rows, EARLIER, &object, "rail.pay_in.processing")
    }),
    breach("rail-record-says-how-it-stands", |rows| {
        let object = rows.failed.to_string();
        event(rows, EARLIER, &object, "rail.pay_in.failed")
    }),
    breach("event-has-its-rail-record", |rows| {
        let again = "status = 'processing', ended_at = NULL, failure_code = NULL, watch_at = NULL";
        record(rows, again, rows.failed)
    })
    .with(&["rail-record-has-its-transaction"]),
    breach("open-item-fits-its-payment", |rows| {
        let late = "open_item = 'late', open_item_at = ended_at";
        record(rows, late, rows.settled)
    }),
    breach("open-item-fits-its-payment", |rows| {
        let early = "open_item = 'late', open_item_at = created_at - 1";
        record(rows, early, rows.failed)
    }),
    // The type fits the status of the swap, but a swap has no such event.
    breach("event-has-its-rail-record", |rows| {
        copied(rows, "rail.swap.processing", &rows.swap.to_string())
    })
    .with(COPIED),
    breach("settled-record-completes-its-session", |rows| {
        let open = "status = 'open', completed_at = NULL, transaction_id = NULL";
        let row = format!("id = '{}'", rows.completed.ulid());
        update(rows, "sessions", open, &row)
    })
    .with(&["event-has-its-session"]),
    breach("session-has-one-payment", |rows| {
        let row = format!("id = '{}'", rows.paying.ulid());
        update(
            rows,
            "sessions",
            "status = 'expired', expired_at = expires_at",
            &row,
        )
    })
    .with(&["ended-session-has-one-event"]),
    breach("session-has-one-payment", |rows| {
        let other = format!("session_id = '{}'", rows.paying.ulid());
        let again = record(rows, &other, rows.settled);
        format!(
            "DROP INDEX rail_records_session_once; {again};
             CREATE UNIQUE INDEX rail_records_session_once ON rail_records (mode, partner_id, id)"
        )
    })
    .with(&[
        "rail-record-has-its-transaction",
        "settled-record-completes-its-session",
    ]),
    breach("hosted-payment-has-its-quote", |rows| {
        record(
            rows,
            "hosted = (1 = 1), wallet_address = 'w'",
            rows.processing,
        )
    })
    .with(&["session-reports-its-payments"]),
    breach("session-reports-its-payments", |rows| {
        let object = rows.bought.to_string();
        let created = "type = 'gate_session.failed'";
        event(rows, created, &object, "gate_session.processing")
    })
    .with(&["event-body-is-of-its-event"]),
    breach("session-reports-its-payments", |rows| {
        let object = rows.bought.to_string();
        event(rows, EARLIER, &object, "gate_session.processing")
    }),
    breach("session-reports-its-payments", |rows| {
        let object = rows.declined.to_string();
        event(rows, EARLIER, &object, "gate_session.failed")
    }),
    breach("session-has-one-quote", |rows| {
        let row = format!("session_id = '{}'", rows.quoted.ulid());
        let both = update(rows, "signed_quotes", "superseded_at = NULL", &row);
        format!(
            "DROP INDEX signed_quotes_session_once; {both};
             CREATE UNIQUE INDEX signed_quotes_session_once ON signed_quotes (mode, partner_id, id)"
        )
    }),
    breach("rail-record-says-how-it-stands", |rows| {
        record(rows, "rail_events = (1 = 0)", rows.hosted)
    }),
    breach("hosted-payment-has-its-destination", |rows| {
        record(rows, "wallet_address = NULL", rows.hosted)
    }),
    breach("hosted-payment-has-its-destination", |rows| {
        record(rows, "wallet_address = NULL", rows.swap)
    }),
    breach("signed-quote-is-as-it-was-signed", |rows| {
        let row = format!("session_id = '{}'", rows.swapped.ulid());
        update(
            rows,
            "signed_quotes",
            "source_amount = source_amount - 100",
            &row,
        )
    }),
    breach("consumed-quote-has-its-record", |rows| {
        record(rows, "kind = 'pay_in'", rows.swap)
    })
    .with(&[
        "rail-record-has-its-transaction",
        "rail-record-says-how-it-stands",
    ]),
    breach("answer-is-of-what-was-done", |rows| {
        update(
            rows,
            "answers",
            EARLIER,
            "key = 'bought' AND route LIKE '%payments%'",
        )
    }),
    breach("quote-of-session-is-its-own", |rows| {
        let other = rows.hosted.id().ulid();
        let row = format!("session_id = '{}'", rows.bought.ulid());
        update(
            rows,
            "signed_quotes",
            &format!("session_id = '{other}'"),
            &row,
        )
    })
    .with(&[
        "hosted-payment-has-its-quote",
        "signed-quote-is-as-it-was-signed",
    ]),
    breach("payout-account-can-be-opened", |rows| {
        record(rows, "payout = zeroblob(80)", rows.sold)
    }),
    // The account is sealed for the record of another partner.
    breach("payout-account-can-be-opened", |rows| {
        let other = "(SELECT payout FROM rail_records WHERE partner_id = 'victim-0' AND payout IS NOT NULL)";
        record(rows, &format!("payout = {other}"), rows.sold)
    }),
    breach("publishable-key-can-be-opened", |rows| {
        let text = "publishable_sealed = zeroblob(80)";
        update(rows, "api_keys", text, "kind = 'publishable'")
    }),
    // The text is sealed for this key, but the hash is that of another text.
    breach("publishable-key-can-be-opened", |rows| {
        let hash = "hash = zeroblob(32)";
        update(rows, "api_keys", hash, "kind = 'publishable'")
    }),
    breach("rail-record-has-its-transaction", |rows| {
        transaction(rows, "fiat_amount = '99.00'", rows.processing)
    }),
    breach("rail-record-has-its-transaction", |rows| {
        transaction(rows, "status = 'cancelled'", rows.failed)
    }),
    breach("rail-record-has-its-transaction", |rows| {
        transaction(rows, "action = 'on_ramp'", rows.swap)
    }),
    breach("event-has-its-session", |rows| {
        let absent = "object_id = 'gs_test_00000000000P1ANTED00000000'";
        let object = rows.bought.to_string();
        event(rows, absent, &object, "gate_session.processing")
    })
    .with(&[
        "session-reports-its-payments",
        "event-body-is-of-its-event",
        "delivery-is-of-its-event",
    ]),
    breach("signed-quote-is-as-it-was-signed", |rows| {
        quote(rows, "signature = zeroblob(32)")
    }),
    breach("signed-quote-is-as-it-was-signed", |rows| {
        quote(rows, "rate = '2'")
    }),
    breach("signed-quote-is-as-it-was-signed", |rows| {
        quote(rows, "expires_at = expires_at + 1")
    }),
    breach("signed-quote-is-as-it-was-signed", |rows| {
        quote(rows, "partner_id = 'victim-0'")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        update(rows, "answers", EARLIER, "key = 'open'")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        update(rows, "answers", EARLIER, "key = 'settled'")
    }),
    breach("rows-can-be-read", |rows| quote(rows, "currency = 'EURO'")),
    breach("rows-can-be-read", |rows| {
        record(rows, "instructions = '['", rows.processing)
    }),
    breach("rows-can-be-read", |rows| quote(rows, "side = 'swap'")).with(CHECKED),
    breach("database-is-whole", |rows| {
        quote(rows, "service_fee = -1000000")
    })
    .with(&["rows-can-be-read"]),
    // This breach comes last, because it makes every quote one of another installation.
    breach("signed-quote-is-as-it-was-signed", |_| {
        "UPDATE installation_identity SET identity = '00000000000000000000000000000000'".to_owned()
    }),
];

// rule: cli.verify
pub async fn every_rail_breach_is_reported_by_name(world: World<impl GateFixture>) {
    let victim = async |name: String| world.railed(&name).await;
    world.assert_found(BREACHES, victim).await;
}
