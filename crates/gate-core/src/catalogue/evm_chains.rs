//! EVM chains that many catalogues name.

/// Their usual names, ids (EIP-155) and own coins.
const CHAINS: [(&str, u64, &str); 7] = [
    ("ethereum", 1, "ETH"),
    ("optimism", 10, "ETH"),
    ("bsc", 56, "BNB"),
    ("polygon", 137, "POL"),
    ("base", 8_453, "ETH"),
    ("arbitrum", 42_161, "ETH"),
    ("avalanche", 43_114, "AVAX"),
];

/// The coin of the chain with this id. `None` for any other chain.
pub(crate) fn coin_of(id: u64) -> Option<&'static str> {
    let found = CHAINS.iter().find(|(_, known, _)| *known == id);
    found.map(|(_, _, coin)| *coin)
}

/// The chain whose id a network of another one of these chains has. A test network may have the name of its chain.
pub(super) fn chain_taken_for(name: &str, id: u64) -> Option<&'static str> {
    let is_known = CHAINS.iter().any(|(known, ..)| *known == name);
    let mut others = CHAINS.iter().filter(|(known, ..)| *known != name);
    let found = others.find(|(_, known, _)| *known == id);
    found.map(|(known, ..)| *known).filter(|_| is_known)
}
