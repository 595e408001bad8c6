//! Rail records.

use gate_core::rail::{
    Instructions, PollLease, RailId, RailKind, RailRecord, RailState, RailStatus,
};
use gate_core::transaction::RefId;
use kernel::{Mode, StoreError};
use partner_core::Tenant;

use crate::{Row, signed_quotes};

/// A record, from a row that has its quote's terms beside it.
pub fn record(row: &dyn Row, mode: Mode) -> Result<RailRecord, StoreError> {
    let id = id(row, mode)?;
    let instructions = row.opt_parsed("instructions", |text| serde_json::from_str(text).ok())?;
    let state = RailState::stored(
        id.kind(),
        row.parsed("status", RailStatus::parse)?,
        row.opt_instant("ended_at")?,
        row.opt_text("failure_code")?,
    );
    Ok(RailRecord {
        id,
        quote: row.id("quote_id", mode)?,
        terms: signed_quotes::terms(row)?,
        session: row.id("session_id", mode)?,
        refid: RefId::from(row.id("transaction_id", mode)?),
        instructions: instructions.map(Instructions),
        created_at: row.instant("created_at")?,
        state: state.ok_or_else(|| row.bad("status"))?,
        asking: PollLease {
            attempts: row.count("attempts")?,
            token: row.opt_integer("ask_token")?.map(i64::cast_unsigned),
            next_at: row.instant("ask_at")?,
        },
    })
}

pub fn id(row: &dyn Row, mode: Mode) -> Result<RailId, StoreError> {
    let kind = row.parsed("kind", RailKind::parse)?;
    Ok(RailId::from_parts(kind, row.id("id", mode)?))
}

/// A new record is the tenant's, and under way.
pub fn check_new(who: &Tenant, record: &RailRecord) -> Result<(), StoreError> {
    if record.id.in_mode(who.mode).is_some() && record.state == RailState::Processing {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "rail_records: {} is of another mode, or has ended before it began",
        record.id
    )))
}
