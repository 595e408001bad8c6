//! One source: its URL, the parsing of its responses, and its latest prices.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use instruments::upstream::{self, SourceAnswer};
use kernel::{Clock, Timestamp};
use pools_core::profile::PoolId;
use rust_decimal::Decimal;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;

use super::json::{self, Document, Pointer, TimeForm};
use super::{Terms, half_of, is_near};
use crate::client::{CallError, Caller, HttpClient};

/// How far a source's clock may be ahead of this machine's clock. A price from within this span has the age zero.
const MAX_CLOCK_LEAD: Duration = Duration::from_secs(2);

/// A source of prices.
pub(super) struct Source {
    name: String,
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    lookups: BTreeMap<PoolId, Lookup>,
    said: watch::Sender<SourceState>,
}

/// Where a response contains the price of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) price: Quoted,
    /// The source writes fiat per crypto.
    pub(super) inverse: bool,
    /// Where the response contains the time of the price, if it does.
    pub(super) made_at: Option<(Pointer, TimeForm)>,
}

/// The form of a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Quoted {
    Mid(Pointer),
    BidAndAsk(Pointer, Pointer),
}

/// The state of a source after its calls so far.
#[derive(Debug, Default)]
struct SourceState {
    asked: bool,
    answering: bool,
    prices: BTreeMap<PoolId, Price>,
}

/// A price and its age.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    pub(super) mid: Decimal,
    /// The age at the time of the call; zero if the source sends no time.
    aged: Duration,
    /// The time of the call on two clocks. The machine's clock may be set back or stop; the monotonic clock may stop during
    /// suspension.
    asked: Instant,
    asked_at: Timestamp,
}

impl Price {
    /// The age of the price: the higher of the ages by the two clocks.
    pub(super) fn age(&self, now: Timestamp) -> Duration {
        let since = self.asked.elapsed().max(now.since(self.asked_at));
        self.aged.saturating_add(since)
    }
}

/// Why a call returned no valid prices.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the request cannot be built")]
    Unmade,
    #[error("the response has the status {0}, not 200")]
    Status(StatusCode),
    #[error("the response is not valid JSON: {0}")]
    Unread(#[from] serde_json::Error),
    #[error("{0}: expected a decimal greater than zero at {1}")]
    NoPrice(PoolId, Pointer),
    #[error("{0}: the book has no price at {1}")]
    Empty(PoolId, Pointer),
    #[error("{0}: the bid is above the ask")]
    Crossed(PoolId),
    #[error("{0}: the ask is more than {1} basis points above the bid")]
    TooWide(PoolId, u16),
    #[error("{0}: expected an instant at {1}")]
    NoInstant(PoolId, Pointer),
    #[error("{0}: the price is from the future, made at {1}")]
    Ahead(PoolId, Timestamp),
    #[error("{0}: the price is too old, made at {1}")]
    Old(PoolId, Timestamp),
}

impl SourceError {
    const fn answer(&self) -> SourceAnswer {
        match self {
            Self::Call(CallError::Late(_) | CallError::Unsent(_)) => SourceAnswer::Late,
            Self::Call(CallError::Failed(_)) | Self::Unmade => SourceAnswer::Unreachable,
            Self::Status(_) => SourceAnswer::Refused,
            Self::Call(CallError::Broken(_) | CallError::TooLong(_))
            | Self::Unread(_)
            | Self::NoPrice(..)
            | Self::Empty(..)
            | Self::Crossed(_)
            | Self::TooWide(..)
            | Self::NoInstant(..) => SourceAnswer::Unread,
            Self::Ahead(..) | Self::Old(..) => SourceAnswer::Old,
        }
    }

    /// Whether the source has a book of the pair that gives no price. Then its earlier price of the pair does not count either.
    const fn is_of_book(&self) -> bool {
        matches!(self, Self::Empty(..) | Self::Crossed(_) | Self::TooWide(..))
    }
}

impl Source {
    pub(super) fn new(
        name: String,
        uri: Uri,
        headers: Vec<(HeaderName, HeaderValue)>,
        lookups: BTreeMap<PoolId, Lookup>,
    ) -> Self {
        Self {
            name,
            uri,
            headers,
            lookups,
            said: watch::Sender::default(),
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    pub(super) fn serves(&self, pair: PoolId) -> bool {
        self.lookups.contains_key(&pair)
    }

    /// The last price of a pair, however old.
    pub(super) fn price(&self, pair: PoolId) -> Option<Price> {
        self.said.borrow().prices.get(&pair).copied()
    }

    /// Whether the last response was complete.
    pub(super) fn is_answering(&self) -> bool {
        self.said.borrow().answering
    }

    /// Whether the first call has ended, by a response or an error.
    pub(super) fn has_been_asked(&self) -> bool {
        self.said.borrow().asked
    }

    /// Sets the price of a pair, made `aged` ago.
    #[cfg(test)]
    pub(super) fn set_price(&self, pair: PoolId, mid: Decimal, aged: Duration, now: Timestamp) {
        let price = Price {
            mid,
            aged,
            asked: Instant::now(),
            asked_at: now,
        };
        self.said.send_modify(|said| {
            said.asked = true;
            said.prices.insert(pair, price);
        });
    }

    /// Waits for the end of the first call.
    pub(super) async fn was_asked(&self) {
        // The sender lives as long as this value.
        let _ = self.said.subscribe().wait_for(|said| said.asked).await;
    }

    /// Calls the source once. A price that the response lacks stays unchanged and grows older, unless the pair's book gives no price.
    pub(super) async fn ask(&self, client: &HttpClient, terms: &Terms, clock: &dyn Clock) {
        let (asked, asked_at) = (Instant::now(), clock.now());
        let (found, error) = match self.answer(client, terms.timeout).await {
            Ok(document) => self.read(&document, (asked, asked_at), terms),
            Err(error) => (BTreeMap::new(), Some(error)),
        };
        upstream::rate_source(
            error
                .as_ref()
                .map_or(SourceAnswer::Prices, SourceError::answer),
        );
        self.note(error.as_ref());
        self.keep(found, error.is_none());
    }

    /// Stores what a call has found: a price, or `None` for a pair without a price.
    fn keep(&self, found: BTreeMap<PoolId, Option<Price>>, is_complete: bool) {
        self.said.send_modify(|said| {
            said.asked = true;
            said.answering = is_complete;
            for (pair, price) in found {
                match price {
                    Some(price) => said.prices.insert(pair, price),
                    None => said.prices.remove(&pair),
                };
            }
        });
    }

    async fn answer(
        &self,
        client: &HttpClient,
        within: Duration,
    ) -> Result<Box<RawValue>, SourceError> {
        let mut request = Request::get(self.uri.clone());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::new()));
        let request = request.map_err(|_| SourceError::Unmade)?;
        let response = client.send(Caller::Rates, request, within).await?;
        match response.status {
            StatusCode::OK => Ok(serde_json::from_slice(&response.body)?),
            other => Err(SourceError::Status(other)),
        }
    }

    /// Parses every valid price; `None` is the price of a pair whose book gives no price. The second value is the error of the first
    /// invalid price.
    fn read(
        &self,
        document: &RawValue,
        (asked, asked_at): (Instant, Timestamp),
        terms: &Terms,
    ) -> (BTreeMap<PoolId, Option<Price>>, Option<SourceError>) {
        let document = Document::new(document);
        let mut found = BTreeMap::new();
        let mut error = None;
        for (pair, lookup) in &self.lookups {
            let mid = lookup.mid(*pair, &document, terms);
            let aged = lookup.aged(*pair, &document, asked_at, terms);
            match mid.and_then(|mid| Ok((mid, aged?))) {
                Ok((mid, aged)) => {
                    let price = Price {
                        mid,
                        aged,
                        asked,
                        asked_at,
                    };
                    found.insert(*pair, Some(price));
                }
                Err(wrong) => {
                    if wrong.is_of_book() {
                        found.insert(*pair, None);
                    }
                    error.get_or_insert(wrong);
                }
            }
        }
        (found, error)
    }

    /// Logs once when the source starts to fail, and once when it recovers.
    fn note(&self, error: Option<&SourceError>) {
        let name = self.name.as_str();
        let (asked, answered) = {
            let said = self.said.borrow();
            (said.asked, said.answering)
        };
        match error {
            Some(error) if answered || !asked => {
                tracing::warn!(rates.source = name, error = %error, "A rate source failed; its last prices stay in use until they are too old, but not that of a book without a price");
            }
            Some(error) => {
                tracing::debug!(rates.source = name, error = %error, "A rate source still fails");
            }
            None if asked && !answered => {
                tracing::info!(rates.source = name, "A rate source has recovered");
            }
            None => {}
        }
    }
}

impl Lookup {
    /// The price: the mid, or the mean of bid and ask if these are near each other.
    fn mid(
        &self,
        pair: PoolId,
        document: &Document<'_>,
        terms: &Terms,
    ) -> Result<Decimal, SourceError> {
        let price = |at: &Pointer| {
            let price = at.find(document).and_then(json::price);
            price.ok_or_else(|| SourceError::NoPrice(pair, at.clone()))
        };
        let (mid, at) = match &self.price {
            Quoted::Mid(at) => (Some(price(at)?), at),
            Quoted::BidAndAsk(bid_at, ask_at) => {
                // Without orders the lists of both sides are empty.
                let is_book = [bid_at, ask_at]
                    .iter()
                    .any(|at| at.find(document).is_some() || at.is_in_empty_list(document));
                let side = |at: &Pointer| match price(at) {
                    Err(_) if is_book => Err(SourceError::Empty(pair, at.clone())),
                    read => read,
                };
                let (bid, ask) = (side(bid_at)?, side(ask_at)?);
                if bid > ask {
                    return Err(SourceError::Crossed(pair));
                }
                if !is_near(bid, ask, terms.max_width_bps) {
                    return Err(SourceError::TooWide(pair, terms.max_width_bps));
                }
                (half_of(bid, ask), bid_at)
            }
        };
        let mid = mid.and_then(|mid| {
            if self.inverse {
                Decimal::ONE.checked_div(mid)
            } else {
                Some(mid)
            }
        });
        mid.ok_or_else(|| SourceError::NoPrice(pair, at.clone()))
    }

    /// The age of the price at the time of the call.
    fn aged(
        &self,
        pair: PoolId,
        document: &Document<'_>,
        asked_at: Timestamp,
        terms: &Terms,
    ) -> Result<Duration, SourceError> {
        let Some((at, form)) = &self.made_at else {
            return Ok(Duration::ZERO);
        };
        let made = at.find(document).and_then(|value| form.read(value));
        let made = made.ok_or_else(|| SourceError::NoInstant(pair, at.clone()))?;
        // The price may have been made during the call.
        if made.since(asked_at) > MAX_CLOCK_LEAD.saturating_add(terms.timeout) {
            return Err(SourceError::Ahead(pair, made));
        }
        let aged = asked_at.since(made);
        if aged > terms.max_age {
            return Err(SourceError::Old(pair, made));
        }
        Ok(aged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: rates.http.age
    #[tokio::test(start_paused = true)]
    async fn age_of_price_is_higher_age_of_both_clocks() {
        let at = |millis: i64| Timestamp::from_millis(1_779_710_400_000 + millis).unwrap();
        let price = Price {
            mid: Decimal::ONE,
            aged: Duration::from_secs(3),
            asked: Instant::now(),
            asked_at: at(0),
        };
        tokio::time::advance(Duration::from_secs(20)).await;
        // The machine's clock was set back, stopped, is correct, was set ahead.
        for (now, age) in [(-60_000, 23), (0, 23), (20_000, 23), (50_000, 53)] {
            assert_eq!(price.age(at(now)), Duration::from_secs(age), "{now}");
        }
    }

    const TERMS: Terms = Terms {
        max_age: Duration::from_secs(10),
        max_spread_bps: 50,
        min_sources: 1,
        max_width_bps: 200,
        max_move_bps: None,
        refresh: Duration::from_secs(2),
        timeout: Duration::from_secs(1),
    };

    fn pair() -> PoolId {
        PoolId::parse("EUR-USDT").unwrap()
    }

    /// A source of one pair's book.
    fn source_of_book(bid: &str, ask: &str, inverse: bool) -> Source {
        let at = |text| Pointer::parse(text).unwrap();
        let book = Lookup {
            price: Quoted::BidAndAsk(at(bid), at(ask)),
            inverse,
            made_at: None,
        };
        let uri = Uri::from_static("http://alpha.example/");
        let lookups = BTreeMap::from([(pair(), book)]);
        Source::new("alpha".to_owned(), uri, Vec::new(), lookups)
    }

    /// The price of the pair after this response.
    fn price_after(source: &Source, response: &str) -> Option<String> {
        let document: &RawValue = serde_json::from_str(response).unwrap();
        let at = (Instant::now(), Timestamp::EARLIEST);
        let (found, error) = source.read(document, at, &TERMS);
        source.keep(found, error.is_none());
        let price = source.price(pair());
        price.map(|price| price.mid.normalize().to_string())
    }

    // rule: rates.http.width
    #[tokio::test]
    async fn book_without_a_price_ends_the_earlier_price_of_its_pair() {
        let source = source_of_book("/bid", "/ask", false);
        let take = |text: &str| price_after(&source, text);
        let (good, mid) = (r#"{"bid":1.0849,"ask":1.0851}"#, Some("1.085".to_owned()));
        for without in [
            r#"{"bid":1,"ask":1.085}"#,
            r#"{"bid":1.0851,"ask":1.0849}"#,
            r#"{"bid":0,"ask":1.0851}"#,
            r#"{"bid":-1.0849,"ask":1.0851}"#,
            r#"{"bid":-1.0851,"ask":-1.0849}"#,
            r#"{"bid":1.0849,"ask":null}"#,
            r#"{"bid":1.0849}"#,
            r#"{"bid":null,"ask":null}"#,
        ] {
            assert_eq!(take(good), mid);
            assert!(source.is_answering());
            assert_eq!(take(without), None, "{without}");
            assert!(!source.is_answering(), "{without}");
        }
        // A response without the book says nothing about the pair.
        for other in ["{}", r#"{"error":["busy"]}"#, "[]"] {
            assert_eq!(take(good), mid);
            assert_eq!(take(other), mid, "{other}");
            assert!(!source.is_answering(), "{other}");
        }
    }

    // rule: rates.http.width
    #[tokio::test]
    async fn book_whose_lists_are_empty_ends_the_earlier_price_of_its_pair() {
        let source = source_of_book("/b/0/0", "/a/0/0", false);
        let good = r#"{"b":[["1.0849","3"]],"a":[["1.0851","1"]]}"#;
        for without in [
            r#"{"b":[],"a":[]}"#,
            r#"{"b":[],"a":[["1.0851","1"]]}"#,
            r#"{"b":[["1.0849","3"]],"a":[ ]}"#,
        ] {
            assert_eq!(price_after(&source, good).as_deref(), Some("1.085"));
            assert_eq!(price_after(&source, without), None, "{without}");
            assert!(!source.is_answering(), "{without}");
        }
        assert_eq!(price_after(&source, good).as_deref(), Some("1.085"));
        let other = r#"{"error":[]}"#;
        assert_eq!(price_after(&source, other).as_deref(), Some("1.085"));
    }

    // rule: rates.http.width
    #[tokio::test]
    async fn inverse_book_gives_the_inverse_of_its_mean() {
        let source = source_of_book("/bid", "/ask", true);
        for (book, price) in [
            (r#"{"bid":0.8,"ask":0.8}"#, Some("1.25")),
            (r#"{"bid":0.796,"ask":0.804}"#, Some("1.25")),
            (r#"{"bid":1,"ask":1.0200000000000001}"#, None),
            (r#"{"bid":0.804,"ask":0.796}"#, None),
            (r#"{"bid":-0.8,"ask":-0.8}"#, None),
        ] {
            assert_eq!(price_after(&source, book).as_deref(), price, "{book}");
        }
    }

    #[test]
    fn unusable_response_is_not_counted_as_missing() {
        let long = SourceError::Call(CallError::TooLong(1));
        assert_eq!(long.answer(), SourceAnswer::Unread);
        let late = SourceError::Call(CallError::Late(Duration::ZERO));
        assert_eq!(late.answer(), SourceAnswer::Late);
    }
}
