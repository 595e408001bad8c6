//! Sessions: rows in and out, and the steps of one session.

use async_trait::async_trait;
use gate_core::ports::{SessionFilter, SessionTx};
use gate_core::session::{Flow, Session, SessionId, SessionState, Step};
use instruments::failpoint::{Step as Failpoint, around};
use kernel::{Cas, Mode, StoreError, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::Sealed;
use sqlx::SqliteConnection;
use store_sql::sessions::{check_new, session};

use crate::errors;
use crate::row::{Columns, key, own_key};
use crate::tx::SqliteTx;

#[async_trait]
impl SessionTx for SqliteTx {
    async fn session_insert(
        &mut self,
        who: &Tenant,
        session: &Session,
        kyc_package: Option<&Sealed>,
    ) -> Result<(), StoreError> {
        let inserting = insert(self.conn(), who, session, kyc_package);
        around(Failpoint::SessionInsert, inserting).await
    }

    async fn session_lock(
        &mut self,
        who: &Tenant,
        id: SessionId,
    ) -> Result<Option<Session>, StoreError> {
        find(self.conn(), who, id).await
    }

    async fn session_apply(
        &mut self,
        who: &Tenant,
        id: SessionId,
        step: &Step,
    ) -> Result<Cas, StoreError> {
        let applying = apply(self.conn(), who, id, step);
        let outcome = around(Failpoint::SessionApply, applying).await?;
        Ok(self.record_race(outcome))
    }
}

pub(crate) async fn find(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: SessionId,
) -> Result<Option<Session>, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(None);
    };
    let row = sqlx::query(
        "SELECT partner_id, id, amount, currency, return_url, cancel_url, flow, target_token, target_network,
                wallet_address, user_reference, metadata, secret_hash, kyc_pre_verified, status, created_at, expires_at,
                completed_at, cancelled_at, expired_at, transaction_id,
                EXISTS (SELECT 1 FROM rail_records AS r
                        WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
                          AND r.status = 'processing') AS payment_in_progress
         FROM sessions WHERE mode = ?1 AND partner_id = ?2 AND id = ?3",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .fetch_optional(conn)
    .await
    .map_err(errors::statement)?;
    row.map(|row| session(&Columns::new("sessions", &row), who.mode))
        .transpose()
}

/// A page by (`created_at`, id) descending, after a session of the tenant's.
pub(crate) async fn page(
    conn: &mut SqliteConnection,
    who: &Tenant,
    filter: &SessionFilter,
    limit: u32,
) -> Result<Vec<Session>, StoreError> {
    let below = match filter.after {
        None => (i64::MAX, String::new()),
        Some(after) => match find(conn, who, after).await? {
            None => return Ok(Vec::new()),
            Some(after) => (after.created_at.millis(), key(after.id)),
        },
    };
    let statement = if filter.status.is_some() {
        PAGE_OF_STATUS
    } else {
        PAGE
    };
    let mut query = sqlx::query(statement)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(below.0)
        .bind(below.1)
        .bind(limit);
    if let Some(status) = filter.status {
        query = query.bind(status.as_str());
    }
    let rows = query.fetch_all(conn).await.map_err(errors::statement)?;
    rows.iter()
        .map(|row| session(&Columns::new("sessions", row), who.mode))
        .collect()
}

pub(crate) const PAGE: &str =
    "SELECT partner_id, id, amount, currency, return_url, cancel_url, flow, target_token, target_network, wallet_address,
            user_reference, metadata, secret_hash, kyc_pre_verified, status, created_at, expires_at, completed_at,
            cancelled_at, expired_at, transaction_id,
            EXISTS (SELECT 1 FROM rail_records AS r
                    WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
                      AND r.status = 'processing') AS payment_in_progress
     FROM sessions
     WHERE mode = ?1 AND partner_id = ?2 AND (created_at, id) < (?3, ?4)
     ORDER BY created_at DESC, id DESC LIMIT +?5";

pub(crate) const PAGE_OF_STATUS: &str =
    "SELECT partner_id, id, amount, currency, return_url, cancel_url, flow, target_token, target_network, wallet_address,
            user_reference, metadata, secret_hash, kyc_pre_verified, status, created_at, expires_at, completed_at,
            cancelled_at, expired_at, transaction_id,
            EXISTS (SELECT 1 FROM rail_records AS r
                    WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
                      AND r.status = 'processing') AS payment_in_progress
     FROM sessions
     WHERE mode = ?1 AND partner_id = ?2 AND (created_at, id) < (?3, ?4) AND status = ?6
     ORDER BY created_at DESC, id DESC LIMIT +?5";

pub(crate) async fn overdue(
    conn: &mut SqliteConnection,
    who: &Tenant,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<SessionId>, StoreError> {
    let rows = sqlx::query(OVERDUE)
        .bind(who.mode.as_str())
        .bind(who.partner.as_str())
        .bind(now.millis())
        .bind(limit)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| Columns::new("sessions", row).id("id", who.mode))
        .collect()
}

pub(crate) const OVERDUE: &str = "SELECT partner_id, id FROM sessions
     WHERE mode = ?1 AND partner_id = ?2 AND status = 'open' AND expires_at <= ?3
       AND NOT EXISTS (SELECT 1 FROM rail_records AS r
                       WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
                         AND r.status = 'processing')
     ORDER BY expires_at LIMIT +?4";

pub(crate) async fn overdue_in(
    conn: &mut SqliteConnection,
    mode: Mode,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<(Tenant, SessionId)>, StoreError> {
    let rows = sqlx::query(OVERDUE_IN)
        .bind(mode.as_str())
        .bind(now.millis())
        .bind(limit)
        .fetch_all(conn)
        .await
        .map_err(errors::statement)?;
    rows.iter()
        .map(|row| {
            let row = Columns::new("sessions", row);
            let partner = row.partner()?;
            Ok((Tenant { partner, mode }, row.id("id", mode)?))
        })
        .collect()
}

pub(crate) const OVERDUE_IN: &str = "SELECT partner_id, id FROM sessions
     WHERE mode = ?1 AND status = 'open' AND expires_at <= ?2
       AND NOT EXISTS (SELECT 1 FROM rail_records AS r
                       WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
                         AND r.status = 'processing')
     ORDER BY expires_at LIMIT +?3";

async fn insert(
    conn: &mut SqliteConnection,
    who: &Tenant,
    session: &Session,
    kyc_package: Option<&Sealed>,
) -> Result<(), StoreError> {
    check_new(who, session)?;
    let terms = &session.terms;
    sqlx::query(
        "INSERT INTO sessions (mode, partner_id, id, amount, currency, return_url, cancel_url, flow, target_token,
                               target_network, wallet_address, user_reference, metadata, secret_hash, kyc_pre_verified,
                               kyc_package, status, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 'open', ?17, ?18)",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key(session.id))
    .bind(terms.amount.as_str())
    .bind(terms.currency.code())
    .bind(&terms.return_url)
    .bind(&terms.cancel_url)
    .bind(terms.flow.map(Flow::as_str))
    .bind(&terms.target_token)
    .bind(&terms.target_network)
    .bind(&terms.wallet_address)
    .bind(&terms.user_reference)
    .bind(terms.metadata.as_str())
    .bind(session.secret.0.as_slice())
    .bind(session.kyc_pre_verified)
    .bind(kyc_package.map(|package| package.0.as_slice()))
    .bind(session.created_at.millis())
    .bind(session.expires_at.millis())
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

async fn apply(
    conn: &mut SqliteConnection,
    who: &Tenant,
    id: SessionId,
    step: &Step,
) -> Result<Cas, StoreError> {
    let Some(key) = own_key(who, id) else {
        return Ok(Cas::Lost);
    };
    if step.state == SessionState::Open {
        return Ok(Cas::Lost);
    }
    let [completed, cancelled, expired] = step.state.ended();
    let paid = step.state.paid().and_then(|refid| own_key(who, refid.id()));
    let written = sqlx::query(
        "UPDATE sessions SET status = ?4, completed_at = ?5, cancelled_at = ?6, expired_at = ?7, transaction_id = ?8
         WHERE mode = ?1 AND partner_id = ?2 AND id = ?3 AND status = 'open'
           AND (coalesce(expires_at > ?5, expires_at > ?6, expires_at <= ?7)
                    AND NOT EXISTS (SELECT 1 FROM rail_records AS r
                                    WHERE r.mode = ?1 AND r.partner_id = ?2 AND r.session_id = ?3 AND r.status = 'processing')
                OR EXISTS (SELECT 1 FROM rail_records AS r
                           WHERE r.mode = ?1 AND r.partner_id = ?2 AND r.session_id = ?3 AND r.transaction_id = ?8
                             AND r.status = 'settled'))",
    )
    .bind(who.mode.as_str())
    .bind(who.partner.as_str())
    .bind(key)
    .bind(step.state.status().as_str())
    .bind(completed.map(Timestamp::millis))
    .bind(cancelled.map(Timestamp::millis))
    .bind(expired.map(Timestamp::millis))
    .bind(paid)
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Cas::from_rows(written.rows_affected())
}
