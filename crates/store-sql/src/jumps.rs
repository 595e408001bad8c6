//! The clock jump that an operator must accept, in one row that every process reads.

use kernel::{StoreResult, Timestamp};
use partner_core::clock::ClockJump;

use crate::{Connection, Statement, values};

/// The row.
#[derive(Debug)]
pub struct Noted {
    /// The jump that no operator has accepted yet.
    pub jump: Option<ClockJump>,
    /// Operators have accepted every instant up to this one.
    pub accepted: Timestamp,
}

pub async fn read(connection: &mut dyn Connection) -> StoreResult<Noted> {
    let row = connection.fetch_one(&READ, values![]).await?;
    let jump = row.opt_instant("expected")?.zip(row.opt_instant("found")?);
    Ok(Noted {
        jump: jump.map(|(expected, found)| ClockJump { expected, found }),
        accepted: row.instant("accepted")?,
    })
}

static READ: Statement = Statement::new(
    "clock_jump",
    "SELECT expected, found, accepted FROM clock_jump WHERE id = 1",
);

/// Stores a jump if none is stored.
pub async fn note(connection: &mut dyn Connection, jump: &ClockJump) -> StoreResult<()> {
    let values = values![jump.expected, jump.found];
    connection.execute(&NOTE, values).await.map(drop)
}

static NOTE: Statement = Statement::new(
    "clock_jump",
    "UPDATE clock_jump SET expected = $1, found = $2 WHERE id = 1 AND found IS NULL",
);

/// Ends the stored jump. `accepted` is the instant up to which an operator has accepted it.
pub async fn end(
    connection: &mut dyn Connection,
    jump: &ClockJump,
    accepted: Option<Timestamp>,
) -> StoreResult<()> {
    let values = values![jump.found, accepted];
    connection.execute(&END, values).await.map(drop)
}

static END: Statement = Statement::new(
    "clock_jump",
    "UPDATE clock_jump SET expected = NULL, found = NULL, accepted = coalesce($2, accepted)
     WHERE id = 1 AND found = $1",
);
