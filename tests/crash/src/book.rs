//! What the clients were told, and what they still have to find out.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::caller::number;
use crate::http::Answer;
use crate::orders::{Asset, Order};

/// A firm quote, as its creation and everything after it said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quote {
    pub(crate) order: Order,
    pub(crate) rate: String,
    pub(crate) spread_bps: u64,
    pub(crate) fee_bps: u64,
    /// The key every well-behaved client uses for it.
    pub(crate) key: String,
    /// The trade that some answer has named.
    pub(crate) trade: Option<String>,
    /// Before this instant the trade was acknowledged to somebody.
    pub(crate) acknowledged: Option<Duration>,
    /// Keys under which transacts were sent that nobody knows the end of, and how many.
    pub(crate) in_doubt: BTreeMap<String, u32>,
    /// How often it was said to be executed for the first time.
    pub(crate) firsts: u32,
    pub(crate) rejected: bool,
    pub(crate) reject_in_doubt: bool,
    /// Was it read as expired? Then it is never executed.
    pub(crate) expired: bool,
    /// The furthest state somebody has seen.
    pub(crate) seen: Option<String>,
}

/// A page of the ledger that a client has read, newest first.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) asset: Asset,
    pub(crate) invoked: Duration,
    pub(crate) available: i64,
    /// Entry and balance after it.
    pub(crate) entries: Vec<(String, i64)>,
}

/// One partner's.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) quotes: BTreeMap<String, Quote>,
    /// Deposits by their reference.
    pub(crate) deposits: BTreeMap<String, Deposit>,
    pub(crate) pages: Vec<Page>,
    /// Quotes that may still change, newest last.
    pub(crate) hot: Vec<String>,
    /// What contradicts what was said before.
    pub(crate) breaches: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Deposit {
    pub(crate) asset: Asset,
    pub(crate) hundredths: i64,
    pub(crate) in_doubt: bool,
}

impl Deposit {
    /// One that is about to be asked for.
    pub(crate) const fn of(asset: Asset, hundredths: i64) -> Self {
        Self {
            asset,
            hundredths,
            in_doubt: true,
        }
    }

    /// In the asset's own steps.
    pub(crate) const fn amount(&self) -> i64 {
        self.asset.hundredths(self.hundredths)
    }
}

impl Quote {
    /// What the service has answered to an order: the quote and its id.
    pub(crate) fn read(order: Order, answer: &Answer) -> Option<(String, Self)> {
        let said = answer.json();
        let bps = |name| said.get(name).and_then(Value::as_u64);
        let quote = Self {
            order,
            rate: answer.text("rate")?,
            spread_bps: bps("spreadBps")?,
            fee_bps: bps("feeBps")?,
            key: format!("key-{}", number()),
            ..Self::default()
        };
        Some((answer.text("quoteId")?, quote))
    }

    /// A transact is being sent.
    pub(crate) fn doubt(&mut self, key: &str) {
        *self.in_doubt.entry(key.to_owned()).or_default() += 1;
    }

    /// One transact under this key has had its end; others may not.
    pub(crate) fn know(&mut self, key: &str) {
        if let Some(open) = self.in_doubt.get_mut(key) {
            *open = open.saturating_sub(1);
        }
        self.in_doubt.retain(|_, open| *open > 0);
    }
}

/// States in which a trade may be after another.
pub(crate) fn follows(before: &str, now: &str) -> bool {
    match before {
        "reserved" => true,
        "settled" => matches!(now, "settled" | "returned"),
        _ => before == now,
    }
}

impl Book {
    /// Somebody was told that a quote has this trade.
    pub(crate) fn acknowledge(&mut self, id: &str, trade: &str, first: bool, at: Duration) {
        let Some(quote) = self.quotes.get_mut(id) else {
            return;
        };
        quote.firsts += u32::from(first);
        quote.acknowledged.get_or_insert(at);
        match &quote.trade {
            None => quote.trade = Some(trade.to_owned()),
            Some(earlier) if earlier == trade => {}
            Some(earlier) => {
                let breach = format!("{id} has the trades {earlier} and {trade}");
                self.breaches.push(breach);
            }
        }
        let quote = self.quotes.get(id);
        if quote.is_some_and(|quote| quote.firsts > 1) {
            self.breaches
                .push(format!("{id} was executed for the first time twice"));
        }
        if quote.is_some_and(|quote| quote.rejected) {
            self.breaches.push(format!("{id} is rejected and executed"));
        }
    }

    pub(crate) fn reject(&mut self, id: &str) {
        let Some(quote) = self.quotes.get_mut(id) else {
            return;
        };
        if quote.rejected {
            self.breaches.push(format!("{id} was rejected twice"));
        }
        if quote.trade.is_some() {
            self.breaches.push(format!("{id} is executed and rejected"));
        }
        quote.rejected = true;
        quote.reject_in_doubt = false;
    }

    /// Somebody saw the trade of a quote in a state, asked after all that was noted before.
    pub(crate) fn saw(&mut self, id: &str, state: &str, known: Option<&str>) {
        if let Some(before) = known
            && !follows(before, state)
        {
            self.breaches
                .push(format!("{id} went from {before} to {state}"));
        }
        if let Some(quote) = self.quotes.get_mut(id) {
            let further = quote
                .seen
                .as_deref()
                .is_none_or(|seen| follows(seen, state));
            if further {
                quote.seen = Some(state.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        let quotes = [("q".to_owned(), Quote::default())];
        Book {
            quotes: quotes.into(),
            ..Book::default()
        }
    }

    #[test]
    fn a_second_trade_is_a_breach() {
        let mut book = book();
        book.acknowledge("q", "t1", true, Duration::ZERO);
        book.acknowledge("q", "t1", false, Duration::ZERO);
        assert!(book.breaches.is_empty());
        book.acknowledge("q", "t2", false, Duration::ZERO);
        assert_eq!(book.breaches.len(), 1);
    }

    #[test]
    fn executed_and_rejected_is_a_breach_either_way() {
        let mut one = book();
        one.acknowledge("q", "t", true, Duration::ZERO);
        one.reject("q");
        assert_eq!(one.breaches.len(), 1);
        let mut other = book();
        other.reject("q");
        other.acknowledge("q", "t", true, Duration::ZERO);
        assert_eq!(other.breaches.len(), 1);
    }

    #[test]
    fn states_never_go_back() {
        let mut book = book();
        book.saw("q", "settled", None);
        book.saw("q", "returned", Some("settled"));
        assert!(book.breaches.is_empty());
        book.saw("q", "settled", Some("returned"));
        assert_eq!(book.breaches.len(), 1);
    }
}
