//! Where the crypto of a purchase is delivered: an address and a network.

use crate::profile::Network;
pub use kernel::address::{AddressError, DeliveryAddress, EvmAddress};

/// A network crypto can be delivered on. Written in lower case, and only so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestNetwork {
    /// One from the delivery allowlist, named in the request.
    Named(EvmNetwork),
    /// A network of the pool: the quoted one if the request named none, or one with native
    /// addresses. An EVM address on TRON stands for the T-address of the same key.
    Quoted(Network),
}

impl DestNetwork {
    /// Reads an address to deliver to. A pool with native addresses takes those of the network;
    /// any other pool takes EVM addresses on every network.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn address(self, native: bool, text: &str) -> Result<DeliveryAddress, AddressError> {
        match self {
            Self::Quoted(Network::Tron) if native => DeliveryAddress::tron(text),
            Self::Quoted(Network::Solana) if native => DeliveryAddress::solana(text),
            Self::Quoted(_) | Self::Named(_) => EvmAddress::parse(text).map(DeliveryAddress::from),
        }
    }

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

/// The delivery target of a purchase, locked on its quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The address.
    pub address: DeliveryAddress,
    /// The network.
    pub network: DestNetwork,
}
