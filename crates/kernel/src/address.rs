//! Addresses that money is sent to: each form with the check its chain gives it, so that a slip of
//! one letter is found before anything is sent.

use std::fmt;

use sha2::{Digest as _, Sha256};
use sha3::Keccak256;

/// An EVM address as the partner wrote it: `0x` and 40 hexadecimal digits, never zero. Mixed
/// case has passed the EIP-55 checksum; one case alone passes on format.
#[derive(Clone, PartialEq, Eq)]
pub struct EvmAddress(String);

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not `0x` and 40 hexadecimal digits, or the zero address.
    #[error("expected an EVM address: 0x and 40 hexadecimal digits, not the zero address")]
    Invalid,
    /// Mixed case that does not carry the EIP-55 checksum.
    #[error("the address is mixed-case and fails its EIP-55 checksum")]
    Checksum,
    /// Not a TRON address, or the zero address.
    #[error("expected a TRON address: T and 33 characters in base58, not the zero address")]
    NotTron,
    /// A TRON address with another checksum.
    #[error("the TRON address fails its checksum")]
    TronChecksum,
    /// Not a Solana address, or the zero address.
    #[error("expected a Solana address: 32 bytes in base58, not the zero address")]
    NotSolana,
}

impl AddressError {
    /// Is only the checksum wrong?
    #[must_use]
    pub const fn is_checksum(self) -> bool {
        match self {
            Self::Checksum | Self::TronChecksum => true,
            Self::Invalid | Self::NotTron | Self::NotSolana => false,
        }
    }
}

/// An address that crypto is delivered to, as the partner wrote it.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryAddress(String);

impl DeliveryAddress {
    /// Reads an address of TRON.
    ///
    /// # Errors
    /// [`AddressError::NotTron`], [`AddressError::TronChecksum`].
    pub fn tron(text: &str) -> Result<Self, AddressError> {
        if !is_tron_shaped(text) {
            return Err(AddressError::NotTron);
        }
        match tron(text) {
            Ok(()) => Ok(Self(text.to_owned())),
            Err(DepositError::TronChecksum) => Err(AddressError::TronChecksum),
            Err(_) => Err(AddressError::NotTron),
        }
    }

    /// Reads an address of Solana.
    ///
    /// # Errors
    /// [`AddressError::NotSolana`].
    pub fn solana(text: &str) -> Result<Self, AddressError> {
        match solana(text) {
            Ok(()) => Ok(Self(text.to_owned())),
            Err(_) => Err(AddressError::NotSolana),
        }
    }

    /// Reads an address of any form, as a row has it.
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        let address = DepositAddress::parse(text).ok()?;
        Some(Self(address.into_text()))
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
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let digits = text.strip_prefix("0x").ok_or(AddressError::Invalid)?;
        let mut bytes = [0_u8; 20];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| AddressError::Invalid)?;
        if bytes == [0; 20] {
            return Err(AddressError::Invalid);
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

/// The 40 digits of an address in the mixed case of EIP-55: a letter is upper case if the digit of the Keccak-256 hash of the
/// lower-case digits at its place is 8 or more.
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

/// An address that a partner sends crypto to: of an EVM network, of TRON, or of Solana.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepositAddress(String);

/// Why a text is no deposit address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DepositError {
    /// It begins as an EVM address does, and is none.
    #[error(transparent)]
    Evm(#[from] AddressError),
    /// It has the length of a TRON address, and another checksum.
    #[error("the TRON address fails its checksum")]
    TronChecksum,
    /// Nobody has its key.
    #[error("this address belongs to nobody: what is sent there is lost")]
    Nobodys,
    /// None of the forms.
    #[error(
        "expected an address of an EVM network (0x and 40 hexadecimal digits), of TRON (T and 33 characters), or of Solana (32 bytes in base58)"
    )]
    Unknown,
}

/// The longest address of any form; nothing longer is decoded.
const LONGEST: usize = 44;
/// What a TRON address says before its 20 bytes, and how long its checksum is.
const TRON_PREFIX: u8 = 0x41;
const TRON_LENGTH: usize = 34;
const CHECKSUM: usize = 4;

impl DepositAddress {
    /// Reads an address. Its form tells the network: EVM networks share theirs.
    ///
    /// # Errors
    /// [`DepositError`].
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

fn is_tron_shaped(text: &str) -> bool {
    text.starts_with('T') && text.len() == TRON_LENGTH
}

/// A prefix, 20 bytes, and the first of a digest over both: base58check.
fn tron(text: &str) -> Result<(), DepositError> {
    let decoded = base58(text)?;
    let at = decoded.len().saturating_sub(CHECKSUM);
    let (body, checksum) = decoded.split_at_checked(at).ok_or(DepositError::Unknown)?;
    let digest = Sha256::digest(Sha256::digest(body));
    if !digest.starts_with(checksum) {
        return Err(DepositError::TronChecksum);
    }
    match body.split_first() {
        Some((&TRON_PREFIX, key)) if key.len() == 20 => somebodys(key),
        _ => Err(DepositError::Unknown),
    }
}

/// A public key: no checksum, so only its length tells a slip.
fn solana(text: &str) -> Result<(), DepositError> {
    let key = base58(text)?;
    if key.len() != 32 {
        return Err(DepositError::Unknown);
    }
    somebodys(&key)
}

fn base58(text: &str) -> Result<Vec<u8>, DepositError> {
    if text.len() > LONGEST {
        return Err(DepositError::Unknown);
    }
    let decoded = bs58::decode(text).into_vec();
    decoded.map_err(|_| DepositError::Unknown)
}

fn somebodys(key: &[u8]) -> Result<(), DepositError> {
    if key.iter().all(|byte| *byte == 0) {
        return Err(DepositError::Nobodys);
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
    fn takes_the_vectors_of_the_proposal() {
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

    // rule: pools.quote.address-form, pools.quote.address-zero
    #[test]
    fn refuses_what_is_no_address() {
        let zero = format!("0x{}", "0".repeat(40));
        for bad in [
            "",
            "0x",
            &zero,
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

    // rule: apply.deposit-address
    #[test]
    fn a_deposit_address_has_a_form_and_passes_its_check() {
        for good in [
            MIXED[0],
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77",
            "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
            "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
            "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
        ] {
            let read = DepositAddress::parse(good).map(DepositAddress::into_text);
            assert_eq!(read.as_deref(), Ok(good));
        }
    }

    // rule: apply.deposit-address
    #[test]
    fn a_slip_in_a_deposit_address_is_found() {
        use DepositError as F;
        let zero = format!("0x{}", "0".repeat(40));
        for (bad, fault) in [
            (
                "0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
                F::Evm(AddressError::Checksum),
            ),
            (&zero, F::Evm(AddressError::Invalid)),
            ("0x5290", F::Evm(AddressError::Invalid)),
            (
                "0X52908400098527886E0F7030069857D2E4169EE7",
                F::Evm(AddressError::Invalid),
            ),
            ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u", F::TronChecksum),
            ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj0t", F::Unknown),
            ("T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", F::Nobodys),
            ("11111111111111111111111111111111", F::Nobodys),
            ("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTD", F::Unknown),
            ("52908400098527886E0F7030069857D2E4169EE7", F::Unknown),
            ("", F::Unknown),
            ("tronaddress", F::Unknown),
            (&"T".repeat(200), F::Unknown),
        ] {
            assert_eq!(DepositAddress::parse(bad), Err(fault), "{bad}");
        }
    }

    const TRON: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
    const SOLANA: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

    // rule: pools.quote.native-addresses
    #[test]
    fn delivery_address_is_of_its_chain() {
        type Reader = fn(&str) -> Result<DeliveryAddress, AddressError>;
        let readers: [(Reader, &str, AddressError); 2] = [
            (DeliveryAddress::tron, TRON, AddressError::NotTron),
            (DeliveryAddress::solana, SOLANA, AddressError::NotSolana),
        ];
        let zero = [
            "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
            "11111111111111111111111111111111",
        ];
        for (read, own, fault) in readers {
            let address = read(own).unwrap();
            assert_eq!(address.as_str(), own);
            assert_eq!(DeliveryAddress::stored(own), Some(address));
            let foreign = [TRON, SOLANA, MIXED[0], ""].into_iter().chain(zero);
            for foreign in foreign.filter(|foreign| *foreign != own) {
                assert_eq!(read(foreign), Err(fault), "{foreign}");
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

    proptest! {
        // rule: pools.quote.address-checksum, pools.quote.address-form
        #[test]
        fn an_address_reads_with_its_checksum_and_in_one_case(bytes in any::<[u8; 20]>()) {
            prop_assume!(bytes != [0; 20]);
            let digits = checksummed(&bytes);
            let mixed = format!("0x{digits}");
            for text in [mixed.clone(), mixed.to_lowercase(), format!("0x{}", digits.to_uppercase())] {
                let address = EvmAddress::parse(&text).unwrap();
                prop_assert_eq!(address.as_str(), text);
            }
        }

        // rule: pools.quote.address-checksum
        #[test]
        fn one_flipped_letter_breaks_the_checksum(bytes in any::<[u8; 20]>(), which in any::<prop::sample::Index>()) {
            prop_assume!(bytes != [0; 20]);
            let mut text = format!("0x{}", checksummed(&bytes)).into_bytes();
            let letters: Vec<usize> = (2..42).filter(|at| text[*at].is_ascii_alphabetic()).collect();
            prop_assume!(!letters.is_empty());
            text[letters[which.index(letters.len())]] ^= 0x20;
            let text = String::from_utf8(text).unwrap();
            // A flip may leave one case alone, which passes on format.
            let one_case = text[2..] == text[2..].to_lowercase() || text[2..] == text[2..].to_uppercase();
            let expected = if one_case { Ok(EvmAddress(text.clone())) } else { Err(AddressError::Checksum) };
            prop_assert_eq!(EvmAddress::parse(&text), expected);
        }

        // rule: pools.quote.address-form
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in ".{0,60}|0x[0-9a-fA-F]{38,42}") {
            let _outcome = DepositAddress::parse(&text);
            if let Ok(address) = EvmAddress::parse(&text) {
                prop_assert_eq!(address.as_str(), text);
            }
        }
    }
}
