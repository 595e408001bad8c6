//! The clock jump that an operator must accept.

use async_trait::async_trait;
use kernel::StoreResult;
use partner_core::clock::ClockJump;
use partner_core::ports::ClockGuard;
use store_sql::jumps::{end, note, read};
use store_sql::{ReadStore as _, Reader as _};

use crate::SqliteStore;
use crate::connection::Link;

#[async_trait]
impl ClockGuard for SqliteStore {
    async fn clock_check(&self) -> StoreResult<Option<ClockJump>> {
        let clock = &self.inner.clock;
        let noted = read(self.reserved_reader().await?.connection()).await?;
        let now = clock.process();
        clock.watch().accept(noted.accepted, now, clock.elapsed());
        match (clock.check(now), noted.jump) {
            (Err(_), None) => {
                let jump = clock.watch().jump();
                if let Some(jump) = &jump {
                    note(&mut Link(self.inner.writer().await?), jump).await?;
                }
                Ok(jump)
            }
            (Err(_), Some(_)) => Ok(clock.watch().jump()),
            // The clock was corrected.
            (Ok(()), Some(noted)) if now < noted.found => {
                end(&mut Link(self.inner.writer().await?), &noted, None).await?;
                Ok(None)
            }
            (Ok(()), _) => Ok(None),
        }
    }

    async fn clock_noted(&self) -> StoreResult<Option<ClockJump>> {
        let mut reader = self.reserved_reader().await?;
        Ok(read(reader.connection()).await?.jump)
    }

    async fn clock_accept(&self) -> StoreResult<Option<ClockJump>> {
        let mut writer = Link(self.inner.writer().await?);
        let noted = read(&mut writer).await?.jump;
        if let Some(jump) = &noted {
            let until = self.inner.clock.process().max(jump.found);
            end(&mut writer, jump, Some(until)).await?;
        }
        Ok(noted)
    }
}
