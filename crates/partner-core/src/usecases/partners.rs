//! Finding a partner by an id that resembles its own, for tools.

use kernel::{Mode, StoreResult};

use crate::PartnerId;
use crate::ports::PartnerStore;

/// Minimum Jaro-Winkler similarity of an id that is suggested as the intended one.
const SUGGESTION_SIMILARITY: f64 = 0.8;

/// The partner of a mode with the id most similar to `wanted`; `None` if none is similar.
pub async fn nearest(
    store: &dyn PartnerStore,
    mode: Mode,
    wanted: &str,
) -> StoreResult<Option<PartnerId>> {
    let ids = store.partner_ids(mode).await?;
    Ok(most_similar(&ids, wanted).cloned())
}

/// The id most similar to `wanted`; `None` if none is similar.
#[must_use]
pub fn most_similar<'i>(ids: &'i [PartnerId], wanted: &str) -> Option<&'i PartnerId> {
    let likeness = |id: &PartnerId| strsim::jaro_winkler(id.as_str(), wanted);
    let alike = ids
        .iter()
        .filter(|id| likeness(id) >= SUGGESTION_SIMILARITY);
    alike.max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
}
