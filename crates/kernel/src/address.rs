//! Addresses that money is sent to. Each form is validated with the check that its chain offers, so that a typing error is found
//! before anything is sent.

mod bitcoin;
mod contracts;

use std::fmt;

use sha2::{Digest as _, Sha256};
use sha3::Keccak256;

pub use contracts::asset_of_contract;

/// An EVM address as the partner wrote it: `0x` and 40 hexadecimal digits, never one of which no one has the key. A mixed-case address
/// has passed the EIP-55 checksum. An address in one case has no checksum.
#[derive(Clone, PartialEq, Eq)]
pub struct EvmAddress(String);

/// The form of the addresses of a network. Each form has a check of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressForm {
    /// An EVM network.
    Evm,
    Tron,
    Solana,
    /// Bitcoin's main network.
    Bitcoin,
}

impl AddressForm {
    /// The form of a chain's addresses. `None` if Penstock cannot check addresses of the chain.
    #[must_use]
    pub fn of_chain(chain: &str, is_evm: bool) -> Option<Self> {
        match chain {
            _ if is_evm => Some(Self::Evm),
            "tron" => Some(Self::Tron),
            "solana" => Some(Self::Solana),
            "bitcoin" => Some(Self::Bitcoin),
            _ => None,
        }
    }

    /// Checks an address with the check that the form offers.
    pub fn check(self, text: &str) -> Result<(), AddressError> {
        match self {
            Self::Evm => EvmAddress::parse(text).map(drop),
            Self::Tron => DeliveryAddress::tron(text).map(drop),
            Self::Solana => DeliveryAddress::solana(text).map(drop),
            Self::Bitcoin => bitcoin::check(text),
        }
    }
}

/// Why a text is not an address of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not `0x` and 40 hexadecimal digits.
    #[error("expected an EVM address: 0x and 40 hexadecimal digits")]
    Invalid,
    /// A mixed-case address whose case does not match the EIP-55 checksum.
    #[error("the address is mixed-case and fails its EIP-55 checksum")]
    Checksum,
    /// Not a TRON address.
    #[error("expected a TRON address: T and 33 characters in base58")]
    NotTron,
    /// A TRON address whose checksum is wrong.
    #[error("the TRON address fails its checksum")]
    TronChecksum,
    /// Not a Solana address.
    #[error("expected a Solana address: 32 bytes in base58")]
    NotSolana,
    /// Not an address of Bitcoin's main network.
    #[error(
        "expected an address of Bitcoin's main network: base58 that starts with 1 or 3, or bech32 that starts with bc1"
    )]
    NotBitcoin,
    /// A Bitcoin address whose checksum is wrong.
    #[error("the Bitcoin address fails its checksum")]
    BitcoinChecksum,
    /// An address of zeros, or on an EVM network of a precompiled contract or of burned coins.
    #[error("no one has the key of this address; coins sent to it are lost")]
    Nobodys,
}

impl AddressError {
    /// Whether only the checksum is wrong.
    #[must_use]
    pub const fn is_checksum(self) -> bool {
        match self {
            Self::Checksum | Self::TronChecksum | Self::BitcoinChecksum => true,
            Self::Invalid | Self::NotTron | Self::NotSolana | Self::NotBitcoin | Self::Nobodys => {
                false
            }
        }
    }
}

/// An address for the delivery of crypto, as the partner wrote it.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryAddress(String);

impl DeliveryAddress {
    /// Parses a TRON address.
    ///
    /// # Errors
    /// [`AddressError::NotTron`], [`AddressError::TronChecksum`], [`AddressError::Nobodys`].
    pub fn tron(text: &str) -> Result<Self, AddressError> {
        if !is_tron_shaped(text) {
            return Err(AddressError::NotTron);
        }
        tron(text).map_err(|error| error.of_network(AddressError::NotTron))?;
        Ok(Self(text.to_owned()))
    }

    /// Parses a Solana address.
    ///
    /// # Errors
    /// [`AddressError::NotSolana`], [`AddressError::Nobodys`].
    pub fn solana(text: &str) -> Result<Self, AddressError> {
        solana(text).map_err(|error| error.of_network(AddressError::NotSolana))?;
        Ok(Self(text.to_owned()))
    }

    /// Parses a stored address of any form. One of which no one has the key stays readable.
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        match DepositAddress::parse(text) {
            Ok(_) | Err(DepositError::Address(AddressError::Nobodys)) => {
                Some(Self(text.to_owned()))
            }
            Err(DepositError::Address(_) | DepositError::Unknown) => None,
        }
    }

    /// The address as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<EvmAddress> for DeliveryAddress {
    fn from(address: EvmAddress) -> Self {
        Self(address.0)
    }
}

impl fmt::Debug for DeliveryAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl EvmAddress {
    /// Parses an EVM address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let digits = text.strip_prefix("0x").ok_or(AddressError::Invalid)?;
        let mut bytes = [0_u8; 20];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| AddressError::Invalid)?;
        if is_nobodys(&bytes) {
            return Err(AddressError::Nobodys);
        }
        let mixed = digits.bytes().any(|byte| byte.is_ascii_lowercase())
            && digits.bytes().any(|byte| byte.is_ascii_uppercase());
        if mixed && digits != checksummed(&bytes) {
            return Err(AddressError::Checksum);
        }
        Ok(Self(text.to_owned()))
    }

    /// The address as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for EvmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether no one has the key of an account of an EVM network: a number below 0x0100, which is zero or a precompiled contract, or
/// `0x000000000000000000000000000000000000dEaD`, where coins are burned.
fn is_nobodys(account: &[u8; 20]) -> bool {
    let [upper @ .., high, low] = account;
    let is_known = matches!((*high, *low), (0, _) | (0xde, 0xad));
    is_known && upper.iter().all(|byte| *byte == 0)
}

/// The 40 digits of an address in EIP-55 mixed case. A letter is upper case if the digit at the same place in the Keccak-256 hash
/// of the lower-case digits is 8 or more.
fn checksummed(address: &[u8; 20]) -> String {
    let digits = hex::encode(address);
    let hash = hex::encode(Keccak256::digest(&digits));
    let pairs = digits.chars().zip(hash.bytes());
    pairs
        .map(|(digit, nibble)| {
            if nibble >= b'8' {
                digit.to_ascii_uppercase()
            } else {
                digit
            }
        })
        .collect()
}

/// A deposit address, to which a partner sends crypto, on an EVM network, TRON or Solana.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepositAddress(String);

/// Why a text is not a deposit address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DepositError {
    /// The text has the form of a network, but nothing can be sent there.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The text matches no form.
    #[error(
        "expected an address of an EVM network (0x and 40 hexadecimal digits), of TRON (T and 33 characters), or of Solana (32 bytes in base58)"
    )]
    Unknown,
}

impl DepositError {
    /// The error of a text that must be an address of one network; `other` if the text matches no form.
    fn of_network(self, other: AddressError) -> AddressError {
        match self {
            Self::Address(error) => error,
            Self::Unknown => other,
        }
    }
}

/// Length of the longest address of any form, in characters. Longer texts are not decoded.
const MAX_CHARS: usize = 44;
/// The first byte of a decoded TRON address, the characters of its text, and the bytes of its checksum.
const TRON_PREFIX: u8 = 0x41;
const TRON_LENGTH: usize = 34;
const CHECKSUM_BYTES: usize = 4;

impl DepositAddress {
    /// Parses an address. The form selects the network; all EVM networks share one form.
    pub fn parse(text: &str) -> Result<Self, DepositError> {
        if text.starts_with("0x") || text.starts_with("0X") {
            EvmAddress::parse(text)?;
        } else if is_tron_shaped(text) {
            tron(text)?;
        } else {
            solana(text)?;
        }
        Ok(Self(text.to_owned()))
    }

    /// The address as written.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

/// The 20 bytes that an EVM or TRON address means, in any spelling: addresses of one key on both networks have the same bytes.
/// `None` for an address of any other form.
#[must_use]
pub fn account_of_key(text: &str) -> Option<[u8; 20]> {
    if let Some(digits) = text.strip_prefix("0x") {
        let mut bytes = [0; 20];
        hex::decode_to_slice(digits, &mut bytes).ok()?;
        return Some(bytes);
    }
    if !is_tron_shaped(text) {
        return None;
    }
    let decoded = base58(text).ok()?;
    match body_of_base58check(&decoded)?.split_first() {
        Some((&TRON_PREFIX, key)) => key.try_into().ok(),
        _ => None,
    }
}

fn is_tron_shaped(text: &str) -> bool {
    text.starts_with('T') && text.len() == TRON_LENGTH
}

/// Validates base58check: a prefix, 20 bytes, and the first bytes of a digest over both.
fn tron(text: &str) -> Result<(), DepositError> {
    let decoded = base58(text)?;
    let Some(body) = body_of_base58check(&decoded) else {
        return Err(AddressError::TronChecksum.into());
    };
    match body.split_first() {
        Some((&TRON_PREFIX, key)) if key.len() == 20 => Ok(somebodys(key)?),
        _ => Err(DepositError::Unknown),
    }
}

/// The bytes before the checksum of base58check. `None` if the checksum is wrong.
fn body_of_base58check(decoded: &[u8]) -> Option<&[u8]> {
    let at = decoded.len().checked_sub(CHECKSUM_BYTES)?;
    let (body, checksum) = decoded.split_at_checked(at)?;
    let digest = Sha256::digest(Sha256::digest(body));
    digest.starts_with(checksum).then_some(body)
}

/// Validates a public key. Solana has no checksum, so only the length is checked.
fn solana(text: &str) -> Result<(), DepositError> {
    let key = base58(text)?;
    if key.len() != 32 {
        return Err(DepositError::Unknown);
    }
    Ok(somebodys(&key)?)
}

fn base58(text: &str) -> Result<Vec<u8>, DepositError> {
    if text.len() > MAX_CHARS {
        return Err(DepositError::Unknown);
    }
    let decoded = bs58::decode(text).into_vec();
    decoded.map_err(|_| DepositError::Unknown)
}

fn somebodys(key: &[u8]) -> Result<(), AddressError> {
    if key.iter().all(|byte| *byte == 0) {
        return Err(AddressError::Nobodys);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIXED: [&str; 4] = [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ];

    // rule: pools.quote.address-checksum
    #[test]
    fn evm_address_parses_vectors_of_eip_55() {
        let one_case = [
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
            "0xde709f2102306220921060314715629080e2fb77",
            "0x27b1fdb04752bbc536007a920d24acb045561c26",
        ];
        for text in MIXED.into_iter().chain(one_case) {
            assert_eq!(EvmAddress::parse(text).unwrap().as_str(), text);
        }
    }

    // rule: pools.quote.address-form
    #[test]
    fn evm_address_parser_refuses_other_texts() {
        for bad in [
            "",
            "0x",
            &MIXED[0][2..],
            &MIXED[0][..41],
            &format!("{}0", MIXED[0]),
            &MIXED[0].replace("0x", "0X"),
            &MIXED[0].replace('5', "g"),
            &format!(" {}", MIXED[0]),
            "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
        ] {
            assert_eq!(EvmAddress::parse(bad), Err(AddressError::Invalid), "{bad}");
        }
    }

    // rule: pools.quote.address-nobodys, gate.payment.address-nobodys
    #[test]
    fn evm_address_of_which_no_one_has_the_key_is_refused_and_stays_readable() {
        let zeros = |digits: &str| format!("0x{digits:0>40}");
        for nobodys in ["0", "1", "0a", "0A", "ff", "dead", "dEaD", "DEAD", "Dead"] {
            let text = zeros(nobodys);
            let refused = Err(AddressError::Nobodys);
            assert_eq!(EvmAddress::parse(&text), refused, "{text}");
            let stored = DeliveryAddress::stored(&text).unwrap();
            assert_eq!(stored.as_str(), text);
        }
        for other in ["100", "1010", "deae", "1dead", "dead0000"] {
            let text = zeros(other);
            assert_eq!(EvmAddress::parse(&text).unwrap().as_str(), text);
        }
    }

    // rule: apply.deposit-address
    #[test]
    fn deposit_address_parses_every_form() {
        for good in [
            MIXED[0],
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77",
            "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE",
            "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
            "E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJsxm",
        ] {
            let read = DepositAddress::parse(good).map(DepositAddress::into_text);
            assert_eq!(read.as_deref(), Ok(good));
        }
    }

    // rule: apply.deposit-address
    #[test]
    fn deposit_address_parser_finds_typing_errors() {
        use DepositError as F;
        let zero = format!("0x{}", "0".repeat(40));
        for (bad, error) in [
            (
                "0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
                F::Address(AddressError::Checksum),
            ),
            (&zero, F::Address(AddressError::Nobodys)),
            ("0x5290", F::Address(AddressError::Invalid)),
            (
                "0X52908400098527886E0F7030069857D2E4169EE7",
                F::Address(AddressError::Invalid),
            ),
            (
                "TJRabPrwbZy45sbavfcjinPJC18kjpRTv9",
                F::Address(AddressError::TronChecksum),
            ),
            ("TJRabPrwbZy45sbavfcjinPJC18kjpRT08", F::Unknown),
            (
                "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
                F::Address(AddressError::Nobodys),
            ),
            (
                "11111111111111111111111111111111",
                F::Address(AddressError::Nobodys),
            ),
            ("E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJs", F::Unknown),
            ("52908400098527886E0F7030069857D2E4169EE7", F::Unknown),
            ("", F::Unknown),
            ("tronaddress", F::Unknown),
            (&"T".repeat(200), F::Unknown),
        ] {
            assert_eq!(DepositAddress::parse(bad), Err(error), "{bad}");
        }
    }

    const TRON: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
    const SOLANA: &str = "E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJsxm";

    // rule: apply.deposits-compared
    #[test]
    fn evm_and_tron_addresses_of_one_key_mean_the_same_bytes() {
        let key = "5cbdd86a2fa8dc4bddd8a8f69dba48572eec07fb";
        let bytes: [u8; 20] = hex::decode(key).unwrap().try_into().unwrap();
        for spelling in [
            TRON.to_owned(),
            format!("0x{key}"),
            format!("0x{}", key.to_uppercase()),
        ] {
            assert_eq!(account_of_key(&spelling), Some(bytes), "{spelling}");
        }
        assert_ne!(account_of_key(MIXED[0]), Some(bytes));
        for other in [
            SOLANA,
            BITCOIN,
            key,
            "0x",
            "T",
            "",
            &TRON.replace("v8", "v9"),
        ] {
            assert_eq!(account_of_key(other), None, "{other}");
        }
    }

    // rule: pools.quote.native-addresses
    #[test]
    fn delivery_address_parser_refuses_addresses_of_other_chains() {
        type Reader = fn(&str) -> Result<DeliveryAddress, AddressError>;
        let readers: [(Reader, &str, AddressError); 2] = [
            (DeliveryAddress::tron, TRON, AddressError::NotTron),
            (DeliveryAddress::solana, SOLANA, AddressError::NotSolana),
        ];
        let zeros = [
            "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
            "11111111111111111111111111111111",
        ];
        for ((read, own, error), zero) in readers.into_iter().zip(zeros) {
            let address = read(own).unwrap();
            assert_eq!(address.as_str(), own);
            assert_eq!(DeliveryAddress::stored(own), Some(address));
            assert_eq!(read(zero), Err(AddressError::Nobodys), "{zero}");
            let foreign = [TRON, SOLANA, MIXED[0], ""].into_iter().chain(zeros);
            for foreign in foreign.filter(|foreign| ![own, zero].contains(foreign)) {
                assert_eq!(read(foreign), Err(error), "{foreign}");
            }
        }
        let slip = TRON.replace("v8", "v9");
        let broken = Err(AddressError::TronChecksum);
        assert_eq!(DeliveryAddress::tron(&slip), broken);
        assert_eq!(DeliveryAddress::stored(&slip), None);
        let undecodable = TRON.replace('J', "0");
        let refused = Err(AddressError::NotTron);
        assert_eq!(DeliveryAddress::tron(&undecodable), refused);
    }

    const BITCOIN: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";

    // rule: gate.payment.address
    #[test]
    fn each_form_accepts_only_its_own_addresses() {
        use AddressForm::{Bitcoin, Evm, Solana, Tron};
        let forms = [Evm, Tron, Solana, Bitcoin];
        let addresses = [MIXED[0], TRON, SOLANA, BITCOIN];
        for form in forms {
            for (own, text) in forms.into_iter().zip(addresses) {
                let is_own = form == own;
                assert_eq!(form.check(text).is_ok(), is_own, "{form:?} {text}");
            }
        }
        for (chain, is_evm, form) in [
            ("ethereum", true, Some(Evm)),
            ("anything", true, Some(Evm)),
            ("tron", false, Some(Tron)),
            ("solana", false, Some(Solana)),
            ("bitcoin", false, Some(Bitcoin)),
            ("Bitcoin", false, None),
            ("litecoin", false, None),
            ("ethereum", false, None),
        ] {
            assert_eq!(AddressForm::of_chain(chain, is_evm), form, "{chain}");
        }
    }

    proptest! {
        // rule: pools.quote.address-checksum, pools.quote.address-form
        #[test]
        fn evm_address_parses_with_checksum_or_in_one_case(bytes in any::<[u8; 20]>()) {
            prop_assume!(!is_nobodys(&bytes));
            let digits = checksummed(&bytes);
            let mixed = format!("0x{digits}");
            for text in [mixed.clone(), mixed.to_lowercase(), format!("0x{}", digits.to_uppercase())] {
                let address = EvmAddress::parse(&text).unwrap();
                prop_assert_eq!(address.as_str(), text);
            }
        }

        // rule: pools.quote.address-checksum
        #[test]
        fn flipped_letter_breaks_checksum(bytes in any::<[u8; 20]>(), which in any::<prop::sample::Index>()) {
            prop_assume!(!is_nobodys(&bytes));
            let mut text = format!("0x{}", checksummed(&bytes)).into_bytes();
            let letters: Vec<usize> = (2..42).filter(|at| text[*at].is_ascii_alphabetic()).collect();
            prop_assume!(!letters.is_empty());
            text[letters[which.index(letters.len())]] ^= 0x20;
            let text = String::from_utf8(text).unwrap();
            // A flipped letter may leave all letters in one case, which has no checksum.
            let one_case = text[2..] == text[2..].to_lowercase() || text[2..] == text[2..].to_uppercase();
            let expected = if one_case { Ok(EvmAddress(text.clone())) } else { Err(AddressError::Checksum) };
            prop_assert_eq!(EvmAddress::parse(&text), expected);
        }

        // rule: pools.quote.address-form
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in ".{0,60}|0x[0-9a-fA-F]{38,42}|bc1[02-9ac-hj-np-z]{6,90}") {
            let _outcome = DepositAddress::parse(&text);
            let _bitcoin = AddressForm::Bitcoin.check(&text);
            if let Ok(address) = EvmAddress::parse(&text) {
                prop_assert_eq!(address.as_str(), text);
            }
        }
    }
}
