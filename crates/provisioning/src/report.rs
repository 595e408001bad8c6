//! What applying a declarative file has changed and generated.

use secrecy::SecretString;

use crate::changes::Changes;
use partner_core::PartnerId;
use partner_core::events::Service;
use partner_core::key::{KeyId, KeyKind};

/// What a file has changed.
#[derive(Debug, Default)]
pub struct Report {
    /// Every change, one line each, loosenings first; empty if the database agreed already.
    pub changed: Vec<String>,
    /// The changes that loosen what protects money.
    pub loosened: Vec<String>,
    /// What the operator should know of the pools as they stand after the file.
    pub warnings: Vec<String>,
    /// Keys that were generated: shown this once.
    pub created_keys: Vec<CreatedKey>,
    /// Webhook secrets that were generated: shown this once.
    pub created_secrets: Vec<CreatedSecret>,
}

/// A key that was generated.
#[derive(Debug)]
pub struct CreatedKey {
    /// Whose.
    pub partner: PartnerId,
    /// What it is good for.
    pub kind: KeyKind,
    /// Names it.
    pub id: KeyId,
    /// What the operator calls it.
    pub label: Option<String>,
    /// The key.
    pub key: SecretString,
}

/// A webhook secret that was generated.
#[derive(Debug)]
pub struct CreatedSecret {
    /// Whose.
    pub partner: PartnerId,
    /// Of which service's endpoint.
    pub service: Service,
    /// The secret.
    pub secret: SecretString,
}

impl Report {
    pub(crate) fn add(&mut self, changes: Changes) {
        let (loosened, other) = changes.into_lines();
        let after_loosened = self.loosened.len();
        self.changed
            .splice(after_loosened..after_loosened, loosened.iter().cloned());
        self.loosened.extend(loosened);
        self.changed.extend(other);
    }
}
