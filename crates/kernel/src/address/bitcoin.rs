//! Addresses of Bitcoin's main network: base58check of a key or script hash, and bech32 of a witness program (BIP 173, BIP 350).

use bech32::primitives::decode::{SegwitHrpstring, SegwitHrpstringError};

use super::{AddressError, base58, body_of_base58check};

/// The first byte of a decoded address: the hash of a key, or of a script.
const KEY_HASH: u8 = 0x00;
const SCRIPT_HASH: u8 = 0x05;
const HASH_BYTES: usize = 20;
/// The length of a decoded base58 address: the first byte, the hash and the checksum.
const DECODED_BYTES: usize = 25;
/// How an address of a witness program starts, in either case.
const WITNESS_PREFIX: &str = "bc1";

pub(super) fn check(text: &str) -> Result<(), AddressError> {
    let prefix = text.get(..WITNESS_PREFIX.len());
    if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(WITNESS_PREFIX)) {
        witness_program(text)
    } else {
        hash(text)
    }
}

/// Validates base58check: a first byte, 20 bytes, and the first bytes of a digest over both.
fn hash(text: &str) -> Result<(), AddressError> {
    let decoded = base58(text).map_err(|_| AddressError::NotBitcoin)?;
    match decoded.split_first() {
        Some((&(KEY_HASH | SCRIPT_HASH), _)) if decoded.len() == DECODED_BYTES => {}
        _ => return Err(AddressError::NotBitcoin),
    }
    let body = body_of_base58check(&decoded).ok_or(AddressError::BitcoinChecksum)?;
    is_owned(body.iter().copied().skip(1).take(HASH_BYTES))
}

/// Validates bech32 of a program of version 0, and bech32m of every later version.
fn witness_program(text: &str) -> Result<(), AddressError> {
    let decoded = SegwitHrpstring::new(text).map_err(|error| match error {
        SegwitHrpstringError::Checksum(_) => AddressError::BitcoinChecksum,
        _ => AddressError::NotBitcoin,
    })?;
    if !decoded.hrp().is_valid_on_mainnet() {
        return Err(AddressError::NotBitcoin);
    }
    is_owned(decoded.byte_iter())
}

/// Refuses a hash or a program of zeros: what is sent there is lost.
fn is_owned(mut bytes: impl Iterator<Item = u8>) -> Result<(), AddressError> {
    if bytes.all(|byte| byte == 0) {
        return Err(AddressError::Nobodys);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: gate.payment.address
    #[test]
    fn bitcoin_address_parses_every_form() {
        for good in [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
            "3P14159f73E4gFr7JterCCQh9QjiTjiZrG",
            "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
            "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
            "BC1SW50QGDZ25J",
            "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    // rule: gate.payment.address
    #[test]
    fn bitcoin_address_parser_finds_typing_errors() {
        for bad in [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
            "3P14159f73E4gFr7JterCCQh9QjiTjiZrH",
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
            // The checksum of the other kind of program.
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
            "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
        ] {
            assert_eq!(check(bad), Err(AddressError::BitcoinChecksum), "{bad}");
        }
    }

    // rule: gate.payment.address
    #[test]
    fn bitcoin_address_parser_refuses_other_texts() {
        for bad in [
            "",
            "1",
            "bc1",
            "satoshi.btc",
            // The test network.
            "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
            "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
            "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
            "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
            // A character, a version, a length or a padding that no address has.
            "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
            "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
            "bc1pw5dgrnzv",
            "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
            // Both cases.
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3T4",
            "Bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            " 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "bitcoin:1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            &"1".repeat(200),
        ] {
            assert_eq!(check(bad), Err(AddressError::NotBitcoin), "{bad}");
        }
    }

    // rule: gate.payment.address-nobodys
    #[test]
    fn bitcoin_address_of_zeros_is_refused() {
        for zeros in [
            "1111111111111111111114oLvT2",
            "bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq9e75rs",
        ] {
            assert_eq!(check(zeros), Err(AddressError::Nobodys), "{zeros}");
        }
    }
}
