//! The owners of deposit addresses and funding references.

use kernel::{Cas, StoreError, StoreResult};
use partner_core::Tenant;
use pools_core::profile::PoolsProfile;

use crate::{Connection, Statement, values};

/// Deletes all claims of the partner.
pub(crate) async fn release(connection: &mut dyn Connection, who: &Tenant) -> StoreResult<()> {
    let values = values![who.mode, &who.partner];
    connection.execute(&RELEASE, values).await.map(drop)
}

static RELEASE: Statement = Statement::new(
    "deposit_claims",
    "DELETE FROM deposit_claims WHERE mode = $1 AND owner = $2",
);

/// Replaces the partner's claims with those of its profile. A claim of another partner is refused, unless the profile `before` has it
/// in the same spelling: partners may share what they had before two claims counted as one.
pub(crate) async fn put(
    connection: &mut dyn Connection,
    who: &Tenant,
    before: Option<&PoolsProfile>,
    profile: &PoolsProfile,
) -> StoreResult<()> {
    release(connection, who).await?;
    let had = before.map(PoolsProfile::deposit_claims).unwrap_or_default();
    for claim in profile.deposit_claims() {
        let kind = claim.kind.as_str();
        let values = values![who.mode, kind, &claim.compared, &who.partner];
        let inserted = Cas::from_rows(connection.execute(&INSERT, values).await?)?;
        if inserted == Cas::Lost && !had.iter().any(|earlier| earlier.is_written_as(&claim)) {
            return Err(StoreError::Guard(format!(
                "deposit_claims: {claim} belongs to another partner"
            )));
        }
    }
    Ok(())
}

static INSERT: Statement = Statement::new(
    "deposit_claims",
    "INSERT INTO deposit_claims (mode, kind, claim, owner) VALUES ($1, $2, $3, $4)
     ON CONFLICT (mode, kind, claim) DO NOTHING",
);
