//! Whether a file loosens a protection.

use kernel::{Mode, StoreResult};
use partner_core::{Partner, Tenant};

use crate::Document;
use crate::changes;
use crate::ports::ProvisionTx;
use crate::profiles::Profiles;

/// Whether the file loosens a protection of any of its partners. `known` has the stored partners in the order of the file.
pub(crate) async fn loosens(
    tx: &mut dyn ProvisionTx,
    mode: Mode,
    document: &Document,
    known: &[Option<Partner>],
    profiles: &Profiles,
) -> StoreResult<bool> {
    for (entry, known) in document.partners.iter().zip(known) {
        let partner = entry.partner_over(known.as_ref());
        let mut changes = changes::of_partner(known.as_ref(), &partner);
        profiles.describe(&partner.id, &mut changes);
        if let Some(after) = &entry.gate {
            let partner = partner.id;
            let before = tx.gate_profile_get(&Tenant { partner, mode }).await?;
            changes::of_gate(&mut changes, before.as_ref(), after);
        }
        if changes.loosens() {
            return Ok(true);
        }
    }
    Ok(false)
}
