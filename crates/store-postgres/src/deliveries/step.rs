//! Writes the steps of many deliveries in one statement.

use std::collections::BTreeMap;

use crate::conn::Conn;
use kernel::{Mode, StoreError, Timestamp};
use partner_core::ports::ConcludedDelivery;
use partner_core::webhooks::delivery::{AttemptOutcome, DeliveryInput, Progress};
use sqlx::types::Uuid;
use store_sql::deliveries::Facts;

use super::Stored;
use crate::errors;
use crate::row::{Columns, written};

/// A step of a delivery: the expected row, and the row after the step.
pub(super) struct Step<'c> {
    mode: Mode,
    partner: String,
    id: Uuid,
    was: &'static str,
    had: Option<i64>,
    status: &'static str,
    attempts: u32,
    due: Option<i64>,
    token: Option<i64>,
    until: Option<i64>,
    delivered: Option<i64>,
    /// Was an attempt concluded? Then its status and error replace those of the previous attempt.
    has_report: bool,
    code: Option<u16>,
    error: Option<&'c str>,
}

impl<'c> Step<'c> {
    pub(super) fn new(mode: Mode, stored: &Stored, next: Progress) -> Self {
        let had = Facts::of(stored.progress.state).token;
        let facts = Facts::of(next.state);
        Self {
            mode,
            partner: stored.partner.clone(),
            id: stored.id,
            was: stored.progress.state.as_str(),
            had,
            status: next.state.as_str(),
            attempts: next.attempts,
            due: facts.due,
            token: facts.token,
            until: facts.until,
            delivered: facts.delivered,
            has_report: false,
            code: None,
            error: None,
        }
    }

    /// A step whose preconditions the statement that found the row has checked.
    pub(super) fn decided(
        mode: Mode,
        stored: &Stored,
        input: DeliveryInput,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let next = stored.progress.advance(input, now);
        next.map(|next| Self::new(mode, stored, next))
            .ok_or_else(|| {
                let (partner, id) = (&stored.partner, written(stored.id));
                StoreError::Guard(format!("deliveries: {partner} {id} cannot take this step"))
            })
    }

    pub(super) fn with_report(mut self, concluded: &'c ConcludedDelivery) -> Self {
        self.has_report = concluded.outcome != AttemptOutcome::Released;
        self.code = concluded.response_status;
        self.error = concluded.error.as_deref();
        self
    }
}

/// Writes the steps. Fails unless every row is as expected.
pub(super) async fn apply(conn: &mut Conn, steps: &[Step<'_>]) -> Result<(), StoreError> {
    if steps.is_empty() {
        return Ok(());
    }
    let status = |step: &Step<'_>| step.code.map(i64::from);
    let rows = sqlx::query(APPLY)
        .bind(column(steps, |step| step.mode.as_str()))
        .bind(column(steps, |step| step.partner.as_str()))
        .bind(column(steps, |step| step.id))
        .bind(column(steps, |step| step.was))
        .bind(column(steps, |step| step.had))
        .bind(column(steps, |step| step.status))
        .bind(column(steps, |step| i64::from(step.attempts)))
        .bind(column(steps, |step| step.due))
        .bind(column(steps, |step| step.token))
        .bind(column(steps, |step| step.until))
        .bind(column(steps, |step| step.delivered))
        .bind(column(steps, |step| step.has_report))
        .bind(column(steps, status))
        .bind(column(steps, |step| step.error))
        .execute(conn)
        .await
        .map_err(errors::statement)?
        .rows_affected();
    if rows == steps.len() as u64 {
        Ok(())
    } else {
        Err(errors::rows("deliveries", steps.len(), rows))
    }
}

fn column<'s, 'c, T>(steps: &'s [Step<'c>], of: impl Fn(&'s Step<'c>) -> T) -> Vec<T> {
    steps.iter().map(of).collect()
}

pub(crate) const FIND: &str = "SELECT j.place, d.partner_id, d.id, d.status, d.attempts, d.next_attempt_at, d.lease_token, d.lease_until,
            d.delivered_at
     FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS j (mode, partner_id, id, place)
     JOIN deliveries AS d ON d.mode = j.mode AND d.partner_id = j.partner_id AND d.id = j.id
     ORDER BY d.mode, d.partner_id, d.position FOR NO KEY UPDATE OF d SKIP LOCKED";

pub(crate) const EXISTING: &str = "SELECT j.place
     FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS j (mode, partner_id, id, place)
     JOIN deliveries AS d ON d.mode = j.mode AND d.partner_id = j.partner_id AND d.id = j.id";

pub(crate) const APPLY: &str =
    "UPDATE deliveries AS d SET status = n.status, attempts = n.attempts, next_attempt_at = n.due,
            lease_token = n.token, lease_until = n.until, delivered_at = n.delivered,
            last_response_status = CASE WHEN n.noted THEN n.code ELSE d.last_response_status END,
            last_error = CASE WHEN n.noted THEN n.error ELSE d.last_error END
     FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
                 $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bigint[], $14::text[])
          AS n (mode, partner_id, id, was, had, status, attempts, due, token, until, delivered, noted, code, error)
     WHERE d.mode = n.mode AND d.partner_id = n.partner_id AND d.id = n.id AND d.status = n.was
       AND d.lease_token IS NOT DISTINCT FROM n.had";

/// Moves the later deliveries of the objects whose deliveries were concluded. They become due with the concluded delivery if it
/// will be retried, else now. A delivery that waits after its own failure does not become due earlier.
///
/// A delivery that another transaction has locked keeps its instant, which is not later than the attempt that was concluded.
pub(super) async fn follow(
    conn: &mut Conn,
    steps: &[Step<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let due = |step: &Step<'_>| step.due.unwrap_or(now.millis());
    let rows = sqlx::query(FOLLOWERS)
        .bind(column(steps, |step| step.mode.as_str()))
        .bind(column(steps, |step| step.partner.as_str()))
        .bind(column(steps, |step| step.id))
        .bind(column(steps, due))
        .fetch_all(&mut *conn)
        .await
        .map_err(errors::statement)?;
    let mut latest = BTreeMap::new();
    for row in &rows {
        let columns = Columns::new("deliveries", row);
        let place = (
            columns.get::<&str>("mode")?,
            columns.get::<&str>("partner_id")?,
            columns.get::<Uuid>("id")?,
        );
        let due = latest.entry(place).or_insert(i64::MIN);
        *due = columns.integer("due")?.max(*due);
    }
    if latest.is_empty() {
        return Ok(());
    }
    let places = latest.keys();
    sqlx::query(MOVE)
        .bind(places.clone().map(|place| place.0).collect::<Vec<_>>())
        .bind(places.clone().map(|place| place.1).collect::<Vec<_>>())
        .bind(places.map(|place| place.2).collect::<Vec<_>>())
        .bind(latest.values().copied().collect::<Vec<_>>())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

pub(crate) const FOLLOWERS: &str = "SELECT f.mode, f.partner_id, f.id, n.due
     FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) AS n (mode, partner_id, id, due)
     JOIN deliveries AS d ON d.mode = n.mode AND d.partner_id = n.partner_id AND d.id = n.id
     JOIN deliveries AS f ON f.status IN ('pending', 'in_flight') AND f.mode = d.mode
          AND f.partner_id = d.partner_id AND f.endpoint_id = d.endpoint_id AND f.object_id = d.object_id
          AND f.position > d.position
     WHERE f.status = 'pending' AND (f.attempts = 0 OR f.next_attempt_at < n.due)
     ORDER BY f.mode, f.partner_id, f.position FOR NO KEY UPDATE OF f SKIP LOCKED";

pub(crate) const MOVE: &str = "UPDATE deliveries AS d SET next_attempt_at = n.due
     FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) AS n (mode, partner_id, id, due)
     WHERE d.mode = n.mode AND d.partner_id = n.partner_id AND d.id = n.id AND d.status = 'pending'";
