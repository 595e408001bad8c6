//! The blind indexes of a customer: those that are stored, and those by which a text finds its customer.

use partner_core::Tenant;
use partner_core::sealing::{BlindIndex, Sealer};
use partner_core::text;

use super::Person;

/// The blind indexes that find a customer, whose other data is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomerIndexes {
    /// The index of the lower-case email.
    pub email: BlindIndex,
    /// The index of the partner's own id.
    pub external_id: Option<BlindIndex>,
    /// The index of the email in the form in which emails are compared. `None` in a row of an earlier version.
    pub email_compared: Option<BlindIndex>,
    /// The index of the partner's own id in the form in which such ids are compared. `None` in a row of an earlier version.
    pub external_id_compared: Option<BlindIndex>,
}

impl CustomerIndexes {
    /// Whether these are a row's indexes of the person whose indexes are `own`.
    pub(super) fn are_of(&self, own: &Self) -> bool {
        let fits =
            |stored: Option<BlindIndex>, own: Option<BlindIndex>| stored.is_none() || stored == own;
        (self.email, self.external_id) == (own.email, own.external_id)
            && fits(self.email_compared, own.email_compared)
            && fits(self.external_id_compared, own.external_id_compared)
    }
}

/// The blind indexes of forms of comparison that a customer of an earlier version gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forms {
    /// The index of the form of the email.
    pub email: Option<BlindIndex>,
    /// The index of the form of the partner's own id.
    pub external_id: Option<BlindIndex>,
}

impl Forms {
    /// Whether there is nothing to store.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.email.is_none() && self.external_id.is_none()
    }
}

/// Spellings of a text whose index an earlier version may have stored: unchanged, in NFC, in NFD, and in the form of comparison.
const SPELLINGS: usize = 4;

/// The blind indexes by which a text finds its customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextIndexes {
    /// The index of the form in which the text is compared.
    pub compared: BlindIndex,
    /// The indexes of its spellings, for rows of earlier versions.
    pub spellings: [BlindIndex; SPELLINGS],
}

impl TextIndexes {
    /// Whether a row with these indexes has the text.
    #[must_use]
    pub fn finds(&self, compared: Option<BlindIndex>, spelling: Option<BlindIndex>) -> bool {
        match (compared, spelling) {
            (Some(compared), _) => compared == self.compared,
            (None, Some(spelling)) => self.spellings.contains(&spelling),
            (None, None) => false,
        }
    }
}

/// The blind indexes of what must be unique about a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentityIndexes {
    pub email: TextIndexes,
    pub external_id: Option<TextIndexes>,
}

/// The place of the blind indexes of a partner's emails.
fn email_place(who: &Tenant) -> String {
    format!("customers/{}/{}/email", who.mode, who.partner)
}

/// The place of the blind indexes of a partner's own ids.
fn external_id_place(who: &Tenant) -> String {
    format!("customers/{}/{}/external_id", who.mode, who.partner)
}

/// The blind indexes by which an email finds its customer within the partner and mode. Case does not count.
#[must_use]
pub fn email_indexes(sealer: &Sealer, who: &Tenant, email: &str) -> TextIndexes {
    let place = email_place(who);
    let form = text::comparable_in_any_case(email);
    let (nfc, nfd) = (text::composed(email), text::decomposed(email));
    let spellings: [&str; SPELLINGS] = [email, &nfc, &nfd, &form];
    TextIndexes {
        compared: sealer.mark(&place, &form),
        spellings: spellings.map(|spelling| sealer.mark(&place, &spelling.to_lowercase())),
    }
}

/// The blind indexes by which the partner's own id finds its customer. Case counts.
#[must_use]
pub fn external_id_indexes(sealer: &Sealer, who: &Tenant, external_id: &str) -> TextIndexes {
    let place = external_id_place(who);
    let form = text::comparable(external_id);
    let (nfc, nfd) = (text::composed(external_id), text::decomposed(external_id));
    let spellings: [&str; SPELLINGS] = [external_id, &nfc, &nfd, &form];
    TextIndexes {
        compared: sealer.mark(&place, &form),
        spellings: spellings.map(|spelling| sealer.mark(&place, spelling)),
    }
}

impl Person {
    /// The blind indexes that are stored with a person.
    #[must_use]
    pub fn marks(&self, sealer: &Sealer, who: &Tenant) -> CustomerIndexes {
        let (email, external_id) = (&self.email, self.external_id.as_deref());
        let of_email = |form: &str| sealer.mark(&email_place(who), form);
        let of_id = |form: &str| sealer.mark(&external_id_place(who), form);
        CustomerIndexes {
            email: of_email(&email.to_lowercase()),
            external_id: external_id.map(of_id),
            email_compared: Some(of_email(&text::comparable_in_any_case(email))),
            external_id_compared: external_id.map(|id| of_id(&text::comparable(id))),
        }
    }

    /// The forms that the person's row has not, and whether a form is withheld. A text with an unassigned character gets none, because a
    /// later version of Unicode may give it another form.
    pub(crate) fn missing_forms(
        &self,
        sealer: &Sealer,
        who: &Tenant,
        stored: &CustomerIndexes,
    ) -> (Forms, bool) {
        let own = self.marks(sealer, who);
        let mut is_withheld = false;
        let mut missing = |written: &str, stored: Option<BlindIndex>, own: Option<BlindIndex>| {
            if stored.is_some() {
                return None;
            }
            let is_assigned = text::is_assigned(written);
            is_withheld |= !is_assigned;
            own.filter(|_| is_assigned)
        };
        let external_id = self.external_id.as_deref().unwrap_or_default();
        let forms = Forms {
            email: missing(&self.email, stored.email_compared, own.email_compared),
            external_id: missing(
                external_id,
                stored.external_id_compared,
                own.external_id_compared,
            ),
        };
        (forms, is_withheld)
    }

    /// The blind indexes that find every customer with this person's email or id.
    #[must_use]
    pub fn identity(&self, sealer: &Sealer, who: &Tenant) -> IdentityIndexes {
        let external_id = self.external_id.as_deref();
        IdentityIndexes {
            email: email_indexes(sealer, who, &self.email),
            external_id: external_id.map(|id| external_id_indexes(sealer, who, id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Entropy, Mode, Timestamp};
    use partner_core::PartnerId;
    use partner_core::sealing::MasterKey;

    use super::*;
    use crate::customer::{Customer, CustomerDamage, CustomerDraft, CustomerId};

    struct Sevens;
    impl Entropy for Sevens {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(7);
        }
    }

    fn who(partner: &str, mode: Mode) -> Tenant {
        let partner = PartnerId::parse(partner).unwrap();
        Tenant { partner, mode }
    }

    fn person(email: &str, external_id: &str) -> Person {
        let draft = CustomerDraft {
            email: email.to_owned(),
            external_id: Some(external_id.to_owned()),
            ..CustomerDraft::default()
        };
        draft.validate().unwrap()
    }

    /// Whether a row of this person is found by an email, and by an id.
    fn found(stored: &CustomerIndexes, email: &str, external_id: &str) -> (bool, bool) {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let acme = who("acme", Mode::Test);
        let by_email = email_indexes(&sealer, &acme, email);
        let by_id = external_id_indexes(&sealer, &acme, external_id);
        (
            by_email.finds(stored.email_compared, Some(stored.email)),
            by_id.finds(stored.external_id_compared, stored.external_id),
        )
    }

    // rule: gate.customer.unique
    #[test]
    fn email_index_ignores_case_and_differs_by_partner_and_mode() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let acme = who("acme", Mode::Test);
        let marks = person("Ann@Example.com", "user-1").marks(&sealer, &acme);
        assert_eq!(found(&marks, "aNN@eXAMPLE.COM", "user-1"), (true, true));
        assert_eq!(found(&marks, "bob@example.com", "USER-1"), (false, false));
        for other in [who("rival", Mode::Test), who("acme", Mode::Live)] {
            let theirs = person("Ann@Example.com", "user-1").marks(&sealer, &other);
            assert_eq!(found(&theirs, "ann@example.com", "user-1"), (false, false));
        }
        let (email, id) = (
            email_indexes(&sealer, &acme, "x@y.zz"),
            external_id_indexes(&sealer, &acme, "x@y.zz"),
        );
        assert_ne!(email, id);
        assert!(!id.finds(None, None));
    }

    // rule: gate.customer.compared
    #[test]
    fn spellings_of_one_text_have_one_index() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let acme = who("acme", Mode::Test);
        let person = person("J\u{f6}rg@stra\u{df}e.example", "K\u{f6}ln 7");
        let stored = person.marks(&sealer, &acme);
        let by_fold = "JO\u{308}RG@STRASSE.EXAMPLE";
        assert_eq!(found(&stored, by_fold, "Ko\u{308}ln 7"), (true, true));
        assert_eq!(
            found(&stored, "jorg@strasse.example", "k\u{f6}ln 7"),
            (false, false)
        );
        // A row of an earlier version has only the indexes of what was written.
        let earlier = CustomerIndexes {
            email_compared: None,
            external_id_compared: None,
            ..stored
        };
        for (email, id) in [
            ("j\u{f6}rg@stra\u{df}e.example", "K\u{f6}ln 7"),
            ("Jo\u{308}rg@stra\u{df}e.example", "Ko\u{308}ln 7"),
        ] {
            assert_eq!(found(&earlier, email, id), (true, true), "{email}");
        }
        let at = Timestamp::from_millis(5).unwrap();
        let id = CustomerId::new(Mode::Test, at, &Sevens);
        let customer = Customer::new(id, person, at);
        let mut sealed = customer.seal(&acme, &sealer, &Sevens).unwrap();
        sealed.marks = earlier;
        assert_eq!(sealed.open(&acme, &sealer), Ok(customer));
        sealed.marks.email_compared = stored.external_id_compared;
        assert_eq!(sealed.open(&acme, &sealer), Err(CustomerDamage::Marks));
    }

    #[test]
    fn missing_forms_are_those_of_new_rows_without_unassigned_characters() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let acme = who("acme", Mode::Test);
        let mut person = person("J\u{f6}rg@stra\u{df}e.example", "K\u{f6}ln 7");
        let stored = person.marks(&sealer, &acme);
        let nothing = (Forms::default(), false);
        assert_eq!(person.missing_forms(&sealer, &acme, &stored), nothing);
        let mut earlier = CustomerIndexes {
            email_compared: None,
            ..stored
        };
        let mut expected = Forms {
            email: stored.email_compared,
            external_id: None,
        };
        let missing = person.missing_forms(&sealer, &acme, &earlier);
        assert_eq!(missing, (expected, false));
        earlier.external_id_compared = None;
        expected.external_id = stored.external_id_compared;
        let missing = person.missing_forms(&sealer, &acme, &earlier);
        assert_eq!(missing, (expected, false));
        // The form of an invisible character is final, and that of an unassigned one is not.
        person.email = "J\u{f6}\u{200b}rg@stra\u{df}e.example".to_owned();
        let missing = person.missing_forms(&sealer, &acme, &earlier);
        assert_eq!(missing, (expected, false));
        person.email.push('\u{378}');
        expected.email = None;
        let missing = person.missing_forms(&sealer, &acme, &earlier);
        assert_eq!(missing, (expected, true));
        person.external_id = None;
        let missing = person.missing_forms(&sealer, &acme, &earlier);
        assert_eq!(missing, (Forms::default(), true));
    }
}
