//! Two tables of one row: the installation, and the version of the configuration.

use kernel::StoreError;

use crate::{Connection, Statement, values};

pub async fn version(connection: &mut dyn Connection) -> Result<i64, StoreError> {
    let row = connection.fetch_one(&VERSION, values![]).await?;
    row.integer("version")
}

static VERSION: Statement = Statement::new(
    "config_version",
    "SELECT version FROM config_version WHERE id = 1",
);

/// Stores the fingerprint of the first master key, and returns the current key's.
pub(crate) async fn master_key(
    connection: &mut dyn Connection,
    fingerprint: &str,
) -> Result<String, StoreError> {
    let values = values![fingerprint];
    if connection.execute(&INSTALL, values).await? == 1 {
        connection.execute(&FIRST_KEY, values).await?;
    }
    let stored = current_fingerprint(connection).await?;
    stored.ok_or_else(|| StoreError::Guard("installation: 1 rows expected, 0 written".to_owned()))
}

static INSTALL: Statement = Statement::new(
    "installation",
    "INSERT INTO installation (id, master_key_fingerprint) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
);

static FIRST_KEY: Statement = Statement::new(
    "master_keys",
    "INSERT INTO master_keys (fingerprint, number) VALUES ($1, 1)",
);

/// The current key's fingerprint, or `None`.
pub async fn current_fingerprint(
    connection: &mut dyn Connection,
) -> Result<Option<String>, StoreError> {
    let row = connection.fetch_optional(&FINGERPRINT, values![]).await?;
    row.map(|row| row.text("master_key_fingerprint").map(str::to_owned))
        .transpose()
}

static FINGERPRINT: Statement = Statement::new(
    "installation",
    "SELECT master_key_fingerprint FROM installation WHERE id = 1",
);
