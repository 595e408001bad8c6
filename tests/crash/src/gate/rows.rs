//! Rows of the gate's database that no route returns: which upstream holds a payment or a verification, and what it has said.

use kernel::Timestamp;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Postgres, Sqlite};
use tokio::runtime::Builder;

use crate::Result;
use crate::programs::Installation;

/// A payment of a live session.
#[derive(Debug, Clone)]
pub(super) struct PaymentRow {
    pub(super) id: String,
    pub(super) rail: String,
    pub(super) status: String,
    pub(super) acknowledged_at: Option<Timestamp>,
    pub(super) open_item: Option<String>,
    /// Whether the partner or a verifier had verified the user before the payment was made.
    pub(super) is_verified: bool,
}

/// A verification of a live session.
#[derive(Debug, Clone)]
pub(super) struct VerificationRow {
    pub(super) id: String,
    pub(super) verifier: Option<String>,
    pub(super) status: String,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) payments: Vec<PaymentRow>,
    pub(super) verifications: Vec<VerificationRow>,
}

/// The columns of a payment: kind and ULID, rail, status, acknowledgement, open item, and 1 if its user was verified.
type Payment = (
    String,
    String,
    String,
    String,
    Option<i64>,
    Option<String>,
    i64,
);
/// The columns of a verification: ULID, verifier and status.
type Verification = (String, Option<String>, String);

macro_rules! payments {
    ($ulid:literal) => {
        concat!(
            "SELECT r.kind, ",
            $ulid,
            ", r.rail, r.status, r.acknowledged_at, r.open_item,
                    CAST(CASE WHEN s.kyc_pre_verified THEN 1
                              WHEN v.status = 'approved' AND v.ended_at <= r.created_at THEN 1
                              ELSE 0 END AS bigint)
             FROM rail_records AS r
             JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
             LEFT JOIN verifications AS v ON v.mode = r.mode AND v.partner_id = r.partner_id AND v.session_id = r.session_id
             WHERE r.mode = 'live'"
        )
    };
}

macro_rules! verifications {
    ($ulid:literal) => {
        concat!(
            "SELECT ",
            $ulid,
            ", v.verifier, v.status FROM verifications AS v WHERE v.mode = 'live'"
        )
    };
}

impl Rows {
    /// Reads the rows of the installation's database, which a service may be using.
    pub(super) fn read(installation: &Installation) -> Result<Self> {
        let url = installation.setting("PENSTOCK_DATABASE_URL");
        let url = url.ok_or("the installation names no database")?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (payments, verifications) = match url.starts_with("sqlite:") {
            true => runtime.block_on(of_sqlite(url))?,
            false => runtime.block_on(of_postgres(url))?,
        };
        let payments = payments.into_iter().map(payment);
        let verifications = verifications.into_iter().map(verification);
        Ok(Self {
            payments: payments.collect::<Result<_>>()?,
            verifications: verifications.collect(),
        })
    }
}

async fn of_sqlite(url: &str) -> sqlx::Result<(Vec<Payment>, Vec<Verification>)> {
    let options: SqliteConnectOptions = url.parse()?;
    let mut database = options.read_only(true).connect().await?;
    let payments = sqlx::query_as::<Sqlite, Payment>(payments!("r.id"));
    let payments = payments.fetch_all(&mut database).await?;
    let verifications = sqlx::query_as::<Sqlite, Verification>(verifications!("v.id"));
    let verifications = verifications.fetch_all(&mut database).await?;
    database.close().await?;
    Ok((payments, verifications))
}

async fn of_postgres(url: &str) -> sqlx::Result<(Vec<Payment>, Vec<Verification>)> {
    let options: PgConnectOptions = url.parse()?;
    let mut database = options.connect().await?;
    let payments = sqlx::query_as::<Postgres, Payment>(payments!("ulid(r.id)"));
    let payments = payments.fetch_all(&mut database).await?;
    let verifications = sqlx::query_as::<Postgres, Verification>(verifications!("ulid(v.id)"));
    let verifications = verifications.fetch_all(&mut database).await?;
    database.close().await?;
    Ok((payments, verifications))
}

fn payment(row: Payment) -> Result<PaymentRow> {
    let (kind, ulid, rail, status, acknowledged_at, open_item, is_verified) = row;
    let prefix = match kind.as_str() {
        "pay_in" => "pi",
        "pay_out" => "po",
        _ => "sw",
    };
    let acknowledged_at = acknowledged_at.map(|millis| {
        let at = Timestamp::from_millis(millis);
        at.ok_or_else(|| format!("{ulid} was acknowledged at {millis}"))
    });
    Ok(PaymentRow {
        id: format!("{prefix}_live_{ulid}"),
        rail,
        status,
        acknowledged_at: acknowledged_at.transpose()?,
        open_item,
        is_verified: is_verified == 1,
    })
}

fn verification((ulid, verifier, status): Verification) -> VerificationRow {
    VerificationRow {
        id: format!("ver_live_{ulid}"),
        verifier,
        status,
    }
}
