//! The owners of deposit addresses and funding references.

use kernel::StoreError;
use partner_core::Tenant;
use pools_core::profile::PoolsProfile;

use crate::{Connection, Statement, values};

/// Deletes all claims of the partner.
pub(crate) async fn release(
    connection: &mut dyn Connection,
    who: &Tenant,
) -> Result<(), StoreError> {
    let values = values![who.mode, &who.partner];
    connection.execute(&RELEASE, values).await.map(drop)
}

static RELEASE: Statement = Statement::new(
    "deposit_claims",
    "DELETE FROM deposit_claims WHERE mode = $1 AND owner = $2",
);

/// Replaces the partner's claims with those of its profile. The table rejects a claim of another partner.
pub(crate) async fn put(
    connection: &mut dyn Connection,
    who: &Tenant,
    profile: &PoolsProfile,
) -> Result<(), StoreError> {
    release(connection, who).await?;
    for claim in profile.deposit_claims() {
        let values = values![who.mode, claim.kind.as_str(), &claim.text, &who.partner];
        connection.execute(&INSERT, values).await?;
    }
    Ok(())
}

static INSERT: Statement = Statement::new(
    "deposit_claims",
    "INSERT INTO deposit_claims (mode, kind, claim, owner) VALUES ($1, $2, $3, $4)",
);
