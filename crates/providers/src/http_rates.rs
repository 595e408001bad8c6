//! Rates from sources over HTTP: `http:<file>`. A background task asks each source repeatedly; a rate is computed at once from
//! the latest responses.
//!
//! The rate of a pair takes three steps. First the median of all recent prices is taken, and prices too far from it are dropped.
//! The rate is the median of the remaining prices if enough remain. If the file limits how far a rate may move in a minute
//! (`moves`), a rate beyond the limit is withheld. A late or malformed response changes nothing: the price before it stays in use
//! until it is too old.

mod file;
mod json;
mod moves;
mod source;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::upstream::{self, NoRateReason};
use kernel::rates::{SourceRate, WHOLE_BPS};
use kernel::{Amount, Asset, Clock, Mid};
use parking_lot::Mutex;
use partner_core::ports::RateSource;
use pools_core::profile::PoolId;
use rust_decimal::Decimal;
use tokio::time::Instant;

use crate::client::HttpClient;
use crate::static_rates::RatesError;
use moves::{Bound, Judgement, Moves};
use source::Source;

/// Maximum length of a response, in bytes. Some sources return all their prices at once.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// The rates of several sources.
pub struct HttpRates {
    sources: Vec<Source>,
    pairs: BTreeMap<PoolId, Pair>,
    terms: Terms,
    client: HttpClient,
    clock: Arc<dyn Clock>,
}

/// A pair of the file.
struct Pair {
    /// The spread of the quoted rate.
    spread_bps: u16,
    /// The rates of the last minute.
    moves: Mutex<Moves>,
}

impl Pair {
    fn new(spread_bps: u16) -> Self {
        Self {
            spread_bps,
            moves: Mutex::default(),
        }
    }
}

/// The settings for all sources.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// The maximum age of a price that is used.
    max_age: Duration,
    /// The maximum distance of a used price from the median.
    max_spread_bps: u16,
    /// The number of prices near the median that a rate needs.
    min_sources: usize,
    /// The maximum distance of an ask above its bid.
    max_width_bps: u16,
    /// The maximum move of a rate within a minute, if limited.
    max_move_bps: Option<u16>,
    /// The pause between two calls of a source.
    refresh: Duration,
    /// The timeout of one call.
    timeout: Duration,
}

/// Why the rates cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum RatesUnopened {
    /// The errors of the file, in the order of its lines.
    #[error("the file of sources cannot be used")]
    File(Vec<RatesError>),
    /// A source is `https`, but the machine trusts no certificate.
    #[error(transparent)]
    Trust(#[from] io::Error),
}

impl HttpRates {
    /// Reads a file of sources. `environment` returns the variables that the file names.
    ///
    /// # Errors
    /// [`RatesUnopened`]. No source is called before such an error.
    pub fn read(
        path: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RatesUnopened> {
        let file = file::read(path, environment).map_err(RatesUnopened::File)?;
        upstream::rate_sources_begin();
        let encrypted = file.sources.iter().any(Source::is_encrypted);
        Ok(Self {
            client: HttpClient::new(encrypted, MAX_RESPONSE_BYTES)?,
            sources: file.sources,
            pairs: file.pairs,
            terms: file.terms,
            clock,
        })
    }

    #[must_use]
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Asks the source of this number repeatedly until `stop`.
    pub async fn follow(&self, number: usize, stop: impl Future<Output = ()> + Send) {
        let Some(source) = self.sources.get(number) else {
            return;
        };
        let asking = async {
            loop {
                source.ask(&self.client, &self.terms, &*self.clock).await;
                self.count();
                tokio::time::sleep(self.terms.refresh).await;
            }
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = asking => {}
        }
    }

    /// Updates the metrics of sources and pairs, and applies the limit on moves to every pair, also without a quote.
    fn count(&self) {
        let answering = self.sources.iter().filter(|source| source.is_answering());
        upstream::rate_sources(answering.count(), self.sources.len());
        // After the start, a pair waits for the first response or timeout of every source. Otherwise later rates would be
        // compared with the price of the fastest source alone.
        let judged = self.pairs.iter().filter(|(id, _)| {
            let mut serving = self.sources.iter().filter(|source| source.serves(**id));
            serving.all(Source::has_been_asked)
        });
        let rates: Vec<_> = judged.map(|(id, pair)| self.mid(*id, pair)).collect();
        let withheld: Vec<_> = rates.iter().filter_map(|rate| rate.err()).collect();
        upstream::rate_pairs(rates.len(), &withheld);
    }

    /// The current rate of a pair.
    fn mid(&self, id: PoolId, pair: &Pair) -> Result<Mid, NoRateReason> {
        // The lock is held during the computation, so that rates are checked in the order in which they are computed.
        let mut moves = pair.moves.lock();
        let agreed = self.agreed(id, self.terms.max_age);
        let rate = agreed.inspect_err(|_| moves.interrupt())?;
        let Some(max_move_bps) = self.terms.max_move_bps else {
            return to_mid(rate);
        };
        let bound = Bound {
            max_move_bps,
            max_age: self.terms.max_age,
        };
        let confirmed = |age| self.agreed(id, age).ok();
        let judgement = moves.judge(rate, Instant::now(), bound, confirmed);
        note(id, rate, judgement);
        if judgement.is_accepted() {
            to_mid(rate)
        } else {
            Err(NoRateReason::MovedTooFar)
        }
    }

    /// The median of the prices of at most this age, without those too far from the median of all of them.
    fn agreed(&self, id: PoolId, max_age: Duration) -> Result<Decimal, NoRateReason> {
        let now = self.clock.now();
        let prices = self.sources.iter().filter_map(|source| source.price(id));
        let young = prices.filter(|price| price.age(now) <= max_age);
        median_of_near(young.map(|price| price.mid).collect(), &self.terms)
    }
}

/// Logs the start of a jump in a pair's rate, and its acceptance.
fn note(id: PoolId, rate: Decimal, judgement: Judgement) {
    match judgement {
        Judgement::JumpBegins => tracing::warn!(
            pair = %id,
            rate = %rate,
            "A rate moved further than max_move_bps within a minute. The pair has no rate until the rate \
             returns or holds for a minute. Compare the sources with the market"
        ),
        Judgement::JumpAccepted => tracing::warn!(
            pair = %id,
            rate = %rate,
            "A rate that moved further than max_move_bps held for a minute. It is quoted from now on"
        ),
        Judgement::Near | Judgement::JumpLasts => {}
    }
}

#[async_trait]
impl RateSource for HttpRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, _: Amount) -> Option<SourceRate> {
        let id = PoolId::of(fiat, crypto);
        let pair = self.pairs.get(&id)?;
        // Right after the start no source has responded yet. The request waits for the first response once.
        let serving = self.sources.iter().filter(|source| source.serves(id));
        let asked = async {
            for source in serving {
                source.was_asked().await;
            }
        };
        let _ = tokio::time::timeout(self.terms.timeout, asked).await;
        match self.mid(id, pair) {
            Ok(mid) => Some(SourceRate {
                mid,
                spread_bps: pair.spread_bps,
            }),
            Err(reason) => {
                upstream::rate_withheld(reason);
                tracing::debug!(pair = %id, reason = reason.as_str(), "A pair has no rate");
                None
            }
        }
    }
}

/// The median of the prices that are near the median of all.
fn median_of_near(mut prices: Vec<Decimal>, terms: &Terms) -> Result<Decimal, NoRateReason> {
    if prices.len() < terms.min_sources {
        return Err(NoRateReason::TooFew);
    }
    prices.sort_unstable();
    let middle = median(&prices).ok_or(NoRateReason::TooFarApart)?;
    prices.retain(|price| is_near(*price, middle, terms.max_spread_bps));
    if prices.len() < terms.min_sources {
        return Err(NoRateReason::TooFarApart);
    }
    median(&prices).ok_or(NoRateReason::TooFarApart)
}

fn to_mid(rate: Decimal) -> Result<Mid, NoRateReason> {
    Mid::new(rate).ok_or(NoRateReason::TooFarApart)
}

/// Whether the higher of two prices lies at most `max_bps` above the lower. Exact.
fn is_near(one: Decimal, other: Decimal, max_bps: u16) -> bool {
    let fraction = |price| Mid::new(price).map(|mid| mid.fraction());
    let (lower, higher) = (one.min(other), one.max(other));
    let (Some(lower), Some(higher)) = (fraction(lower), fraction(higher)) else {
        return false;
    };
    let most = Decimal::new(i64::from(WHOLE_BPS) + i64::from(max_bps), 4);
    let over = higher.over(&lower);
    over.and_then(|over| over.compare(&most))
        .is_some_and(|order| order.is_le())
}

/// The middle one of sorted prices, or half of the sum of the middle two.
fn median(sorted: &[Decimal]) -> Option<Decimal> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    half_of(lower, upper)
}

/// Half of the sum of two prices.
fn half_of(one: Decimal, other: Decimal) -> Option<Decimal> {
    one.checked_add(other)?.checked_div(Decimal::TWO)
}

#[cfg(test)]
mod tests;
