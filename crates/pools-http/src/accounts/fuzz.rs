//! Byte fuzzing of the ledger's cursors.

use bolero::check;

use super::{cursor, place};

#[path = "../../../../tests/bent.rs"]
mod bent;
use bent::bent;

/// Finds a second spelling of a cursor, and a sequence number below 1.
// rule: list.malformed-cursor
#[test]
fn cursor_has_one_spelling() {
    const SOUND: [&str; 5] = ["lc_", "1", "_", "le_test_", "01HF7YAT00408104G208104081"];
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
        let text = bent(bytes, &SOUND, &PARTS).concat();
        if let Some(place) = place(&text) {
            assert_eq!(cursor(place), text);
            assert!(place.sequence > 0);
        }
    });
}
