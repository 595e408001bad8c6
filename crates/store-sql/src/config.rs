//! Tables of one row: the installation, its mode, and the version of the configuration.

use kernel::{Mode, StoreResult};

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

/// The mode of the installation; `None` if no program has stored it.
pub async fn mode(connection: &mut dyn Connection) -> StoreResult<Option<Mode>> {
    let row = connection.fetch_optional(&MODE, values![]).await?;
    row.map(|row| row.parsed("mode", Mode::parse)).transpose()
}

static MODE: Statement = Statement::new(
    "installation_mode",
    "SELECT mode FROM installation_mode WHERE id = 1",
);

/// Stores the mode of the installation, unless a program has stored one.
pub async fn begin_mode(connection: &mut dyn Connection, mode: Mode) -> StoreResult<()> {
    connection.execute(&BEGIN_MODE, values![mode]).await?;
    Ok(())
}

static BEGIN_MODE: Statement = Statement::new(
    "installation_mode",
    "INSERT INTO installation_mode (id, mode) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
);
