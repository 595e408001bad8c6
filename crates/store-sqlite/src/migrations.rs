//! The migrations of `migrations/sqlite`.

use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

pub(crate) use store_sql::schema::{compare, migrated};

/// Takes no lock: it runs in the caller's transaction, which holds one.
pub(crate) static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    // The macro reads the files relative to this one.
    let migrations = store_sql::migrations!("sqlite").map(|(version, description, sql)| {
        let (description, kind) = (description.into(), MigrationType::Simple);
        Migration::new(version, description, kind, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.set_locking(false);
    migrator
});
