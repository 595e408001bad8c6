//! Checks that sealed values decrypt with a master key and agree with their rows.

use gate_core::payout::Payout;
use gate_core::rail::{RailId, RailKind};
use kernel::StoreResult;
use partner_core::events::Service;
use partner_core::key::{KeyKind, PresentedKey};
use partner_core::sealing::{SealBroken, Sealed, Sealer};
use partner_core::stored_response::{self, ResponseCheck};

use super::{Work, named, walked};
use crate::sealed::{self, SealedColumn};
use crate::{Row, Statement, customers};

/// What is wrong with a row, if anything is.
type Fault = StoreResult<Option<String>>;

/// A check of an entity's sealed values.
pub(super) struct SealCheck {
    name: &'static str,
    /// Its rows, with every sealed column of their table.
    pub(super) rows: &'static Statement,
    /// The entity's name in breaches.
    entity: &'static str,
    fault: fn(&Seals<'_>, &dyn Row) -> Fault,
}

/// Every check, in the order of the report.
pub(super) static CHECKS: [SealCheck; 7] = [
    // Without its secret, nothing can be signed for an endpoint.
    SealCheck {
        name: "secret-can-be-opened",
        rows: &sealed::SECRET.values,
        entity: "secret of endpoint",
        fault: |seals, row| seals.opens(&sealed::SECRET, row, "does not open"),
    },
    SealCheck {
        name: "event-body-is-of-its-event",
        rows: &sealed::BODY.values,
        entity: "event",
        fault: body,
    },
    SealCheck {
        name: "kyc-package-can-be-opened",
        rows: &sealed::PACKAGE.values,
        entity: "session",
        fault: |seals, row| {
            let fault = "has a KYC package that does not open";
            seals.opens(&sealed::PACKAGE, row, fault)
        },
    },
    SealCheck {
        name: "customer-is-what-is-sealed",
        rows: &walked::CUSTOMERS,
        entity: "customer",
        fault: customer,
    },
    SealCheck {
        name: "payout-account-can-be-opened",
        rows: &sealed::PAYOUT.values,
        entity: "payment",
        fault: payout,
    },
    SealCheck {
        name: "publishable-key-can-be-opened",
        rows: &sealed::PUBLISHABLE.values,
        entity: "publishable key",
        fault: publishable_key,
    },
    SealCheck {
        name: "answer-can-be-opened",
        rows: &sealed::ANSWER.values,
        entity: "key",
        fault: answer,
    },
];

impl Work<'_> {
    pub(super) async fn seals(&mut self) -> StoreResult<()> {
        let seals = Seals {
            sealer: self.sealer,
            is_well_formed: self.is_well_formed,
        };
        for check in &CHECKS {
            let mut older = 0;
            self.check(check.name, check.rows, |row, breaches| {
                older += sealed::older(seals.sealer, row)?;
                if let Some(fault) = (check.fault)(&seals, row)? {
                    let row = named(row, check.entity)?;
                    breaches.add(|| format!("{row} {fault}"));
                }
                Ok(())
            })
            .await?;
            self.older_seals += older;
        }
        Ok(())
    }
}

/// What the checks need.
struct Seals<'a> {
    sealer: &'a Sealer,
    is_well_formed: ResponseCheck,
}

impl Seals<'_> {
    fn opens(&self, column: &SealedColumn, row: &dyn Row, fault: &str) -> Fault {
        let opened = column.open(self.sealer, row)?;
        Ok(opened.is_err().then(|| fault.to_owned()))
    }
}

/// Every body decrypts and has the id, the type and the object of its row.
fn body(seals: &Seals<'_>, row: &dyn Row) -> Fault {
    let fault = match sealed::BODY.open(seals.sealer, row)? {
        Err(SealBroken) => Some("has a body that does not open"),
        Ok(body) if !describes(row, &body)? => Some("has a body that describes another event"),
        Ok(_) => None,
    };
    Ok(fault.map(str::to_owned))
}

fn describes(row: &dyn Row, body: &[u8]) -> StoreResult<bool> {
    let (id, kind, object) = (row.text("id")?, row.text("type")?, row.text("object_id")?);
    Ok(match Service::parse(row.text("service")?) {
        Some(Service::Pools) => pools_core::events::tells_of(body, id, kind, object),
        Some(Service::Gate) => gate_core::events::tells_of(body, id, kind, object),
        None => false,
    })
}

/// Every customer decrypts and has the blind indexes of its email and name. `rows-can-be-read` reports rows that cannot be read.
fn customer(seals: &Seals<'_>, row: &dyn Row) -> Fault {
    let who = row.tenant()?;
    let kept = customers::customer(row, who.mode).ok();
    let damage = kept.and_then(|kept| kept.open(&who, seals.sealer).err());
    Ok(damage.map(|damage| damage.to_string()))
}

/// Every payout account decrypts. Without it, the rail receives no account.
fn payout(seals: &Seals<'_>, row: &dyn Row) -> Fault {
    let who = row.tenant()?;
    let kind = row.parsed("kind", RailKind::parse)?;
    let id = RailId::from_parts(kind, row.id("id", who.mode)?);
    let sealed = Sealed(row.bytes("payout")?.to_vec());
    let opened = Payout::open(&who, id, &sealed, seals.sealer);
    let fault = "has a payout account that does not open";
    Ok(opened.is_none().then(|| fault.to_owned()))
}

/// Every stored text of a publishable key decrypts and is the text of its key. Without it, sessions have no link.
fn publishable_key(seals: &Seals<'_>, row: &dyn Row) -> Fault {
    let fault = match sealed::PUBLISHABLE.open(seals.sealer, row)? {
        Err(SealBroken) => Some("has a sealed text that does not open"),
        Ok(text) if !is_text_of(row, &text)? => {
            Some("has a sealed text that is the text of another key")
        }
        Ok(_) => None,
    };
    Ok(fault.map(str::to_owned))
}

/// Whether a text is that of a row's key, which was found by its hash.
fn is_text_of(row: &dyn Row, text: &[u8]) -> StoreResult<bool> {
    let hash = row.bytes("hash")?;
    let presented = str::from_utf8(text).ok().and_then(PresentedKey::parse);
    Ok(presented.is_some_and(|key| key.kind == KeyKind::Publishable && key.hash.0 == *hash))
}

/// Every stored response decrypts and can be replayed.
fn answer(seals: &Seals<'_>, row: &dyn Row) -> Fault {
    let scope = sealed::scope(&row.tenant()?, row)?;
    let kept = Sealed(row.bytes("answer")?.to_vec());
    Ok(match stored_response::open(seals.sealer, &scope, &kept) {
        Err(error) => Some(format!("cannot be replayed: {error}")),
        Ok(stored) if (seals.is_well_formed)(&stored) => None,
        Ok(_) => Some("has a stored response that is malformed".to_owned()),
    })
}
