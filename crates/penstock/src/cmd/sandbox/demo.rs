//! The demo partner: its credentials in the sandbox's folder, and its opening balances.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gate_core::branding::BrandingUpdate;
use gate_core::change::Change;
use kernel::{Amount, Asset, Cas, Clock, Entropy, Mode, RequestId, StoreResult};
use partner_core::events::{Service, generate_secret};
use partner_core::key::{KeyKind, KeyTerms, NewKey};
use partner_core::origin::{AllowedDomain, Origin};
use partner_core::webhooks::target::AllowPrivate;
use partner_core::{Partner, Tenant};
use pools_core::profile::Network;
use pools_core::usecases::credit_account::Credit;
use provisioning::apply::{ApplyMode, Loosening};
use provisioning::ports::ProvisionStore;
use provisioning::{Document, KeyEntry, Setting, parse_document};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::inbox::EVENTS_PORT;
use crate::cmd::{apply, credit};
use crate::failure::Failure;
use crate::installation::{Installation, partner_id};

/// The demo partner's opening balance per asset.
const OPENING: &str = "100000";

/// The demo partner's credentials, as stored in `demo.json`. They only give access to a sandbox on one machine.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Demo {
    pub(super) partner: String,
    pub(super) secret_key: String,
    pub(super) publishable_key: String,
    /// The secret of both services' endpoints.
    pub(super) webhook_secret: String,
    /// The port of both endpoints on 127.0.0.1. Files of older versions lack it.
    #[serde(default = "default_events_port")]
    pub(super) events_port: u16,
    /// The port of the demo shop's page on 127.0.0.1, which the partner allows because the sandbox added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) demo_port: Option<u16>,
}

const fn default_events_port() -> u16 {
    EVENTS_PORT
}

impl Demo {
    /// Reads the credentials in `folder`, or creates them if the folder has no file. The second part is true if they are new.
    pub(super) fn read_or_make(
        folder: &Path,
        events_port: u16,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Result<(Self, bool), Failure> {
        let file = folder.join("demo.json");
        let name = file.display();
        let failed = |error: io::Error| Failure::Failed(format!("{name}: {error}"));
        let fresh = !file.try_exists().map_err(failed)?;
        if fresh {
            let made = Self::make(events_port, clock, entropy);
            let draft = folder.join(format!("demo.json.{}", RequestId::new(clock, entropy)));
            write_credentials(&made, &draft, &file).map_err(failed)?;
        }
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        let read = serde_json::from_str(&text).map_err(|error| {
            Failure::Failed(format!(
                "{name}: no valid demo credentials ({error}); remove the file to get new credentials"
            ))
        })?;
        Ok((read, fresh))
    }

    fn make(events_port: u16, clock: &dyn Clock, entropy: &dyn Entropy) -> Self {
        let key = |kind| {
            let (_, text) = NewKey::generate(kind, Mode::Test, clock.now(), entropy);
            text.expose_secret().to_owned()
        };
        Self {
            partner: "demo".to_owned(),
            secret_key: key(KeyKind::Secret),
            publishable_key: key(KeyKind::Publishable),
            webhook_secret: generate_secret(entropy).expose_secret().to_owned(),
            events_port,
            demo_port: None,
        }
    }

    /// The endpoint for the events of the gate that a new demo partner gets.
    pub(super) fn events_url(&self) -> String {
        format!("http://127.0.0.1:{}/gate", self.events_port)
    }

    pub(super) fn tenant(&self) -> Result<Tenant, Failure> {
        let partner = partner_id(&self.partner)?;
        let mode = Mode::Test;
        Ok(Tenant { partner, mode })
    }

    /// Provisions the demo partner if it is missing or its credentials are new. Keeps the developer's changes to an existing
    /// partner.
    pub(super) async fn settle(
        &self,
        installation: &Installation,
        fresh: bool,
    ) -> Result<(), Failure> {
        let who = self.tenant()?;
        let known = installation.base.store.partner_find(&who).await?;
        let mut document = self.document()?;
        if let Some(known) = known.filter(|_| !fresh) {
            if has_gate(&*installation.base.store, &who).await? {
                return Ok(());
            }
            // A version without the gate created the partner.
            retain_gate_only(&mut document, &known);
        }
        // The gate of an older demo partner is trusted with KYC, which weakens a protection.
        apply::apply(installation, &document, ApplyMode::Commit, Loosening::Allow)
            .await
            .map_err(|error| apply::failed("demo.toml", error))?;
        for credit in opening() {
            credit::credit_to(installation, who.partner.clone(), &credit).await?;
        }
        Ok(dress(installation, &who).await?)
    }

    /// Allows the demo shop's page to start the widget, if the developer's domains have replaced those of `demo.toml` and lack it,
    /// and no longer the page of an earlier start on another port. `demo.json` stores the port of a page that was added. The
    /// developer's own domains stay.
    pub(super) async fn admit_page(
        &self,
        installation: &Installation,
        folder: &Path,
        port: u16,
    ) -> Result<(), Failure> {
        let page = |port| Origin::of_address((Ipv4Addr::LOCALHOST, port).into());
        let who = self.tenant()?;
        let mut tx = installation.base.store.provision_begin("demo_page").await?;
        let Some(mut profile) = tx.gate_profile_get(&who).await? else {
            return Ok(());
        };
        let gone = self.demo_port.filter(|earlier| *earlier != port);
        let allowed = &mut profile.allowed_domains;
        let removed = gone.is_some_and(|gone| allowed.remove(page(gone).as_str()));
        let added = !page(port).is_among(allowed);
        if added {
            allowed.insert(AllowedDomain::from(page(port)));
        }
        if removed || added {
            tx.gate_profile_put(&who, &profile).await?;
            tx.commit().await?;
        }
        // The developer allows a page that was there before, so a later start does not remove it.
        let demo_port = if added {
            Some(port)
        } else {
            self.demo_port.filter(|it| *it == port)
        };
        if demo_port == self.demo_port {
            return Ok(());
        }
        let changed = Self {
            demo_port,
            ..self.clone()
        };
        let file = folder.join("demo.json");
        let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", file.display()));
        let (clock, entropy) = (&installation.base.clock, &installation.base.entropy);
        let name = RequestId::new(clock.as_ref(), entropy.as_ref());
        let draft = folder.join(format!("demo.json.{name}"));
        write_draft(&changed, &draft)
            .and_then(|()| std::fs::rename(&draft, &file))
            .map_err(failed)
    }

    /// The built-in document with these credentials.
    fn document(&self) -> Result<Document, Failure> {
        let setting = Setting {
            mode: Mode::Test,
            allow_private: AllowPrivate::Loopback,
        };
        let port = format!(":{}/", self.events_port);
        let text = include_str!("demo.toml").replace(":9999/", &port);
        let mut document =
            parse_document(&text, setting).map_err(|faults| Failure::Failed(faults.to_string()))?;
        let literal = |kind, text: &str| KeyEntry {
            line: 0,
            kind,
            literal: Some(SecretString::from(text)),
            terms: KeyTerms::default(),
        };
        for entry in &mut document.partners {
            entry.keys = vec![
                literal(KeyKind::Secret, &self.secret_key),
                literal(KeyKind::Publishable, &self.publishable_key),
            ];
            for webhook in &mut entry.webhooks {
                webhook.secret = Some(SecretString::from(self.webhook_secret.as_str()));
            }
        }
        Ok(document)
    }
}

/// Gives a partner without branding the name and the colours of the demo shop.
async fn dress(installation: &Installation, who: &Tenant) -> StoreResult<()> {
    let mut tx = installation
        .base
        .store
        .gate_begin("branding_update")
        .await?;
    let before = tx.branding_lock(who).await?;
    if before.revision > 0 {
        return Ok(());
    }
    let set = |text: &str| Change::Set(text.to_owned());
    let after = before.updated(&BrandingUpdate {
        brand_name: set("Northwind Goods"),
        primary_color: set("#14745C"),
        secondary_color: set("#10302B"),
        accent_color: set("#E8B34B"),
        ..BrandingUpdate::default()
    });
    // The one who was faster has dressed the shop.
    if tx.branding_put(who, &after).await? == Cas::Won {
        tx.commit().await?;
    }
    Ok(())
}

async fn has_gate(store: &dyn ProvisionStore, who: &Tenant) -> StoreResult<bool> {
    let mut tx = store.provision_begin("demo").await?;
    Ok(tx.gate_profile_get(who).await?.is_some())
}

/// Removes everything but the gate from the document, so that the partner's other settings stay unchanged.
fn retain_gate_only(document: &mut Document, known: &Partner) {
    document.pools.clear();
    for entry in &mut document.partners {
        entry.partner = known.clone();
        entry.profile = None;
        entry.terms.clear();
        entry.mentions.clear();
        entry.deposits.clear();
        entry
            .webhooks
            .retain(|webhook| webhook.service == Service::Gate);
        entry.keys.clear();
    }
}

/// Writes a draft and links it to the final name. If two sandboxes start at once, neither can read half of the file or replace
/// the other's file.
fn write_credentials(demo: &Demo, draft: &Path, file: &Path) -> io::Result<()> {
    let written = write_draft(demo, draft).and_then(|()| std::fs::hard_link(draft, file));
    let removed = std::fs::remove_file(draft);
    match written {
        Err(taken) if taken.kind() == ErrorKind::AlreadyExists => removed,
        written => written.and(removed),
    }
}

fn write_draft(demo: &Demo, draft: &Path) -> io::Result<()> {
    let mut out: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    let text = serde_json::to_vec_pretty(demo).map_err(io::Error::from)?;
    out.write_all(&text)?;
    out.write_all(b"\n")?;
    out.sync_all()
}

/// The opening balances: fiat of every pool, and crypto to sell.
fn opening() -> impl Iterator<Item = Credit> {
    let assets = [
        (Asset::fiat("EUR"), None),
        (Asset::fiat("GBP"), None),
        (Asset::fiat("USD"), None),
        (Asset::crypto("USDT"), Some(Network::Tron)),
    ];
    assets.into_iter().filter_map(|(asset, network)| {
        let asset = asset?;
        Some(Credit {
            amount: Amount::parse(OPENING, asset).ok()?,
            network,
            reference: format!("demo-opening-{asset}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use partner_core::PartnerId;
    use provisioning::WebhookEntry;

    use super::*;

    #[test]
    fn built_in_document_has_pools_keys_and_webhooks() {
        let ports = runtime::Ports::of_machine();
        let demo = Demo::make(EVENTS_PORT, &*ports.clock, &*ports.entropy);
        let document = demo.document().unwrap();
        assert_eq!(document.pools.len(), 4);
        let [entry] = document.partners.as_slice() else {
            panic!("expected exactly one partner");
        };
        assert_eq!(entry.partner.id, PartnerId::parse(&demo.partner).unwrap());
        assert_eq!(entry.keys.len(), 2);
        assert_eq!(entry.webhooks.len(), 2);
        let signed = |webhook: &WebhookEntry| webhook.secret.is_some();
        assert!(entry.webhooks.iter().all(signed));
        assert!(entry.gate.as_ref().unwrap().enabled);
        assert_eq!(opening().count(), 4);
    }
}
