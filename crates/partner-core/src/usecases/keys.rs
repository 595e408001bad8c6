//! API keys: made, listed and revoked by the operator.

use std::fmt;
use std::sync::Arc;

use kernel::{Entropy, Mode, StoreError, Timestamp};
use secrecy::SecretString;

use crate::key::{KeyId, KeyKind, KeyRecord, KeyTerms, NewKey};
use crate::ports::PartnerStore;
use crate::races::{LostRace, retry_lost_races};
use crate::{PartnerId, Tenant};

/// Makes, lists and revokes keys.
#[derive(Clone)]
pub struct Keys {
    /// The store.
    pub store: Arc<dyn PartnerStore>,
    /// For keys and ids.
    pub entropy: Arc<dyn Entropy>,
    /// The mode worked in.
    pub mode: Mode,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// A key that has been revoked, now or before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// The key.
    pub id: KeyId,
    /// Its partner.
    pub partner: PartnerId,
    /// When it was revoked first: revoking it again changes nothing.
    pub revoked_at: Timestamp,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// No partner has this name in this mode.
    #[error("no partner `{0}` in mode {1}")]
    UnknownPartner(PartnerId, Mode),
    /// No key has this id in this mode.
    #[error("no key {0} in mode {1}")]
    UnknownKey(KeyId, Mode),
    /// A new key would have expired already.
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
    /// Makes a key. Its text is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`KeysError`].
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
        tx.key_insert(&who, &key).await?;
        tx.config_version_raise().await?;
        tx.commit().await?;
        Ok((key.record, text))
    }

    /// Every key of a partner, the oldest first, with the instant of its last use; revoked ones too.
    ///
    /// # Errors
    /// [`KeysError`].
    pub async fn list(
        &self,
        partner: &PartnerId,
    ) -> Result<Vec<(KeyRecord, Option<Timestamp>)>, KeysError> {
        let who = self.tenant(partner);
        let mut tx = self.store.partner_begin("key_list").await?;
        if tx.partner_lock(&who).await?.is_none() {
            return Err(KeysError::UnknownPartner(who.partner, self.mode));
        }
        let used = tx.keys_used(&who).await?;
        let keys = tx.keys_list(&who).await?.into_iter();
        let with_use = keys.map(|key| {
            let last_used = used.get(&key.id).copied();
            (key, last_used)
        });
        Ok(with_use.collect())
    }

    /// Revokes a key. One that is revoked already keeps its instant.
    ///
    /// # Errors
    /// [`KeysError`].
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
        // The partner is locked before the key is judged: here and in every money write.
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
