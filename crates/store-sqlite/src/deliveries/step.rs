//! Writing: the steps of many deliveries, one statement for all that move alike.

use std::collections::BTreeMap;

use kernel::{StoreError, Timestamp};
use partner_core::ports::ConcludedDelivery;
use partner_core::webhooks::delivery::{AttemptOutcome, DeliveryInput, Progress};
use sqlx::SqliteConnection;
use store_sql::deliveries::Facts;

use super::Stored;
use crate::errors;
use crate::row::{Columns, json};

/// A step of a delivery: what its row was, and what it becomes.
pub(super) struct Step<'c> {
    sequence: i64,
    change: Change<'c>,
}

/// What is written. A claim moves many in the same way, and so does the end of many attempts.
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
    /// What is known of an attempt that was concluded replaces what was known before.
    noted: Option<(Option<u16>, Option<&'c str>)>,
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
            noted: None,
        };
        let sequence = stored.sequence;
        Self { sequence, change }
    }

    /// A step that the statement which found the row has answered for already.
    pub(super) fn decided(
        stored: &Stored,
        act: DeliveryInput,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let next = stored.progress.advance(act, now);
        next.map(|next| Self::new(stored, next)).ok_or_else(|| {
            StoreError::Guard(format!(
                "deliveries: row {} was not to be taken",
                stored.sequence
            ))
        })
    }

    pub(super) fn noting(mut self, concluded: &'c ConcludedDelivery) -> Self {
        if concluded.outcome != AttemptOutcome::Released {
            let error = concluded.error.as_deref();
            self.change.noted = Some((concluded.response_status, error));
        }
        self
    }
}

/// The rows' numbers, by what is the same of them.
fn grouped<K: Ord>(pairs: impl Iterator<Item = (K, i64)>) -> BTreeMap<K, Vec<i64>> {
    let mut groups: BTreeMap<K, Vec<i64>> = BTreeMap::new();
    for (key, sequence) in pairs {
        groups.entry(key).or_default().push(sequence);
    }
    groups
}

pub(super) async fn apply(
    conn: &mut SqliteConnection,
    steps: &[Step<'_>],
) -> Result<(), StoreError> {
    let alike = grouped(steps.iter().map(|step| (step.change, step.sequence)));
    for (change, sequences) in alike {
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
        let (code, error) = self.noted.unwrap_or_default();
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
            .bind(self.noted.is_some())
            .bind(code)
            .bind(error)
            .execute(conn)
            .await
            .map_err(errors::statement)?;
        Ok(written.rows_affected())
    }
}

/// Those that were held back by what has moved: due with it where it is to be tried again, now
/// where it is done with. One that is waiting after a failure of its own waits at least that long.
pub(super) async fn follow(
    conn: &mut SqliteConnection,
    steps: &[Step<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let due = |step: &Step<'_>| step.change.due.unwrap_or(now.millis());
    let mut latest: BTreeMap<i64, i64> = BTreeMap::new();
    for (due, ahead) in grouped(steps.iter().map(|step| (due(step), step.sequence))) {
        // In the order of their times: the latest stands.
        let behind = behind(conn, &ahead, due).await?;
        latest.extend(behind.into_iter().map(|sequence| (sequence, due)));
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

/// What waits behind these, and is to wait until then.
async fn behind(
    conn: &mut SqliteConnection,
    ahead: &[i64],
    due: i64,
) -> Result<Vec<i64>, StoreError> {
    let rows = sqlx::query(BEHIND)
        .bind(json(&ahead)?)
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

pub(crate) const BEHIND: &str = "SELECT f.sequence
     FROM deliveries AS d
     CROSS JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
          AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
          AND f.sequence > d.sequence
     WHERE d.sequence IN (SELECT j.value FROM json_each(?1) AS j)
       AND f.status = 'pending' AND (f.attempts = 0 OR f.next_attempt_at < ?2)";

pub(crate) const MOVE: &str = "UPDATE deliveries SET next_attempt_at = ?2
     WHERE sequence IN (SELECT j.value FROM json_each(?1) AS j) AND status = 'pending'";
