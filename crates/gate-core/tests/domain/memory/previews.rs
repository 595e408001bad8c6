//! Locked previews in memory.

use async_trait::async_trait;
use gate_core::ports::PreviewTx;
use gate_core::preview::{Preview, PreviewId};
use gate_core::session::SessionId;
use kernel::{Cas, StoreError, Timestamp};
use partner_core::Tenant;

use super::{MemoryTx, guarded};

#[async_trait]
impl PreviewTx for MemoryTx {
    async fn preview_insert(&mut self, who: &Tenant, preview: &Preview) -> Result<(), StoreError> {
        let at = (who.clone(), preview.id);
        self.rows.previews.insert(at, preview.clone());
        Ok(())
    }

    async fn preview_lock(
        &mut self,
        who: &Tenant,
        id: PreviewId,
    ) -> Result<Option<Preview>, StoreError> {
        Ok(self.rows.previews.get(&(who.clone(), id)).cloned())
    }

    async fn preview_use(
        &mut self,
        who: &Tenant,
        id: PreviewId,
        session: SessionId,
        now: Timestamp,
    ) -> Result<Cas, StoreError> {
        let preview = self.rows.previews.get_mut(&(who.clone(), id));
        let free = preview.filter(|it| it.used.is_none() && now < it.expires_at);
        let is_free = free.is_some();
        if let Some(preview) = free {
            preview.used = Some((session, now));
        }
        Ok(guarded(is_free, || ()))
    }
}
