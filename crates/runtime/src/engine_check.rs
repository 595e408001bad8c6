//! Checks the configured engine against the engines that hold trades.

use pools_core::engine::EngineName;

use crate::config::{ConfigError, EngineChoice};
use crate::open::{OpenError, Runtime};

impl Runtime {
    /// Refuses to start while another engine holds reserved trades, unless the operator drains that engine.
    ///
    /// A service without an engine always starts. Reserved trades of an earlier release name no engine; they are assigned to this
    /// engine.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn check_engine(&self) -> Result<(), OpenError> {
        let config = &self.base.config;
        if config.engine == EngineChoice::None {
            return Ok(());
        }
        let name = self.engine.name();
        let store = &self.base.store;
        let held = store.trades_held_elsewhere(config.mode, &name).await?;
        for (engine, trades) in &held {
            tracing::warn!(
                engine.name = %engine,
                engine.trades = trades,
                "Another engine holds reserved trades. This process cannot advance them; run a service with that engine."
            );
        }
        if !held.is_empty() && !config.engine_drain {
            return Err(OpenError::from(engine_changed(&name, &held)));
        }
        // An engine that was configured later does not hold earlier trades.
        if held.is_empty() {
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

fn engine_changed(name: &EngineName, held: &[(EngineName, u64)]) -> ConfigError {
    let held: Vec<String> = held
        .iter()
        .map(|(engine, trades)| match trades {
            1 => format!("{engine} (1 open trade)"),
            trades => format!("{engine} ({trades} open trades)"),
        })
        .collect();
    let expected = format!(
        "expected the engine that holds reserved trades, {}; this is {name}. Start with that engine until its trades have ended, \
         or set PENSTOCK_ENGINE_DRAIN=true: then they stay reserved until a service with that engine polls them. If it is the \
         same engine at another address, set PENSTOCK_ENGINE_NAME to the name that its trades record",
        held.join(", ")
    );
    ConfigError {
        setting: "PENSTOCK_ENGINE".to_owned(),
        expected,
    }
}
