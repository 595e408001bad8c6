//! Sessions: their rows, and the steps of one session.

use async_trait::async_trait;
use gate_core::amount::SessionAmount;
use gate_core::due::DueShare;
use gate_core::embed::SessionToken;
use gate_core::object::JsonObject;
use gate_core::ports::{SessionFilter, SessionTx};
use gate_core::secret::SecretHash;
use gate_core::session::{Flow, Session, SessionId, SessionState, SessionStatus, Step, Terms};
use gate_core::transaction::RefId;
use kernel::{Asset, Cas, Mode, Readable, Seen, StoreResult};
use partner_core::Tenant;
use partner_core::sealing::Sealed;

use crate::bounds::{exclusive_lower_bound, upper_bound};
use crate::due::{self, due_of_each_partner};
use crate::statement::with_clock;
use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl SessionTx for StoreTx {
    async fn session_insert(
        &mut self,
        who: &Tenant,
        session: &Session,
        kyc_package: Option<&Sealed>,
    ) -> StoreResult<()> {
        let fits = session.id.mode() == who.mode && session.state == SessionState::Open;
        guard(fits, || {
            format!("sessions: {} has another mode or is not open", session.id)
        })?;
        let terms = &session.terms;
        let values = values![
            who.mode,
            &who.partner,
            session.id,
            terms.amount.as_str(),
            terms.currency.code(),
            &terms.return_url,
            &terms.cancel_url,
            terms.flow.map(Flow::as_str),
            &terms.target_token,
            &terms.target_network,
            &terms.wallet_address,
            &terms.user_reference,
            terms.metadata.as_str(),
            session.secret.0.as_slice(),
            session.kyc_pre_verified,
            kyc_package.map(|package| package.0.as_slice()),
            session.created_at,
            session.expires_at,
        ];
        self.insert_around("session.insert", who, &INSERT, values)
            .await
    }

    async fn session_lock(&mut self, who: &Tenant, id: SessionId) -> StoreResult<Option<Session>> {
        let found = find(self.locked(who).await?, who, id).await?;
        found.map(|row| session(&*row, who.mode)).transpose()
    }

    async fn session_apply(
        &mut self,
        who: &Tenant,
        id: SessionId,
        step: &Step,
    ) -> StoreResult<Cas> {
        if step.state == SessionState::Open {
            return Ok(self.record_race(Cas::Lost));
        }
        let [completed, cancelled, expired] = step.state.ended();
        let paid = step
            .state
            .paid()
            .and_then(|refid| refid.id().in_mode(who.mode));
        let values = values![
            who.mode,
            &who.partner,
            id.in_mode(who.mode),
            step.state.status().as_str(),
            completed,
            cancelled,
            expired,
            paid,
        ];
        self.swap_around("session.apply", who, &APPLY, values).await
    }

    async fn session_count_token(&mut self, who: &Tenant, token: SessionToken) -> StoreResult<Cas> {
        let before = token.number.saturating_sub(1);
        let id = token.session.in_mode(who.mode);
        let values = values![who.mode, &who.partner, id, before, token.number];
        self.swap_around("session.count_token", who, &COUNT_TOKEN, values)
            .await
    }
}

pub async fn get(
    reader: &mut dyn Reader,
    who: &Tenant,
    id: SessionId,
) -> StoreResult<Option<Seen<Session>>> {
    let Some(row) = find(reader.connection(), who, id).await? else {
        return Ok(None);
    };
    let (value, at) = (session(&*row, who.mode)?, reader.instant_of(&*row)?);
    Ok(Some(Seen { value, at }))
}

async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    id: SessionId,
) -> StoreResult<Option<Box<dyn Row>>> {
    let values = values![who.mode, &who.partner, id.in_mode(who.mode)];
    connection.fetch_optional(&FIND, values).await
}

/// Every column of the table that [`session`] reads.
macro_rules! stored {
    () => {
        "partner_id, id, amount, currency, return_url, cancel_url, flow, target_token, target_network, wallet_address,
         user_reference, metadata, secret_hash, kyc_pre_verified, status, created_at, expires_at, completed_at, cancelled_at,
         expired_at, transaction_id, tokens_made"
    };
}
pub(crate) use stored;

/// Every column that [`session`] reads.
///
/// Here and below, a payment in progress is one without an end. Said by its status, it would look as if the index of all payments in
/// progress could find it, and Postgres would read that index if its statistics are from a time with few such payments.
macro_rules! columns {
    () => {
        concat!(
            stored!(),
            ", EXISTS (SELECT 1 FROM rail_records AS r
                 WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
                   AND r.ended_at IS NULL) AS payment_in_progress"
        )
    };
}

pub static FIND: Statement = Statement::per_engine(
    "sessions",
    with_clock!(
        columns!(),
        " FROM sessions WHERE mode = $1 AND partner_id = $2 AND id = $3"
    ),
);

/// A page by (`created_at`, id) descending, after one of the tenant's sessions.
pub async fn page(
    reader: &mut dyn Reader,
    who: &Tenant,
    filter: &SessionFilter,
    limit: u32,
) -> StoreResult<Seen<Vec<Session>>> {
    let cursor = match filter.after {
        None => None,
        Some(after) => match find(reader.connection(), who, after).await? {
            None => return reader.seen(Vec::new()).await,
            Some(row) => Some((row.integer("created_at")?, after.ulid())),
        },
    };
    let (before, id) = upper_bound(filter.created.before, cursor);
    let after = exclusive_lower_bound(filter.created.after);
    let (mode, partner) = (who.mode, &who.partner);
    let connection = reader.connection();
    let rows = match filter.status {
        None => {
            let values = values![mode, partner, before, id, after, limit];
            connection.fetch_all(&PAGE, values).await?
        }
        Some(status) => {
            let values = values![mode, partner, before, id, after, limit, status.as_str()];
            connection.fetch_all(&PAGE_OF_STATUS, values).await?
        }
    };
    let page: StoreResult<Vec<Session>> =
        rows.iter().map(|row| session(&**row, who.mode)).collect();
    reader.seen(page?).await
}

macro_rules! page {
    ($filter:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM sessions
             WHERE mode = $1 AND partner_id = $2 AND (created_at, id) < ($3, $4) AND created_at > $5",
            $filter,
            " ORDER BY created_at DESC, id DESC LIMIT CAST($6 AS bigint)"
        )
    };
}

pub static PAGE: Statement = Statement::new("sessions", page!(""));

pub static PAGE_OF_STATUS: Statement = Statement::new("sessions", page!(" AND status = $7"));

pub async fn overdue(
    reader: &mut dyn Reader,
    who: &Tenant,
    limit: u32,
) -> StoreResult<Vec<SessionId>> {
    let now = reader.now().await?;
    let values = values![who.mode, &who.partner, now, limit];
    let rows = reader.connection().fetch_all(&OVERDUE, values).await?;
    rows.iter().map(|row| row.id("id", who.mode)).collect()
}

/// The count is made for each session. `NOT EXISTS` could become a join that reads all payments in progress.
pub static OVERDUE: Statement = Statement::new(
    "sessions",
    "SELECT partner_id, id FROM sessions
     WHERE mode = $1 AND partner_id = $2 AND status = 'open' AND expires_at <= $3
       AND (SELECT count(*) FROM rail_records AS r
            WHERE r.mode = sessions.mode AND r.partner_id = sessions.partner_id AND r.session_id = sessions.id
              AND r.ended_at IS NULL) = 0
     ORDER BY expires_at LIMIT CAST($4 AS bigint)",
);

pub async fn overdue_in(
    reader: &mut dyn Reader,
    mode: Mode,
    share: &DueShare,
) -> StoreResult<Readable<(Tenant, SessionId)>> {
    due::read(reader, &OVERDUE_IN, "expires_at", (mode, None, share), id).await
}

fn id(row: &dyn Row, mode: Mode) -> StoreResult<SessionId> {
    row.id("id", mode)
}

pub static OVERDUE_IN: Statement = Statement::per_engine(
    "sessions",
    due_of_each_partner!(
        "sessions" where "status = 'open'", "expires_at" in "sessions_open", ["id"],
        "
           AND (SELECT count(*) FROM rail_records AS r
                WHERE r.mode = o.mode AND r.partner_id = o.partner_id AND r.session_id = o.id AND r.ended_at IS NULL) = 0"
    ),
);

pub(crate) fn session(row: &dyn Row, mode: Mode) -> StoreResult<Session> {
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
        tokens_made: row.count("tokens_made")?,
    })
}

fn state(row: &dyn Row, mode: Mode) -> StoreResult<SessionState> {
    let status = row.parsed("status", SessionStatus::parse)?;
    let ended = [
        row.opt_instant("completed_at")?,
        row.opt_instant("cancelled_at")?,
        row.opt_instant("expired_at")?,
    ];
    let paid = row.opt_id("transaction_id", mode)?.map(RefId::from);
    SessionState::stored(status, ended, paid).ok_or_else(|| row.bad("status"))
}

static INSERT: Statement = Statement::new(
    "sessions",
    "INSERT INTO sessions (mode, partner_id, id, amount, currency, return_url, cancel_url, flow, target_token,
                           target_network, wallet_address, user_reference, metadata, secret_hash, kyc_pre_verified,
                           kyc_package, status, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 'open', $17, $18)",
);

/// An open session has no end. Said by its status, Postgres could look it up among all open sessions.
pub static COUNT_TOKEN: Statement = Statement::new(
    "sessions",
    "UPDATE sessions SET tokens_made = $5
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND coalesce(completed_at, cancelled_at, expired_at) IS NULL
       AND tokens_made = $4",
);

pub static APPLY: Statement = Statement::new(
    "sessions",
    "UPDATE sessions SET status = $4, completed_at = $5, cancelled_at = $6, expired_at = $7, transaction_id = $8
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND coalesce(completed_at, cancelled_at, expired_at) IS NULL
       AND (coalesce(expires_at > $5, expires_at > $6, expires_at <= $7)
                AND NOT EXISTS (SELECT 1 FROM rail_records AS r
                                WHERE r.mode = $1 AND r.partner_id = $2 AND r.session_id = $3 AND r.ended_at IS NULL)
            OR EXISTS (SELECT 1 FROM rail_records AS r
                       WHERE r.mode = $1 AND r.partner_id = $2 AND r.session_id = $3 AND r.transaction_id = $8
                         AND r.status = 'settled'))",
);
