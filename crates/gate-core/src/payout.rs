//! Where a hosted sale is paid out: the account that the user names, in the fields of the payout method's account form.
//!
//! A store keeps the account sealed, and erases it after the payment has ended. No response shows any part of it.

use std::collections::BTreeMap;

use iban::{Iban, IbanLike as _};
use kernel::Entropy;
use partner_core::Tenant;
use partner_core::sealing::{SealRefused, Sealed, Sealer};

use crate::rail::{RailId, payout_place};

/// Maximum characters of an unknown field's name in an error.
const LONGEST_SHOWN: usize = 140;
/// Minimum and maximum length of the holder's name, in characters.
const HOLDER_CHARS: std::ops::RangeInclusive<usize> = 2..=70;

kernel::closed_list! {
    /// The form of an account that a sale is paid to. The catalogue names the form of each payout method.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AccountForm {
        /// An account with an IBAN.
        Iban = "iban",
        /// An account of the United Kingdom.
        Uk = "uk",
        /// An account of the United States.
        Us = "us",
    }
}

impl AccountForm {
    /// The required fields.
    const fn fields(self) -> &'static [Field] {
        match self {
            Self::Iban => &IBAN,
            Self::Uk => &UK,
            Self::Us => &US,
        }
    }
}

/// The account of a payout: the fields of its form, checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Payout(BTreeMap<String, String>);

kernel::debug_as_text!(Payout, "Payout(…)");

/// What is wrong with the account. Its text names the field, and never repeats a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayoutError {
    /// The request names no account.
    #[error(
        "`payout`: expected the account that the sale is paid to, such as {{\"iban\": …, \"account_holder\": …}}"
    )]
    Missing,
    /// The payment is no sale.
    #[error("`payout`: expected only for a sale; omit it")]
    NotASale,
    /// The catalogue no longer offers the quote's method, or names no account form for it.
    #[error("`payout`: the quote's payout method is no longer offered; request another quote")]
    NotOffered,
    /// The form has no such field.
    #[error("`payout.{0}`: unknown field of this payout method")]
    Unknown(String),
    /// A field is absent or malformed.
    #[error("`payout.{field}`: expected {expected}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// A field of a form: its name, what it must be, and its check. The check returns the value as it is kept.
type Field = (&'static str, &'static str, fn(&str) -> Option<String>);

/// The optional field of every form.
const HOLDER: Field = (
    "account_holder",
    "the name of the account's holder, 2 to 70 characters, or no such field",
    holder,
);
const IBAN: [Field; 1] = [(
    "iban",
    "an IBAN with valid check digits, such as DE89 3704 0044 0532 0130 00",
    iban_of,
)];
const UK: [Field; 2] = [
    ("sort_code", "6 digits without hyphens", |text| {
        digits(text, 6..=6)
    }),
    ("account_number", "8 digits", |text| digits(text, 8..=8)),
];
const US: [Field; 3] = [
    (
        "routing_number",
        "9 digits with a valid check digit",
        routing_number,
    ),
    ("account_number", "4 to 17 digits", |text| {
        digits(text, 4..=17)
    }),
    ("account_type", "checking or savings", account_type),
];

impl Payout {
    /// Checks the fields of an account of this form.
    ///
    /// # Errors
    /// The first [`PayoutError`].
    pub fn parse(form: AccountForm, given: &BTreeMap<String, String>) -> Result<Self, PayoutError> {
        let required = form.fields();
        let known = || required.iter().chain([&HOLDER]);
        let unknown = |name: &&String| known().all(|(field, ..)| field != name);
        if let Some(name) = given.keys().find(unknown) {
            let shown = name.chars().take(LONGEST_SHOWN).collect();
            return Err(PayoutError::Unknown(shown));
        }
        let is_expected = |(field, ..): &&Field| *field != HOLDER.0 || given.contains_key(HOLDER.0);
        let checked = known().filter(is_expected).map(|(field, expected, check)| {
            let error = PayoutError::Field { field, expected };
            let value = given.get(*field).and_then(|text| check(text));
            Ok(((*field).to_owned(), value.ok_or(error)?))
        });
        checked.collect::<Result<_, _>>().map(Self)
    }

    /// The fields, for the rail.
    #[must_use]
    pub const fn fields(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Seals the account for the row of its record.
    pub fn seal(
        &self,
        who: &Tenant,
        id: RailId,
        sealer: &Sealer,
        entropy: &dyn Entropy,
    ) -> Result<Sealed, SealRefused> {
        let written = serde_json::json!(self.0).to_string();
        sealer.seal(&payout_place(who, id.id()), written.as_bytes(), entropy)
    }

    /// Opens a sealed account. `None` if the bytes are damaged or belong to another record.
    #[must_use]
    pub fn open(who: &Tenant, id: RailId, sealed: &Sealed, sealer: &Sealer) -> Option<Self> {
        let opened = sealer.open(&payout_place(who, id.id()), sealed).ok()?;
        serde_json::from_slice(&opened).ok().map(Self)
    }
}

fn holder(text: &str) -> Option<String> {
    let text = text.trim();
    let is_printable = !text.chars().any(char::is_control);
    (HOLDER_CHARS.contains(&text.chars().count()) && is_printable).then(|| text.to_owned())
}

/// An IBAN without spaces. Its country must be one whose IBANs the library knows.
pub(crate) fn iban_of(text: &str) -> Option<String> {
    let iban = text.trim().to_uppercase().parse::<Iban>().ok()?;
    Some(iban.electronic_str().to_owned())
}

fn digits(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<String> {
    let fits = length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.to_owned())
}

/// The weighted sum of a routing number's digits is a multiple of 10.
fn routing_number(text: &str) -> Option<String> {
    let kept = digits(text, 9..=9)?;
    let weights = [3_u32, 7, 1].into_iter().cycle();
    let weighted = kept.chars().filter_map(|c| c.to_digit(10)).zip(weights);
    let sum: u32 = weighted
        .map(|(digit, weight)| digit.saturating_mul(weight))
        .sum();
    (sum.is_multiple_of(10) && sum > 0).then_some(kept)
}

fn account_type(text: &str) -> Option<String> {
    matches!(text, "checking" | "savings").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use kernel::Mode;
    use partner_core::PartnerId;
    use partner_core::sealing::MasterKey;

    use super::*;
    use crate::rail::RailKind;

    fn fields(given: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        given.iter().map(owned).collect()
    }

    struct Ones;

    impl Entropy for Ones {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(1);
        }
    }

    fn parsed(form: AccountForm, given: &[(&str, &str)]) -> Result<Payout, PayoutError> {
        Payout::parse(form, &fields(given))
    }

    const IBAN: (&str, &str) = ("iban", "DE89370400440532013000");
    const SORT_CODE: (&str, &str) = ("sort_code", "123456");
    const UK_NUMBER: (&str, &str) = ("account_number", "12345678");
    const ROUTING: (&str, &str) = ("routing_number", "021000021");
    const US_NUMBER: (&str, &str) = ("account_number", "1234");
    const TYPE: (&str, &str) = ("account_type", "checking");

    // rule: gate.payment.payout-forms
    #[test]
    fn each_form_has_its_fields() {
        let holder = ("account_holder", "Erika Mustermann");
        for (form, account) in [
            (AccountForm::Iban, &[IBAN][..]),
            (AccountForm::Uk, &[SORT_CODE, UK_NUMBER]),
            (AccountForm::Us, &[ROUTING, US_NUMBER, TYPE]),
        ] {
            let kept = parsed(form, account).unwrap();
            assert_eq!(kept.fields(), &fields(account), "{form:?}");
            let held = [account, &[holder]].concat();
            let kept = parsed(form, &held).unwrap();
            assert_eq!(kept.fields(), &fields(&held), "{form:?}");
            for (at, (absent, _)) in account.iter().enumerate() {
                let mut without = held.clone();
                without.remove(at);
                let error = parsed(form, &without).unwrap_err().to_string();
                assert!(error.starts_with(&format!("`payout.{absent}`")), "{error}");
            }
            assert_eq!(AccountForm::parse(form.as_str()), Some(form));
        }
        let written = [
            ("iban", "de89 3704 0044 0532 0130 00"),
            ("account_holder", " Erika Mustermann "),
        ];
        let kept = parsed(AccountForm::Iban, &written).unwrap();
        assert_eq!(kept.fields(), &fields(&[IBAN, holder]));
        let savings = [ROUTING, US_NUMBER, ("account_type", "savings")];
        assert!(parsed(AccountForm::Us, &savings).is_ok());
        assert_eq!(AccountForm::parse("sepa"), None);
    }

    // rule: gate.payment.payout-forms
    #[test]
    fn each_bad_field_is_named_without_its_value() {
        let accounts = [
            (AccountForm::Iban, &[IBAN][..]),
            (AccountForm::Uk, &[SORT_CODE, UK_NUMBER]),
            (AccountForm::Us, &[ROUTING, US_NUMBER, TYPE]),
        ];
        let long = "x".repeat(71);
        for (form, field, wrong) in [
            (0, "iban", "DE00370400440532013000"),
            // Valid check digits, and a country without IBANs.
            (0, "iban", "US88370400440532013000"),
            (0, "iban", "DE8937040044053201300"),
            (0, "iban", ""),
            (0, "bic", "COBADEFF"),
            (0, "account_number", "12345678"),
            (0, "account_holder", " E "),
            (0, "account_holder", &long),
            (0, "account_holder", "Erika\u{7}Mustermann"),
            (1, "sort_code", "12-34-56"),
            (1, "sort_code", "12345"),
            (1, "account_number", "1234567"),
            (1, "account_number", "1234 5678"),
            (1, "iban", "DE89370400440532013000"),
            (2, "routing_number", "021000022"),
            (2, "routing_number", "000000000"),
            (2, "account_number", "123"),
            (2, "account_number", "123456789012345678"),
            (2, "account_type", "Checking"),
            (2, "sort_code", "123456"),
        ] {
            let (form, account) = accounts[form];
            let mut given = fields(account);
            given.insert(field.to_owned(), wrong.to_owned());
            let error = Payout::parse(form, &given).unwrap_err().to_string();
            let expected = format!("`payout.{field}`: ");
            assert!(error.starts_with(&expected), "{field} {wrong}: {error}");
            assert!(wrong.len() < 2 || !error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn sealed_account_opens_only_for_its_record() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let who = Tenant {
            mode: Mode::Test,
            partner: PartnerId::parse("acme").unwrap(),
        };
        let id = |text| RailId::parse(RailKind::PayOut, text).unwrap();
        let own = id("po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK");
        let other = id("po_test_01KSFVT4Z2V6B9C1D3F5G7H8JM");
        let payout = parsed(AccountForm::Iban, &[IBAN]).unwrap();
        assert_eq!(format!("{payout:?}"), "Payout(…)");
        let sealed = payout.seal(&who, own, &sealer, &Ones).unwrap();
        assert_eq!(Payout::open(&who, own, &sealed, &sealer), Some(payout));
        assert_eq!(Payout::open(&who, other, &sealed, &sealer), None);
    }
}
