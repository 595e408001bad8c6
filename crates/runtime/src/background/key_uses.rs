//! Stores the last uses of keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coordination::KeyUses;
use instruments::faults;
use kernel::Clock;
use partner_core::Tenant;
use partner_core::key::KeyUse;
use partner_core::ports::{Maintenance, Readiness};
use tokio_util::sync::CancellationToken;

use super::{concerns_one_partner, failed};
use crate::store::Store;
use crate::supervise::every;

/// Interval between two writes of key uses. A key's use is stored at most once a minute.
const INTERVAL: Duration = Duration::from_secs(2);

/// Stores the last uses of keys until `stop`, and the remaining ones then.
pub(super) async fn record(
    store: Arc<dyn Store>,
    uses: Arc<KeyUses>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let turn = |()| async {
        let due = uses.due(clock.now());
        uses.restore(&store_uses(&*store, &*store, due).await);
    };
    every(INTERVAL, &stop, (), turn).await;
    turn(()).await;
}

/// Stores uses, and returns those that could not be stored. They are stored together, or, if that fails, partner by partner, because
/// the row of one partner may be locked.
pub(super) async fn store_uses(
    store: &dyn Maintenance,
    readiness: &dyn Readiness,
    due: Vec<KeyUse>,
) -> Vec<KeyUse> {
    if due.is_empty() {
        return due;
    }
    let Err(error) = store.key_uses_record(&due).await else {
        return Vec::new();
    };
    failed(&error, "Failed to store the last use of keys");
    let mut of_partners: BTreeMap<Tenant, Vec<KeyUse>> = BTreeMap::new();
    for one in &due {
        let of_partner = of_partners.entry(one.who.clone()).or_default();
        of_partner.push(one.clone());
    }
    if of_partners.len() == 1 || !concerns_one_partner(&error, readiness).await {
        return due;
    }
    let mut unstored = Vec::new();
    for of_partner in of_partners.into_values() {
        if let Err(error) = store.key_uses_record(&of_partner).await {
            faults::of_store(&error);
            unstored.extend(of_partner);
        }
    }
    unstored
}
