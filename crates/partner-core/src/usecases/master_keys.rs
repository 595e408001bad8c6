//! Rotating the master key: the new key seals from now on, and older values are sealed again.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Cas, Entropy, StoreError, StoreResult};

use crate::ports::{
    MasterKeyState, MasterKeyStore, PartnerTx, ResealedValue, SealedValue, StoredMasterKey,
};
use crate::sealing::{DerivedKeys, Fingerprint, KEY_CONFIRMED_FOR, MasterKey, Sealed, Sealer};

/// Values read and replaced in one statement, so that no statement locks rows for long.
const BATCH: u32 = 200;
/// Maximum time from sealing a value to its commit. A server ends a transaction that is idle for 5 s.
const LONGEST_WRITE: Duration = Duration::from_secs(10);
/// The time after a promotion at which no process stores values under an older key. Until then each process has read
/// the new key or stopped sealing.
pub const SETTLES_AFTER: Duration = KEY_CONFIRMED_FOR.saturating_add(LONGEST_WRITE);
/// The place that the derived keys are sealed for.
const DERIVED_PLACE: &str = "master_keys/derived";

#[derive(Clone)]
pub struct RotateMasterKey {
    pub store: Arc<dyn MasterKeyStore>,
    /// Holds both keys.
    pub sealer: Arc<Sealer>,
    /// Draws nonces.
    pub entropy: Arc<dyn Entropy>,
}

/// The counts of one pass over all sealed values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pass {
    /// Values read.
    pub read: u64,
    /// Values under an older key that opened.
    pub older: u64,
    /// Values whose key is held and that do not open.
    pub damaged: u64,
    /// Values whose key is not held.
    pub locked: u64,
    /// One of the absent keys.
    pub missing: Option<Fingerprint>,
}

/// Why a rotation stopped.
#[derive(Debug, thiserror::Error)]
pub enum RotateKeyError {
    /// Another rotation has made another key current.
    #[error("another rotation has made another master key current meanwhile")]
    Overtaken,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RotateMasterKey {
    /// Makes `new` the key that every process seals with, in place of `current`.
    ///
    /// Running services follow within about one second. A service that does not hold the new key stops sealing.
    pub async fn promote(
        &self,
        current: Fingerprint,
        new: Fingerprint,
        derived: &DerivedKeys,
    ) -> Result<(), RotateKeyError> {
        self.sealer.use_key(new);
        let sealed = self
            .sealer
            .seal(DERIVED_PLACE, derived.as_bytes(), &*self.entropy)
            .map_err(StoreError::from)?;
        let promoted = self.store.master_key_promote(current, new, &sealed);
        won(promoted.await?)
    }

    /// Reads every sealed value once, in batches, and seals values of older keys again.
    ///
    /// A value that changes during the pass is left to the next pass. `progress` is called after each batch.
    ///
    /// # Errors
    /// [`RotateKeyError`]. Values sealed before the error stay sealed with the new key.
    pub async fn pass(
        &self,
        progress: &(dyn Fn(Pass) + Send + Sync),
    ) -> Result<Pass, RotateKeyError> {
        let mut pass = Pass::default();
        for column in self.store.sealed_columns() {
            let mut after = None;
            loop {
                let page = self
                    .store
                    .sealed_page(column, after.as_ref(), BATCH)
                    .await?;
                let Some(last) = page.last() else { break };
                after = Some(last.row.clone());
                let again = self.reseal(&page, &mut pass)?;
                if !again.is_empty() {
                    self.store.sealed_replace(column, &again).await?;
                }
                progress(pass);
            }
        }
        Ok(pass)
    }

    fn reseal(
        &self,
        page: &[SealedValue],
        pass: &mut Pass,
    ) -> Result<Vec<ResealedValue>, RotateKeyError> {
        let mut again = Vec::new();
        for value in page {
            let Some(sealed) = &value.sealed else {
                continue;
            };
            pass.read += 1;
            if self.sealer.is_current(sealed) {
                continue;
            }
            if self.sealer.can_open(sealed).is_err() {
                pass.locked += 1;
                pass.missing = self.sealer.key_of(sealed);
                continue;
            }
            let Ok(plain) = self.sealer.open(&value.place, sealed) else {
                pass.damaged += 1;
                continue;
            };
            pass.older += 1;
            let new = self.sealer.seal(&value.place, &plain, &*self.entropy);
            again.push(ResealedValue {
                row: value.row.clone(),
                old: sealed.clone(),
                new: new.map_err(StoreError::from)?,
            });
        }
        Ok(again)
    }

    /// Declares that no value depends on a key older than `current`.
    ///
    /// Call it after a pass that found no older value, at least [`SETTLES_AFTER`] after the promotion. Then run one
    /// more pass: a commit that a synchronous standby delayed becomes visible before this one.
    pub async fn retire(&self, current: Fingerprint) -> Result<(), RotateKeyError> {
        won(self.store.master_keys_retire(current).await?)
    }
}

const fn won(outcome: Cas) -> Result<(), RotateKeyError> {
    match outcome {
        Cas::Won => Ok(()),
        Cas::Lost => Err(RotateKeyError::Overtaken),
    }
}

/// Seals with the key that is current in this transaction. The key stays current until the transaction ends.
///
/// # Errors
/// [`StoreError`], also if the key is not held.
pub async fn follow(tx: &mut dyn PartnerTx, sealer: &Sealer) -> StoreResult<()> {
    let current = tx.master_key().await?;
    let current = current.as_deref().and_then(Fingerprint::parse);
    if let Some(current) = current {
        sealer.use_key(current);
    }
    Ok(sealer.can_seal()?)
}

/// Why a process cannot work with its configured keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingKey {
    /// The current key is not held.
    #[error("expected the database's master key, fingerprint {0}")]
    Current(Fingerprint),
    /// Values of an older key remain, and the key is not held.
    #[error(
        "expected also the older master key with fingerprint {0}: values that it sealed remain"
    )]
    Older(Fingerprint),
    /// No key is recorded as current.
    #[error("the database names no current master key")]
    NoCurrent,
    /// The derived keys cannot be opened.
    #[error("the keys stored under the master key with fingerprint {0} do not open")]
    Derived(Fingerprint),
}

/// The sealer and the derived keys of a database, from the keys that a process holds.
pub fn unlock(
    held: &[MasterKey],
    known: &[StoredMasterKey],
) -> Result<(Sealer, DerivedKeys), MissingKey> {
    let find = |wanted: Fingerprint| held.iter().find(|key| key.fingerprint() == wanted);
    for key in known {
        match key.state {
            MasterKeyState::Current if find(key.fingerprint).is_none() => {
                return Err(MissingKey::Current(key.fingerprint));
            }
            MasterKeyState::Older if find(key.fingerprint).is_none() => {
                return Err(MissingKey::Older(key.fingerprint));
            }
            _ => {}
        }
    }
    let current = known
        .iter()
        .find(|key| key.state == MasterKeyState::Current);
    let current = current.ok_or(MissingKey::NoCurrent)?;
    let first = known.iter().find(|key| key.number == 1);
    let first = first.unwrap_or(current).fingerprint;
    let derived = match (find(first), &current.derived) {
        (Some(first), _) => Some(DerivedKeys::of(first)),
        (None, Some(sealed)) => opened(held, first, current.fingerprint, sealed),
        (None, None) => None,
    };
    let derived = derived.ok_or(MissingKey::Derived(current.fingerprint))?;
    let sealer = Sealer::holding(held, first, &derived);
    sealer.use_key(current.fingerprint);
    Ok((sealer, derived))
}

/// The derived keys, opened with the current key by a sealer that needs none.
fn opened(
    held: &[MasterKey],
    first: Fingerprint,
    current: Fingerprint,
    sealed: &Sealed,
) -> Option<DerivedKeys> {
    let key = held.iter().find(|key| key.fingerprint() == current)?;
    let sealer = Sealer::holding(std::slice::from_ref(key), first, &DerivedKeys::of(key));
    let plain = sealer.open(DERIVED_PLACE, sealed).ok()?;
    DerivedKeys::from_bytes(&plain)
}
