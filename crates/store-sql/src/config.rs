//! Two tables of one row: the installation, and the version of the configuration.

use kernel::StoreResult;

use crate::{Connection, Statement, values};

pub async fn version(connection: &mut dyn Connection) -> StoreResult<i64> {
    let row = connection.fetch_one(&VERSION, values![]).await?;
    row.integer("version")
}

static VERSION: Statement = Statement::new(
    "config_version",
    "SELECT version FROM config_version WHERE id = 1",
);

/// The current key's fingerprint, or `None`.
pub async fn current_fingerprint(connection: &mut dyn Connection) -> StoreResult<Option<String>> {
    let row = connection.fetch_optional(&FINGERPRINT, values![]).await?;
    row.map(|row| row.text("master_key_fingerprint").map(str::to_owned))
        .transpose()
}

static FINGERPRINT: Statement = Statement::new(
    "installation",
    "SELECT master_key_fingerprint FROM installation WHERE id = 1",
);
