//! Byte fuzzing of `traceparent`, which any client may send.

use bolero::check;
use instruments::trace::TraceParent;

#[path = "../../../tests/bent.rs"]
mod bent;
use bent::bent;

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
        let text = bent(bytes, &SOUND, &PARTS).concat();
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
