//! The invariants of the whole database: every check has a name, and names the rows that break it.
//!
//! What rows can show by themselves a store asks in its own SQL. The rest is walked row by row, so
//! that no total overflows and every rule is the cores' own: sums and chains of the ledger
//! (`ledger.rs`), what the velocity cap counts (`velocity.rs`), each row read as what it stands for
//! (`rows.rs`), what rows have agreed on (`previews.rs`, `rails.rs`), and what is sealed
//! (`seals.rs`). All of it is read from one snapshot, and only sums per account or partner are
//! kept, never the rows.

mod ledger;
mod previews;
mod rails;
mod rows;
mod seals;
mod velocity;

use async_trait::async_trait;
use kernel::{StoreError, Timestamp};
use partner_core::audit::Breaches;
use partner_core::ports::{AuditProgress, AuditReport, AuditStep};
use partner_core::sealing::Sealer;
use partner_core::stored_response::ResponseCheck;

use crate::Row;

/// Progress is told every so many rows.
const TOLD: u64 = 100_000;
/// Invariants that are walked; those that are asked come before them.
const WALKED: usize = 18;

/// What looks at a row.
pub type RowVisitor<'l> = &'l mut (dyn FnMut(&dyn Row) -> Result<(), StoreError> + Send);
/// What is told of a breach.
pub type ReportBreach<'t> = &'t mut (dyn FnMut(String) + Send);

/// What a database is asked to tell by itself, a text for each breach.
#[derive(Debug, Clone, Copy)]
pub enum AuditQuery {
    /// What breaks its own rules, but for references.
    Whole,
    /// Rows that refer to no row.
    References,
    /// What a statement answers.
    Statement(&'static str),
}

/// The whole database as it stood at one moment. However many rows there are, a few hundred of them
/// at a time are in memory.
#[async_trait]
pub trait Snapshot: Send {
    /// The number that a statement answers.
    async fn count(&mut self, statement: &'static str) -> Result<i64, StoreError>;

    /// Tells every breach of what is asked.
    async fn ask(&mut self, ask: AuditQuery, tell: ReportBreach<'_>) -> Result<(), StoreError>;

    /// Shows every row of a statement, as one of this table.
    async fn walk(
        &mut self,
        table: &'static str,
        statement: &'static str,
        look: RowVisitor<'_>,
    ) -> Result<(), StoreError>;
}

/// Names with what is asked for each.
pub type Asked = &'static [(&'static str, &'static str)];

/// A store's statements for an audit.
#[derive(Debug)]
pub struct Statements {
    /// Counts.
    pub figures: Asked,
    /// The name of each invariant that rows show by themselves, with the query for the rows that
    /// break it, one text each.
    pub asked: &'static [Asked],
    pub walked: Walked,
}

/// What is walked row by row: whole tables, with their modes and partners.
#[derive(Debug)]
pub struct Walked {
    /// Entries that are in the partner's account, account by account, in their order.
    pub chains: &'static str,
    pub accounts: &'static str,
    pub entries: &'static str,
    /// What open trades have reserved.
    pub reserves: &'static str,
    /// What each running total counts.
    pub counted: &'static str,
    pub totals: &'static str,
    /// Trades that a cap applies to, partner by partner, in their order.
    pub capped: &'static str,
    pub quotes: &'static str,
    pub trades: &'static str,
    pub deposits: &'static str,
    pub sessions: &'static str,
    pub transactions: &'static str,
    pub customers: &'static str,
    pub previews: &'static str,
    /// Used previews with the terms of their sessions.
    pub used_previews: &'static str,
    pub signed_quotes: &'static str,
    /// Records with their quote's terms and what their transaction says.
    pub rail_records: &'static str,
    pub tallies: &'static str,
    pub gate_profiles: &'static str,
    pub secrets: &'static str,
    pub bodies: &'static str,
    pub packages: &'static str,
    pub answers: &'static str,
}

impl Statements {
    /// Every statement of theirs that may find rows.
    pub fn all(&self) -> impl Iterator<Item = &'static str> + use<> {
        let asked = self.asked.iter().copied().flatten();
        let asked = asked.map(|(_, statement)| *statement);
        asked.chain(self.walked.all())
    }

    /// What is asked, with the name of each invariant.
    fn asks(&self) -> impl Iterator<Item = (&'static str, AuditQuery)> + use<> {
        let schema = [
            ("database-is-whole", AuditQuery::Whole),
            ("rows-refer-to-rows", AuditQuery::References),
        ];
        let asked = self.asked.iter().copied().flatten();
        let asked =
            asked.map(|(invariant, statement)| (*invariant, AuditQuery::Statement(statement)));
        schema.into_iter().chain(asked)
    }
}

impl Walked {
    fn all(&self) -> [&'static str; 23] {
        [
            self.chains,
            self.accounts,
            self.entries,
            self.reserves,
            self.counted,
            self.totals,
            self.capped,
            self.quotes,
            self.trades,
            self.deposits,
            self.sessions,
            self.transactions,
            self.customers,
            self.previews,
            self.used_previews,
            self.signed_quotes,
            self.rail_records,
            self.tallies,
            self.gate_profiles,
            self.secrets,
            self.bodies,
            self.packages,
            self.answers,
        ]
    }
}

/// Runs every check. What is sealed is opened with `sealer`.
pub async fn audit(
    snapshot: &mut dyn Snapshot,
    statements: &'static Statements,
    sealer: &Sealer,
    is_well_formed: ResponseCheck,
    progress: &AuditProgress<'_>,
    now: Timestamp,
) -> Result<AuditReport, StoreError> {
    let mut work = Work {
        snapshot,
        statements,
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

/// An audit under way.
struct Work<'a> {
    snapshot: &'a mut dyn Snapshot,
    statements: &'static Statements,
    sealer: &'a Sealer,
    is_well_formed: ResponseCheck,
    progress: &'a AuditProgress<'a>,
    /// The store's clock when the audit began.
    now: Timestamp,
    /// Sealed values that another key than the current one sealed.
    older_seals: u64,
    report: AuditReport,
}

impl<'a> Work<'a> {
    async fn run(&mut self) -> Result<(), StoreError> {
        for (figure, statement) in self.statements.figures {
            let rows = self.snapshot.count(statement).await?;
            self.report.figures.push((figure, rows.to_string()));
        }
        for (invariant, ask) in self.statements.asks() {
            self.ask(invariant, ask).await?;
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

    async fn ask(&mut self, invariant: &'static str, ask: AuditQuery) -> Result<(), StoreError> {
        let mut breaches = Breaches::default();
        let mut walk = self.walking(invariant);
        let mut tell = |text| {
            breaches.add(|| text);
            walk.tell();
        };
        self.snapshot.ask(ask, &mut tell).await?;
        self.found(invariant, breaches);
        Ok(())
    }

    /// Goes through the rows of a statement for an invariant, and tells how far it is.
    async fn each(
        &mut self,
        invariant: &'static str,
        table: &'static str,
        statement: &'static str,
        mut look: impl FnMut(&dyn Row) -> Result<(), StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut walk = self.walking(invariant);
        let mut look = |row: &dyn Row| {
            look(row)?;
            walk.tell();
            Ok(())
        };
        self.snapshot.walk(table, statement, &mut look).await
    }

    /// Tells that an invariant is looked at from here on.
    fn walking(&self, invariant: &'static str) -> Walking<'a> {
        let step = AuditStep {
            invariant,
            number: self.report.findings.len().saturating_add(1),
            of: self.statements.asks().count().saturating_add(WALKED),
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

/// How far an invariant is.
struct Walking<'a> {
    step: AuditStep,
    progress: &'a AuditProgress<'a>,
}

impl Walking<'_> {
    /// One row more.
    fn tell(&mut self) {
        self.step.rows = self.step.rows.saturating_add(1);
        if self.step.rows.is_multiple_of(TOLD) {
            (self.progress)(self.step);
        }
    }
}

/// A row's own name: mode, partner and what else it is known by.
fn named(row: &dyn Row, noun: &str) -> Result<String, StoreError> {
    let (mode, partner) = (row.text("mode")?, row.text("partner_id")?);
    Ok(format!("{mode}/{partner} {noun} {}", row.written("id")?))
}
