//! Looking a partner up, for tools that take its name.

use kernel::StoreError;

use crate::ports::ProvisionStore;
use crate::{Partner, Tenant};

/// The partner, if the operator has provisioned it in this mode.
///
/// # Errors
/// [`StoreError`].
pub async fn find(store: &dyn ProvisionStore, who: &Tenant) -> Result<Option<Partner>, StoreError> {
    let mut tx = store.provision_begin("partner_find").await?;
    tx.partner_lock(who).await
}
