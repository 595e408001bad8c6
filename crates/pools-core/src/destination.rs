//! Where the crypto of a purchase is delivered: an EVM address and a network.

use std::fmt;

use alloy_primitives::Address;
use partner_core::pools::Network;

/// A network crypto can be delivered on. Written in lower case, and only so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestNetwork {
    /// One from the delivery allowlist, named in the request.
    Named(EvmNetwork),
    /// The quote's own network, where the request named none. On TRON the engine pays the
    /// T-address of the same key.
    Quoted(Network),
}

impl DestNetwork {
    /// The identifier used in rows and exports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Named(network) => network.as_str(),
            Self::Quoted(network) => network.as_str(),
        }
    }

    /// Reads what [`DestNetwork::as_str`] wrote. A network on both lists reads as named.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        EvmNetwork::parse(text)
            .map(Self::Named)
            .or_else(|| Network::parse(text).map(Self::Quoted))
    }
}

/// The delivery allowlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvmNetwork {
    /// Arbitrum One.
    Arbitrum,
    /// Ethereum.
    Ethereum,
    /// BNB Smart Chain.
    Bsc,
    /// Optimism.
    Optimism,
    /// Polygon.
    Polygon,
}

impl EvmNetwork {
    /// Every network of the allowlist, in the order the contract lists them.
    pub const ALL: [Self; 5] = [
        Self::Arbitrum,
        Self::Ethereum,
        Self::Bsc,
        Self::Optimism,
        Self::Polygon,
    ];

    /// The identifier used on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Arbitrum => "arbitrum",
            Self::Ethereum => "ethereum",
            Self::Bsc => "bsc",
            Self::Optimism => "optimism",
            Self::Polygon => "polygon",
        }
    }

    /// Reads the identifier; case matters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|network| network.as_str() == text)
    }
}

/// An EVM address as the partner wrote it: `0x` and 40 hexadecimal digits, never zero. Mixed
/// case has passed the EIP-55 checksum; one case alone passes on format.
#[derive(Clone, PartialEq, Eq)]
pub struct EvmAddress(String);

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// Not `0x` and 40 hexadecimal digits, or the zero address.
    #[error("expected an EVM address: 0x and 40 hexadecimal digits, not the zero address")]
    Invalid,
    /// Mixed case that does not carry the EIP-55 checksum.
    #[error("the address is mixed-case and fails its EIP-55 checksum")]
    Checksum,
}

impl EvmAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressFault`].
    pub fn parse(text: &str) -> Result<Self, AddressFault> {
        let digits = text.strip_prefix("0x").ok_or(AddressFault::Invalid)?;
        let address: Address = text.parse().map_err(|_| AddressFault::Invalid)?;
        if address.is_zero() || digits.len() != 40 {
            return Err(AddressFault::Invalid);
        }
        let mixed = digits.bytes().any(|byte| byte.is_ascii_lowercase())
            && digits.bytes().any(|byte| byte.is_ascii_uppercase());
        if mixed && Address::parse_checksummed(text, None).is_err() {
            return Err(AddressFault::Checksum);
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

/// The delivery target of a purchase, locked on its quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The address.
    pub address: EvmAddress,
    /// The network.
    pub network: DestNetwork,
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
            assert_eq!(EvmAddress::parse(bad), Err(AddressFault::Invalid), "{bad}");
        }
    }

    proptest! {
        // rule: pools.quote.address-checksum
        #[test]
        fn one_flipped_letter_breaks_the_checksum(which in 0..4_usize, at in 2..42_usize) {
            let mut text = MIXED[which].as_bytes().to_vec();
            prop_assume!(text[at].is_ascii_alphabetic());
            text[at] ^= 0x20;
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(EvmAddress::parse(&text), Err(AddressFault::Checksum));
        }
    }
}
