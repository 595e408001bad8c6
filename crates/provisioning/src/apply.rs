//! Applying a declarative file to the database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::{Entropy, Mode, StoreError, StoreResult, Timestamp};
use secrecy::{ExposeSecret as _, SecretString};

use crate::changes::{self, Changes, same_label};
use crate::loosened::loosens;
use crate::names::Names;
use crate::ports::{ProvisionStore, ProvisionTx};
use crate::profiles::{Profiles, warning};
use crate::{Document, KeyEntry, PartnerEntry, WebhookEntry};
use gate_core::profile::GateProfile;
use partner_core::events::{
    Endpoint, EndpointId, EndpointSecret, Service, generate_secret, secret_place,
};
use partner_core::key::{KeyRecord, KeyTerms, NewKey, PresentedKey};
use partner_core::races::{LostRace, retry_lost_races};
use partner_core::sealing::{SealBroken, Sealer};
use partner_core::tables::{Faults, TableError};
use partner_core::usecases::master_keys;
use partner_core::{Partner, PartnerId, Tenant};

pub use crate::report::{CreatedKey, CreatedSecret, Report};

/// Applies declarative files.
#[derive(Clone)]
pub struct ApplyDocument {
    pub store: Arc<dyn ProvisionStore>,
    /// Seals webhook secrets.
    pub sealer: Arc<Sealer>,
    /// Randomness for ids, keys and secrets.
    pub entropy: Arc<dyn Entropy>,
    pub mode: Mode,
}

/// Whether the changes are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// The changes are committed.
    Commit,
    /// The changes are rolled back, and the report lists them. It contains no generated key or secret, because none
    /// was stored.
    DryRun,
}

/// Whether a file may loosen a protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loosening {
    /// A file that loosens a protection changes nothing.
    Refuse,
    /// The operator has allowed it.
    Allow,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file contradicts the database.
    #[error(transparent)]
    Faults(Faults),
    /// The file loosens a protection. The report lists the changes that it would make.
    #[error("the file loosens what protects money: {}", .0.loosened.join("; "))]
    Loosens(Box<Report>),
    /// A stored webhook secret cannot be opened.
    #[error("the webhook secret of partner `{0}` cannot be read")]
    Sealed(PartnerId, #[source] SealBroken),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for ApplyError {
    fn lost_race(&self) -> bool {
        matches!(self, Self::Store(error) if error.lost_race())
    }
}

impl ApplyDocument {
    /// Applies a document in one transaction. A second application changes nothing.
    ///
    /// # Errors
    /// [`ApplyError`]. Then nothing is changed.
    pub async fn apply(
        &self,
        document: &Document,
        run: ApplyMode,
        loosening: Loosening,
    ) -> Result<Report, ApplyError> {
        retry_lost_races(|| self.apply_once(document, run, loosening)).await
    }

    async fn apply_once(
        &self,
        document: &Document,
        run: ApplyMode,
        loosening: Loosening,
    ) -> Result<Report, ApplyError> {
        let mut tx = self.store.provision_begin("apply").await?;
        master_keys::follow(&mut *tx, &self.sealer).await?;
        let known = self.lock_partners(&mut *tx, document).await?;
        let profiles = self.profiles(&mut *tx, document).await?;
        let known_ids = tx.partner_ids(self.mode).await?;
        let names = Names {
            document,
            known: &known,
            known_ids: &known_ids,
        };
        self.check(&mut *tx, document, &profiles, &names).await?;
        let refused = loosening == Loosening::Refuse
            && loosens(&mut *tx, self.mode, document, &known, &profiles).await?;
        // A refused file is also run to the end, so that the report is complete.
        let run = if refused { ApplyMode::DryRun } else { run };
        let now = tx.now().await?;
        let mut work = Work {
            ports: self,
            tx: &mut *tx,
            run,
            now,
            report: Report::default(),
        };
        work.report.warnings.extend(names.warnings());
        work.report.warnings.extend(profiles.warnings());
        work.pools(document).await?;
        work.release(&profiles).await?;
        for (entry, known) in document.partners.iter().zip(&known) {
            work.partner(entry, known.as_ref(), &profiles).await?;
        }
        let report = work.report;
        if refused {
            return Err(ApplyError::Loosens(Box::new(report)));
        }
        // Without a commit the transaction is rolled back.
        if run == ApplyMode::Commit && !report.changed.is_empty() {
            tx.config_version_raise().await?;
            tx.commit().await?;
        }
        Ok(report)
    }

    /// Locks the partners in the order of their ids, before any of their rows, so that two files cannot deadlock.
    async fn lock_partners(
        &self,
        tx: &mut dyn ProvisionTx,
        document: &Document,
    ) -> StoreResult<Vec<Option<Partner>>> {
        let mut known = Vec::with_capacity(document.partners.len());
        for entry in &document.partners {
            known.push(tx.partner_lock(&self.tenant(&entry.partner.id)).await?);
        }
        Ok(known)
    }

    /// The stored profiles of pools access, and those of the file.
    async fn profiles(
        &self,
        tx: &mut dyn ProvisionTx,
        document: &Document,
    ) -> StoreResult<Profiles> {
        let stored: BTreeMap<_, _> = tx
            .pools_profiles_all(self.mode)
            .await?
            .into_iter()
            .collect();
        let written = document.partners.iter().filter_map(|entry| {
            let id = &entry.partner.id;
            Some((id.clone(), entry.profile_over(stored.get(id))?))
        });
        let written = written.collect();
        Ok(Profiles { stored, written })
    }

    /// Checks that need the database. Every refusal happens here, before the first write.
    async fn check(
        &self,
        tx: &mut dyn ProvisionTx,
        document: &Document,
        profiles: &Profiles,
        names: &Names<'_>,
    ) -> Result<(), ApplyError> {
        let mut faults = profiles.shared_deposits(document);
        faults.extend(names.faults());
        for entry in &document.partners {
            self.check_pools(tx, document, entry, &mut faults).await?;
            for key in &entry.keys {
                let problem = self.key_problem(tx, &entry.partner.id, key).await?;
                faults.extend(problem.map(|problem| TableError {
                    line: key.line,
                    key: "partners.keys.key".to_owned(),
                    problem,
                }));
            }
        }
        if faults.is_empty() {
            return Ok(());
        }
        faults.sort_by_key(|error| error.line);
        Err(ApplyError::Faults(Faults(faults)))
    }

    async fn check_pools(
        &self,
        tx: &mut dyn ProvisionTx,
        document: &Document,
        entry: &PartnerEntry,
        faults: &mut Vec<TableError>,
    ) -> StoreResult<()> {
        let defined: BTreeSet<_> = document.pools.iter().map(|pool| pool.id).collect();
        for mention in &entry.mentions {
            let pool = mention.pool;
            if defined.contains(&pool) || tx.pool_get(self.mode, pool).await?.is_some() {
                continue;
            }
            faults.push(TableError {
                line: mention.line,
                key: mention.key.clone(),
                problem: format!("pool {pool} is neither in this file nor in the database"),
            });
        }
        Ok(())
    }

    async fn key_problem(
        &self,
        tx: &mut dyn ProvisionTx,
        partner: &PartnerId,
        entry: &KeyEntry,
    ) -> StoreResult<Option<String>> {
        let Some(literal) = &entry.literal else {
            return Ok(None);
        };
        let presented = PresentedKey::parse(literal.expose_secret());
        let fits = |key: &PresentedKey| key.kind == entry.kind && key.mode == self.mode;
        let Some(key) = presented.filter(fits) else {
            return Ok(Some(
                "expected a key of its kind and of this mode".to_owned(),
            ));
        };
        let owner = tx.key_owner(&key.hash).await?;
        Ok(owner.and_then(|(owner, mode, _)| {
            let other = owner != *partner || mode != self.mode;
            other.then(|| format!("this key belongs to partner `{owner}` in mode {mode}"))
        }))
    }

    fn tenant(&self, partner: &PartnerId) -> Tenant {
        Tenant {
            partner: partner.clone(),
            mode: self.mode,
        }
    }
}

fn key_fault(entry: &KeyEntry, key: &str, problem: &str) -> ApplyError {
    ApplyError::Faults(Faults(vec![TableError {
        line: entry.line,
        key: format!("partners.keys.{key}"),
        problem: problem.to_owned(),
    }]))
}

/// The application of a validated file.
struct Work<'w> {
    ports: &'w ApplyDocument,
    tx: &'w mut dyn ProvisionTx,
    run: ApplyMode,
    now: Timestamp,
    report: Report,
}

impl Work<'_> {
    async fn pools(&mut self, document: &Document) -> StoreResult<()> {
        let mode = self.ports.mode;
        for pool in &document.pools {
            let before = self.tx.pool_get(mode, pool.id).await?;
            let changes = changes::of_pool(before.as_ref(), pool);
            if !changes.is_empty() {
                self.tx.pool_put(mode, pool).await?;
            }
            self.report.add(changes);
        }
        if mode == Mode::Live {
            let pools = self.tx.pools_list(mode).await?;
            let warnings = pools.iter().filter_map(warning);
            self.report.warnings.extend(warnings);
        }
        Ok(())
    }

    /// All claims are released before one is taken, because partners may exchange addresses.
    async fn release(&mut self, profiles: &Profiles) -> StoreResult<()> {
        for (id, _, _) in profiles.changed() {
            self.tx.deposits_release(&self.ports.tenant(id)).await?;
        }
        Ok(())
    }

    async fn partner(
        &mut self,
        entry: &PartnerEntry,
        known: Option<&Partner>,
        profiles: &Profiles,
    ) -> Result<(), ApplyError> {
        let who = self.ports.tenant(&entry.partner.id);
        let partner = entry.partner_over(known);
        let mut changes = changes::of_partner(known, &partner);
        if !changes.is_empty() {
            self.tx.partner_put(who.mode, &partner).await?;
        }
        // Terms that the file does not have stay.
        if let Some(after) = profiles.describe(&who.partner, &mut changes) {
            self.tx.pools_profile_put(&who, after).await?;
        }
        if let Some(gate) = &entry.gate {
            self.gate(&who, gate, &mut changes).await?;
        }
        for webhook in &entry.webhooks {
            self.webhook(&who, webhook, &mut changes).await?;
        }
        self.keys(&who, entry, &mut changes).await?;
        self.report.add(changes);
        Ok(())
    }

    async fn gate(
        &mut self,
        who: &Tenant,
        after: &GateProfile,
        changes: &mut Changes,
    ) -> StoreResult<()> {
        let before = self.tx.gate_profile_get(who).await?;
        if before.as_ref() != Some(after) {
            changes::of_gate(changes, before.as_ref(), after);
            self.tx.gate_profile_put(who, after).await?;
        }
        Ok(())
    }

    async fn webhook(
        &mut self,
        who: &Tenant,
        entry: &WebhookEntry,
        changes: &mut Changes,
    ) -> Result<(), ApplyError> {
        let before = self.tx.endpoint_get(who, entry.service).await?;
        let mut after = match &before {
            Some(present) => present.clone(),
            None => Endpoint {
                id: EndpointId::new(who.mode, self.now, self.ports.entropy.as_ref()),
                service: entry.service,
                url: entry.url.clone(),
                secrets: Vec::new(),
            },
        };
        let service = entry.service.as_str();
        match &before {
            None => changes.note(format_args!("{service}.webhook created")),
            // A URL may contain credentials, so the report does not show it.
            Some(present) if present.url != entry.url => {
                changes.note(format_args!("{service}.webhook.url changed"));
            }
            Some(_) => {}
        }
        after.url.clone_from(&entry.url);
        if let Some(secret) = self.new_secret(who, entry, &after, changes)? {
            after.secrets = vec![secret];
        }
        if before.as_ref() != Some(&after) {
            self.tx.endpoint_put(who, &after).await?;
        }
        Ok(())
    }

    /// The secret that replaces the present ones, if the file requires one.
    fn new_secret(
        &mut self,
        who: &Tenant,
        entry: &WebhookEntry,
        endpoint: &Endpoint,
        changes: &mut Changes,
    ) -> Result<Option<EndpointSecret>, ApplyError> {
        let place = secret_place(endpoint.id);
        let broken = |error| ApplyError::Sealed(who.partner.clone(), error);
        let text = match (&entry.secret, endpoint.secrets.first()) {
            (None, Some(_)) => return Ok(None),
            (Some(literal), present) => {
                if let Some(present) = present {
                    let opened = self.ports.sealer.open(&place, &present.sealed);
                    if opened.map_err(broken)? == literal.expose_secret().as_bytes() {
                        return Ok(None);
                    }
                    let service = entry.service.as_str();
                    changes.note(format_args!("{service}.webhook.secret replaced"));
                }
                literal.clone()
            }
            (None, None) => self.generated_secret(who, entry.service, changes),
        };
        let (plain, entropy) = (text.expose_secret().as_bytes(), &*self.ports.entropy);
        let sealed = self.ports.sealer.seal(&place, plain, entropy);
        Ok(Some(EndpointSecret {
            sealed: sealed.map_err(StoreError::from)?,
            created_at: self.now,
            expires_at: None,
        }))
    }

    fn generated_secret(
        &mut self,
        who: &Tenant,
        service: Service,
        changes: &mut Changes,
    ) -> SecretString {
        let secret = generate_secret(self.ports.entropy.as_ref());
        changes.note(format_args!(
            "{}.webhook.secret {}",
            service.as_str(),
            self.generated()
        ));
        if self.run == ApplyMode::Commit {
            self.report.created_secrets.push(CreatedSecret {
                partner: who.partner.clone(),
                service,
                secret: secret.clone(),
            });
        }
        secret
    }

    const fn generated(&self) -> &'static str {
        match self.run {
            ApplyMode::Commit => "generated",
            ApplyMode::DryRun => "would be generated",
        }
    }

    async fn keys(
        &mut self,
        who: &Tenant,
        entry: &PartnerEntry,
        changes: &mut Changes,
    ) -> Result<(), ApplyError> {
        if entry.keys.is_empty() {
            return Ok(());
        }
        let mut present = self.tx.keys_list(who).await?;
        for key in &entry.keys {
            let added = match &key.literal {
                Some(text) => self.literal_key(who, key, text, changes).await?,
                None => self.generated_key(who, key, &present, changes).await?,
            };
            present.extend(added);
        }
        Ok(())
    }

    /// Applies the label and the expiry of the file to a key. Absent values stay.
    async fn describe(
        &mut self,
        who: &Tenant,
        record: &KeyRecord,
        written: &KeyTerms,
        changes: &mut Changes,
    ) -> StoreResult<()> {
        let kept = written.label.is_none() || same_label(&record.label, &written.label);
        let label = if kept { &record.label } else { &written.label };
        let after = KeyTerms {
            label: label.clone(),
            expires_at: written.expires_at.or(record.expires_at),
        };
        if (&after.label, after.expires_at) != (&record.label, record.expires_at) {
            changes::of_key(changes, record, &after);
            self.tx.key_describe(who, record.id, &after).await?;
        }
        Ok(())
    }

    /// A stored literal key stays, revoked or not. Its label and expiry follow the file.
    async fn literal_key(
        &mut self,
        who: &Tenant,
        entry: &KeyEntry,
        text: &SecretString,
        changes: &mut Changes,
    ) -> StoreResult<Option<KeyRecord>> {
        let (kind, entropy) = (entry.kind, self.ports.entropy.as_ref());
        let Some(new) = NewKey::literal(kind, self.now, entropy, text.expose_secret()) else {
            return Ok(None);
        };
        if let Some((_, _, present)) = self.tx.key_owner(&new.hash).await? {
            self.describe(who, &present, &entry.terms, changes).await?;
            let present = NewKey {
                record: present,
                ..new
            };
            self.keep_text(who, present, text, changes).await?;
            return Ok(None);
        }
        let new = self.with_text(who, new.with(entry.terms.clone()), text)?;
        self.tx.key_insert(who, &new).await?;
        let KeyRecord { prefix, last4, .. } = &new.record;
        changes.note(format_args!("{} key {prefix}…{last4} added", kind.as_str()));
        Ok(Some(new.record))
    }

    /// Stores the text of a publishable key that an older version stored without it, so that the links of sessions can carry it.
    async fn keep_text(
        &mut self,
        who: &Tenant,
        present: NewKey,
        text: &SecretString,
        changes: &mut Changes,
    ) -> StoreResult<()> {
        let present = self.with_text(who, present, text)?;
        let Some(sealed) = &present.publishable else {
            return Ok(());
        };
        let KeyRecord {
            id, prefix, last4, ..
        } = &present.record;
        if self.tx.key_keep_text(who, *id, sealed).await?.won().is_ok() {
            changes.note(format_args!(
                "publishable key {prefix}…{last4}: text stored for the links of sessions"
            ));
        }
        Ok(())
    }

    /// A new key with its sealed text, if it is publishable.
    fn with_text(&self, who: &Tenant, new: NewKey, text: &SecretString) -> StoreResult<NewKey> {
        let (sealer, entropy) = (&self.ports.sealer, self.ports.entropy.as_ref());
        Ok(new.sealing(who, text.expose_secret(), sealer, entropy)?)
    }

    /// Generates a key only if the partner never had one of this kind. A revoked key is not generated again, because
    /// the operator revoked it on purpose.
    async fn generated_key(
        &mut self,
        who: &Tenant,
        entry: &KeyEntry,
        present: &[KeyRecord],
        changes: &mut Changes,
    ) -> Result<Option<KeyRecord>, ApplyError> {
        let KeyEntry { kind, terms, .. } = entry;
        let kind = *kind;
        let mut fitting = present.iter().filter(|key| {
            let labelled = terms.label.is_none() || same_label(&key.label, &terms.label);
            key.generated && key.kind == kind && labelled
        });
        match (fitting.next(), fitting.next()) {
            (None, _) => {}
            (Some(only), None) => {
                self.describe(who, only, terms, changes).await?;
                return Ok(None);
            }
            (Some(_), Some(_)) if terms.expires_at.is_none() => return Ok(None),
            (Some(_), Some(_)) => {
                let several = "several keys of this kind were generated; expected the label of one";
                return Err(key_fault(entry, "expires_at", several));
            }
        }
        if terms.expires_at.is_some_and(|end| end <= self.now) {
            let past = "this entry generates a key; expected an instant in the future";
            return Err(key_fault(entry, "expires_at", past));
        }
        let entropy = self.ports.entropy.as_ref();
        let (new, text) = NewKey::generate(kind, who.mode, self.now, entropy);
        let new = self.with_text(who, new.with(terms.clone()), &text)?;
        self.tx.key_insert(who, &new).await?;
        let label = terms.label.as_deref();
        let label = label.map(|label| format!(" {label:?}")).unwrap_or_default();
        let generated = self.generated();
        changes.note(format_args!("{} key{label} {generated}", kind.as_str()));
        if self.run == ApplyMode::Commit {
            self.report.created_keys.push(CreatedKey {
                partner: who.partner.clone(),
                kind,
                id: new.record.id,
                label: new.record.label.clone(),
                key: text,
            });
        }
        Ok(Some(new.record))
    }
}
