//! The schema version of a database, and whether a program may use it.
//!
//! A program uses its own schema, and one that is a single additive migration ahead, because during a rolling upgrade an old
//! replica must be able to restart. `additive` is the last word of such a migration's description: every database stores the
//! descriptions, also of migrations that the old program does not know.

use std::collections::BTreeSet;
use std::fmt;

/// The migrations of an engine, in order: version, description and text. `migrations!(versions)` has the versions, which are those of
/// both engines. `cargo xtask migrations --record` writes the list.
///
/// sqlx stores the description and checks the text's checksum. The paths are relative to the file that calls the macro.
#[macro_export]
macro_rules! migrations {
    ($what:tt) => {
        $crate::migrations!(
            $what:
            1 "initial" "0001_initial.sql",
            2 "delivery queue" "0002_delivery_queue.sql",
            3 "clock and commitments" "0003_clock_and_commitments.sql",
            4 "velocity rules" "0004_velocity_rules.sql",
            5 "gate" "0005_gate.sql",
            6 "transactions by status" "0006_transactions_by_status.sql",
            7 "statistics" "0007_statistics.sql",
            8 "quote previews" "0008_quote_previews.sql",
            9 "customers" "0009_customers.sql",
            10 "signed quotes and rails" "0010_signed_quotes_and_rails.sql",
            11 "commitments by account" "0011_commitments_by_account.sql",
            12 "endpoint references" "0012_endpoint_references.sql",
            13 "engine and rates" "0013_engine_and_rates.sql",
            14 "idempotency expiry" "0014_idempotency_expiry.sql",
            15 "bounded history" "0015_bounded_history.sql",
            16 "clock jump additive" "0016_clock_jump_additive.sql",
            17 "versions drawn" "0017_versions_drawn.sql",
            18 "one payment per session" "0018_one_payment_per_session.sql",
            19 "provisioning" "0019_provisioning.sql",
            20 "master keys" "0020_master_keys.sql",
            21 "hosted payments" "0021_hosted_payments.sql",
            22 "verifications" "0022_verifications.sql",
            23 "publishable keys additive" "0023_publishable_keys_additive.sql",
            24 "rail references additive" "0024_rail_references_additive.sql",
            25 "swaps" "0025_swaps.sql",
            26 "contingent credits" "0026_contingent_credits.sql",
            27 "deliveries by status additive" "0027_deliveries_by_status_additive.sql",
            28 "unique texts additive" "0028_unique_texts_additive.sql",
            29 "due of partner additive" "0029_due_of_partner_additive.sql",
            30 "installation mode additive" "0030_installation_mode_additive.sql",
            31 "hastened deliveries additive" "0031_hastened_deliveries_additive.sql",
            32 "named upstreams" "0032_named_upstreams.sql",
            33 "widget tokens additive" "0033_widget_tokens_additive.sql",
            34 "merchants additive" "0034_merchants_additive.sql",
            35 "event traces additive" "0035_event_traces_additive.sql",
        )
    };
    (versions: $($version:literal $description:literal $file:literal,)+) => {
        [$($version),+]
    };
    ($engine:literal: $($version:literal $description:literal $file:literal,)+) => {
        [$((
            $version,
            $description,
            include_str!(concat!("../../../migrations/", $engine, "/", $file)),
        )),+]
    };
}

/// The last word of the description of a migration after which programs of the previous release still work.
const ADDITIVE: &str = " additive";

/// A migration that was applied to a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub version: i64,
    /// The words of its file name.
    pub description: String,
}

/// What a migration did to a database's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The version before, or `None` if there was no schema.
    pub from: Option<i64>,
    /// The version now.
    pub to: i64,
}

impl Migrated {
    /// Compares the applied migrations with those that the program knows.
    fn between(applied: &[Applied], known: &[i64]) -> Self {
        let from = applied.iter().map(|one| one.version).max();
        let newest = known.iter().copied().max().unwrap_or_default();
        Self {
            from,
            to: newest.max(from.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = self.to;
        match self.from {
            None => write!(f, "the database was empty; its schema is now version {to}"),
            Some(from) if from == to => write!(f, "the schema is already version {to}"),
            Some(from) => write!(f, "the schema went from version {from} to version {to}"),
        }
    }
}

/// How a database's schema compares with a program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The program's own schema.
    Current,
    /// One additive migration ahead. The program may use it.
    OneAhead,
    /// No schema.
    Missing,
    /// Some of the program's migrations were not applied.
    Behind {
        /// The newest applied version.
        found: i64,
        /// The program's newest version.
        needed: i64,
    },
    /// Migrations were applied that the program does not know and must not ignore.
    Unknown {
        /// The newest applied version.
        found: i64,
    },
}

impl Standing {
    /// Why a program may not use the database, and what to do, or `None` if it may. `migrate` is the command that
    /// migrates a schema.
    #[must_use]
    pub fn refusal(self, migrate: &str) -> Option<String> {
        match self {
            Self::Current | Self::OneAhead => None,
            Self::Missing => Some(format!("the database has no schema: run `{migrate}` first")),
            Self::Behind { found, needed } => Some(format!(
                "the database has schema version {found}, this program needs {needed}: run `{migrate}` first"
            )),
            Self::Unknown { found } => Some(format!(
                "the database has schema version {found}, which this program does not know: it is \
                 older than the program that wrote the database; run the newer one"
            )),
        }
    }
}

/// The migrations that a run adds to a database that has `applied`.
#[must_use]
pub fn migrated(applied: &[Applied]) -> Migrated {
    Migrated::between(applied, KNOWN)
}

/// Compares a database's migrations with those that this program knows.
#[must_use]
pub fn compare(applied: &[Applied]) -> Standing {
    standing(KNOWN, applied)
}

/// The versions that this program knows.
const KNOWN: &[i64] = &migrations!(versions);

/// Compares the migrations that a program knows with those that were applied.
fn standing(known: &[i64], applied: &[Applied]) -> Standing {
    let newest = known.iter().copied().max().unwrap_or_default();
    let Some(found) = applied.iter().map(|one| one.version).max() else {
        return Standing::Missing;
    };
    let versions: BTreeSet<i64> = applied.iter().map(|one| one.version).collect();
    let has_all = known.iter().all(|version| versions.contains(version));
    let mut unknown = applied.iter().filter(|one| !known.contains(&one.version));
    match (unknown.next(), unknown.next()) {
        (None, _) if has_all => Standing::Current,
        (None, _) => Standing::Behind {
            found,
            needed: newest,
        },
        (Some(one), None)
            if has_all && one.version > newest && one.description.ends_with(ADDITIVE) =>
        {
            Standing::OneAhead
        }
        _ => Standing::Unknown { found },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    /// sqlx takes a migration's version and description from the name of its file.
    #[test]
    fn lists_match_the_folders() {
        for (engine, list) in [
            ("sqlite", migrations!("sqlite")),
            ("postgres", migrations!("postgres")),
        ] {
            let folder = format!("{}/../../migrations/{engine}", env!("CARGO_MANIFEST_DIR"));
            let files = fs::read_dir(folder).unwrap().map(|file| {
                let path = file.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap();
                let (version, description) = name.split_once('_').unwrap();
                let text = fs::read_to_string(&path).unwrap();
                let content = (description.replace('_', " "), text);
                (version.parse().unwrap(), content)
            });
            let files: BTreeMap<i64, (String, String)> = files.collect();
            let list = list.map(|(version, description, text)| {
                assert!(!text.starts_with("-- no-transaction"), "{version}");
                (version, (description.to_owned(), text.to_owned()))
            });
            assert_eq!(BTreeMap::from(list), files, "{engine}");
        }
    }

    fn applied(migrations: &[(i64, &str)]) -> Vec<Applied> {
        let one = |(version, description): &(i64, &str)| Applied {
            version: *version,
            description: (*description).to_owned(),
        };
        migrations.iter().map(one).collect()
    }

    // rule: base.schema-one-ahead
    #[test]
    fn program_works_on_its_own_schema_and_one_additive_migration_ahead() {
        let known = [1, 2, 4];
        let own = [(1, "initial"), (2, "more"), (4, "labels additive")];
        let of = |ahead: &[(i64, &str)]| standing(&known, &applied(&[&own, ahead].concat()));
        assert_eq!(of(&[]), Standing::Current);
        assert_eq!(of(&[(6, "names additive")]), Standing::OneAhead);
        assert_eq!(of(&[(6, "names")]), Standing::Unknown { found: 6 });
        assert_eq!(of(&[(6, "nonadditive")]), Standing::Unknown { found: 6 });
        assert_eq!(of(&[(3, "names additive")]), Standing::Unknown { found: 4 });
        let two = [(6, "names additive"), (7, "ages additive")];
        assert_eq!(of(&two), Standing::Unknown { found: 7 });
    }

    #[test]
    fn migration_report_names_versions_before_and_after() {
        let report = |had: &[(i64, &str)]| Migrated::between(&applied(had), &[1, 2]).to_string();
        assert_eq!(
            report(&[]),
            "the database was empty; its schema is now version 2"
        );
        let one = (1, "initial");
        assert_eq!(
            report(&[one]),
            "the schema went from version 1 to version 2"
        );
        assert_eq!(
            report(&[one, (2, "more")]),
            "the schema is already version 2"
        );
        let ahead = [one, (2, "more"), (3, "names additive")];
        assert_eq!(report(&ahead), "the schema is already version 3");
    }

    #[test]
    fn program_refuses_schema_without_migration() {
        assert_eq!(standing(&[1, 2], &[]), Standing::Missing);
        let (found, needed) = (1, 2);
        assert_eq!(
            standing(&[1, 2], &applied(&[(1, "initial")])),
            Standing::Behind { found, needed }
        );
        let other = applied(&[(1, "initial"), (3, "names additive")]);
        assert_eq!(standing(&[1, 2], &other), Standing::Unknown { found: 3 });
    }
}
