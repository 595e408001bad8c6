//! Looking a partner up, for tools that take its name.

use kernel::{Mode, StoreError};

use crate::ports::PartnerStore;
use crate::{Partner, PartnerId, Tenant};

/// From this similarity of Jaro and Winkler on, an id may be a misspelling of another.
const ALIKE: f64 = 0.8;

/// The partner of a mode whose id is most like `wanted`, if one is alike.
///
/// # Errors
/// [`StoreError`].
pub async fn nearest(
    store: &dyn PartnerStore,
    mode: Mode,
    wanted: &str,
) -> Result<Option<PartnerId>, StoreError> {
    let mut tx = store.partner_begin("partner_nearest").await?;
    let ids = tx.partner_ids(mode).await?;
    let likeness = |id: &PartnerId| strsim::jaro_winkler(id.as_str(), wanted);
    let alike = ids.into_iter().filter(|id| likeness(id) >= ALIKE);
    Ok(alike.max_by(|one, other| likeness(one).total_cmp(&likeness(other))))
}

/// The partner, if the operator has provisioned it in this mode.
///
/// # Errors
/// [`StoreError`].
pub async fn find(store: &dyn PartnerStore, who: &Tenant) -> Result<Option<Partner>, StoreError> {
    let mut tx = store.partner_begin("partner_find").await?;
    tx.partner_lock(who).await
}
