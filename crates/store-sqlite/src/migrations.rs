//! The migrations of `migrations/sqlite`.

use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use store_sql::schema::{self, Applied, Migrated, Standing};

/// Takes no lock: it runs in the caller's transaction, which holds one.
pub(crate) static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    // The macro reads the files relative to this one.
    let migrations = store_sql::migrations!("sqlite").map(|(version, description, sql)| {
        let sql = sql.into_sql_str();
        Migration::new(
            version,
            description.into(),
            MigrationType::Simple,
            sql,
            false,
        )
    });
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.set_locking(false);
    migrator
});

/// Compares a database's migrations with those that this program knows.
pub(crate) fn compare(applied: &[Applied]) -> Standing {
    schema::compare(&known(), applied)
}

/// The migrations that a run adds to a database that has `applied`.
pub(crate) fn migrated(applied: &[Applied]) -> Migrated {
    Migrated::between(applied, &known())
}

fn known() -> Vec<i64> {
    MIGRATOR.iter().map(|migration| migration.version).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn list_matches_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/sqlite");
        let folder = Migrator::new(folder.as_path()).await.unwrap();
        let all = |migrator: &Migrator| {
            let fields = migrator.iter().map(|one| {
                let text = (one.version, one.description.to_string());
                (text, one.migration_type, one.checksum.to_vec(), one.no_tx)
            });
            fields.collect::<Vec<_>>()
        };
        assert_eq!(all(&MIGRATOR), all(&folder));
    }
}
