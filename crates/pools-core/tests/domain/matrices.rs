//! The complete matrix of every state machine. The tests compare `docs/state-machines.md` with it.

use kernel::{Amount, Timestamp};
use pools_core::ledger::{Account, AccountKind, PostError, Reason, Transfer, TransferRole};
use pools_core::quote::{Quote, QuoteClosed, QuoteOutcome, Side};
use pools_core::trade::{EngineReport, Settlement, Step, Trade, TradeState};

use crate::fixtures::{after, eur, quote, trade};

const DOC: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/state-machines.md"
));

/// The text between `<!-- table: name -->` and `<!-- end -->`.
fn documented(name: &str) -> &'static str {
    let (_, rest) = DOC
        .split_once(&format!("<!-- table: {name} -->\n"))
        .unwrap_or_else(|| panic!("docs/state-machines.md has no table {name}"));
    rest.split_once("<!-- end -->").unwrap().0.trim()
}

/// Compares with the snapshot and with the document. After an intended change, review the snapshot and copy it
/// between the document's markers.
fn holds(name: &str, table: &Table) {
    let text = table.render();
    insta::assert_snapshot!(name, text);
    assert!(
        documented(name) == text,
        "docs/state-machines.md, table {name}, is stale; it should read\n\n{text}\n"
    );
}

struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        let rule = head.iter().map(|_| "---".to_owned()).collect();
        let head = head.iter().map(|&cell| cell.to_owned()).collect();
        Self {
            rows: vec![head, rule],
        }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn render(&self) -> String {
        let lines = self
            .rows
            .iter()
            .map(|row| format!("| {} |", row.join(" | ")));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn closed(outcome: Result<Quote, QuoteClosed>) -> String {
    match outcome {
        Ok(next) => match next.outcome {
            QuoteOutcome::Open => "open".to_owned(),
            QuoteOutcome::Consumed(_) => "→ consumed".to_owned(),
            QuoteOutcome::Rejected(_) => "→ rejected".to_owned(),
        },
        Err(QuoteClosed::Consumed) => "refused: consumed".to_owned(),
        Err(QuoteClosed::Rejected) => "refused: rejected".to_owned(),
        Err(QuoteClosed::Expired) => "refused: expired".to_owned(),
    }
}

// rule: pools.quote-record.derived, time.deadline-exclusive, pools.reject.consumed, pools.reject.rejected, pools.reject.expired, pools.transact.expired, pools.transact.rejected
#[test]
fn quote_matrix_covers_every_outcome_and_instant() {
    let mut table = Table::new(&["facts", "now", "status", "transact", "reject"]);
    let facts = [
        ("open", QuoteOutcome::Open),
        ("consumed", QuoteOutcome::Consumed(after(1_000))),
        ("rejected", QuoteOutcome::Rejected(after(1_000))),
    ];
    let instants = [
        ("1 ms before `expiresAt`", after(14_999)),
        ("at `expiresAt`", after(15_000)),
        ("1 ms after `expiresAt`", after(15_001)),
    ];
    for (name, outcome) in facts {
        for (when, now) in instants {
            let quote = Quote {
                outcome,
                ..quote(Side::OnRamp)
            };
            table.row([
                name.to_owned(),
                when.to_owned(),
                quote.status(now).as_str().to_owned(),
                closed(quote.consume(now)),
                closed(quote.reject(now)),
            ]);
        }
    }
    holds("quote", &table);
}

// rule: pools.quote-record.locked
#[test]
fn consumed_or_rejected_quote_keeps_other_fields() {
    let now = after(14_999);
    let quote = quote(Side::OnRamp);
    let consumed = quote.consume(now).unwrap();
    let rejected = quote.reject(now).unwrap();
    assert_eq!(consumed.outcome, QuoteOutcome::Consumed(now));
    assert_eq!(rejected.outcome, QuoteOutcome::Rejected(now));
    for next in [consumed, rejected] {
        let back = Quote {
            outcome: QuoteOutcome::Open,
            ..next
        };
        assert_eq!(back, quote);
    }
}

const NOW: u64 = 60_000;

fn settlement() -> Settlement {
    Settlement {
        at: after(30_000),
        fill: "first fill".to_owned(),
        rate: None,
    }
}

fn states() -> [TradeState; 5] {
    let at = after(30_000);
    [
        TradeState::Reserved,
        TradeState::Settled(settlement()),
        TradeState::Released { at },
        TradeState::Failed { at },
        TradeState::Returned {
            settlement: settlement(),
            at: after(40_000),
        },
    ]
}

fn reports() -> [(&'static str, EngineReport); 7] {
    [
        ("in progress", EngineReport::InProgress),
        ("delivered", EngineReport::Delivered("first fill".into())),
        (
            "delivered, another fill",
            EngineReport::Delivered("another".into()),
        ),
        ("cannot complete", EngineReport::CannotComplete),
        ("released", EngineReport::Released),
        // A return under another fill id leaves the fill id of the settlement.
        (
            "reversed",
            EngineReport::Reversed(Some("another".to_owned())),
        ),
        ("reversed, no fill", EngineReport::Reversed(None)),
    ]
}

fn moved(transfer: Option<(Transfer, TransferRole)>) -> String {
    transfer.map_or("none".to_owned(), |(transfer, part)| {
        format!(
            "{} → {}, {:?}, `{}` ({})",
            transfer.debit.as_str(),
            transfer.credit.as_str(),
            transfer.amount,
            transfer.reason.as_str(),
            part.as_str()
        )
    })
}

/// Checks the facts of the state after a step, which the table does not show.
fn led_to(trade: &Trade, step: &Step, report: &EngineReport, now: Timestamp) -> String {
    let settled = trade.state.settlement().cloned().unwrap_or(Settlement {
        at: now,
        fill: match report {
            EngineReport::Delivered(fill) => fill.reference.clone(),
            EngineReport::Reversed(Some(fill)) => fill.clone(),
            _ => format!("unknown:{}", trade.id),
        },
        rate: None,
    });
    match &step.state {
        TradeState::Reserved => panic!("no step leads back to reserved"),
        TradeState::Settled(made) => assert_eq!(*made, settled),
        TradeState::Released { at } | TradeState::Failed { at } => assert_eq!(*at, now),
        TradeState::Returned { settlement, at } => {
            assert_eq!((settlement, *at), (&settled, now));
        }
    }
    step.state.status().as_str().to_owned()
}

/// One cell for all steps of a report, in order.
fn in_turn(cells: Vec<String>) -> String {
    let said: Vec<String> = cells.into_iter().filter(|cell| cell != "none").collect();
    if said.is_empty() {
        "none".to_owned()
    } else {
        said.join("; ")
    }
}

fn step_cells(trade: &Trade, steps: &[Step], report: &EngineReport, now: Timestamp) -> [String; 4] {
    let of = |cell: &dyn Fn(&Step) -> String| in_turn(steps.iter().map(cell).collect());
    let event = |step: &Step| {
        let event = step.event.map(|event| format!("`{}`", event.as_str()));
        event.unwrap_or("none".to_owned())
    };
    let velocity = if steps.iter().any(|step| step.leaves_velocity) {
        "no longer counts"
    } else {
        "unchanged"
    };
    [
        of(&|step| led_to(trade, step, report, now)),
        of(&|step| moved(step.transfer)),
        of(&event),
        velocity.to_owned(),
    ]
}

fn trade_table(side: Side, reserved: Option<Amount>) -> Table {
    let mut table = Table::new(&[
        "state",
        "engine reports",
        "next",
        "transfer",
        "event",
        "velocity",
    ]);
    let now = after(NOW);
    for state in states() {
        for (name, report) in reports() {
            let trade = Trade {
                state: state.clone(),
                ..trade(side, reserved)
            };
            let mut row = vec![state.status().as_str().to_owned(), name.to_owned()];
            row.extend(match trade.steps(&report, now) {
                Err(contradiction) => {
                    assert_eq!(contradiction.trade, trade.id);
                    let next = format!("stays: a contradiction (`{}`)", contradiction.report);
                    [next, "none".into(), "none".into(), "unchanged".into()]
                }
                Ok(steps) if steps.is_empty() => {
                    ["stays", "none", "none", "unchanged"].map(str::to_owned)
                }
                Ok(steps) => step_cells(&trade, &steps, &report, now),
            });
            table.row(row);
        }
    }
    table
}

// rule: pools.trade.settle, pools.trade.fail, pools.trade.release, pools.trade.return, pools.trade.terminal, pools.trade.settled-at, pools.ledger.buy-refund, pools.velocity.given-back, pools.event.once, pools.event.none-else
#[test]
fn purchase_matrix_covers_every_report_and_state() {
    holds("purchase", &trade_table(Side::OnRamp, Some(eur("100"))));
}

// rule: pools.gate-off.reserves-nothing, pools.refund.mirrors
#[test]
fn purchase_matrix_without_balance_gate_covers_every_report_and_state() {
    holds("purchase-without-gate", &trade_table(Side::OnRamp, None));
}

// rule: pools.ledger.sell-refund, pools.ledger.sell-returned, pools.gate-off.sale
#[test]
fn sale_matrix_covers_every_report_and_state() {
    let sold = trade(Side::OffRamp, None).terms.crypto;
    holds("sale", &trade_table(Side::OffRamp, Some(sold)));
}

// rule: pools.ledger.buy, pools.ledger.sell, pools.gate-off.reserves-nothing
#[test]
fn reserve_matrix_covers_side_and_balance_gate() {
    let mut table = Table::new(&["trade", "transfer at transact"]);
    let sold = trade(Side::OffRamp, None).terms.crypto;
    for (name, side, reserved) in [
        ("purchase, balance gate on", Side::OnRamp, Some(eur("100"))),
        ("purchase, balance gate off", Side::OnRamp, None),
        ("sale", Side::OffRamp, Some(sold)),
    ] {
        let transfer = trade(side, reserved).reserve_transfer();
        table.row([
            name.to_owned(),
            moved(transfer.map(|transfer| (transfer, TransferRole::Reserve))),
        ]);
    }
    holds("reserve", &table);
}

fn posted(debit: AccountKind, credit: AccountKind, amount: &str) -> String {
    let account = Account {
        available: eur("10"),
        sequence: 3,
    };
    let transfer = Transfer {
        debit,
        credit,
        amount: eur(amount),
        reason: Reason::Adjustment,
    };
    match account.post(&transfer) {
        Ok((same, None)) => {
            assert_eq!(same, account);
            "no entry on it".to_owned()
        }
        Ok((next, Some(mark))) => {
            assert_eq!(
                (mark.sequence, mark.balance_after),
                (next.sequence, next.available)
            );
            format!("{}, entry {}", next.available, next.sequence)
        }
        Err(PostError::Insufficient) => "refused: insufficient".to_owned(),
        Err(PostError::TooLarge) => "refused: too large".to_owned(),
        Err(PostError::WrongAsset) => "refused: another currency".to_owned(),
        Err(PostError::SameAccount) => "refused: one account twice".to_owned(),
    }
}

// rule: money.never-negative, money.zero-sum
#[test]
fn account_matrix_covers_every_transfer() {
    let all = [
        AccountKind::Partner,
        AccountKind::Reserved,
        AccountKind::Operator,
        AccountKind::Outside,
    ];
    let mut table = Table::new(&["from", "to", "10.00 moves", "10.01 move"]);
    for debit in all {
        for credit in all {
            table.row([
                debit.as_str().to_owned(),
                credit.as_str().to_owned(),
                posted(debit, credit, "10"),
                posted(debit, credit, "10.01"),
            ]);
        }
    }
    holds("account", &table);
}

#[test]
fn account_refuses_other_currency_and_overflow() {
    let account = Account {
        available: Amount::from_units(i64::MAX - i64::MAX % 1_000_000, eur("1").asset()).unwrap(),
        sequence: 3,
    };
    let credit = Transfer {
        debit: AccountKind::Outside,
        credit: AccountKind::Partner,
        amount: eur("0.01"),
        reason: Reason::PayinCredit,
    };
    assert_eq!(account.post(&credit), Err(PostError::TooLarge));
    let foreign = Transfer {
        amount: crate::fixtures::usdt("1"),
        ..credit
    };
    assert_eq!(account.post(&foreign), Err(PostError::WrongAsset));
}
