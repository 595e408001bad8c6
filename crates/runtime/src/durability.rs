//! Reports at the start of a service whether the database's server can lose acknowledged commits.

use store_postgres::Durability;

const RAISED: &str = "The default of synchronous_commit acknowledges commits that a crash or a failover loses. Transactions that \
     write use `on` instead; remove the default from the database or the role.";
const UNFLUSHED: &str = "The database's server flushes nothing to the disk, so a power failure loses acknowledged commits and can \
     damage the database. Set fsync = on.";
const UNREPAIRED: &str = "The database's server cannot repair pages that were written in part, so a power failure can damage the \
     database. Set full_page_writes = on.";

/// Logs the settings: a warning for each that is unsafe, or one line if all are safe.
pub(crate) fn report(found: &Durability) {
    let level = found.synchronous_commit.as_str();
    let warnings = warnings(found);
    if warnings.is_empty() {
        tracing::info!(
            database.synchronous_commit = level,
            "The database's server keeps acknowledged commits over a crash"
        );
    }
    for warning in warnings {
        tracing::warn!(database.synchronous_commit = level, "{warning}");
    }
}

fn warnings(found: &Durability) -> Vec<&'static str> {
    let unsafe_settings = [
        (found.is_raised(), RAISED),
        (!found.fsync, UNFLUSHED),
        (!found.full_page_writes, UNREPAIRED),
    ];
    let warnings = unsafe_settings.into_iter().filter(|(applies, _)| *applies);
    warnings.map(|(_, warning)| warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: base.durability-reported
    #[test]
    fn each_unsafe_setting_has_its_warning() {
        let safe = Durability {
            synchronous_commit: "on".to_owned(),
            fsync: true,
            full_page_writes: true,
        };
        let with = |change: fn(&mut Durability)| {
            let mut found = safe.clone();
            change(&mut found);
            warnings(&found)
        };
        let none: [&str; 0] = [];
        assert_eq!(with(|_| ()), none);
        assert_eq!(
            with(|it| it.synchronous_commit = "remote_apply".to_owned()),
            none
        );
        assert_eq!(
            with(|it| it.synchronous_commit = "off".to_owned()),
            [RAISED]
        );
        assert_eq!(
            with(|it| it.synchronous_commit = "local".to_owned()),
            [RAISED]
        );
        assert_eq!(with(|it| it.fsync = false), [UNFLUSHED]);
        assert_eq!(with(|it| it.full_page_writes = false), [UNREPAIRED]);
    }
}
