//! Master keys and sealed values: their rows, and the replacement of keys and values.

use kernel::{Cas, Mode, StoreResult};
use partner_core::ports::{
    MasterKeyState, ResealedValue, SealedRow, SealedValue, StoredMasterKey, UnitOfWork as _,
};
use partner_core::sealing::{Fingerprint, Sealed};

use crate::{Reader, Row, Statement, StoreTx, Value, config, sealed, values};

pub async fn all(reader: &mut dyn Reader) -> StoreResult<Vec<StoredMasterKey>> {
    let rows = reader.connection().fetch_all(&ALL, values![]).await?;
    rows.iter().map(|row| master_key(&**row)).collect()
}

static ALL: Statement = Statement::new(
    "master_keys",
    "SELECT fingerprint, number, state, derived FROM master_keys ORDER BY number",
);

fn master_key(row: &dyn Row) -> StoreResult<StoredMasterKey> {
    let state = match row.text("state")? {
        "current" => MasterKeyState::Current,
        "older" => MasterKeyState::Older,
        "retired" => MasterKeyState::Retired,
        _ => return Err(row.bad("state")),
    };
    Ok(StoredMasterKey {
        fingerprint: row.parsed("fingerprint", Fingerprint::parse)?,
        number: u32::try_from(row.integer("number")?).map_err(|_| row.bad("number"))?,
        state,
        derived: row
            .opt_bytes("derived")?
            .map(|bytes| Sealed(bytes.to_vec())),
    })
}

/// Stores the mode of the installation and the fingerprint of its first master key, each unless one is stored, and commits.
pub async fn begin(mut tx: Box<StoreTx>, mode: Mode, fingerprint: &str) -> StoreResult<()> {
    let connection = tx.connection();
    config::begin_mode(connection, mode).await?;
    let values = values![fingerprint];
    if connection.execute(&INSTALL_FIRST, values).await? == 1 {
        connection.execute(&INSERT_FIRST, values).await?;
    }
    tx.commit().await
}

static INSTALL_FIRST: Statement = Statement::new(
    "installation",
    "INSERT INTO installation (id, master_key_fingerprint) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
);

static INSERT_FIRST: Statement = Statement::new(
    "master_keys",
    "INSERT INTO master_keys (fingerprint, number) VALUES ($1, 1)",
);

impl StoreTx {
    /// Makes a new key the current one. Changes nothing if `current` is not the current key, or if the new key is known.
    pub async fn master_key_promote(
        &mut self,
        current: Fingerprint,
        new: Fingerprint,
        derived: &Sealed,
    ) -> StoreResult<Cas> {
        if !self.master_key_is(current).await? {
            return Ok(Cas::Lost);
        }
        let connection = self.connection();
        let new = new.to_string();
        if connection
            .fetch_optional(&KNOWN, values![&new])
            .await?
            .is_some()
        {
            return Ok(Cas::Lost);
        }
        connection.execute(&INSTALL, values![&new]).await?;
        connection.execute(&AGE, values![]).await?;
        let values = values![&new, derived.0.as_slice()];
        let outcome = Cas::from_rows(connection.execute(&INSERT, values).await?);
        self.engine.effects().reconfigured = true;
        outcome
    }

    /// Retires all keys but the current one. Changes nothing if `current` is not that key.
    pub async fn master_keys_retire(&mut self, current: Fingerprint) -> StoreResult<Cas> {
        if !self.master_key_is(current).await? {
            return Ok(Cas::Lost);
        }
        self.connection().execute(&RETIRE, values![]).await?;
        Ok(Cas::Won)
    }

    /// Checks that `current` is the current key. No other transaction replaces the key before this one ends.
    async fn master_key_is(&mut self, current: Fingerprint) -> StoreResult<bool> {
        self.engine.lock_config().await?;
        let stored = config::current_fingerprint(self.connection()).await?;
        Ok(stored.is_some_and(|stored| stored == current.to_string()))
    }

    /// Replaces values of a column that are unchanged since they were read, and returns their number.
    pub async fn sealed_replace(
        &mut self,
        column: &str,
        values: &[ResealedValue],
    ) -> StoreResult<u64> {
        let column = sealed::named(column)?;
        let connection = self.connection();
        let mut replaced = 0;
        for ResealedValue { row, old, new } in values {
            let mut values = column.key_values(Some(row))?;
            values.extend([new, old].map(|sealed| Value::from(sealed.0.as_slice())));
            replaced += connection.execute(&column.replace, &values).await?;
        }
        Ok(replaced)
    }
}

static KNOWN: Statement = Statement::new(
    "master_keys",
    "SELECT number FROM master_keys WHERE fingerprint = $1",
);

static INSTALL: Statement = Statement::new(
    "installation",
    "UPDATE installation SET master_key_fingerprint = $1 WHERE id = 1",
);

static AGE: Statement = Statement::new(
    "master_keys",
    "UPDATE master_keys SET state = 'older' WHERE state = 'current'",
);

static INSERT: Statement = Statement::new(
    "master_keys",
    "INSERT INTO master_keys (fingerprint, number, state, derived)
     SELECT $1, max(number) + 1, 'current', $2 FROM master_keys",
);

static RETIRE: Statement = Statement::new(
    "master_keys",
    "UPDATE master_keys SET state = 'retired' WHERE state = 'older'",
);

/// A page of a column's values after a row, in the order of their keys.
pub async fn sealed_page(
    reader: &mut dyn Reader,
    column: &str,
    after: Option<&SealedRow>,
    limit: u32,
) -> StoreResult<Vec<SealedValue>> {
    let column = sealed::named(column)?;
    let mut values = column.key_values(after)?;
    values.push(Value::from(limit));
    let rows = reader.connection().fetch_all(&column.page, &values).await?;
    rows.iter().map(|row| column.value(&**row)).collect()
}

/// The names of the sealed columns.
#[must_use]
pub fn sealed_columns() -> Vec<&'static str> {
    sealed::ALL.iter().map(|column| column.name).collect()
}
