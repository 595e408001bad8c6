//! The jump of the clock that waits for an operator: one row that every process reads.

use async_trait::async_trait;
use kernel::{StoreError, Timestamp};
use partner_core::clock::ClockJump;
use partner_core::ports::ClockGuard;
use sqlx::SqliteConnection;

use crate::row::Columns;
use crate::{SqliteStore, errors};

/// What the row says.
pub(crate) struct Noted {
    /// The jump that waits.
    pub(crate) jump: Option<ClockJump>,
    /// Operators have accepted every instant up to this one.
    pub(crate) accepted: Timestamp,
}

pub(crate) async fn read(conn: &mut SqliteConnection) -> Result<Noted, StoreError> {
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
async fn note(conn: &mut SqliteConnection, jump: &ClockJump) -> Result<(), StoreError> {
    sqlx::query("UPDATE clock_jump SET expected = ?1, found = ?2 WHERE id = 1 AND found IS NULL")
        .bind(jump.expected.millis())
        .bind(jump.found.millis())
        .execute(conn)
        .await
        .map_err(errors::statement)?;
    Ok(())
}

/// Ends the jump that was noted; it was accepted up to an instant, if that is given.
async fn end(
    conn: &mut SqliteConnection,
    jump: &ClockJump,
    accepted: Option<Timestamp>,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE clock_jump SET expected = NULL, found = NULL, accepted = coalesce(?2, accepted)
         WHERE id = 1 AND found = ?1",
    )
    .bind(jump.found.millis())
    .bind(accepted.map(Timestamp::millis))
    .execute(conn)
    .await
    .map_err(errors::statement)?;
    Ok(())
}

#[async_trait]
impl ClockGuard for SqliteStore {
    async fn clock_check(&self) -> Result<Option<ClockJump>, StoreError> {
        let clock = &self.inner.clock;
        let mut reader = self.inner.reader().await?;
        let noted = read(&mut reader).await?;
        drop(reader);
        let now = clock.process();
        clock.watch().accept(noted.accepted, now, clock.elapsed());
        match (clock.judge(now), noted.jump) {
            (Err(_), None) => {
                let jump = clock.watch().jump();
                if let Some(jump) = &jump {
                    note(&mut *self.inner.writer().await?, jump).await?;
                }
                Ok(jump)
            }
            (Err(_), Some(_)) => Ok(clock.watch().jump()),
            // The clock was set right.
            (Ok(()), Some(noted)) if now < noted.found => {
                end(&mut *self.inner.writer().await?, &noted, None).await?;
                Ok(None)
            }
            (Ok(()), _) => Ok(None),
        }
    }

    async fn clock_noted(&self) -> Result<Option<ClockJump>, StoreError> {
        Ok(read(&mut *self.inner.reader().await?).await?.jump)
    }

    async fn clock_accept(&self) -> Result<Option<ClockJump>, StoreError> {
        let mut writer = self.inner.writer().await?;
        let noted = read(&mut writer).await?.jump;
        if let Some(jump) = &noted {
            let until = self.inner.clock.process().max(jump.found);
            end(&mut writer, jump, Some(until)).await?;
        }
        Ok(noted)
    }
}
