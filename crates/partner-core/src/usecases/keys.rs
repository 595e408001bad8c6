//! API keys: created, listed and revoked by the operator.

use std::sync::Arc;

use kernel::{Entropy, Mode, StoreError, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use crate::key::{KeyId, KeyKind, KeyRecord, KeyTerms, NewKey, publishable_place};
use crate::ports::{KeysRead, PartnerStore};
use crate::races::{LostRace, retry_lost_races};
use crate::sealing::Sealer;
use crate::{PartnerId, Tenant};

/// Creates, lists and revokes keys.
#[derive(Clone)]
pub struct Keys {
    pub store: Arc<dyn PartnerStore>,
    /// Randomness for keys and ids.
    pub entropy: Arc<dyn Entropy>,
    /// Seals the texts of publishable keys.
    pub sealer: Arc<Sealer>,
    pub mode: Mode,
}

/// A key as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// The stored record.
    pub record: KeyRecord,
    /// When it was last used.
    pub last_used: Option<Timestamp>,
    /// The text of a publishable key. `None` for a secret key, and where the text is not stored or cannot be decrypted.
    pub text: Option<String>,
}

/// A revoked key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// The key.
    pub id: KeyId,
    pub partner: PartnerId,
    /// When it was first revoked. Revoking it again changes nothing.
    pub revoked_at: Timestamp,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The mode has no partner with this id.
    #[error("no partner `{0}` in mode {1}")]
    UnknownPartner(PartnerId, Mode),
    /// The mode has no key with this id.
    #[error("no key {0} in mode {1}")]
    UnknownKey(KeyId, Mode),
    /// The expiry of the new key is in the past.
    #[error("expected an instant in the future, got {0}")]
    Expired(Timestamp),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for KeysError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl Keys {
    /// Creates a key. Its text is only in the result and is never stored.
    pub async fn create(
        &self,
        partner: &PartnerId,
        kind: KeyKind,
        terms: &KeyTerms,
    ) -> Result<(KeyRecord, SecretString), KeysError> {
        retry_lost_races(|| self.create_once(partner, kind, terms)).await
    }

    async fn create_once(
        &self,
        partner: &PartnerId,
        kind: KeyKind,
        terms: &KeyTerms,
    ) -> Result<(KeyRecord, SecretString), KeysError> {
        let who = self.tenant(partner);
        let mut tx = self.store.partner_begin("key_create").await?;
        if tx.partner_lock(&who).await?.is_none() {
            return Err(KeysError::UnknownPartner(who.partner, self.mode));
        }
        let now = tx.now().await?;
        if let Some(end) = terms.expires_at.filter(|end| *end <= now) {
            return Err(KeysError::Expired(end));
        }
        let (key, text) = NewKey::generate(kind, self.mode, now, self.entropy.as_ref());
        let key = key.with(terms.clone());
        let sealing = key.sealing(
            &who,
            text.expose_secret(),
            &self.sealer,
            self.entropy.as_ref(),
        );
        let key = sealing.map_err(StoreError::from)?;
        tx.key_insert(&who, &key).await?;
        tx.config_version_raise().await?;
        tx.commit().await?;
        Ok((key.record, text))
    }

    /// All keys of a partner, including revoked ones, the oldest first.
    pub async fn list(&self, partner: &PartnerId) -> Result<Vec<ListedKey>, KeysError> {
        let who = self.tenant(partner);
        if self.store.partner_find(&who).await?.is_none() {
            return Err(KeysError::UnknownPartner(who.partner, self.mode));
        }
        let KeysRead {
            records,
            used,
            texts,
        } = self.store.keys_read(&who).await?;
        let text = |id| {
            let opened = self
                .sealer
                .open(&publishable_place(&who, id), texts.get(&id)?);
            String::from_utf8(opened.ok()?.to_vec()).ok()
        };
        let listed = records.into_iter().map(|record| ListedKey {
            last_used: used.get(&record.id).copied(),
            text: text(record.id),
            record,
        });
        Ok(listed.collect())
    }

    /// Revokes a key. A revoked key keeps its first revocation.
    pub async fn revoke(&self, id: KeyId) -> Result<Revoked, KeysError> {
        retry_lost_races(|| self.revoke_once(id)).await
    }

    async fn revoke_once(&self, id: KeyId) -> Result<Revoked, KeysError> {
        let unknown = || KeysError::UnknownKey(id, self.mode);
        if id.mode() != self.mode {
            return Err(unknown());
        }
        let mut tx = self.store.partner_begin("key_revoke").await?;
        let (partner, _) = tx.key_find(id).await?.ok_or_else(unknown)?;
        // The partner is locked before the key is checked, in the same order as in every money write.
        tx.partner_lock(&self.tenant(&partner)).await?;
        let (partner, record) = tx.key_find(id).await?.ok_or_else(unknown)?;
        let revoked = |revoked_at| Revoked {
            id,
            partner,
            revoked_at,
        };
        if let Some(earlier) = record.revoked_at {
            return Ok(revoked(earlier));
        }
        let now = tx.now().await?;
        tx.key_revoke(id, now).await?.won()?;
        tx.config_version_raise().await?;
        tx.commit().await?;
        Ok(revoked(now))
    }

    fn tenant(&self, partner: &PartnerId) -> Tenant {
        Tenant {
            partner: partner.clone(),
            mode: self.mode,
        }
    }
}
