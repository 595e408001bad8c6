//! Checks that sealed values decrypt with a master key and agree with their rows.

use gate_core::payout::Payout;
use gate_core::ports::kyc_place;
use gate_core::rail::{RailId, RailKind};
use kernel::StoreError;
use partner_core::audit::Breaches;
use partner_core::events::{EndpointId, Service, event_place, secret_place};
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::key::{KeyKind, PresentedKey, publishable_place};
use partner_core::sealing::{SealBroken, Sealed, Sealer};
use partner_core::stored_response::{self, RenderedResponse, ResponseStoreError};

use super::{Work, named, walked};
use crate::{Row, customers};

impl Work<'_> {
    pub(super) async fn seals(&mut self) -> Result<(), StoreError> {
        self.secrets().await?;
        self.bodies().await?;
        self.packages().await?;
        self.customers().await?;
        self.payouts().await?;
        self.publishable_keys().await?;
        self.answers().await
    }

    /// Every endpoint's secret decrypts. Without it, nothing can be signed for the endpoint.
    async fn secrets(&mut self) -> Result<(), StoreError> {
        let name = "secret-can-be-opened";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::SECRETS, |row| {
            older += u64::from(is_older(sealer, row, "sealed")?);
            if secret(sealer, row)?.is_err() {
                let secret = named(row, "secret of endpoint")?;
                breaches.add(|| format!("{secret} does not open"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }

    /// Every body decrypts and has the id, the type and the object of its row.
    async fn bodies(&mut self) -> Result<(), StoreError> {
        let name = "event-body-is-of-its-event";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::BODIES, |row| {
            older += u64::from(is_older(sealer, row, "body")?);
            let wrong = match body(sealer, row)? {
                Err(SealBroken) => Some("does not open"),
                Ok(body) if !describes(row, &body)? => Some("describes another event"),
                Ok(_) => None,
            };
            if let Some(wrong) = wrong {
                let event = named(row, "event")?;
                breaches.add(|| format!("{event} has a body that {wrong}"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }

    /// Every KYC package of a trusted partner decrypts.
    async fn packages(&mut self) -> Result<(), StoreError> {
        let name = "kyc-package-can-be-opened";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::PACKAGES, |row| {
            older += u64::from(is_older(sealer, row, "kyc_package")?);
            if package(sealer, row)?.is_err() {
                let session = named(row, "session")?;
                breaches.add(|| format!("{session} has a KYC package that does not open"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }

    /// Every customer decrypts and has the blind indexes of its email and name. `rows-can-be-read` reports rows that cannot be read.
    async fn customers(&mut self) -> Result<(), StoreError> {
        let name = "customer-is-what-is-sealed";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::CUSTOMERS, |row| {
            older += u64::from(is_older(sealer, row, "person")?);
            let who = row.tenant()?;
            let kept = customers::customer(row, who.mode);
            let damage = kept.ok().and_then(|kept| kept.open(&who, sealer).err());
            if let Some(damage) = damage {
                let customer = named(row, "customer")?;
                breaches.add(|| format!("{customer} {damage}"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }

    /// Every payout account decrypts. Without it, the rail receives no account.
    async fn payouts(&mut self) -> Result<(), StoreError> {
        let name = "payout-account-can-be-opened";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::PAYOUTS, |row| {
            older += u64::from(is_older(sealer, row, "payout")?);
            if payout(sealer, row)?.is_none() {
                let payment = named(row, "payment")?;
                breaches.add(|| format!("{payment} has a payout account that does not open"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }

    /// Every stored text of a publishable key decrypts and is the text of its key. Without it, sessions have no link.
    async fn publishable_keys(&mut self) -> Result<(), StoreError> {
        let name = "publishable-key-can-be-opened";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::PUBLISHABLE_KEYS, |row| {
            older += u64::from(is_older(sealer, row, "publishable_sealed")?);
            let wrong = match publishable_key(sealer, row)? {
                Err(SealBroken) => Some("does not open"),
                Ok(text) if !is_text_of(row, &text)? => Some("is the text of another key"),
                Ok(_) => None,
            };
            if let Some(wrong) = wrong {
                let key = named(row, "publishable key")?;
                breaches.add(|| format!("{key} has a sealed text that {wrong}"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }

    /// Every stored response decrypts and can be replayed.
    async fn answers(&mut self) -> Result<(), StoreError> {
        let name = "answer-can-be-opened";
        let (sealer, is_well_formed) = (self.sealer, self.is_well_formed);
        let mut breaches = Breaches::default();
        let mut older = 0;
        self.each(name, &walked::ANSWERS, |row| {
            older += u64::from(is_older(sealer, row, "answer")?);
            let wrong = match answer(sealer, row)? {
                Err(error) => Some(error.to_string()),
                Ok(stored) if is_well_formed(&stored) => None,
                Ok(_) => Some("a stored response is malformed".to_owned()),
            };
            if let Some(wrong) = wrong {
                let key = named(row, "key")?;
                breaches.add(|| format!("{key}: {wrong}"));
            }
            Ok(())
        })
        .await?;
        self.older_seals += older;
        self.found(name, breaches);
        Ok(())
    }
}

fn is_older(sealer: &Sealer, row: &dyn Row, column: &'static str) -> Result<bool, StoreError> {
    Ok(!sealer.is_current(&Sealed(row.bytes(column)?.to_vec())))
}

type Opened = Result<Vec<u8>, SealBroken>;

fn secret(sealer: &Sealer, row: &dyn Row) -> Result<Opened, StoreError> {
    let mode = row.mode()?;
    let endpoint: EndpointId = row.id("id", mode)?;
    let sealed = Sealed(row.bytes("sealed")?.to_vec());
    Ok(sealer.open(&secret_place(endpoint), &sealed))
}

fn package(sealer: &Sealer, row: &dyn Row) -> Result<Opened, StoreError> {
    let who = row.tenant()?;
    let sealed = Sealed(row.bytes("kyc_package")?.to_vec());
    Ok(sealer.open(&kyc_place(&who, row.id("id", who.mode)?), &sealed))
}

fn payout(sealer: &Sealer, row: &dyn Row) -> Result<Option<Payout>, StoreError> {
    let who = row.tenant()?;
    let kind = row.parsed("kind", RailKind::parse)?;
    let id = RailId::from_parts(kind, row.id("id", who.mode)?);
    let sealed = Sealed(row.bytes("payout")?.to_vec());
    Ok(Payout::open(&who, id, &sealed, sealer))
}

fn publishable_key(sealer: &Sealer, row: &dyn Row) -> Result<Opened, StoreError> {
    let who = row.tenant()?;
    let sealed = Sealed(row.bytes("publishable_sealed")?.to_vec());
    Ok(sealer.open(&publishable_place(&who, row.id("id", who.mode)?), &sealed))
}

/// Whether a text is that of a row's key, which was found by its hash.
fn is_text_of(row: &dyn Row, text: &[u8]) -> Result<bool, StoreError> {
    let hash = row.bytes("hash")?;
    let presented = str::from_utf8(text).ok().and_then(PresentedKey::parse);
    Ok(presented.is_some_and(|key| key.kind == KeyKind::Publishable && key.hash.0 == *hash))
}

fn answer(
    sealer: &Sealer,
    row: &dyn Row,
) -> Result<Result<RenderedResponse, ResponseStoreError>, StoreError> {
    let scope = Scope {
        tenant: row.tenant()?,
        route: row.text("route")?.to_owned(),
        key: row.parsed("key", |key| IdempotencyKey::parse(key.as_bytes()).ok())?,
    };
    let kept = Sealed(row.bytes("answer")?.to_vec());
    Ok(stored_response::open(sealer, &scope, &kept))
}

fn body(sealer: &Sealer, row: &dyn Row) -> Result<Opened, StoreError> {
    let who = row.tenant()?;
    let sealed = Sealed(row.bytes("body")?.to_vec());
    Ok(sealer.open(&event_place(&who, row.text("id")?), &sealed))
}

fn describes(row: &dyn Row, body: &[u8]) -> Result<bool, StoreError> {
    let (id, kind, object) = (row.text("id")?, row.text("type")?, row.text("object_id")?);
    Ok(match Service::parse(row.text("service")?) {
        Some(Service::Pools) => pools_core::events::tells_of(body, id, kind, object),
        Some(Service::Gate) => gate_core::events::tells_of(body, id, kind, object),
        None => false,
    })
}
