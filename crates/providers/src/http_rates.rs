//! Rates from sources over HTTP: `http:<file>`. Each source is asked again and again in the background;
//! a question is answered at once from what they said last.
//!
//! A pair is priced by the median of the prices young enough, if there are enough of them and they
//! agree: a price that is too old, too few sources, or prices too far apart, and there is none. An
//! answer that is late or means nothing changes nothing: what the source said before grows old.

mod file;
mod json;
mod source;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use instruments::far_end::{self, Withheld};
use kernel::{Amount, Asset, Clock, Mid};
use partner_core::pools::PoolId;
use partner_core::ports::RateSource;
use partner_core::rates::{SourceRate, WHOLE_BPS};
use rust_decimal::Decimal;

use crate::client::HttpClient;
use crate::static_rates::RatesFault;
use source::Source;

/// An answer is at most this long: some sources tell all they know at once.
const LONGEST: usize = 1024 * 1024;

/// The rates of several sources.
pub struct HttpRates {
    sources: Vec<Source>,
    pairs: BTreeMap<PoolId, u16>,
    terms: Terms,
    client: HttpClient,
    clock: Arc<dyn Clock>,
}

/// What is demanded of sources.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// No price older than this is used.
    max_age: Duration,
    /// How far the highest price may lie above the lowest.
    max_spread_bps: u16,
    /// So many prices, at least.
    min_sources: usize,
    /// How long a source rests between two answers.
    refresh: Duration,
    /// How long one answer may take.
    timeout: Duration,
}

impl std::fmt::Debug for HttpRates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpRates")
    }
}

/// Why there are no rates.
#[derive(Debug, thiserror::Error)]
pub enum RatesUnopened {
    /// The file's faults, in the order of its lines.
    #[error("the file of sources cannot be used")]
    File(Vec<RatesFault>),
    /// A source is `https` and the machine trusts no certificate.
    #[error(transparent)]
    Trust(#[from] io::Error),
}

impl HttpRates {
    /// Reads a file of sources; `environment` gives the variables it names.
    ///
    /// # Errors
    /// [`RatesUnopened`]. Nothing has been asked by then.
    pub fn read(
        path: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RatesUnopened> {
        let file = file::read(path, environment).map_err(RatesUnopened::File)?;
        far_end::rate_sources_begin();
        let encrypted = file.sources.iter().any(Source::is_encrypted);
        Ok(Self {
            client: HttpClient::new(encrypted, LONGEST)?,
            sources: file.sources,
            pairs: file.pairs,
            terms: file.terms,
            clock,
        })
    }

    /// How many sources there are.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Asks the source of this number again and again, until `stop`.
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
            () = stop => {}
            () = asking => {}
        }
    }

    fn count(&self) {
        let answering = self.sources.iter().filter(|source| source.is_answering());
        far_end::rate_sources(answering.count(), self.sources.len());
    }

    /// The median of the prices of a pair that are young enough.
    fn mid(&self, pair: PoolId) -> Result<Mid, Withheld> {
        let now = self.clock.now();
        let prices = self.sources.iter().filter_map(|source| source.price(pair));
        let young = prices.filter(|price| price.age(now) <= self.terms.max_age);
        let mut young: Vec<Decimal> = young.map(|price| price.mid).collect();
        young.sort_unstable();
        let (Some(lowest), Some(highest)) = (young.first(), young.last()) else {
            return Err(Withheld::TooFew);
        };
        if young.len() < self.terms.min_sources {
            return Err(Withheld::TooFew);
        }
        if !is_near(lowest, highest, self.terms.max_spread_bps) {
            return Err(Withheld::TooFarApart);
        }
        median(&young).ok_or(Withheld::TooFarApart)
    }
}

#[async_trait]
impl RateSource for HttpRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, _: Amount) -> Option<SourceRate> {
        let pair = PoolId::of(fiat, crypto);
        let spread_bps = *self.pairs.get(&pair)?;
        // Right after the start nobody has been asked yet: that is waited for, once.
        let serving = self.sources.iter().filter(|source| source.serves(pair));
        let asked = async {
            for source in serving {
                source.was_asked().await;
            }
        };
        let _ = tokio::time::timeout(self.terms.timeout, asked).await;
        match self.mid(pair) {
            Ok(mid) => Some(SourceRate { mid, spread_bps }),
            Err(reason) => {
                far_end::rate_withheld(reason);
                tracing::debug!(pair = %pair, reason = reason.as_str(), "A pair has no rate");
                None
            }
        }
    }
}

/// Lies the highest price at most so far above the lowest? Exact.
fn is_near(lowest: &Decimal, highest: &Decimal, most_bps: u16) -> bool {
    let fraction = |price| Mid::new(price).map(|mid| mid.fraction());
    let (Some(lowest), Some(highest)) = (fraction(*lowest), fraction(*highest)) else {
        return false;
    };
    let most = Decimal::new(i64::from(WHOLE_BPS) + i64::from(most_bps), 4);
    let over = highest.over(&lowest);
    over.and_then(|over| over.compare(&most))
        .is_some_and(|order| order.is_le())
}

/// The middle one of prices in order; between two, half of what they add up to.
fn median(sorted: &[Decimal]) -> Option<Mid> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Mid::new(upper);
    }
    let lower = *sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    Mid::new(half_of(lower, upper)?)
}

/// Half of what two prices add up to.
fn half_of(one: Decimal, other: Decimal) -> Option<Decimal> {
    one.checked_add(other)?.checked_div(Decimal::TWO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(texts: &[&str]) -> Vec<Decimal> {
        let read = |text: &&str| Decimal::from_str_exact(text).unwrap();
        texts.iter().map(read).collect()
    }

    #[test]
    fn the_median_is_exact() {
        for (prices, middle) in [
            (&["1.0850"][..], "1.085"),
            (&["0.1", "0.2"], "0.15"),
            (&["1.0849", "1.0850", "9"], "1.085"),
            (&["1", "1.0849", "1.0852", "9"], "1.08505"),
            (
                &["1.0000000000000000000000001", "1.0000000000000000000000003"],
                "1.0000000000000000000000002",
            ),
        ] {
            let found = median(&decimals(prices)).unwrap().to_string();
            assert_eq!(found, middle);
        }
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn prices_are_near_up_to_the_last_digit() {
        for (lowest, highest, bps, near) in [
            ("1", "1.0050", 50, true),
            ("1", "1.0050000000000000000000001", 50, false),
            ("1.0850", "1.0850", 0, true),
            ("0.00001", "0.0000101", 99, false),
            ("0.00001", "0.0000101", 100, true),
        ] {
            let prices = decimals(&[lowest, highest]);
            assert_eq!(
                is_near(&prices[0], &prices[1], bps),
                near,
                "{lowest} {highest}"
            );
        }
    }
}
