//! Writing: the steps of many deliveries in one statement.

use std::collections::BTreeMap;

use kernel::{StoreError, Timestamp};
use partner_core::ports::Concluded;
use partner_core::webhooks::delivery::{Act, DeliveryState, Ending, Progress};
use serde::Serialize;
use sqlx::SqliteConnection;

use super::Stored;
use crate::errors;
use crate::row::{Columns, json};

/// A step of a delivery: what its row was, and what it becomes.
#[derive(Serialize)]
pub(super) struct Step<'c> {
    sequence: i64,
    was: &'static str,
    had: Option<i64>,
    status: &'static str,
    attempts: u32,
    due: Option<i64>,
    token: Option<i64>,
    until: Option<i64>,
    delivered: Option<i64>,
    /// Was an attempt concluded? Then what is known of it replaces what was known before.
    noted: bool,
    code: Option<u16>,
    error: Option<&'c str>,
}

impl<'c> Step<'c> {
    pub(super) fn new(stored: &Stored, next: Progress) -> Self {
        let columns = |state: DeliveryState| match state {
            DeliveryState::Pending { due } => (Some(due.millis()), None, None, None),
            DeliveryState::InFlight(lease) => {
                let (token, until) = (lease.token.cast_signed(), lease.until.millis());
                (None, Some(token), Some(until), None)
            }
            DeliveryState::Succeeded { at } => (None, None, None, Some(at.millis())),
            DeliveryState::DeadLettered => (None, None, None, None),
        };
        let (_, had, ..) = columns(stored.progress.state);
        let (due, token, until, delivered) = columns(next.state);
        Self {
            sequence: stored.sequence,
            was: stored.progress.state.as_str(),
            had,
            status: next.state.as_str(),
            attempts: next.attempts,
            due,
            token,
            until,
            delivered,
            noted: false,
            code: None,
            error: None,
        }
    }

    /// A step that the statement which found the row has answered for already.
    pub(super) fn decided(stored: &Stored, act: Act, now: Timestamp) -> Result<Self, StoreError> {
        let next = stored.progress.advance(act, now);
        next.map(|next| Self::new(stored, next)).ok_or_else(|| {
            StoreError::Guard(format!(
                "deliveries: row {} was not to be taken",
                stored.sequence
            ))
        })
    }

    pub(super) fn noting(mut self, concluded: &'c Concluded) -> Self {
        self.noted = concluded.ending != Ending::HandedBack;
        self.code = concluded.response_status;
        self.error = concluded.error.as_deref();
        self
    }
}

pub(super) async fn apply(
    conn: &mut SqliteConnection,
    steps: &[Step<'_>],
) -> Result<(), StoreError> {
    if steps.is_empty() {
        return Ok(());
    }
    let written = sqlx::query(
        "UPDATE deliveries SET status = j.value ->> 'status', attempts = j.value ->> 'attempts',
                next_attempt_at = j.value ->> 'due', lease_token = j.value ->> 'token',
                lease_until = j.value ->> 'until', delivered_at = j.value ->> 'delivered',
                last_response_status = iif(j.value ->> 'noted', j.value ->> 'code', last_response_status),
                last_error = iif(j.value ->> 'noted', j.value ->> 'error', last_error)
         FROM json_each(?1) AS j
         WHERE deliveries.sequence = j.value ->> 'sequence' AND deliveries.status = j.value ->> 'was'
           AND deliveries.lease_token IS j.value ->> 'had'",
    )
    .bind(json(&steps)?)
    .execute(conn)
    .await
    .map_err(errors::statement)?
    .rows_affected();
    if written == steps.len() as u64 {
        Ok(())
    } else {
        Err(errors::rows("deliveries", steps.len(), written))
    }
}

/// Those that were held back by what has moved: due with it where it is to be tried again, now
/// where it is done with. One that is waiting after a failure of its own waits at least that long.
pub(super) async fn follow(
    conn: &mut SqliteConnection,
    steps: &[Step<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = sqlx::query(
        "SELECT f.sequence, coalesce(j.value ->> 'due', ?2) AS due
         FROM json_each(?1) AS j
         CROSS JOIN deliveries AS d ON d.sequence = j.value ->> 'sequence'
         CROSS JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
              AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
              AND f.sequence > d.sequence
         WHERE f.status = 'pending' AND (f.attempts = 0 OR f.next_attempt_at < coalesce(j.value ->> 'due', ?2))",
    )
    .bind(json(&steps)?)
    .bind(now.millis())
    .fetch_all(&mut *conn)
    .await
    .map_err(errors::statement)?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut due = BTreeMap::new();
    for row in &rows {
        let row = Columns::new("deliveries", row);
        let latest = due.entry(row.integer("sequence")?).or_insert(i64::MIN);
        *latest = row.integer("due")?.max(*latest);
    }
    let due: Vec<(i64, i64)> = due.into_iter().collect();
    sqlx::query(
        "UPDATE deliveries SET next_attempt_at = j.value ->> 1 FROM json_each(?1) AS j
         WHERE deliveries.sequence = j.value ->> 0 AND deliveries.status = 'pending'",
    )
    .bind(json(&due)?)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}
