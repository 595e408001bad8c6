//! The migrations of `migrations/postgres`, in order. A new file needs its line here.

use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use store_sql::schema::{self, Applied, Migrated, Standing};

/// Version, description and text. sqlx stores the description and checks the text's checksum.
const FILES: [(i64, &str, &str); 20] = [
    (
        1,
        "initial",
        include_str!("../../../migrations/postgres/0001_initial.sql"),
    ),
    (
        2,
        "delivery queue",
        include_str!("../../../migrations/postgres/0002_delivery_queue.sql"),
    ),
    (
        3,
        "clock and commitments",
        include_str!("../../../migrations/postgres/0003_clock_and_commitments.sql"),
    ),
    (
        4,
        "velocity rules",
        include_str!("../../../migrations/postgres/0004_velocity_rules.sql"),
    ),
    (
        5,
        "gate",
        include_str!("../../../migrations/postgres/0005_gate.sql"),
    ),
    (
        6,
        "transactions by status",
        include_str!("../../../migrations/postgres/0006_transactions_by_status.sql"),
    ),
    (
        7,
        "statistics",
        include_str!("../../../migrations/postgres/0007_statistics.sql"),
    ),
    (
        8,
        "quote previews",
        include_str!("../../../migrations/postgres/0008_quote_previews.sql"),
    ),
    (
        9,
        "customers",
        include_str!("../../../migrations/postgres/0009_customers.sql"),
    ),
    (
        10,
        "signed quotes and rails",
        include_str!("../../../migrations/postgres/0010_signed_quotes_and_rails.sql"),
    ),
    (
        11,
        "commitments by account",
        include_str!("../../../migrations/postgres/0011_commitments_by_account.sql"),
    ),
    (
        12,
        "endpoint references",
        include_str!("../../../migrations/postgres/0012_endpoint_references.sql"),
    ),
    (
        13,
        "engine and rates",
        include_str!("../../../migrations/postgres/0013_engine_and_rates.sql"),
    ),
    (
        14,
        "idempotency expiry",
        include_str!("../../../migrations/postgres/0014_idempotency_expiry.sql"),
    ),
    (
        15,
        "bounded history",
        include_str!("../../../migrations/postgres/0015_bounded_history.sql"),
    ),
    (
        16,
        "clock jump additive",
        include_str!("../../../migrations/postgres/0016_clock_jump_additive.sql"),
    ),
    (
        17,
        "versions drawn",
        include_str!("../../../migrations/postgres/0017_versions_drawn.sql"),
    ),
    (
        18,
        "one payment per session",
        include_str!("../../../migrations/postgres/0018_one_payment_per_session.sql"),
    ),
    (
        19,
        "provisioning",
        include_str!("../../../migrations/postgres/0019_provisioning.sql"),
    ),
    (
        20,
        "master keys",
        include_str!("../../../migrations/postgres/0020_master_keys.sql"),
    ),
];

/// Takes no lock: it runs in the caller's transaction, which holds one.
pub(crate) static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let migrations = FILES.map(|(version, description, sql)| {
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
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
