//! Writes the steps of many deliveries, with one statement for all equal changes.

use std::collections::BTreeMap;

use kernel::{StoreError, Timestamp};
use partner_core::ports::ConcludedDelivery;
use partner_core::webhooks::delivery::{AttemptOutcome, DeliveryInput, Progress};
use sqlx::SqliteConnection;
use store_sql::deliveries::Facts;

use super::Stored;
use crate::errors;
use crate::row::{Columns, json};

/// A step of a delivery: the expected row, and the row after the step.
pub(super) struct Step<'c> {
    sequence: i64,
    change: Change<'c>,
}

/// The change of a row. Many deliveries of a claim or a batch change in the same way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change<'c> {
    was: &'static str,
    had: Option<i64>,
    status: &'static str,
    attempts: u32,
    due: Option<i64>,
    token: Option<i64>,
    until: Option<i64>,
    delivered: Option<i64>,
    /// The status and error of a concluded attempt. They replace those of the previous attempt.
    report: Option<(Option<u16>, Option<&'c str>)>,
}

impl<'c> Step<'c> {
    pub(super) fn new(stored: &Stored, next: Progress) -> Self {
        let had = Facts::of(stored.progress.state).token;
        let facts = Facts::of(next.state);
        let change = Change {
            was: stored.progress.state.as_str(),
            had,
            status: next.state.as_str(),
            attempts: next.attempts,
            due: facts.due,
            token: facts.token,
            until: facts.until,
            delivered: facts.delivered,
            report: None,
        };
        let sequence = stored.sequence;
        Self { sequence, change }
    }

    /// A step whose preconditions the statement that found the row has checked.
    pub(super) fn decided(
        stored: &Stored,
        input: DeliveryInput,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let next = stored.progress.advance(input, now);
        next.map(|next| Self::new(stored, next)).ok_or_else(|| {
            StoreError::Guard(format!(
                "deliveries: row {} cannot take this step",
                stored.sequence
            ))
        })
    }

    pub(super) fn with_report(mut self, concluded: &'c ConcludedDelivery) -> Self {
        if concluded.outcome != AttemptOutcome::Released {
            let error = concluded.error.as_deref();
            self.change.report = Some((concluded.response_status, error));
        }
        self
    }
}

/// Groups row numbers by a key.
fn grouped<K: Ord>(pairs: impl Iterator<Item = (K, i64)>) -> BTreeMap<K, Vec<i64>> {
    let mut groups: BTreeMap<K, Vec<i64>> = BTreeMap::new();
    for (key, sequence) in pairs {
        groups.entry(key).or_default().push(sequence);
    }
    groups
}

/// Writes the steps. Fails unless every row is as expected.
pub(super) async fn apply(
    conn: &mut SqliteConnection,
    steps: &[Step<'_>],
) -> Result<(), StoreError> {
    let changes = grouped(steps.iter().map(|step| (step.change, step.sequence)));
    for (change, sequences) in changes {
        let written = change.write(conn, &sequences).await?;
        if written != sequences.len() as u64 {
            return Err(errors::rows("deliveries", sequences.len(), written));
        }
    }
    Ok(())
}

impl Change<'_> {
    async fn write(
        self,
        conn: &mut SqliteConnection,
        sequences: &[i64],
    ) -> Result<u64, StoreError> {
        let (code, error) = self.report.unwrap_or_default();
        let written = sqlx::query(WRITE)
            .bind(json(&sequences)?)
            .bind(self.was)
            .bind(self.had)
            .bind(self.status)
            .bind(self.attempts)
            .bind(self.due)
            .bind(self.token)
            .bind(self.until)
            .bind(self.delivered)
            .bind(self.report.is_some())
            .bind(code)
            .bind(error)
            .execute(conn)
            .await
            .map_err(errors::statement)?;
        Ok(written.rows_affected())
    }
}

/// Moves the later deliveries of the objects whose deliveries were concluded. They become due with the concluded delivery if it
/// will be retried, else now. A delivery that waits after its own failure does not become due earlier.
pub(super) async fn follow(
    conn: &mut SqliteConnection,
    steps: &[Step<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let due = |step: &Step<'_>| step.change.due.unwrap_or(now.millis());
    let mut latest: BTreeMap<i64, i64> = BTreeMap::new();
    for (due, concluded) in grouped(steps.iter().map(|step| (due(step), step.sequence))) {
        // The groups are in the order of their instants, so the latest instant replaces earlier ones.
        let later = later_deliveries(conn, &concluded, due).await?;
        latest.extend(later.into_iter().map(|sequence| (sequence, due)));
    }
    let moved = latest.into_iter().map(|(sequence, due)| (due, sequence));
    for (due, sequences) in grouped(moved) {
        sqlx::query(MOVE)
            .bind(json(&sequences)?)
            .bind(due)
            .execute(&mut *conn)
            .await
            .map_err(errors::statement)?;
    }
    Ok(())
}

/// The later deliveries of the same objects that must wait until `due`.
async fn later_deliveries(
    conn: &mut SqliteConnection,
    concluded: &[i64],
    due: i64,
) -> Result<Vec<i64>, StoreError> {
    let rows = sqlx::query(LATER)
        .bind(json(&concluded)?)
        .bind(due)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| Columns::new("deliveries", row).integer("sequence"))
        .collect()
}

pub(crate) const WRITE: &str = "UPDATE deliveries
     SET status = ?4, attempts = ?5, next_attempt_at = ?6, lease_token = ?7, lease_until = ?8, delivered_at = ?9,
         last_response_status = iif(?10, ?11, last_response_status), last_error = iif(?10, ?12, last_error)
     WHERE sequence IN (SELECT j.value FROM json_each(?1) AS j) AND status = +?2 AND lease_token IS ?3";

pub(crate) const LATER: &str = "SELECT f.sequence
     FROM deliveries AS d
     CROSS JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
          AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
          AND f.sequence > d.sequence
     WHERE d.sequence IN (SELECT j.value FROM json_each(?1) AS j)
       AND f.status = 'pending' AND (f.attempts = 0 OR f.next_attempt_at < ?2)";

pub(crate) const MOVE: &str = "UPDATE deliveries SET next_attempt_at = ?2
     WHERE sequence IN (SELECT j.value FROM json_each(?1) AS j) AND status = 'pending'";
