//! The report of an application: changes, and generated keys and secrets.

use secrecy::SecretString;

use crate::changes::Changes;
use partner_core::PartnerId;
use partner_core::events::Service;
use partner_core::key::{KeyId, KeyKind};

/// The changes of a file.
#[derive(Debug, Default)]
pub struct Report {
    /// All changes, one line each, the loosening ones first; empty if nothing changed.
    pub changed: Vec<String>,
    /// The changes that loosen a protection.
    pub loosened: Vec<String>,
    /// Warnings about the pools after the file.
    pub warnings: Vec<String>,
    /// The generated keys, shown only here.
    pub created_keys: Vec<CreatedKey>,
    /// The generated webhook secrets, shown only here.
    pub created_secrets: Vec<CreatedSecret>,
}

/// A generated key.
#[derive(Debug)]
pub struct CreatedKey {
    pub partner: PartnerId,
    pub kind: KeyKind,
    pub id: KeyId,
    /// The operator's label.
    pub label: Option<String>,
    pub key: SecretString,
}

/// A generated webhook secret.
#[derive(Debug)]
pub struct CreatedSecret {
    pub partner: PartnerId,
    /// The service of the endpoint.
    pub service: Service,
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
