//! The parser of the networks of an asset.

use kernel::address::{DepositAddress, EvmAddress};
use kernel::{Amount, Asset};
use partner_core::tables::{Field, Section, Shape, Sink};

use super::{AMOUNT, ID, Reading, amount, id, once};
use crate::catalogue::evm_chains::chain_taken_for;
use crate::catalogue::{Listing, Network};

pub(super) const NETWORK: Shape = Shape {
    name: "assets.networks",
    keys: &[
        "chain",
        "contract_address",
        "evm",
        "chain_id",
        "token_decimals",
        "payout_fees",
    ],
};
pub(super) const PAYOUT_FEE: Shape = Shape {
    name: "assets.networks.payout_fees",
    keys: &["currency", "amount"],
};

/// The largest chain id that wallets accept.
const LARGEST_CHAIN_ID: u64 = 4_503_599_627_370_476;
/// Maximum digits of a contract's unit. With them, the largest amount has less than 128 bits.
const MOST_TOKEN_DECIMALS: u8 = 24;

impl Reading {
    pub(super) fn networks(
        &self,
        sink: &mut Sink<'_>,
        table: &Section<'_, '_>,
        asset: Option<Asset>,
        listings: &[Listing],
    ) -> Vec<Network> {
        let expected = "at least one [[assets.networks]]";
        let Some(field) = table.required(sink, "networks", expected) else {
            return Vec::new();
        };
        let tables = table.sections(sink, "networks", &NETWORK);
        if tables.is_empty() && field.is_list() {
            sink.add(field.at, &field.path, format!("expected {expected}"));
        }
        let mut networks: Vec<Network> = Vec::new();
        for table in tables {
            let chain = table.required(sink, "chain", ID);
            let chain = chain.and_then(|field| {
                let chain = field.read(sink, ID, id)?;
                let earlier = networks.iter().any(|it| it.chain == chain);
                once(sink, &field, earlier, "chain of an asset");
                Some(chain)
            });
            let evm = table.flag(sink, "evm");
            let contract = table.field("contract_address");
            let is_token = contract.is_some();
            let contract_address = contract.and_then(|field| contract_address(sink, &field, evm));
            let chain_id = chain_id(sink, &table, evm);
            let token_decimals = token_decimals(sink, &table, evm && is_token, asset);
            let payout_fees = self.payout_fees(sink, &table);
            let Some(chain) = chain else { continue };
            if let (Some(id), Some(field)) = (chain_id, table.field("chain_id")) {
                let earlier = listings.iter().flat_map(|it| &it.networks);
                one_chain_per_id(sink, &field, (&chain, id), earlier.chain(&networks));
            }
            networks.push(Network {
                chain,
                contract_address,
                evm,
                chain_id,
                token_decimals,
                payout_fees,
            });
        }
        networks
    }

    fn payout_fees(&self, sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Vec<Amount> {
        let mut fees: Vec<Amount> = Vec::new();
        for table in table.sections(sink, "payout_fees", &PAYOUT_FEE) {
            let currency = self.currency(sink, &table);
            let field = table.required(sink, "amount", AMOUNT);
            let (Some(currency), Some(field)) = (currency, field) else {
                continue;
            };
            let earlier = fees.iter().any(|fee| fee.asset() == currency);
            once(sink, &field, earlier, "currency of a fee");
            fees.extend(amount(sink, &field, currency));
        }
        fees
    }
}

fn contract_address(sink: &mut Sink<'_>, field: &Field<'_, '_>, evm: bool) -> Option<String> {
    let text = field.text().unwrap_or_default();
    let error = if evm {
        EvmAddress::parse(text).err().map(|error| error.to_string())
    } else {
        DepositAddress::parse(text)
            .err()
            .map(|error| error.to_string())
    };
    match error {
        None => Some(text.to_owned()),
        Some(error) => {
            field.refuse(sink, &error);
            None
        }
    }
}

fn chain_id(sink: &mut Sink<'_>, table: &Section<'_, '_>, evm: bool) -> Option<u64> {
    let field = table.field("chain_id")?;
    if !evm {
        field.refuse(sink, "expected only with evm = true");
        return None;
    }
    let id = field.whole(sink, LARGEST_CHAIN_ID)?;
    if id == 0 {
        field.refuse(sink, "expected at least 1");
    }
    Some(id)
}

/// A wallet that scans a wrong id pays on another chain, so a chain has one id, and an id one chain.
fn one_chain_per_id<'n>(
    sink: &mut Sink<'_>,
    field: &Field<'_, '_>,
    (chain, id): (&str, u64),
    mut earlier: impl Iterator<Item = &'n Network>,
) {
    if let Some(other) = chain_taken_for(chain, id) {
        field.refuse(
            sink,
            &format!("expected the id of {chain}; {other} has {id}"),
        );
        return;
    }
    let differs = |it: &&Network| {
        it.chain_id
            .is_some_and(|known| (it.chain == chain) != (known == id))
    };
    if let Some(Network {
        chain,
        chain_id: Some(known),
        ..
    }) = earlier.find(differs)
    {
        let expected = format!("expected one id for each chain; {chain} has {known}");
        field.refuse(sink, &expected);
    }
}

fn token_decimals(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    is_evm_token: bool,
    asset: Option<Asset>,
) -> Option<u8> {
    let field = table.field("token_decimals")?;
    if !is_evm_token {
        let expected = "expected only with evm = true and a contract_address";
        field.refuse(sink, expected);
        return None;
    }
    let decimals = field.whole(sink, MOST_TOKEN_DECIMALS)?;
    if let Some(asset) = asset.filter(|asset| decimals < asset.scale()) {
        let digits = asset.scale();
        let expected = format!("expected at least {digits}, the digits of {asset}");
        field.refuse(sink, &expected);
    }
    Some(decimals)
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    /// An asset with one network of each kind.
    const FILE: &str = r#"
[[currencies]]
code = "EUR"
symbol = "€"
name = "Euro"

[[countries]]
code = "DE"
name = "Germany"
currency = "EUR"

[[assets]]
symbol = "USDT"
name = "Tether USD"
decimals = 6
limits = { currency = "EUR", min_amount = 1, max_amount = 9 }

[[assets.networks]]
chain = "bsc"
evm = true
contract_address = "0x55d398326f99059fF775485246999027B3197955"
chain_id = 56
token_decimals = 18

[[assets.networks]]
chain = "base"
evm = true

[[assets.networks]]
chain = "solana"
contract_address = "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"
"#;

    /// A text of the file, what replaces it, and the error.
    const FAULTS: &str = r#"
chain_id = 56 => chain_id = 0 => line 22: assets.networks.chain_id: expected at least 1, found "0"
chain_id = 56 => chain_id = -56 => line 22: assets.networks.chain_id: expected a whole number from 0 to 4503599627370476
chain_id = 56 => chain_id = "56" => line 22: assets.networks.chain_id: expected a whole number from 0 to 4503599627370476
chain_id = 56 => chain_id = 4503599627370477 => line 22: assets.networks.chain_id: expected a whole number from 0 to 4503599627370476
chain_id = 56 => chainid = 56 => line 22: assets.networks.chainid: unknown key; the nearest known one is `chain_id`
"base"\nevm = true => "base"\nevm = true\nchain_id = 56 => line 28: assets.networks.chain_id: expected the id of base; bsc has 56, found "56"
chain_id = 56 => chain_id = 1 => line 22: assets.networks.chain_id: expected the id of bsc; ethereum has 1, found "1"
chain = "solana" => chain = "solana"\nchain_id = 101 => line 31: assets.networks.chain_id: expected only with evm = true, found "101"
token_decimals = 18 => token_decimals = 5 => line 23: assets.networks.token_decimals: expected at least 6, the digits of USDT, found "5"
token_decimals = 18 => token_decimals = 25 => line 23: assets.networks.token_decimals: expected a whole number from 0 to 24
token_decimals = 18 => token_decimals = "18" => line 23: assets.networks.token_decimals: expected a whole number from 0 to 24
"base"\nevm = true => "base"\nevm = true\ntoken_decimals = 18 => line 28: assets.networks.token_decimals: expected only with evm = true and a contract_address, found "18"
chain = "solana" => chain = "solana"\ntoken_decimals = 6 => line 31: assets.networks.token_decimals: expected only with evm = true and a contract_address, found "6"
"#;

    fn faults(text: &str) -> Vec<String> {
        let faults = Catalogue::parse(text).unwrap_err();
        faults.0.iter().map(ToString::to_string).collect()
    }

    // rule: gate.catalogue.chain-id, gate.catalogue.faults
    #[test]
    fn network_has_the_id_of_its_chain_and_the_digits_of_its_contract() {
        let catalogue = Catalogue::parse(FILE).unwrap();
        let networks = &catalogue.asset("USDT").unwrap().networks;
        let read = networks.iter().map(|it| (it.chain_id, it.token_decimals));
        let expected = [(Some(56), Some(18)), (None, None), (None, None)];
        assert!(read.eq(expected));
        for row in FAULTS.trim().lines() {
            let row = row.replace(r"\n", "\n");
            let [old, new, told] = row.split(" => ").collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            assert!(FILE.contains(old), "{old}");
            let found = faults(&FILE.replacen(old, new, 1));
            assert!(
                matches!(&found[..], [only] if only.starts_with(told)),
                "{told}: {found:#?}"
            );
        }
    }

    // rule: gate.catalogue.chain-id
    #[test]
    fn chain_has_the_same_id_for_every_asset() {
        let other = r#"
[[assets]]
symbol = "BNB"
name = "BNB"
decimals = 8
limits = { currency = "EUR", min_amount = 1, max_amount = 9 }
networks = [{ chain = "bsc", evm = true, chain_id = 56 }]
"#;
        assert!(Catalogue::parse(&format!("{FILE}{other}")).is_ok());
        for (changed, found) in [("bsc", 57), ("bnb", 56)] {
            let network = format!("chain = \"{changed}\", evm = true, chain_id = {found}");
            let other = other.replace("chain = \"bsc\", evm = true, chain_id = 56", &network);
            let expected = format!(
                "line 38: assets.networks.chain_id: expected one id for each chain; bsc has 56, found \"{found}\""
            );
            assert_eq!(faults(&format!("{FILE}{other}")), [expected]);
        }
    }

    // rule: gate.catalogue.chain-id
    #[test]
    fn built_in_evm_networks_have_their_ids_and_digits() {
        let catalogue = Catalogue::built_in().unwrap();
        for listing in catalogue.assets() {
            for network in &listing.networks {
                let id = match network.chain.as_str() {
                    "ethereum" => Some(1),
                    "bsc" => Some(56),
                    "polygon" => Some(137),
                    _ => None,
                };
                let digits = match (network.chain.as_str(), &network.contract_address) {
                    ("bsc", Some(_)) => Some(18),
                    ("ethereum" | "polygon", Some(_)) => Some(6),
                    _ => None,
                };
                let read = (network.chain_id, network.token_decimals);
                assert_eq!(read, (id, digits), "{} {}", listing.asset, network.chain);
            }
        }
    }
}
