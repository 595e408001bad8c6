//! Customers: the users that a partner serves.
//!
//! Personal data is stored sealed. A customer is found by the blind indexes of its email and of the partner's id for
//! it.

mod form;
mod indexes;

use kernel::{Entropy, Id, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::{SealRefused, Sealed, Sealer};
use serde::Deserialize;
use serde_json::json;

use crate::catalogue::CountryCode;
use crate::object::JsonObject;

pub use form::{
    Changes, CustomerDraft, CustomerFormError, CustomerUpdate, is_email, is_external_id,
};
pub use indexes::{
    CustomerIndexes, Forms, IdentityIndexes, TextIndexes, email_indexes, external_id_indexes,
};

kernel::id_kind!(CustomerIdKind, "cus");

/// `cus_<mode>_<ULID>`: the customer's id, also the list cursor.
pub type CustomerId = Id<CustomerIdKind>;

kernel::closed_list! {
    /// The result of the identity check of a customer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum KycStatus {
        /// No check has begun.
        Unverified = "unverified",
        /// The check is in progress.
        Pending = "pending",
        /// The check succeeded.
        Verified = "verified",
        /// The check failed.
        Rejected = "rejected",
    }
}

/// The personal data of a customer, and the partner's own data.
#[derive(Clone, PartialEq, Eq)]
pub struct Person {
    /// The email as the partner wrote it, unique per partner in any case and spelling, also among deleted customers.
    pub email: String,
    /// The partner's own id of the customer, unique per partner in any spelling.
    pub external_id: Option<String>,
    /// The phone number in E.164 form.
    pub phone: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    /// The country of residence.
    pub country: Option<CountryCode>,
    /// The partner's own data.
    pub metadata: JsonObject,
}

// Personal data does not belong in logs.
kernel::debug_as_text!(Person, "Person");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    pub id: CustomerId,
    /// The personal data.
    pub person: Person,
    /// The status of the identity check.
    pub kyc: KycStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// Number of writes so far. The next change compares it before it writes.
    pub revision: i64,
}

/// The facts about a deleted customer that are still returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    pub id: CustomerId,
    /// When it was deleted.
    pub at: Timestamp,
}

kernel::closed_list! {
    /// The types of customer events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CustomerEvent {
        Created = "customer.created",
        Updated = "customer.updated",
        Deleted = "customer.deleted",
    }
}

kernel::closed_list! {
    /// A field that must be unique among the customers of a partner and mode.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unique {
        Email = "email",
        ExternalId = "external_id",
    }
}

/// A customer as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCustomer {
    pub id: CustomerId,
    /// The sealed personal data.
    pub person: Sealed,
    /// The blind indexes.
    pub marks: CustomerIndexes,
    /// The status of the identity check.
    pub kyc: KycStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// Number of writes so far. The next change compares it before it writes.
    pub revision: i64,
}

/// Why a stored customer cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CustomerDamage {
    /// Decryption failed: another key, another row, or damage.
    #[error("does not open")]
    Sealed,
    /// The sealed data decrypts but is malformed.
    #[error("cannot be read")]
    Unreadable,
    /// A blind index does not match the sealed data.
    #[error("is found by another email or `external_id` than its own")]
    Marks,
}

impl CustomerDamage {
    /// The column with the damage.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::Sealed | Self::Unreadable => "person",
            Self::Marks => "email_mark",
        }
    }
}

impl Person {
    fn written(&self) -> String {
        let written = json!({
            "email": self.email,
            "external_id": self.external_id,
            "phone": self.phone,
            "first_name": self.first_name,
            "last_name": self.last_name,
            "country": self.country.map(|country| country.to_string()),
            "metadata": self.metadata.as_str(),
        });
        written.to_string()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(bytes).ok()?;
        let country = written.country.as_deref().map(CountryCode::parse);
        let country = match country {
            Some(None) => return None,
            known => known.flatten(),
        };
        Some(Self {
            email: written.email,
            external_id: written.external_id,
            phone: written.phone,
            first_name: written.first_name,
            last_name: written.last_name,
            country,
            metadata: JsonObject::stored(&written.metadata)?,
        })
    }
}

/// The personal data in the form that is sealed.
#[derive(Deserialize)]
struct Written {
    email: String,
    external_id: Option<String>,
    phone: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    country: Option<String>,
    metadata: String,
}

impl Customer {
    /// A new, unverified customer.
    #[must_use]
    pub const fn new(id: CustomerId, person: Person, now: Timestamp) -> Self {
        Self {
            id,
            person,
            kyc: KycStatus::Unverified,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            revision: 1,
        }
    }

    /// The customer after the changes; `None` if nothing changes.
    #[must_use]
    pub fn updated(&self, changes: &Changes, now: Timestamp) -> Option<Self> {
        let before = &self.person;
        let metadata = changes.metadata.apply_to(Some(&before.metadata));
        let person = Person {
            first_name: changes.first_name.apply_to(before.first_name.as_ref()),
            last_name: changes.last_name.apply_to(before.last_name.as_ref()),
            country: changes.country.apply_to(before.country.as_ref()),
            metadata: metadata.unwrap_or_else(JsonObject::empty),
            ..before.clone()
        };
        (person != *before).then(|| Self {
            person,
            updated_at: now,
            revision: self.revision.saturating_add(1),
            ..self.clone()
        })
    }

    /// The customer after its deletion; `None` if it was deleted before.
    #[must_use]
    pub fn deleted(&self, now: Timestamp) -> Option<Self> {
        self.deleted_at.is_none().then(|| Self {
            deleted_at: Some(now),
            revision: self.revision.saturating_add(1),
            ..self.clone()
        })
    }

    /// The deletion, if the customer is deleted.
    #[must_use]
    pub fn gone(&self) -> Option<Deleted> {
        self.deleted_at.map(|at| Deleted { id: self.id, at })
    }

    /// Seals the customer for the store.
    ///
    /// # Errors
    /// [`SealRefused`] if the personal data cannot be sealed.
    pub fn seal(
        &self,
        who: &Tenant,
        sealer: &Sealer,
        entropy: &dyn Entropy,
    ) -> Result<SealedCustomer, SealRefused> {
        let written = self.person.written();
        Ok(SealedCustomer {
            id: self.id,
            person: sealer.seal(&person_place(who, self.id), written.as_bytes(), entropy)?,
            marks: self.person.marks(sealer, who),
            kyc: self.kyc,
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: self.deleted_at,
            revision: self.revision,
        })
    }
}

impl SealedCustomer {
    /// Opens a stored customer.
    ///
    /// # Errors
    /// [`CustomerDamage`] names the damaged part.
    pub fn open(&self, who: &Tenant, sealer: &Sealer) -> Result<Customer, CustomerDamage> {
        let opened = sealer.open(&person_place(who, self.id), &self.person);
        let opened = opened.map_err(|_| CustomerDamage::Sealed)?;
        let person = Person::read(&opened).ok_or(CustomerDamage::Unreadable)?;
        if !self.marks.are_of(&person.marks(sealer, who)) {
            return Err(CustomerDamage::Marks);
        }
        Ok(Customer {
            id: self.id,
            person,
            kyc: self.kyc,
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: self.deleted_at,
            revision: self.revision,
        })
    }
}

/// The place that a customer's personal data is sealed for.
#[must_use]
pub fn person_place(who: &Tenant, id: CustomerId) -> String {
    format!("customers/{}/{}/{id}/person", who.mode, who.partner)
}

#[cfg(test)]
mod tests {
    use kernel::Mode;
    use partner_core::PartnerId;
    use partner_core::sealing::MasterKey;

    use super::*;
    use crate::change::Change;

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(7);
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn who(partner: &str, mode: Mode) -> Tenant {
        let partner = PartnerId::parse(partner).unwrap();
        Tenant { partner, mode }
    }

    fn ann() -> Customer {
        let draft = CustomerDraft {
            email: "Ann@Example.com".to_owned(),
            external_id: Some("user-1".to_owned()),
            phone: Some("+4915112345678".to_owned()),
            first_name: Some("Ann".to_owned()),
            last_name: Some("Lee".to_owned()),
            country_code: Some("DE".to_owned()),
            metadata: Some("{\"n\":1.10}".to_owned()),
        };
        let id = CustomerId::new(Mode::Test, at(5), &Sevens);
        Customer::new(id, draft.validate().unwrap(), at(5))
    }

    // rule: gate.customer.sealed, gate.customer.keyed-hash
    #[test]
    fn customer_opens_only_in_its_own_row() {
        let (acme, rival) = (who("acme", Mode::Test), who("rival", Mode::Test));
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let sealed = ann().seal(&acme, &sealer, &Sevens).unwrap();
        assert_eq!(sealed.open(&acme, &sealer), Ok(ann()));
        assert_eq!(sealed.open(&rival, &sealer), Err(CustomerDamage::Sealed));
        let mut other = sealed.clone();
        other.id = CustomerId::new(Mode::Test, at(6), &Sevens);
        assert_eq!(other.open(&acme, &sealer), Err(CustomerDamage::Sealed));
        let mut strayed = sealed.clone();
        strayed.marks.external_id = None;
        assert_eq!(strayed.open(&acme, &sealer), Err(CustomerDamage::Marks));
        let mut nobody = sealed.clone();
        let place = person_place(&acme, sealed.id);
        nobody.person = sealer.seal(&place, b"{}", &Sevens).unwrap();
        assert_eq!(nobody.open(&acme, &sealer), Err(CustomerDamage::Unreadable));
        assert_eq!(format!("{:?}", ann().person), "Person");
    }

    // rule: gate.customer.patch
    #[test]
    fn update_changes_named_fields_only() {
        let update = CustomerUpdate {
            first_name: Change::Set("Anna".to_owned()),
            last_name: Change::Clear,
            metadata: Change::Clear,
            ..CustomerUpdate::default()
        };
        let after = ann().updated(&update.validate().unwrap(), at(9)).unwrap();
        let mut expected = ann();
        expected.person.first_name = Some("Anna".to_owned());
        expected.person.last_name = None;
        expected.person.metadata = JsonObject::empty();
        expected.updated_at = at(9);
        expected.revision = 2;
        assert_eq!(after, expected);
        assert_eq!(after.updated(&update.validate().unwrap(), at(10)), None);
        assert_eq!(ann().updated(&Changes::default(), at(9)), None);
    }

    // rule: gate.customer.delete
    #[test]
    fn customer_is_deleted_once() {
        let gone = ann().deleted(at(9)).unwrap();
        assert_eq!((gone.deleted_at, gone.revision), (Some(at(9)), 2));
        assert_eq!(gone.updated_at, at(5));
        assert_eq!(gone.deleted(at(10)), None);
        for status in KycStatus::ALL {
            assert_eq!(KycStatus::parse(status.as_str()), Some(status));
        }
    }
}
