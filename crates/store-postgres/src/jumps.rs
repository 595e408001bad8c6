//! The clock jump that an operator must accept.

use async_trait::async_trait;
use kernel::StoreResult;
use partner_core::clock::ClockJump;
use partner_core::ports::ClockGuard;
use store_sql::jumps::{end, note, read};

use crate::{PostgresStore, clock, errors};

#[async_trait]
impl ClockGuard for PostgresStore {
    async fn clock_check(&self) -> StoreResult<Option<ClockJump>> {
        let clock = &self.inner.clock;
        let mut conn = self.inner.reserved_conn().await?;
        let mut noted = read(&mut *conn).await?;
        let now = clock.read(clock::server(&mut conn).await?)?;
        clock.watch().accept(noted.accepted, now, clock.elapsed());
        if noted.jump.is_some() || clock.check(now).is_err() {
            let newest = clock.learn(&mut conn).await?;
            drop(conn);
            // Other processes store later instants, so only one process saw the jump. Its machine may have been suspended.
            if let Some(jump) = noted.jump.filter(|jump| newest >= jump.found) {
                self.end_jump(&jump).await?;
                noted.jump = None;
            }
        }
        match (clock.check(now), noted.jump) {
            (Err(_), None) => {
                let jump = clock.watch().jump();
                if let Some(jump) = &jump {
                    self.note_jump(jump).await?;
                }
                Ok(jump)
            }
            (Err(_), Some(_)) => Ok(clock.watch().jump()),
            // The clock was corrected.
            (Ok(()), Some(noted)) if now < noted.found => {
                self.end_jump(&noted).await?;
                Ok(None)
            }
            (Ok(()), _) => Ok(None),
        }
    }

    async fn clock_noted(&self) -> StoreResult<Option<ClockJump>> {
        let mut conn = self.inner.reserved_conn().await?;
        Ok(read(&mut *conn).await?.jump)
    }

    async fn clock_accept(&self) -> StoreResult<Option<ClockJump>> {
        let mut tx = self.inner.write().await?;
        let noted = read(&mut *tx).await?.jump;
        if let Some(jump) = &noted {
            let now = self.inner.clock.read(clock::server(&mut tx).await?)?;
            end(&mut *tx, jump, Some(now.max(jump.found))).await?;
        }
        tx.commit().await.map_err(errors::commit)?;
        Ok(noted)
    }
}

impl PostgresStore {
    /// Stores a jump if none is stored.
    async fn note_jump(&self, jump: &ClockJump) -> StoreResult<()> {
        let mut tx = self.inner.write().await?;
        note(&mut *tx, jump).await?;
        tx.commit().await.map_err(errors::commit)
    }

    /// Ends the stored jump without an operator.
    async fn end_jump(&self, jump: &ClockJump) -> StoreResult<()> {
        let mut tx = self.inner.write().await?;
        end(&mut *tx, jump, None).await?;
        tx.commit().await.map_err(errors::commit)
    }
}
