//! Deliveries: what their rows say, and the columns that a state stands in.

use kernel::{Mode, StoreError, Timestamp};
use partner_core::ports::{DeliveryRecord, DeliveryView, QueueStats};
use partner_core::webhooks::delivery::{DeliveryState, Lease, Progress};

use crate::Row;

pub fn progress(row: &dyn Row) -> Result<Progress, StoreError> {
    let due = row.opt_instant("next_attempt_at")?;
    let token = row.opt_integer("lease_token")?;
    let until = row.opt_instant("lease_until")?;
    let delivered = row.opt_instant("delivered_at")?;
    let state = match (row.text("status")?, due, token, until, delivered) {
        ("pending", Some(due), None, None, None) => DeliveryState::Pending { due },
        ("in_flight", None, Some(token), Some(until), None) => DeliveryState::InFlight(Lease {
            token: token.cast_unsigned(),
            until,
        }),
        ("succeeded", None, None, None, Some(at)) => DeliveryState::Succeeded { at },
        ("dead_lettered", None, None, None, None) => DeliveryState::DeadLettered,
        _ => return Err(row.bad("status")),
    };
    let attempts = row.count("attempts")?;
    Ok(Progress { state, attempts })
}

pub fn record(row: &dyn Row, mode: Mode) -> Result<DeliveryRecord, StoreError> {
    Ok(DeliveryRecord {
        id: row.id("id", mode)?,
        event_id: row.text("event_id")?.to_owned(),
        progress: progress(row)?,
        last_response_status: row.opt_count("last_response_status")?,
        last_error: row.opt_string("last_error")?,
    })
}

/// A delivery with what its partner is shown beside it.
pub fn view(row: &dyn Row, mode: Mode) -> Result<DeliveryView, StoreError> {
    Ok(DeliveryView {
        record: record(row, mode)?,
        event_kind: row.text("event_type")?.to_owned(),
        target_url: row.text("target_url")?.to_owned(),
        created_at: row.instant("created_at")?,
    })
}

/// How a queue stands, with the instant of the first that is due in a column.
pub fn standing(row: &dyn Row, now: Timestamp) -> Result<QueueStats, StoreError> {
    Ok(QueueStats {
        due: row.count("due")?,
        scheduled: row.count("scheduled")?,
        in_flight: row.count("in_flight")?,
        oldest_due: row.opt_instant("first")?.map(|first| now.since(first)),
    })
}

/// The columns of a state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    pub due: Option<i64>,
    pub token: Option<i64>,
    pub until: Option<i64>,
    pub delivered: Option<i64>,
}

impl Facts {
    #[must_use]
    pub fn of(state: DeliveryState) -> Self {
        let none = Self::default();
        match state {
            DeliveryState::Pending { due } => Self {
                due: Some(due.millis()),
                ..none
            },
            DeliveryState::InFlight(lease) => Self {
                token: Some(lease.token.cast_signed()),
                until: Some(lease.until.millis()),
                ..none
            },
            DeliveryState::Succeeded { at } => Self {
                delivered: Some(at.millis()),
                ..none
            },
            DeliveryState::DeadLettered => none,
        }
    }
}
