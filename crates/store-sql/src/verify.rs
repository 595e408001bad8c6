//! Checks the invariants of the whole database. Every check has a name and reports the rows that break it.
//!
//! Statements find the breaches that SQL can express (`invariants.rs`). The other checks read tables row by row (`walked.rs`), so that
//! no sum overflows and the rules are the cores': sums and chains of the ledger (`ledger.rs`), the velocity cap
//! (`velocity.rs`), each row read as its value (`rows.rs`), terms that rows share (`previews.rs`, `rails.rs`), and sealed
//! values (`seals.rs`). Every check reads the same snapshot. Only sums per account or partner are kept in memory.

mod invariants;
mod ledger;
mod previews;
mod rails;
mod rows;
mod seals;
mod velocity;
mod walked;

use async_trait::async_trait;
use kernel::{StoreResult, Timestamp};
use partner_core::audit::Breaches;
use partner_core::ports::{AuditProgress, AuditReport, AuditStep};
use partner_core::sealing::Sealer;
use partner_core::stored_response::ResponseCheck;

use self::invariants::Invariant;
use self::invariants::pools::FIGURES;
use crate::{Row, Snapshot, Statement};

/// Progress is reported once per this many rows.
const PROGRESS_ROWS: u64 = 100_000;
/// Invariants of the schema. They are checked first.
const OF_SCHEMA: [(&str, SchemaCheck); 2] = [
    ("database-is-whole", SchemaCheck::Rules),
    ("rows-refer-to-rows", SchemaCheck::References),
];
/// Invariants that are checked row by row, beside those of sealed values. They are checked last.
const WALKED: usize = 15;

/// Receives the text of each breach.
pub type ReportBreach<'t> = &'t mut (dyn FnMut(String) + Send);

/// A check that each engine makes of its own schema.
#[derive(Debug, Clone, Copy)]
pub enum SchemaCheck {
    /// Damage, missing schema objects, and breaches of constraints other than references.
    Rules,
    /// Rows that refer to a missing row.
    References,
}

/// The snapshot that an audit reads.
#[async_trait]
pub trait AuditSnapshot: Snapshot {
    async fn check(&mut self, check: SchemaCheck, report: ReportBreach<'_>) -> StoreResult<()>;
}

/// Every statement that may find rows. Plan tests explain them.
pub fn statements() -> impl Iterator<Item = &'static Statement> {
    let breaches = invariants::all().map(|invariant| invariant.breaches);
    let sealed = seals::CHECKS.iter().map(|check| check.rows);
    breaches.chain(walked::ALL).chain(sealed)
}

/// Runs every check. `sealer` decrypts sealed values, and `is_well_formed` reads each stored response.
pub async fn audit(
    snapshot: &mut dyn AuditSnapshot,
    sealer: &Sealer,
    is_well_formed: ResponseCheck,
    progress: &AuditProgress<'_>,
    now: Timestamp,
) -> StoreResult<AuditReport> {
    let mut work = Work {
        snapshot,
        sealer,
        is_well_formed,
        progress,
        now,
        older_seals: 0,
        report: AuditReport::default(),
    };
    work.run().await?;
    Ok(work.report)
}

/// An audit in progress.
struct Work<'a> {
    snapshot: &'a mut dyn AuditSnapshot,
    sealer: &'a Sealer,
    is_well_formed: ResponseCheck,
    progress: &'a AuditProgress<'a>,
    /// The store's clock when the audit began.
    now: Timestamp,
    /// The number of sealed values that an older master key sealed.
    older_seals: u64,
    report: AuditReport,
}

impl<'a> Work<'a> {
    async fn run(&mut self) -> StoreResult<()> {
        for (figure, statement) in &FIGURES {
            let connection = self.snapshot.connection();
            let rows = connection
                .fetch_one(statement, &[])
                .await?
                .integer("figure")?;
            self.report.figures.push((figure, rows.to_string()));
        }
        for (name, check) in OF_SCHEMA {
            self.schema(name, check).await?;
        }
        for invariant in invariants::all() {
            self.breaches(invariant).await?;
        }
        self.ledger().await?;
        self.velocity().await?;
        self.rows().await?;
        self.previews().await?;
        self.rails().await?;
        self.seals().await?;
        let figure = ("sealed_with_older_keys", self.older_seals.to_string());
        self.report.figures.push(figure);
        Ok(())
    }

    async fn schema(&mut self, name: &'static str, check: SchemaCheck) -> StoreResult<()> {
        let mut breaches = Breaches::default();
        let mut walk = self.walking(name);
        let mut report = |text| {
            breaches.add(|| text);
            walk.step();
        };
        self.snapshot.check(check, &mut report).await?;
        self.found(name, breaches);
        Ok(())
    }

    async fn breaches(&mut self, invariant: &'static Invariant) -> StoreResult<()> {
        self.check(invariant.name, invariant.breaches, |row, breaches| {
            let text = invariant.text(row)?;
            breaches.add(|| text);
            Ok(())
        })
        .await
    }

    /// Checks an invariant by the rows of one statement.
    async fn check(
        &mut self,
        invariant: &'static str,
        statement: &'static Statement,
        mut visit: impl FnMut(&dyn Row, &mut Breaches) -> StoreResult<()> + Send,
    ) -> StoreResult<()> {
        let mut breaches = Breaches::default();
        self.each(invariant, statement, |row| visit(row, &mut breaches))
            .await?;
        self.found(invariant, breaches);
        Ok(())
    }

    /// Walks the rows of a statement for an invariant, and reports the progress.
    async fn each(
        &mut self,
        invariant: &'static str,
        statement: &'static Statement,
        mut visit: impl FnMut(&dyn Row) -> StoreResult<()> + Send,
    ) -> StoreResult<()> {
        let mut walk = self.walking(invariant);
        let mut visit = |row: &dyn Row| {
            visit(row)?;
            walk.step();
            Ok(())
        };
        let connection = self.snapshot.connection();
        connection.walk(statement, &[], &mut visit).await
    }

    /// Reports that the check of an invariant begins.
    fn walking(&self, invariant: &'static str) -> Walking<'a> {
        let step = AuditStep {
            invariant,
            number: self.report.findings.len().saturating_add(1),
            of: invariants::all()
                .count()
                .saturating_add(OF_SCHEMA.len() + WALKED + seals::CHECKS.len()),
            rows: 0,
        };
        (self.progress)(step);
        Walking {
            step,
            progress: self.progress,
        }
    }

    fn found(&mut self, invariant: &'static str, breaches: Breaches) {
        self.report.findings.push(breaches.of(invariant));
    }
}

/// The progress of an invariant.
struct Walking<'a> {
    step: AuditStep,
    progress: &'a AuditProgress<'a>,
}

impl Walking<'_> {
    /// Counts a row.
    fn step(&mut self) {
        self.step.rows = self.step.rows.saturating_add(1);
        if self.step.rows.is_multiple_of(PROGRESS_ROWS) {
            (self.progress)(self.step);
        }
    }
}

/// A row's name in breaches: mode, partner, entity and id.
fn named(row: &dyn Row, entity: &str) -> StoreResult<String> {
    let (mode, partner) = (row.text("mode")?, row.text("partner_id")?);
    Ok(format!("{mode}/{partner} {entity} {}", row.written("id")?))
}
