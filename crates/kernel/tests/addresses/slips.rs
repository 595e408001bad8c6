//! Addresses made from a seed, and the slips of people who type, copy or cut them.

use bech32::{hrp, segwit};
use kernel::address::AddressForm;
use sha2::{Digest as _, Sha256};
use sha3::Keccak256;

/// The forms, with their names in the file.
pub(crate) const FORMS: [(AddressForm, &str); 4] = [
    (AddressForm::Evm, "evm"),
    (AddressForm::Tron, "tron"),
    (AddressForm::Solana, "solana"),
    (AddressForm::Bitcoin, "bitcoin"),
];
/// How many addresses of each form are made.
const MADE: usize = 8;
/// How many addresses with a slip follow each made one.
const SLIPS: usize = 12;
/// What a slip types.
const TYPED: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Addresses of keys, hashes and programs of zeros and others of which no one has the key, of other networks, and of rare kinds.
const fn known(form: AddressForm) -> &'static [&'static str] {
    match form {
        AddressForm::Evm => &[
            "0x0000000000000000000000000000000000000000",
            "0x0000000000000000000000000000000000000001",
            "0x00000000000000000000000000000000000000fF",
            "0x0000000000000000000000000000000000000100",
            "0x000000000000000000000000000000000000dEaD",
            "0x000000000000000000000000000000000000dead",
            "0x000000000000000000000000000000000000DEAd",
            "52908400098527886E0F7030069857D2E4169EE7",
        ],
        AddressForm::Tron => &["T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"],
        AddressForm::Solana => &["11111111111111111111111111111111"],
        AddressForm::Bitcoin => &[
            "1111111111111111111114oLvT2",
            "bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq9e75rs",
            "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
            "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
            "BC1SW50QGDZ25J",
            "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
            "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
            "bc1pw5dgrnzv",
            "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
            "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
        ],
    }
}

/// The addresses that the check of a form is recorded for.
pub(crate) fn addresses_of(form: AddressForm) -> Vec<String> {
    let mut addresses: Vec<String> = known(form).iter().map(|one| (*one).to_owned()).collect();
    for (other, _) in FORMS {
        let mut seeded = Seeded(35);
        for turn in 0..MADE {
            let address = made(other, turn, &mut seeded);
            if other == form {
                addresses.extend((0..SLIPS).map(|kind| slip(&address, kind, &mut seeded)));
            }
            if other == form || turn == 0 {
                addresses.push(address);
            }
        }
    }
    addresses
}

fn made(form: AddressForm, turn: usize, seeded: &mut Seeded) -> String {
    match (form, turn) {
        (AddressForm::Evm, _) => {
            let digits = hex::encode(seeded.bytes::<20>());
            match turn % 3 {
                0 => format!("0x{}", checksummed(&digits)),
                1 => format!("0x{digits}"),
                _ => format!("0x{}", digits.to_uppercase()),
            }
        }
        (AddressForm::Tron, _) => base58check(0x41, &seeded.bytes()),
        (AddressForm::Solana, _) => bs58::encode(seeded.bytes::<32>()).into_string(),
        (AddressForm::Bitcoin, 0 | 5) => base58check(0x00, &seeded.bytes()),
        (AddressForm::Bitcoin, 1 | 6) => base58check(0x05, &seeded.bytes()),
        (AddressForm::Bitcoin, 2 | 7) => segwit::encode_v0(hrp::BC, &seeded.bytes::<20>()).unwrap(),
        (AddressForm::Bitcoin, 3) => segwit::encode_v0(hrp::BC, &seeded.bytes::<32>()).unwrap(),
        (AddressForm::Bitcoin, _) => segwit::encode_v1(hrp::BC, &seeded.bytes::<32>()).unwrap(),
    }
}

/// Digits in the mixed case of EIP-55.
fn checksummed(digits: &str) -> String {
    let hash = hex::encode(Keccak256::digest(digits));
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

fn base58check(prefix: u8, hash: &[u8; 20]) -> String {
    let mut bytes = vec![prefix];
    bytes.extend(hash);
    let digest = Sha256::digest(Sha256::digest(&bytes));
    bytes.extend(digest.iter().take(4));
    bs58::encode(bytes).into_string()
}

/// An address with one slip.
fn slip(address: &str, kind: usize, seeded: &mut Seeded) -> String {
    let mut text = address.as_bytes().to_vec();
    let at = seeded.below(text.len() - 1);
    match kind {
        0..=3 => text[at] = TYPED[seeded.below(TYPED.len())],
        4 | 5 => {
            let is_letter = |place: &usize| text[*place].is_ascii_alphabetic();
            let letters: Vec<usize> = (0..text.len()).filter(is_letter).collect();
            text[letters[seeded.below(letters.len())]] ^= 0x20;
        }
        6 => {
            text.remove(at);
        }
        7 => text.insert(at, text[at]),
        8 => text.swap(at, at + 1),
        9 => text.truncate(at + 1),
        10 => text.make_ascii_uppercase(),
        _ => text.make_ascii_lowercase(),
    }
    String::from_utf8(text).unwrap()
}

/// SplitMix64.
struct Seeded(u64);

impl Seeded {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap();
        usize::try_from(self.draw() % end).unwrap()
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.draw().to_le_bytes()[0])
    }
}
