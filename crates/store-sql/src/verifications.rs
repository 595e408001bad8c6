//! Verifications: their rows, and the steps of one verification.

use async_trait::async_trait;
use gate_core::due::DueShare;
use gate_core::ports::{HeldBy, VerificationTx};
use gate_core::rail::PollLease;
use gate_core::session::SessionId;
use gate_core::verification::{Verification, VerificationState, VerificationStatus};
use kernel::{Cas, Mode, Readable, StoreResult, TraceParent, UpstreamName};
use partner_core::Tenant;

use crate::due::{self, due_of_each_partner};
use crate::store_tx::guard;
use crate::{Connection, Reader, Row, Statement, StoreTx, values};

#[async_trait]
impl VerificationTx for StoreTx {
    async fn verification_insert(
        &mut self,
        who: &Tenant,
        verification: &Verification,
    ) -> StoreResult<()> {
        let fits = verification.id.mode() == who.mode && verification.state.ended_at().is_none();
        guard(fits, || {
            let id = verification.id;
            format!("verifications: {id} has another mode or has ended")
        })?;
        let asking = &verification.asking;
        let trace_parent = verification.trace_parent.map(|it| it.to_string());
        let values = values![
            who.mode,
            &who.partner,
            verification.id,
            verification.session,
            verification.state.status().as_str(),
            &verification.reference,
            verification.created_at,
            asking.attempts,
            asking.token.map(u64::cast_signed),
            asking.next_at,
            verification.verifier.as_ref().map(UpstreamName::as_str),
            &trace_parent,
        ];
        self.insert_around("verification.insert", who, &INSERT, values)
            .await
    }

    async fn verification_lock(
        &mut self,
        who: &Tenant,
        session: SessionId,
    ) -> StoreResult<Option<Verification>> {
        find(self.locked(who).await?, who, session).await
    }

    async fn verification_put(
        &mut self,
        who: &Tenant,
        before: &PollLease,
        after: &Verification,
    ) -> StoreResult<Cas> {
        let trace_parent = after.trace_parent.map(|it| it.to_string());
        let values = values![
            who.mode,
            &who.partner,
            after.id.in_mode(who.mode),
            before.attempts,
            before.token.map(u64::cast_signed),
            after.state.status().as_str(),
            &after.reference,
            after.state.stored_reason(),
            after.state.ended_at(),
            after.asking.attempts,
            after.asking.token.map(u64::cast_signed),
            after.asking.next_at,
            after.verifier.as_ref().map(UpstreamName::as_str),
            &trace_parent,
        ];
        self.swap_around("verification.put", who, &PUT, values)
            .await
    }
}

pub async fn find(
    connection: &mut dyn Connection,
    who: &Tenant,
    session: SessionId,
) -> StoreResult<Option<Verification>> {
    let values = values![who.mode, &who.partner, session.in_mode(who.mode)];
    let row = connection.fetch_optional(&FIND, values).await?;
    row.map(|row| verification(&*row, who.mode)).transpose()
}

/// Every column of a verification.
#[macro_export]
macro_rules! verification_columns {
    () => {
        "partner_id, id, session_id, status, verifier, reference, reason, created_at, ended_at, attempts, ask_token, ask_at, trace_parent"
    };
}

pub static FIND: Statement = Statement::new(
    "verifications",
    concat!(
        "SELECT ",
        verification_columns!(),
        " FROM verifications WHERE mode = $1 AND partner_id = $2 AND session_id = $3"
    ),
);

/// Sessions whose verification is due, of each partner the longest overdue first.
pub async fn due(
    reader: &mut dyn Reader,
    held: HeldBy<'_>,
    share: &DueShare,
) -> StoreResult<Readable<(Tenant, SessionId)>> {
    let of = (held.mode, Some(held.upstream), share);
    due::read(reader, &DUE, "ask_at", of, session).await
}

fn session(row: &dyn Row, mode: Mode) -> StoreResult<SessionId> {
    row.id("session_id", mode)
}

pub static DUE: Statement = Statement::per_engine(
    "verifications",
    due_of_each_partner!(
        "verifications" where "status = 'pending' AND verifier = $6", "ask_at" in "verifications_due_of_verifier",
        ["id", "session_id"], ""
    ),
);

/// The number of pending verifications of open sessions of each verifier that is not one of these. A verification whose session has ended
/// is not asked about.
pub async fn elsewhere(
    reader: &mut dyn Reader,
    mode: Mode,
    names: &[UpstreamName],
) -> StoreResult<Vec<(UpstreamName, u64)>> {
    due::elsewhere(reader, &ELSEWHERE, mode, names).await
}

pub static ELSEWHERE: Statement = Statement::new(
    "verifications",
    "SELECT v.verifier AS holder, count(*) AS held FROM verifications AS v
     JOIN sessions AS s ON s.mode = v.mode AND s.partner_id = v.partner_id AND s.id = v.session_id
     WHERE v.mode = $1 AND v.status = 'pending' AND v.verifier NOT IN ($2, $3) AND s.status = 'open'
     GROUP BY v.verifier ORDER BY v.verifier",
);

pub(crate) fn verification(row: &dyn Row, mode: Mode) -> StoreResult<Verification> {
    let state = VerificationState::stored(
        row.parsed("status", VerificationStatus::parse)?,
        row.opt_instant("ended_at")?,
        row.opt_text("reason")?,
    );
    Ok(Verification {
        id: row.id("id", mode)?,
        session: row.id("session_id", mode)?,
        verifier: row.opt_parsed("verifier", UpstreamName::parse)?,
        reference: row.opt_string("reference")?,
        created_at: row.instant("created_at")?,
        state: state.ok_or_else(|| row.bad("status"))?,
        asking: PollLease {
            attempts: row.count("attempts")?,
            token: row.opt_integer("ask_token")?.map(i64::cast_unsigned),
            next_at: row.instant("ask_at")?,
        },
        trace_parent: row.opt_parsed("trace_parent", |text| TraceParent::parse(text.as_bytes()))?,
    })
}

static INSERT: Statement = Statement::new(
    "verifications",
    "INSERT INTO verifications (mode, partner_id, id, session_id, status, reference, created_at, attempts, ask_token,
                                ask_at, verifier, trace_parent)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
);

pub static PUT: Statement = Statement::new(
    "verifications",
    "UPDATE verifications SET status = $6, reference = $7, reason = $8, ended_at = $9, attempts = $10, ask_token = $11,
                              ask_at = $12, verifier = $13, trace_parent = $14
     WHERE mode = $1 AND partner_id = $2 AND id = $3 AND status IN ('required', 'pending') AND attempts = $4
       AND ask_token IS NOT DISTINCT FROM $5",
);
