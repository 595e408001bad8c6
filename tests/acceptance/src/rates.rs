//! The rate source: the sandbox's or a replacement, unless a test sets a pair's
//! rate or removes it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::rates::SourceRate;
use kernel::{Amount, Asset, Clock, Mid};
use parking_lot::Mutex;
use partner_core::ports::RateSource;
use providers::SandboxRates;
use rust_decimal::Decimal;

/// Rates by pair, such as `EUR-USDT`.
pub struct ScriptedRates {
    behind: Mutex<Arc<dyn RateSource>>,
    pairs: Mutex<BTreeMap<String, Option<SourceRate>>>,
    asked: Mutex<Vec<String>>,
}

impl fmt::Debug for ScriptedRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedRates")
    }
}

impl ScriptedRates {
    /// The sandbox's rates.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            behind: Mutex::new(Arc::new(SandboxRates::new(clock))),
            pairs: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Replaces the sandbox with another source.
    pub fn becomes(&self, source: Arc<dyn RateSource>) {
        *self.behind.lock() = source;
    }

    /// Sets a pair's mid, crypto per fiat, and the source's spread.
    pub fn set(&self, pair: &str, mid: &str, spread_bps: u16) {
        let mid = Mid::new(Decimal::from_str_exact(mid).unwrap()).unwrap();
        let rate = SourceRate { mid, spread_bps };
        self.pairs.lock().insert(pair.to_owned(), Some(rate));
    }

    /// Removes a pair's rate.
    pub fn lose(&self, pair: &str) {
        self.pairs.lock().insert(pair.to_owned(), None);
    }

    /// The pairs requested since the last call of this method.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

#[async_trait]
impl RateSource for ScriptedRates {
    async fn rate(&self, fiat: Asset, crypto: Asset, order: Amount) -> Option<SourceRate> {
        let pair = format!("{fiat}-{crypto}");
        let scripted = self.pairs.lock().get(&pair).copied();
        self.asked.lock().push(pair);
        match scripted {
            Some(rate) => rate,
            None => {
                let behind = Arc::clone(&self.behind.lock());
                behind.rate(fiat, crypto, order).await
            }
        }
    }
}
