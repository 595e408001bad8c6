//! The jump of the clock that waits for an operator: one row that every process reads.

use crate::conn::Conn;
use async_trait::async_trait;
use kernel::{StoreError, Timestamp};
use partner_core::clock::ClockJump;
use partner_core::ports::ClockGuard;

use crate::row::Columns;
use crate::{PostgresStore, clock, errors};

/// What the row says.
pub(crate) struct Noted {
    /// The jump that waits.
    pub(crate) jump: Option<ClockJump>,
    /// Operators have accepted every instant up to this one.
    pub(crate) accepted: Timestamp,
}

pub(crate) async fn read(conn: &mut Conn) -> Result<Noted, StoreError> {
    let row = sqlx::query("SELECT expected, found, accepted FROM clock_jump WHERE id = 1")
        .fetch_one(conn)
        .await
        .map_err(errors::statement)?;
    let row = Columns::new("clock_jump", &row);
    let expected = row.opt_instant("expected")?;
    let found = row.opt_instant("found")?;
    let jump = expected.zip(found);
    Ok(Noted {
        jump: jump.map(|(expected, found)| ClockJump { expected, found }),
        accepted: row.instant("accepted")?,
    })
}

/// Notes a jump if none is noted.
async fn note(conn: &mut Conn, jump: &ClockJump) -> Result<(), StoreError> {
    sqlx::query("UPDATE clock_jump SET expected = $1, found = $2 WHERE id = 1 AND found IS NULL")
        .bind(jump.expected.millis())
        .bind(jump.found.millis())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Ends the jump that was noted; it was accepted up to an instant, if that is given.
async fn end(
    conn: &mut Conn,
    jump: &ClockJump,
    accepted: Option<Timestamp>,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE clock_jump SET expected = NULL, found = NULL, accepted = coalesce($2, accepted)
         WHERE id = 1 AND found = $1",
    )
    .bind(jump.found.millis())
    .bind(accepted.map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

#[async_trait]
impl ClockGuard for PostgresStore {
    async fn clock_check(&self) -> Result<Option<ClockJump>, StoreError> {
        let clock = &self.inner.clock;
        let mut conn = self.inner.conn().await?;
        let mut noted = read(&mut conn).await?;
        let now = clock.read(clock::server(&mut conn).await?)?;
        clock.watch().accept(noted.accepted, now, clock.elapsed());
        if noted.jump.is_some() || clock.judge(now).is_err() {
            let newest = clock.learn(&mut conn).await?;
            // Others store: the jump was that of one process, whose machine was suspended perhaps.
            if let Some(jump) = noted.jump.filter(|jump| newest >= jump.found) {
                end(&mut conn, &jump, None).await?;
                noted.jump = None;
            }
        }
        match (clock.judge(now), noted.jump) {
            (Err(_), None) => {
                let jump = clock.watch().jump();
                if let Some(jump) = &jump {
                    note(&mut conn, jump).await?;
                }
                Ok(jump)
            }
            (Err(_), Some(_)) => Ok(clock.watch().jump()),
            // The clock was set right.
            (Ok(()), Some(noted)) if now < noted.found => {
                end(&mut conn, &noted, None).await?;
                Ok(None)
            }
            (Ok(()), _) => Ok(None),
        }
    }

    async fn clock_noted(&self) -> Result<Option<ClockJump>, StoreError> {
        Ok(read(&mut *self.inner.conn().await?).await?.jump)
    }

    async fn clock_accept(&self) -> Result<Option<ClockJump>, StoreError> {
        let mut conn = self.inner.writing_conn().await?;
        let noted = read(&mut conn).await?.jump;
        if let Some(jump) = &noted {
            let now = self.inner.clock.read(clock::server(&mut conn).await?)?;
            end(&mut conn, jump, Some(now.max(jump.found))).await?;
        }
        Ok(noted)
    }
}
