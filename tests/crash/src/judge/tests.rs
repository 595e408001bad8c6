//! Each check detects its breach.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::book::{Deposit, Page};
use crate::orders::{Order, Side};

const RATE: &str = "1.07903250";

/// A deposit, a settled trade and a returned trade, without a breach.
fn clean() -> (Book, Judged) {
    let quote = |trade: &str| Quote {
        order: Order::new(Side::Purchase, 1000),
        rate: RATE.to_owned(),
        spread_bps: 25,
        fee_bps: 30,
        trade: Some(trade.to_owned()),
        acknowledged: Some(Duration::from_secs(1)),
        ..Quote::default()
    };
    let deposit = Deposit::of(Asset::Eur, 5000);
    let book = Book {
        quotes: [("q1", quote("t1")), ("q2", quote("t2"))]
            .map(|(id, quote)| (id.to_owned(), quote))
            .into(),
        deposits: [("opening".to_owned(), deposit)].into(),
        ..Book::default()
    };
    let mut judged = Judged::default();
    let lines = [
        ("payin_credit", "opening", 5000),
        ("buy_debit", "q1", -1000),
        ("buy_debit", "q2", -1000),
        ("buy_refund", "q2", 1000),
    ];
    let mut after = 0;
    for (place, (reason, reference, delta)) in lines.into_iter().enumerate() {
        after += delta;
        let ledger = judged.ledgers.entry(Asset::Eur).or_default();
        ledger.push(Entry {
            id: format!("e{place}"),
            delta,
            after,
            reason: reason.to_owned(),
            reference: reference.to_owned(),
        });
    }
    for (quote, trade, status) in [("q1", "t1", "settled"), ("q2", "t2", "returned")] {
        let state = (trade.to_owned(), status.to_owned());
        judged.trades.insert(quote.to_owned(), state);
    }
    (book, judged)
}

fn trade(fields: serde_json::Value) -> Trade {
    let text = |name: &str| field(&fields, name).unwrap();
    Trade {
        id: text("transactId"),
        quote: text("quoteId"),
        status: text("status"),
        fields,
    }
}

fn settled() -> serde_json::Value {
    json!({"transactId": "t1", "quoteId": "q1", "status": "settled", "spreadBps": 25, "feeBps": 30, "totalBps": 55,
           "quotedRate": RATE, "fiatAmount": "10.00", "cryptoAmount": "10.790325"})
}

#[test]
fn matching_observations_have_no_breach() {
    let (book, judged) = clean();
    assert!(check_acknowledged(&book, &judged).is_empty());
    assert!(check_money(&book, &judged, Some(4000), true).is_empty());
    assert!(check_trade(&trade(settled()), &book, &judged).is_empty());
}

#[test]
fn lost_trade_is_detected() {
    let (book, mut judged) = clean();
    judged.trades.remove("q1");
    assert_eq!(check_acknowledged(&book, &judged).len(), 1);
}

#[test]
fn unrequested_trade_is_detected() {
    let (mut book, judged) = clean();
    book.quotes.get_mut("q1").unwrap().trade = None;
    assert_eq!(check_trade(&trade(settled()), &book, &judged).len(), 1);
    book.quotes.remove("q1");
    assert_eq!(check_trade(&trade(settled()), &book, &judged).len(), 1);
}

#[test]
fn changed_terms_and_steps_back_are_detected() {
    let (book, judged) = clean();
    for (name, value) in [
        ("cryptoAmount", json!("10.790326")),
        ("fiatAmount", json!("10.01")),
        ("quotedRate", json!("1.07903251")),
        ("totalBps", json!(54)),
        ("status", json!("reserved")),
    ] {
        let mut fields = settled();
        fields[name] = value;
        assert_eq!(
            check_trade(&trade(fields), &book, &judged).len(),
            1,
            "{name}"
        );
    }
}

#[test]
fn executed_quote_with_rejection_or_expiry_is_detected() {
    let (mut book, judged) = clean();
    book.quotes.get_mut("q1").unwrap().expired = true;
    assert_eq!(check_trade(&trade(settled()), &book, &judged).len(), 1);
}

#[test]
fn doubled_or_missing_ledger_entry_is_detected() {
    type Change = fn(&mut Vec<Entry>);
    let changes: [Change; 5] = [
        |ledger| ledger.push(ledger[1].clone()),
        |ledger| drop(ledger.remove(1)),
        |ledger| drop(ledger.remove(0)),
        |ledger| ledger[3].delta = 999,
        |ledger| ledger[2].reference = "q9".to_owned(),
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let (book, mut judged) = clean();
        change(judged.ledgers.get_mut(&Asset::Eur).unwrap());
        assert!(
            !check_money(&book, &judged, Some(4000), true).is_empty(),
            "{place}"
        );
    }
    let (book, judged) = clean();
    assert_eq!(check_money(&book, &judged, Some(4001), true).len(), 1);
}

#[test]
fn missing_refund_is_detected_and_later_refund_is_accepted() {
    let (book, mut judged) = clean();
    judged.trades.get_mut("q2").unwrap().1 = "settled".to_owned();
    assert!(check_money(&book, &judged, Some(4000), false).is_empty());
    assert_eq!(check_money(&book, &judged, Some(4000), true).len(), 1);
    judged.trades.get_mut("q1").unwrap().1 = "failed".to_owned();
    assert_eq!(check_money(&book, &judged, Some(4000), false).len(), 1);
}

/// The same observations with a sale of 10 USDT whose payout was returned.
fn with_a_returned_sale() -> (Book, Judged) {
    let (mut book, mut judged) = clean();
    let sale = Quote {
        order: Order::new(Side::Sale, 1000),
        rate: "0.91658986".to_owned(),
        trade: Some("t3".to_owned()),
        ..Quote::default()
    };
    book.quotes.insert("q3".to_owned(), sale);
    let deposit = Deposit::of(Asset::Usdt, 5000);
    book.deposits.insert("receipt".to_owned(), deposit);
    let state = ("t3".to_owned(), "returned".to_owned());
    judged.trades.insert("q3".to_owned(), state);
    for (asset, reason, reference, delta, after) in [
        (
            Asset::Usdt,
            "crypto_receipt",
            "receipt",
            50_000_000,
            50_000_000,
        ),
        (Asset::Usdt, "sell_debit", "q3", -10_000_000, 40_000_000),
        (Asset::Eur, "buy_refund", "q3", 916, 4916),
    ] {
        let ledger = judged.ledgers.entry(asset).or_default();
        ledger.push(Entry {
            id: format!("{}{}", asset.code(), ledger.len()),
            delta,
            after,
            reason: reason.to_owned(),
            reference: reference.to_owned(),
        });
    }
    (book, judged)
}

#[test]
fn sale_debits_and_refunds_same_account() {
    let (book, judged) = with_a_returned_sale();
    assert!(check_money(&book, &judged, Some(4916), true).is_empty());
    for status in ["failed", "released", "settled", "reserved"] {
        let (book, mut judged) = with_a_returned_sale();
        judged.trades.get_mut("q3").unwrap().1 = status.to_owned();
        let breaches = check_money(&book, &judged, Some(4916), true);
        assert_eq!(breaches.len(), 1, "{status}: {breaches:?}");
    }
    let (book, mut judged) = with_a_returned_sale();
    judged.ledgers.remove(&Asset::Usdt);
    let breaches = check_money(&book, &judged, Some(4916), true);
    assert_eq!(breaches.len(), 2, "neither debit nor receipt: {breaches:?}");
}

#[test]
fn broken_or_rewritten_ledger_is_detected() {
    let (_, mut judged) = clean();
    let ledger = judged.ledgers.get_mut(&Asset::Eur).unwrap();
    let mut read = ledger.clone();
    assert!(check_ledger(&read, ledger, true).is_empty());
    read[1].delta = -999;
    assert_eq!(check_ledger(&read, ledger, true).len(), 1);
    let mut next = ledger[3].clone();
    next.id = "e4".to_owned();
    assert_eq!(check_ledger(&[next], ledger, false).len(), 1);
}

#[test]
fn page_without_acknowledged_entry_is_detected() {
    let (mut book, judged) = clean();
    let page = |invoked, places: &[usize]| {
        let entries = places.iter().map(|place| {
            let entry = &judged.ledgers[&Asset::Eur][*place];
            (entry.id.clone(), entry.after)
        });
        Page {
            asset: Asset::Eur,
            invoked: Duration::from_millis(invoked),
            available: judged.ledgers[&Asset::Eur][places[0]].after,
            entries: entries.collect(),
        }
    };
    book.pages = vec![page(500, &[1, 0]), page(1500, &[3, 2, 1])];
    assert!(check_pages(&book, &judged).is_empty());
    book.pages = vec![page(1500, &[1, 0])];
    assert_eq!(check_pages(&book, &judged).len(), 1, "q2 was acknowledged");
    book.pages = vec![page(1500, &[3, 1])];
    assert_eq!(check_pages(&book, &judged).len(), 1, "a line is left out");
}
