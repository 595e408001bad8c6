//! What clients observed of the pools, and which outcomes they do not know yet.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::caller::number;
use crate::http::Answer;
use crate::orders::{Asset, Order};

/// A firm quote and every outcome that a client observed of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quote {
    pub(crate) order: Order,
    pub(crate) rate: String,
    pub(crate) spread_bps: u64,
    pub(crate) fee_bps: u64,
    /// The key that every well-behaved client uses for the quote.
    pub(crate) key: String,
    /// The trade that a response named.
    pub(crate) trade: Option<String>,
    /// An instant before which a client received the acknowledgement of the trade.
    pub(crate) acknowledged: Option<Duration>,
    /// Keys of transacts whose outcome is unknown, each with the number of such transacts.
    pub(crate) in_doubt: BTreeMap<String, u32>,
    /// Number of responses that reported a first execution.
    pub(crate) firsts: u32,
    pub(crate) rejected: bool,
    pub(crate) reject_in_doubt: bool,
    /// Whether a read showed the quote as expired. Such a quote is never executed.
    pub(crate) expired: bool,
    /// The furthest trade state that a client has read.
    pub(crate) seen: Option<String>,
}

/// A page of the ledger that a client read, newest entry first.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) asset: Asset,
    pub(crate) invoked: Duration,
    pub(crate) available: i64,
    /// Each entry with the balance after it.
    pub(crate) entries: Vec<(String, i64)>,
}

/// The observations of one partner's clients.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) quotes: BTreeMap<String, Quote>,
    /// Deposits by reference.
    pub(crate) deposits: BTreeMap<String, Deposit>,
    pub(crate) pages: Vec<Page>,
    /// Quotes that may still change, newest last.
    pub(crate) hot: Vec<String>,
    /// Observations that contradict earlier ones.
    pub(crate) breaches: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Deposit {
    pub(crate) asset: Asset,
    pub(crate) hundredths: i64,
    pub(crate) in_doubt: bool,
}

impl Deposit {
    /// A quote that a client is about to request.
    pub(crate) const fn of(asset: Asset, hundredths: i64) -> Self {
        Self {
            asset,
            hundredths,
            in_doubt: true,
        }
    }

    /// The amount in the asset's smallest steps.
    pub(crate) const fn amount(&self) -> i64 {
        self.asset.hundredths(self.hundredths)
    }
}

impl Quote {
    /// The quote and its id, from the response to an order.
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

    /// Records that a transact is being sent.
    pub(crate) fn doubt(&mut self, key: &str) {
        *self.in_doubt.entry(key.to_owned()).or_default() += 1;
    }

    /// Records the outcome of one transact under this key; the outcomes of others may be unknown.
    pub(crate) fn know(&mut self, key: &str) {
        if let Some(open) = self.in_doubt.get_mut(key) {
            *open = open.saturating_sub(1);
        }
        self.in_doubt.retain(|_, open| *open > 0);
    }
}

/// States that a trade may reach from another state.
pub(crate) fn follows(before: &str, now: &str) -> bool {
    match before {
        "reserved" => true,
        "settled" => matches!(now, "settled" | "returned"),
        _ => before == now,
    }
}

impl Book {
    /// Records a response that names the trade of a quote.
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

    /// Records the state of a quote's trade, from a request that began after everything recorded so far.
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
    fn second_trade_is_breach() {
        let mut book = book();
        book.acknowledge("q", "t1", true, Duration::ZERO);
        book.acknowledge("q", "t1", false, Duration::ZERO);
        assert!(book.breaches.is_empty());
        book.acknowledge("q", "t2", false, Duration::ZERO);
        assert_eq!(book.breaches.len(), 1);
    }

    #[test]
    fn executed_and_rejected_is_breach_in_either_order() {
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
    fn trade_state_going_back_is_breach() {
        let mut book = book();
        book.saw("q", "settled", None);
        book.saw("q", "returned", Some("settled"));
        assert!(book.breaches.is_empty());
        book.saw("q", "settled", Some("returned"));
        assert_eq!(book.breaches.len(), 1);
    }
}
