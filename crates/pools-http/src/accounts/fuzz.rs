//! Byte fuzzing of the ledger's cursors.

use bolero::check;

use super::{cursor, place};

/// Finds a second spelling of a cursor, and a sequence number below 1.
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
        let text = bent(bytes, &SOUND, &PARTS);
        if let Some(place) = place(&text) {
            assert_eq!(cursor(place), text);
            assert!(place.sequence > 0);
        }
    });
}

/// Makes up to four changes to a valid text, as the given bytes choose. Each change inserts,
/// replaces or removes a piece.
fn bent(bytes: &[u8], sound: &[&str], pieces: &[&str]) -> String {
    let mut text = sound.to_vec();
    let (count, changes) = bytes.split_first().unwrap_or((&0, &[]));
    for change in changes.chunks_exact(3).take(usize::from(*count) % 5) {
        let &[action, place, piece] = change else {
            break;
        };
        let start = usize::from(place) % (text.len() + 1);
        let end = (start + usize::from(action % 3 != 0)).min(text.len());
        let added = pieces.get(usize::from(piece) % pieces.len());
        text.splice(start..end, added.filter(|_| action % 3 != 2).copied());
    }
    text.concat()
}
