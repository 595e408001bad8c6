//! What a customer scans in order to pay: the URI of the chain, or the EPC069-12 code of a bank transfer.

use kernel::address::AddressForm;
use kernel::{Amount, UNITS_SCALE};
use url::form_urlencoded;

use super::{Instructions, RailRecord, RailState};
use crate::catalogue::{Catalogue, Network, coin_of};
use crate::payout::iban_of;

/// Digits of the smallest unit of an EVM chain's own asset.
const WEI_DECIMALS: u8 = 18;
/// The bounds of EPC069-12: characters of the holder and of the reference, bytes of the whole text, and units of 10^-8 euro.
const LONGEST_HOLDER: usize = 70;
const LONGEST_REFERENCE: usize = 140;
const MOST_BYTES: usize = 331;
const LARGEST_TRANSFER: i64 = 99_999_999_999_000_000;

impl RailRecord {
    /// The text of the QR code for what is still to pay of a hosted payment, while the payment is processing. Its amount and network are
    /// those of the terms, and only the address or the account is the rail's.
    ///
    /// Crypto has the URI of its chain, or else the bare address: if the chain has no URI, if the catalogue lacks what the URI needs, if the
    /// URI cannot carry the rail's memo, or in the sandbox, where no wallet may fill in a payment. A transfer in euro to a named account has the code of EPC069-12. Nothing else has a code.
    #[must_use]
    pub fn scan(&self, catalogue: &Catalogue) -> Option<String> {
        let instructions = self.instructions.as_ref()?;
        let is_open = self.hosted.is_some() && self.state == RailState::Processing;
        // A page of the rail says by itself how to pay.
        if !is_open || instructions.text("type") == Some("redirect") {
            return None;
        }
        let paid = self.terms.paid();
        let left = match &self.received {
            None => paid.amount,
            Some(received) => paid.amount.checked_sub(&received.amount)?,
        };
        if left.is_zero() {
            return None;
        }
        let Some(chain) = paid.network else {
            return transfer_code(left, instructions);
        };
        let address = instructions.text("address")?;
        // There is no key of the sandbox's addresses, and their chains are real.
        if instructions.text("type") == Some("sandbox") {
            return Some(address.to_owned());
        }
        let listing = catalogue.asset(left.asset().code());
        let network = listing.and_then(|listing| listing.network(chain));
        let uri = network.and_then(|it| uri(left, it, address, instructions.text("memo")));
        Some(uri.unwrap_or_else(|| address.to_owned()))
    }
}

impl Instructions {
    /// An instruction that is present and not empty.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name)?;
        Some(text.as_str()).filter(|text| !text.is_empty())
    }
}

/// The URI that asks a wallet for an amount on a chain.
fn uri(amount: Amount, network: &Network, address: &str, memo: Option<&str>) -> Option<String> {
    let form = network.address_form()?;
    form.check(address).ok()?;
    let contract = network.contract_address.as_deref();
    match (form, memo) {
        (AddressForm::Evm, None) => ethereum_uri(amount, network, address),
        (AddressForm::Bitcoin, None) if is_own(amount, "BTC", contract) => {
            Some(format!("bitcoin:{address}?amount={amount}"))
        }
        (AddressForm::Solana, memo) => solana_uri(amount, contract, address, memo),
        (AddressForm::Evm | AddressForm::Bitcoin | AddressForm::Tron, _) => None,
    }
}

/// Whether the amount is of the chain's own asset. A wallet takes an amount without a contract for it.
fn is_own(amount: Amount, own: &str, contract: Option<&str>) -> bool {
    contract.is_none() && amount.asset().code() == own
}

/// EIP-681: a transfer of the chain's own asset, or a call of the token's contract.
fn ethereum_uri(amount: Amount, network: &Network, address: &str) -> Option<String> {
    let id = network.chain_id?;
    Some(match &network.contract_address {
        // An asset without its contract is not the coin that such a URI asks for.
        None if !is_own(amount, coin_of(id)?, None) => return None,
        None => {
            let wei = whole_units(amount, WEI_DECIMALS)?;
            format!("ethereum:{address}@{id}?value={wei}")
        }
        Some(contract) => {
            let units = whole_units(amount, network.token_decimals?)?;
            format!("ethereum:{contract}@{id}/transfer?address={address}&uint256={units}")
        }
    })
}

/// An amount in units with this many digits. `None` if it is no whole number of them.
fn whole_units(amount: Amount, decimals: u8) -> Option<u128> {
    let units = u128::try_from(amount.units()).ok()?;
    let factor = |digits: u8| 10_u128.checked_pow(u32::from(digits));
    if let Some(finer) = decimals.checked_sub(UNITS_SCALE) {
        return units.checked_mul(factor(finer)?);
    }
    let step = factor(UNITS_SCALE.checked_sub(decimals)?)?;
    units
        .checked_div(step)
        .filter(|_| units.is_multiple_of(step))
}

/// Solana Pay: a transfer request.
fn solana_uri(
    amount: Amount,
    mint: Option<&str>,
    address: &str,
    memo: Option<&str>,
) -> Option<String> {
    let token = match mint {
        Some(mint) => format!("&spl-token={mint}"),
        None if is_own(amount, "SOL", mint) => String::new(),
        None => return None,
    };
    let memo = memo.map(|memo| format!("&memo={}", percent_encoded(memo)));
    let memo = memo.unwrap_or_default();
    Some(format!("solana:{address}?amount={amount}{token}{memo}"))
}

/// Not every wallet takes `+` for a space.
fn percent_encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

/// EPC069-12 of a SEPA credit transfer: version 2, in UTF-8, with the reference as unstructured remittance information.
fn transfer_code(amount: Amount, instructions: &Instructions) -> Option<String> {
    let is_in_range = amount.asset().code() == "EUR" && amount.units() <= LARGEST_TRANSFER;
    let holder = line(instructions.text("account_holder")?, LONGEST_HOLDER)?;
    let iban = iban_of(instructions.text("iban")?)?;
    let bic = instructions.text("bic").unwrap_or_default();
    let reference = instructions.text("reference").unwrap_or_default();
    let reference = line(reference, LONGEST_REFERENCE)?;
    if !is_in_range || holder.is_empty() || !(bic.is_empty() || is_bic(bic)) {
        return None;
    }
    let amount = format!("EUR{amount}");
    let (purpose, structured) = ("", "");
    let lines = [
        "BCD", "002", "1", "SCT", bic, holder, &iban, &amount, purpose, structured, reference,
    ];
    let lines = lines.join("\n");
    // The last line is the last one with a value.
    let text = lines.trim_end_matches('\n');
    (text.len() <= MOST_BYTES).then(|| text.to_owned())
}

/// A value as one line. `None` if it is too long, or if a reader could take it for several lines.
fn line(text: &str, most: usize) -> Option<&str> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let line = text.trim();
    (line.chars().count() <= most && !text.contains(breaks)).then_some(line)
}

fn is_bic(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    matches!(text.len(), 8 | 11) && text.bytes().all(is_allowed)
}
