//! Sessions.

use gate_core::amount::SessionAmount;
use gate_core::object::JsonObject;
use gate_core::secret::SecretHash;
use gate_core::session::{Flow, Session, SessionState, SessionStatus, Terms};
use gate_core::transaction::RefId;
use kernel::{Asset, Mode, StoreError};
use partner_core::Tenant;

use crate::Row;

pub fn session(row: &dyn Row, mode: Mode) -> Result<Session, StoreError> {
    Ok(Session {
        id: row.id("id", mode)?,
        terms: Terms {
            amount: row.parsed("amount", |text| SessionAmount::parse(text).ok())?,
            currency: row.parsed("currency", Asset::fiat)?,
            return_url: row.text("return_url")?.to_owned(),
            cancel_url: row.opt_string("cancel_url")?,
            target_token: row.opt_string("target_token")?,
            target_network: row.opt_string("target_network")?,
            flow: row.opt_parsed("flow", Flow::parse)?,
            wallet_address: row.opt_string("wallet_address")?,
            user_reference: row.opt_string("user_reference")?,
            metadata: row.parsed("metadata", JsonObject::stored)?,
        },
        secret: SecretHash(row.digest("secret_hash")?),
        kyc_pre_verified: row.flag("kyc_pre_verified")?,
        created_at: row.instant("created_at")?,
        expires_at: row.instant("expires_at")?,
        state: state(row, mode)?,
        payment_in_progress: row.flag("payment_in_progress")?,
    })
}

fn state(row: &dyn Row, mode: Mode) -> Result<SessionState, StoreError> {
    let status = row.parsed("status", SessionStatus::parse)?;
    let ended = [
        row.opt_instant("completed_at")?,
        row.opt_instant("cancelled_at")?,
        row.opt_instant("expired_at")?,
    ];
    let paid = row.opt_id("transaction_id", mode)?.map(RefId::from);
    SessionState::stored(status, ended, paid).ok_or_else(|| row.bad("status"))
}

/// A new session is the tenant's, and open.
pub fn check_new(who: &Tenant, session: &Session) -> Result<(), StoreError> {
    if session.id.mode() == who.mode && session.state == SessionState::Open {
        return Ok(());
    }
    Err(StoreError::Guard(format!(
        "sessions: {} is of another mode, or has ended before it began",
        session.id
    )))
}
