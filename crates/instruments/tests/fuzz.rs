//! Byte fuzzing of `traceparent`, which any client may send.

use bolero::check;
use instruments::trace::TraceParent;

/// Finds a header that is read although it is malformed, and ids that differ from the digits of the header.
#[test]
fn traceparent_is_read_as_written() {
    const SOUND: [&str; 7] = [
        "00",
        "-",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "-",
        "00f067aa0ba902b7",
        "-",
        "01",
    ];
    const PARTS: [&str; 16] = [
        "00",
        "01",
        "ff",
        "cc",
        "-",
        "--",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "00f067aa0ba902b7",
        "0000000000000000",
        "00000000000000000000000000000000",
        "4BF92F3577B34DA6",
        "0",
        "a",
        " ",
        "+",
        "é",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = bent(bytes, &SOUND, &PARTS);
        let Some(parent) = TraceParent::parse(text.as_bytes()) else {
            return;
        };
        let ids = format!("-{:032x}-{:016x}-", parent.trace_id, parent.span_id);
        assert_eq!(text.get(2..53), Some(ids.as_str()));
        assert_ne!(parent.trace_id.min(parent.span_id.into()), 0);
        assert!(!text.starts_with("ff"), "{text}");
        assert!(text.len() == 55 || !text.starts_with("00"), "{text}");
    });
}

/// Finds a panic on bytes that are not text, such as a cut inside a character.
#[test]
fn traceparent_of_any_bytes_does_not_panic() {
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let _ = TraceParent::parse(bytes);
    });
}

/// A sound text with up to four changes that some bytes choose. Each change adds, replaces or removes a piece.
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
