//! Checks the configured engine against the engines that hold trades, or held trades that can still be returned.

use std::sync::Arc;
use std::time::Duration;

use instruments::{faults, trading};
use kernel::{Mode, UpstreamName, causes};
use pools_core::ports::StatsReads;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigError, UpstreamChoice};
use crate::open::{OpenError, Runtime};
use crate::supervise::rest;

/// Interval between two counts of trades that can still be returned. Trades leave the return window slowly, and a count reads the
/// settled trades of 30 days.
const RETURNABLE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Settled trades that one statement counts.
const RETURNABLE_SLICE: u32 = 5_000;
/// Pause after a count that failed.
const RETURNABLE_BACKOFF: Duration = Duration::from_secs(60);

impl Runtime {
    /// Refuses to start while another engine holds reserved trades, unless the operator drains that engine.
    ///
    /// A service without an engine always starts, and warns of them. Reserved trades of an earlier release name no engine; they are
    /// assigned to this engine.
    pub async fn check_engine(&self) -> Result<(), OpenError> {
        let config = &self.base.config;
        let name = self.engine.name();
        let store = &self.base.store;
        let names = self.engines.names();
        let held = store.trades_held_elsewhere(config.mode, &names).await?;
        for (engine, trades) in &held {
            tracing::warn!(
                engine.name = %engine,
                engine.trades = trades,
                "Another engine holds reserved trades. This process cannot advance them; configure it as PENSTOCK_ENGINE_FORMER, or run a service with it."
            );
        }
        if config.engine.choice == UpstreamChoice::None {
            return Ok(());
        }
        if !held.is_empty() && !config.engine_drain {
            return Err(OpenError::from(engine_changed(&name, &held)));
        }
        // An engine that was configured later does not hold earlier trades.
        if held.is_empty() && self.engines.former.is_none() {
            let claimed = store.trades_claim(config.mode, &name).await?;
            if claimed > 0 {
                tracing::warn!(
                    engine.name = %name,
                    engine.trades = claimed,
                    "Assigned the reserved trades of an earlier release to this engine"
                );
            }
        }
        Ok(())
    }
}

/// Counts the settled trades of other engines that can still be returned, at once and then each hour, until `stop`. The first count logs
/// a warning for each of those engines. `asks` is false without an engine.
pub(crate) async fn count_returnable(
    store: Arc<dyn StatsReads>,
    mode: Mode,
    (engines, asks): (Vec<UpstreamName>, bool),
    stop: CancellationToken,
) {
    let mut is_logged = false;
    loop {
        let counted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            counted = store.trades_returnable_elsewhere(mode, &engines, RETURNABLE_SLICE) => counted,
        };
        let pause = match counted {
            Ok(found) => {
                let found = elsewhere(found, asks);
                if !is_logged {
                    warn_of_returnable(&found);
                }
                is_logged = true;
                let trades = found.iter().map(|(_, trades)| *trades);
                trading::returnable_elsewhere(trades.fold(0, u64::saturating_add));
                RETURNABLE_INTERVAL
            }
            Err(error) => {
                faults::of_store(&error);
                tracing::warn!(
                    error.chain = causes(&error),
                    "Failed to count the trades of other engines that can still be returned"
                );
                RETURNABLE_BACKOFF
            }
        };
        if !rest(pause, &stop).await {
            return;
        }
    }
}

/// Leaves out the trades that name no engine if they belong to this one: it asks about them, and no other engine has settled trades.
fn elsewhere(
    mut found: Vec<(Option<UpstreamName>, u64)>,
    asks: bool,
) -> Vec<(Option<UpstreamName>, u64)> {
    if asks && found.iter().all(|(engine, _)| engine.is_none()) {
        found.clear();
    }
    found
}

fn warn_of_returnable(found: &[(Option<UpstreamName>, u64)]) {
    for (engine, trades) in found {
        match engine {
            Some(engine) => tracing::warn!(
                engine.name = %engine,
                engine.trades = trades,
                "Settled trades of another engine can still be returned, and this process does not ask that engine about them. Run a \
                 service with that engine until 30 days after their settlement."
            ),
            None => tracing::warn!(
                engine.trades = trades,
                "Settled trades of an earlier release name no engine and can still be returned, and this process may not ask the engine \
                 that holds them. Run a service with the former engine until 30 days after their settlement."
            ),
        }
    }
}

fn engine_changed(name: &UpstreamName, held: &[(UpstreamName, u64)]) -> ConfigError {
    let held: Vec<String> = held
        .iter()
        .map(|(engine, trades)| match trades {
            1 => format!("{engine} (1 open trade)"),
            trades => format!("{engine} ({trades} open trades)"),
        })
        .collect();
    let expected = format!(
        "expected the engine that holds reserved trades, {}; this is {name}. Configure that engine as PENSTOCK_ENGINE_FORMER, which is still asked about its trades, \
         or set PENSTOCK_ENGINE_DRAIN=true: then they stay reserved until a service with that engine polls them. If it is the \
         same engine at another address, set PENSTOCK_ENGINE_NAME to the name that its trades record",
        held.join(", ")
    );
    ConfigError::new("PENSTOCK_ENGINE", expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: pools.engine.returnable
    #[test]
    fn trades_without_engine_count_if_another_engine_may_hold_them() {
        let unnamed: (Option<UpstreamName>, u64) = (None, 2);
        let other = vec![(Some(UpstreamName::built_in("engine-a")), 1)];
        let both = [vec![unnamed.clone()], other.clone()].concat();
        for asks in [true, false] {
            assert_eq!(elsewhere(both.clone(), asks), both);
            assert_eq!(elsewhere(other.clone(), asks), other);
        }
        assert_eq!(elsewhere(vec![unnamed.clone()], true), []);
        assert_eq!(elsewhere(vec![unnamed.clone()], false), [unnamed]);
    }
}
