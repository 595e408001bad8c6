//! Identity of deposits: the operator credits each reference once, and a deposit address and a funding reference belong to one
//! partner of a mode.

use std::cmp::Ordering;
use std::fmt;

use kernel::address::account_of_key;
use partner_core::PartnerId;
use partner_core::tables::is_label;
use partner_core::text::{self, RefusedCharacter};

use crate::profile::{Network, PoolsProfile};

/// Maximum characters of a deposit's reference.
const REFERENCE_LENGTH: usize = 255;

/// Hexadecimal digits of a transaction's hash.
const HASH_DIGITS: usize = 64;

/// Why a text is not a reference of a deposit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceError {
    /// Blank, longer than 255 characters, or with white space at either end.
    Form,
    /// A character that readers do not see.
    Character(RefusedCharacter),
}

/// Parses the reference of a deposit, and returns the form that is stored: the text unchanged, except that the hash of a transaction
/// is written in lower case without `0x` in the reference of a crypto receipt.
pub fn parse_reference(text: &str, network: Option<Network>) -> Result<String, ReferenceError> {
    text::check(text).map_err(ReferenceError::Character)?;
    if !is_label(text, REFERENCE_LENGTH) {
        return Err(ReferenceError::Form);
    }
    let hash = network.and_then(|_| with_plain_hash(text));
    Ok(hash.unwrap_or_else(|| text.to_owned()))
}

/// The form in which two references of deposits are compared.
#[must_use]
pub fn compared_reference(reference: &str) -> String {
    let comparable = text::comparable(reference);
    with_plain_hash(&comparable).unwrap_or(comparable)
}

/// The text with the hash that it begins with in lower case and without `0x`; `None` if it begins with no hash of a transaction.
///
/// The index of an output may follow the hash, after a separator.
fn with_plain_hash(text: &str) -> Option<String> {
    let prefixes = ["0x", "0X"];
    let bare = prefixes
        .iter()
        .find_map(|prefix| text.strip_prefix(*prefix));
    let (hash, rest) = bare.unwrap_or(text).split_at_checked(HASH_DIGITS)?;
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_whole = !rest.starts_with(char::is_alphanumeric);
    (is_hash && is_whole).then(|| format!("{}{rest}", hash.to_ascii_lowercase()))
}

/// The funding reference of a partner without one of its own: its id in upper case, with `-` for `_`, which a bank transfer does not
/// carry.
#[must_use]
pub fn default_funding_reference(partner: &PartnerId) -> String {
    former_funding_reference(partner).replace('_', "-")
}

/// The default funding reference that an earlier version stored. It stays.
#[must_use]
pub fn former_funding_reference(partner: &PartnerId) -> String {
    partner.as_str().to_ascii_uppercase()
}

/// Separators that do not count when two funding references are compared. A bank's form may drop or replace them.
const SEPARATORS: [char; 10] = ['/', '-', '?', ':', '(', ')', '.', ',', '\'', '+'];

/// The characters of a funding reference that a SEPA transfer does not carry, each once.
#[must_use]
pub fn beyond_sepa(reference: &str) -> Vec<char> {
    let mut found = Vec::new();
    for character in reference.chars() {
        let is_carried = character.is_ascii_alphanumeric()
            || character == ' '
            || SEPARATORS.contains(&character);
        if !is_carried && !found.contains(&character) {
            found.push(character);
        }
    }
    found
}

kernel::closed_list! {
    /// The identifier of a deposit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ClaimKind {
        /// The address that crypto is sent to.
        Address = "address",
        /// The text that a bank transfer carries.
        Reference = "reference",
    }
}

impl ClaimKind {
    /// The key of the declarative file.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Address => "partners.pools.terms.crypto_deposit_address",
            Self::Reference => "partners.pools.funding_reference",
        }
    }
}

/// A deposit address or a funding reference. Two claims are equal if a deposit cannot tell them apart.
#[derive(Debug, Clone)]
pub struct DepositClaim {
    /// The kind of claim.
    pub kind: ClaimKind,
    /// The form in which two claims are compared. An address of an EVM network or TRON is `0x` and its 20 bytes, a reference is in
    /// upper case without spaces and separators, and any other address is unchanged.
    pub compared: String,
    /// The claim as the profile has it.
    pub written: String,
}

impl DepositClaim {
    /// The claim of an address.
    #[must_use]
    pub fn of_address(address: &str) -> Self {
        let compared = match account_of_key(address) {
            Some(bytes) => format!("0x{}", hex::encode(bytes)),
            None => address.to_owned(),
        };
        Self {
            kind: ClaimKind::Address,
            compared,
            written: address.to_owned(),
        }
    }

    /// The claim of a reference. Banks change the case of letters, and drop separators.
    #[must_use]
    pub fn of_reference(reference: &str) -> Self {
        let mut compared = text::comparable_in_any_case(reference).to_uppercase();
        compared.retain(|character| character != ' ' && !SEPARATORS.contains(&character));
        // A combining mark may follow another letter now.
        let compared = text::composed(&compared).into_owned();
        Self {
            kind: ClaimKind::Reference,
            compared,
            written: reference.to_owned(),
        }
    }

    /// Whether an equal claim has the same spelling.
    #[must_use]
    pub fn is_written_as(&self, other: &Self) -> bool {
        self == other && self.written == other.written
    }

    fn identity(&self) -> (ClaimKind, &str) {
        (self.kind, &self.compared)
    }
}

impl PartialEq for DepositClaim {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for DepositClaim {}

impl PartialOrd for DepositClaim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DepositClaim {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl fmt::Display for DepositClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ClaimKind::Address => write!(f, "deposit address {}", self.written),
            ClaimKind::Reference => write!(f, "funding reference {:?}", self.written),
        }
    }
}

impl PoolsProfile {
    /// What deposits of the partner are recognized by, each once: pools may share an address.
    #[must_use]
    pub fn deposit_claims(&self) -> Vec<DepositClaim> {
        let addresses = self.terms.values();
        let addresses = addresses.filter_map(|terms| terms.crypto_deposit_address.as_deref());
        let mut claims: Vec<_> = addresses.map(DepositClaim::of_address).collect();
        claims.push(DepositClaim::of_reference(&self.funding_reference));
        claims.sort();
        claims.dedup();
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "1b5bd2cf1f0e4e1f6c4c0d6a3a4a2d5a2f1d7f3f9f0c6f4e8d7b6a5948372615";

    // rule: cli.credit.once, text.refused-characters
    #[test]
    fn reference_is_refused_when_it_looks_like_another_one() {
        for good in ["wire-77", "wire 77", "Überweisung 7", &"x".repeat(255)] {
            assert_eq!(parse_reference(good, None).as_deref(), Ok(good));
        }
        for bad in [
            "",
            " ",
            "\u{a0}",
            " wire-77",
            "wire-77 ",
            "wire-77\u{a0}",
            "\u{3000}wire-77",
            &"x".repeat(256),
        ] {
            let refused = parse_reference(bad, None);
            assert_eq!(refused, Err(ReferenceError::Form), "{bad:?}");
        }
        for bad in [
            "wire-77\t",
            "wire-77\u{200b}",
            "\u{feff}wire-77",
            "wire\u{ad}-77",
            "\u{202a}wire-77",
            "wire\u{34f}-77",
            "wire\u{2028}77",
            "wire\u{e000}77",
            "wire\u{378}77",
        ] {
            let refused = parse_reference(bad, Some(Network::Tron));
            let by_character = matches!(refused, Err(ReferenceError::Character(_)));
            assert!(by_character, "{bad:?}: {refused:?}");
        }
    }

    // rule: cli.credit.hash
    #[test]
    fn hash_of_transaction_is_one_reference_in_every_spelling() {
        let upper = HASH.to_uppercase();
        for spelling in [
            HASH.to_owned(),
            format!("0x{HASH}"),
            format!("0X{upper}"),
            upper.clone(),
        ] {
            assert_eq!(compared_reference(&spelling), HASH);
            let receipt = parse_reference(&spelling, Some(Network::Ethereum));
            assert_eq!(receipt.as_deref(), Ok(HASH));
            // A fiat deposit is stored unchanged.
            let deposit = parse_reference(&spelling, None);
            assert_eq!(deposit, Ok(spelling));
        }
        for index in [":0", "-1", "#2", "/3", " 4", "(5)"] {
            let (one, other) = (format!("{HASH}{index}"), format!("0X{upper}{index}"));
            assert_eq!(compared_reference(&one), compared_reference(&other));
            assert_ne!(compared_reference(&one), HASH);
        }
        for other in [
            format!("{HASH}0"),
            format!("0x{}", HASH.split_at(2).1),
            format!("tx {upper}"),
            format!("{}g", upper.split_at(1).1),
            "0x".to_owned(),
            "ÄÖÜ".repeat(40),
        ] {
            assert_eq!(compared_reference(&other), other);
        }
    }

    // rule: text.compared
    #[test]
    fn references_are_compared_in_one_normal_form_with_their_case() {
        let composed = compared_reference("Überweisung");
        assert_eq!(composed, compared_reference("U\u{308}berweisung"));
        assert_ne!(composed, compared_reference("überweisung"));
    }

    // rule: apply.deposits-compared
    #[test]
    fn claims_are_equal_if_a_deposit_cannot_tell_them_apart() {
        let address = DepositClaim::of_address;
        let evm = "0x5cbdd86a2fa8dc4bddd8a8f69dba48572eec07fb";
        let tron = address("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8");
        assert_eq!(tron, address(evm));
        assert_eq!(tron.compared, evm);
        let upper = format!("0x{}", evm.trim_start_matches("0x").to_uppercase());
        assert_eq!(tron, address(&upper));
        let solana = address("E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJsxm");
        assert_ne!(solana, tron);
        assert_eq!(solana.compared, solana.written);
        let reference = DepositClaim::of_reference;
        for (one, other) in [
            ("ACME-7F3K", "ACME 7F3K"),
            ("ACME-7F3K", "acme/7f3k"),
            ("ACME-7F3K", "(A.C,M'E)+7?F:3K"),
            ("É-1", "é-1"),
            ("É-1", "E\u{301} 1"),
            ("É-1", "e-\u{301}1"),
            ("\u{1e60}\u{323}", "s.\u{307}-\u{323}"),
            ("Straße 1", "STRASSE1"),
            ("PEN-1", "PEN\u{34f}-1"),
            ("PEN-1", "PEN\u{2009}1"),
        ] {
            assert_eq!(reference(one), reference(other), "{one:?} {other:?}");
        }
        for (one, other) in [("A-1", "A_1"), ("A-1", "\u{410}-1"), ("A-11", "A-12")] {
            assert_ne!(reference(one), reference(other), "{one:?} {other:?}");
        }
        assert_eq!(reference("sharED").compared, "SHARED");
        let words = [tron, reference("Pen-1")].map(|claim| claim.to_string());
        assert_eq!(
            words,
            [
                "deposit address TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
                "funding reference \"Pen-1\""
            ]
        );
    }

    // rule: apply.default-reference, apply.sepa-warning
    #[test]
    fn default_reference_has_only_characters_of_a_transfer() {
        let partner = PartnerId::parse("acme_pay-2").unwrap();
        assert_eq!(default_funding_reference(&partner), "ACME-PAY-2");
        assert_eq!(former_funding_reference(&partner), "ACME_PAY-2");
        for carried in ["ACME-PAY-2", "Aa 0/-?:().,'+"] {
            assert!(beyond_sepa(carried).is_empty(), "{carried}");
        }
        let beyond = beyond_sepa("\u{c9}_1_\u{c9} \u{410}");
        assert_eq!(beyond, ['\u{c9}', '_', '\u{410}']);
    }
}
