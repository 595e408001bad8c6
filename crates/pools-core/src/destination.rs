//! The delivery target of a purchase: an address and a network.

use crate::profile::Network;
pub use kernel::address::{AddressError, DeliveryAddress, EvmAddress};

/// A network that crypto can be delivered on. Its text is lower-case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestNetwork {
    /// A network of the delivery allowlist that the request named.
    Named(EvmNetwork),
    /// A network of the pool: the quoted network if the request named none, or a network with native addresses. On
    /// TRON, an EVM address denotes the T-address of the same key.
    Quoted(Network),
}

impl DestNetwork {
    /// Every network that a request can name: the allowlist, and the networks with native addresses.
    pub const ALL: [Self; 7] = [
        Self::Named(EvmNetwork::Arbitrum),
        Self::Named(EvmNetwork::Ethereum),
        Self::Named(EvmNetwork::Bsc),
        Self::Named(EvmNetwork::Optimism),
        Self::Named(EvmNetwork::Polygon),
        Self::Quoted(Network::Tron),
        Self::Quoted(Network::Solana),
    ];

    /// Parses a delivery address. A pool with native addresses requires the form of this network; other pools require
    /// an EVM address on every network.
    ///
    /// # Errors
    /// [`AddressError`] if the address is malformed, has a wrong checksum, or is one of which no one has the key.
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

    /// Parses the text of [`DestNetwork::as_str`]. A network on both lists parses as `Named`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        EvmNetwork::parse(text)
            .map(Self::Named)
            .or_else(|| Network::parse(text).map(Self::Quoted))
    }
}

kernel::closed_list! {
    /// The delivery allowlist.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum EvmNetwork {
        /// Arbitrum One.
        Arbitrum = "arbitrum",
        Ethereum = "ethereum",
        /// BNB Smart Chain.
        Bsc = "bsc",
        Optimism = "optimism",
        Polygon = "polygon",
    }
}

/// The delivery target of a purchase, locked by its quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub address: DeliveryAddress,
    pub network: DestNetwork,
}
