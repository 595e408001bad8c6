//! The rate source: the sandbox's, unless a test sets a pair's rate or takes it away.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kernel::{Amount, Asset, Mid};
use parking_lot::Mutex;
use partner_core::ports::RateSource;
use partner_core::rates::SourceRate;
use providers::SandboxRates;
use rust_decimal::Decimal;

/// Rates by pair, such as `EUR-USDT`.
#[derive(Debug, Default)]
pub struct ScriptedRates {
    pairs: Mutex<BTreeMap<String, Option<SourceRate>>>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedRates {
    /// Sets a pair's mid, crypto per fiat, and the source's spread.
    pub fn set(&self, pair: &str, mid: &str, spread_bps: u16) {
        let mid = Mid::new(Decimal::from_str_exact(mid).unwrap()).unwrap();
        let rate = SourceRate { mid, spread_bps };
        self.pairs.lock().insert(pair.to_owned(), Some(rate));
    }

    /// Takes a pair's rate away.
    pub fn lose(&self, pair: &str) {
        self.pairs.lock().insert(pair.to_owned(), None);
    }

    /// The pairs asked for since this was called last.
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
            None => SandboxRates.rate(fiat, crypto, order).await,
        }
    }
}
