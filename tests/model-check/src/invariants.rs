//! Invariants of every state of the store and of every step. The letters are those of the groups of rules: money, quotes, trades,
//! idempotency, events.

use kernel::Amount;
use partner_core::idempotency::Fingerprint;
use pools_core::ledger::{Account, AccountKind, Reason, TransferRole};
use pools_core::quote::{Quote, QuoteOutcome, Side};
use pools_core::trade::{Trade, TradeStatus};
use pools_core::usecases::transact_quote::Transact;
use pools_core::velocity::cutoff;

use crate::db::{Db, booked};
use crate::engine::{EngineState, Stage};
use crate::world::{IDEMPOTENCY_TTL, WINDOW, assets, key};

/// A broken invariant, described.
pub(crate) type Breach = &'static str;

type Check = (Breach, fn(&Db) -> bool);

const STATE: [Check; 9] = [
    (
        "M1 an account holds the sum of its entries, numbered without a gap",
        accounts_chain,
    ),
    (
        "M2 reserved value is that of the open trades",
        reserved_is_open,
    ),
    ("M4 a reserve has one fate, and it is the trade's", fates),
    ("M5 a refund stands exactly with a returned trade", refunds),
    (
        "M8 the cap holds at every instant, and the total is the sum",
        velocity,
    ),
    ("M9 a trade has the terms of its quote", terms),
    (
        "Q1 a quote is consumed exactly with its trade, and in time",
        consumed,
    ),
    ("I4 what was opened was recorded under its key", recorded),
    ("E1 a trade that ended has one event of its type", events),
];

/// Returns the first invariant that does not hold.
pub(crate) fn state(db: &Db) -> Option<Breach> {
    STATE
        .iter()
        .find(|(_, holds)| !holds(db))
        .map(|(name, _)| *name)
}

/// Returns the first rule about change that a transaction has broken.
pub(crate) fn step(before: &Db, after: &Db) -> Option<Breach> {
    let fates_final = before.quotes.iter().all(|(id, quote)| {
        quote.outcome == QuoteOutcome::Open
            || after.quotes.get(id).map(|quote| quote.outcome) == Some(quote.outcome)
    });
    // Entries are compared by all fields but their ids, like states.
    let kept = before.entries.iter().zip(&after.entries);
    let kept = kept
        .filter(|(one, other)| booked(one) == booked(other))
        .count();
    let appended = kept == before.entries.len();
    let id_at = |at: usize| after.events.get(at).map(|event| &event.id);
    let events = before
        .events
        .iter()
        .enumerate()
        .all(|(at, event)| id_at(at) == Some(&event.id));
    let trades = before.trades.iter().all(|(quote, trade)| {
        after
            .trades
            .get(quote)
            .is_some_and(|next| moves(trade, next))
    });
    [
        (fates_final, "Q3 a quote's outcome never changes"),
        (appended, "M1 entries are only ever added"),
        (events, "E1 events are only ever added"),
        (
            trades,
            "T1 T2 a trade moves along its path, and its settlement stays",
        ),
    ]
    .into_iter()
    .find_map(|(holds, name)| (!holds).then_some(name))
}

/// Returns the first broken rule between Penstock and the engine.
pub(crate) fn across(db: &Db, engine: &EngineState) -> Option<Breach> {
    for (id, stage) in &engine.holds {
        let status = db.trade(*id).map(|trade| trade.state.status());
        if stage.delivered()
            && matches!(
                status,
                None | Some(TradeStatus::Failed | TradeStatus::Released)
            )
        {
            return Some("M6 M7 delivered, and not charged for");
        }
    }
    let undelivered = |trade: &Trade| {
        trade.state.settlement().is_some()
            && !engine
                .holds
                .get(&trade.id)
                .is_some_and(|stage| stage.delivered())
    };
    let kept = |trade: &Trade| {
        trade.state.status() == TradeStatus::Returned
            && engine.holds.get(&trade.id) != Some(&Stage::Reversed)
    };
    if db.trades.values().any(undelivered) {
        return Some("M6 settled, and not delivered");
    }
    let mut trades = db.trades.values();
    trades.any(kept).then_some("M7 returned, and not reversed")
}

fn moves(before: &Trade, after: &Trade) -> bool {
    use TradeStatus as S;
    let settlement = before.state.settlement();
    let kept = settlement.is_none() || settlement == after.state.settlement();
    let path = match (before.state.status(), after.state.status()) {
        // A return may also come in one step with the settlement that no poll saw.
        (S::Reserved, S::Settled | S::Released | S::Failed | S::Returned)
        | (S::Settled, S::Returned) => true,
        _ => before.state == after.state,
    };
    before.id == after.id && before.terms == after.terms && kept && path
}

fn accounts_chain(db: &Db) -> bool {
    assets().into_iter().all(|asset| {
        let mut account = Account::empty(asset);
        for entry in db
            .entries
            .iter()
            .filter(|entry| entry.transfer.amount.asset() == asset)
        {
            let Ok((next, mark)) = account.post(&entry.transfer) else {
                return false;
            };
            if mark != entry.mark {
                return false;
            }
            account = next;
        }
        account == db.account(asset)
    })
}

fn units<'e>(db: &'e Db, of: impl Fn(AccountKind, AccountKind) -> bool + 'e) -> i64 {
    let chosen = db
        .entries
        .iter()
        .filter(move |entry| of(entry.transfer.debit, entry.transfer.credit));
    chosen.map(|entry| entry.transfer.amount.units()).sum()
}

fn reserved_is_open(db: &Db) -> bool {
    let open = db
        .trades
        .values()
        .filter(|trade| trade.state.status() == TradeStatus::Reserved);
    let open: i64 = open
        .filter_map(|trade| trade.reserved)
        .map(|amount| amount.units())
        .sum();
    let into = units(db, |_, credit| credit == AccountKind::Reserved);
    let out = units(db, |debit, _| debit == AccountKind::Reserved);
    into - out == open
}

fn part(db: &Db, trade: &Trade, part: TransferRole) -> Vec<(AccountKind, Amount, Reason)> {
    let own = db
        .entries
        .iter()
        .filter(|entry| entry.trade == Some((trade.id, part)));
    own.map(|entry| {
        (
            entry.transfer.credit,
            entry.transfer.amount,
            entry.transfer.reason,
        )
    })
    .collect()
}

fn fates(db: &Db) -> bool {
    db.trades.values().all(|trade| {
        let amount = trade.terms.input();
        let (debit, refund) = match trade.terms.side {
            Side::OnRamp => (Reason::BuyDebit, Reason::BuyRefund),
            Side::OffRamp => (Reason::SellDebit, Reason::SellRefund),
        };
        let close = match trade.state.status() {
            TradeStatus::Reserved => vec![],
            TradeStatus::Settled | TradeStatus::Returned => {
                vec![(AccountKind::Operator, amount, Reason::Settlement)]
            }
            TradeStatus::Failed | TradeStatus::Released => {
                vec![(AccountKind::Partner, amount, refund)]
            }
        };
        part(db, trade, TransferRole::Reserve) == [(AccountKind::Reserved, amount, debit)]
            && part(db, trade, TransferRole::Close) == close
    })
}

fn refunds(db: &Db) -> bool {
    db.trades.values().all(|trade| {
        let refund = (AccountKind::Partner, trade.terms.fiat, Reason::BuyRefund);
        let due = if trade.state.status() == TradeStatus::Returned {
            vec![refund]
        } else {
            vec![]
        };
        part(db, trade, TransferRole::Return) == due
    })
}

fn velocity(db: &Db) -> bool {
    let sum = |after, up_to| {
        db.counting(after, up_to)
            .into_iter()
            .map(i128::from)
            .sum::<i128>()
    };
    let capped = db.trades.values().all(|trade| {
        let cap = db.access.profile.velocity_cap.map(i128::from);
        cap.is_none_or(|cap| sum(cutoff(trade.created_at, WINDOW), trade.created_at) <= cap)
    });
    let newest = db.trades.values().map(|trade| trade.created_at).max();
    let exact = match (db.velocity, newest) {
        (Some(total), Some(newest)) => total.total == sum(total.floor, newest),
        (total, newest) => total.is_none() && newest.is_none(),
    };
    capped && exact
}

fn terms(db: &Db) -> bool {
    let quote = |trade: &Trade| db.quotes.get(&trade.quote);
    db.trades
        .values()
        .all(|trade| quote(trade).is_some_and(|quote| quote.terms == trade.terms))
}

fn consumed(db: &Db) -> bool {
    let agrees = |quote: &Quote| {
        let trade = db.trades.get(&quote.id);
        match quote.outcome {
            QuoteOutcome::Consumed(at) => {
                at < quote.expires_at && trade.is_some_and(|trade| trade.created_at == at)
            }
            QuoteOutcome::Rejected(at) => at < quote.expires_at && trade.is_none(),
            QuoteOutcome::Open => trade.is_none(),
        }
    };
    db.quotes.values().all(agrees)
}

/// A record may be replaced only by one made after its expiry.
fn recorded(db: &Db) -> bool {
    db.trades.values().all(|trade| {
        let fingerprint = fingerprint(trade);
        db.answered.values().any(|record| {
            (record.fingerprint == fingerprint
                && record.expires_at == trade.created_at.plus(IDEMPOTENCY_TTL))
                || record.expires_at >= trade.created_at.plus(IDEMPOTENCY_TTL * 2)
        })
    })
}

fn fingerprint(trade: &Trade) -> Fingerprint {
    Transact {
        pool: trade.terms.pool,
        quote: trade.quote,
        key: key(0),
    }
    .fingerprint()
}

fn events(db: &Db) -> bool {
    let about = |trade: &Trade| {
        let object = trade.id.to_string();
        let own = db.events.iter().filter(move |event| event.object == object);
        own.map(|event| event.kind.clone()).collect::<Vec<_>>()
    };
    db.trades.values().all(|trade| {
        let due: &[&str] = match trade.state.status() {
            TradeStatus::Reserved => &[],
            TradeStatus::Settled | TradeStatus::Returned => &["pool.transaction.settled"],
            TradeStatus::Failed => &["pool.transaction.failed"],
            TradeStatus::Released => &["pool.transaction.released"],
        };
        about(trade) == due
    })
}
