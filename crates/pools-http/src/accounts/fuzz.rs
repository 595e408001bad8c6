//! Byte fuzzing of the ledger's cursors.

use bolero::check;

use super::{cursor, place};

/// Finds a second spelling of a cursor, and a sequence below one.
#[test]
fn cursor_has_one_spelling() {
    const PARTS: [&str; 14] = [
        "lc_",
        "_",
        "le_test_",
        "le_live_",
        "01HF7YAT00408104G208104081",
        "01hf7yat00408104g208104081",
        "0",
        "1",
        "-",
        "+",
        "9223372036854775807",
        "9223372036854775808",
        "é",
        "\0",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = spelled(bytes, &PARTS);
        if let Some(place) = place(&text) {
            assert_eq!(cursor(place), text);
            assert!(place.sequence > 0);
        }
    });
}

/// The text that some bytes choose: the first byte says how many pieces it has, each other byte names one.
fn spelled(bytes: &[u8], pieces: &[&str]) -> String {
    let Some((count, bytes)) = bytes.split_first() else {
        return String::new();
    };
    let chosen = bytes.iter().take(usize::from(*count) % 20);
    chosen
        .map(|byte| pieces[usize::from(*byte) % pieces.len()])
        .collect()
}
