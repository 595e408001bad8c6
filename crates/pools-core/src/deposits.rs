//! Ownership of deposits: a deposit address and a funding reference belong to one partner of a mode.

use std::fmt;

use crate::profile::PoolsProfile;

/// The identifier of a deposit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimKind {
    /// The address that crypto is sent to.
    Address,
    /// The text that a bank transfer carries.
    Reference,
}

impl ClaimKind {
    /// The word used in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Reference => "reference",
        }
    }

    /// The key of the declarative file.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Address => "partners.pools.terms.crypto_deposit_address",
            Self::Reference => "partners.pools.funding_reference",
        }
    }
}

/// A deposit address or a funding reference in the form in which two of them are compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DepositClaim {
    /// The kind of claim.
    pub kind: ClaimKind,
    /// The text: an EVM address in lower case, a reference in upper case, any other address as it is.
    pub text: String,
}

impl DepositClaim {
    /// The claim of an address. The case of an EVM address only encodes the checksum.
    #[must_use]
    pub fn of_address(address: &str) -> Self {
        let text = if address.starts_with("0x") {
            address.to_ascii_lowercase()
        } else {
            address.to_owned()
        };
        let kind = ClaimKind::Address;
        Self { kind, text }
    }

    /// The claim of a reference. Banks change the case of letters.
    #[must_use]
    pub fn of_reference(reference: &str) -> Self {
        let text = reference.to_ascii_uppercase();
        let kind = ClaimKind::Reference;
        Self { kind, text }
    }
}

impl fmt::Display for DepositClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ClaimKind::Address => write!(f, "deposit address {}", self.text),
            ClaimKind::Reference => write!(f, "funding reference {:?}", self.text),
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
