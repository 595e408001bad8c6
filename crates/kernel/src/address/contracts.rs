//! Contracts of the built-in assets on their networks. What is sent to a contract is lost.

use super::account_of_key;

/// A network, an asset and the address of its contract there.
const CONTRACTS: [(&str, &str, &str); 12] = [
    ("tron", "USDT", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
    (
        "ethereum",
        "USDT",
        "0xdAC17F958D2ee523a2206206994597C13D831ec7",
    ),
    (
        "ethereum",
        "USDC",
        "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
    ),
    ("bsc", "USDT", "0x55d398326f99059fF775485246999027B3197955"),
    (
        "polygon",
        "USDT",
        "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
    ),
    (
        "polygon",
        "USDC",
        "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
    ),
    (
        "arbitrum",
        "USDT",
        "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
    ),
    (
        "arbitrum",
        "USDC",
        "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
    ),
    (
        "optimism",
        "USDT",
        "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58",
    ),
    (
        "optimism",
        "USDC",
        "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
    ),
    (
        "solana",
        "USDT",
        "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB",
    ),
    (
        "solana",
        "USDC",
        "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
    ),
];

/// The built-in asset whose contract on a network has this address, in any spelling. An EVM address on TRON means the T-address of the
/// same bytes.
#[must_use]
pub fn asset_of_contract(network: &str, text: &str) -> Option<&'static str> {
    let account = account_of_key(text);
    let is_same = |contract: &str| match account {
        Some(account) => account_of_key(contract) == Some(account),
        None => contract == text,
    };
    let mut contracts = CONTRACTS.iter();
    let found = contracts.find(|(on, _, contract)| *on == network && is_same(contract));
    found.map(|(_, asset, _)| *asset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Asset;
    use crate::address::DepositAddress;

    // rule: pools.quote.address-contract
    #[test]
    fn contract_is_known_in_every_spelling_on_its_network_alone() {
        for (network, asset, contract) in CONTRACTS {
            assert!(Asset::crypto(asset).is_some(), "{asset}");
            assert!(DepositAddress::parse(contract).is_ok(), "{contract}");
            assert_eq!(asset_of_contract(network, contract), Some(asset));
            assert_eq!(asset_of_contract("bitcoin", contract), None);
            if let Some(account) = account_of_key(contract) {
                let digits = hex::encode(account);
                for text in [
                    format!("0x{digits}"),
                    format!("0x{}", digits.to_uppercase()),
                ] {
                    assert_eq!(asset_of_contract(network, &text), Some(asset), "{text}");
                }
            }
        }
        let wallet = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
        assert_eq!(asset_of_contract("tron", wallet), None);
    }
}
