//! Byte fuzzing of the values that partners and operators write: amounts, rates, instants, ids and trace parents.

use bolero::check;
use kernel::{Amount, Asset, Bound, Id, IdKind, Mid, Rate, Timestamp, TraceParent};
use rust_decimal::Decimal;

#[path = "../../../tests/bent.rs"]
mod bent;
use bent::bent;

/// Pieces of numbers.
const DIGITS: [&str; 16] = [
    "0", "1", "5", "9", "00", "10", "99999999", "0000000", ".", "..", "-", "+", "e", "_", " ", "٣",
];

/// Finds a text that is read as another value than its digits say, an amount that is printed as another amount, and overflow.
#[test]
fn amount_is_read_exactly_and_printed_as_read() {
    const SOUND: [&str; 5] = ["1", "5", ".", "9", "9"];
    let assets = ["EUR", "JPY", "BTC", "USDT"].map(|code| Asset::parse(code).unwrap());
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = bent(bytes, &SOUND, &DIGITS).concat();
        for asset in assets {
            let Ok(amount) = Amount::parse(&text, asset) else {
                continue;
            };
            let exact = Decimal::from_str_exact(&text).unwrap();
            let units = exact * Decimal::from(100_000_000);
            assert_eq!(units, Decimal::from(amount.units()), "{text}");
            assert_eq!(Amount::parse(&amount.to_string(), asset), Ok(amount));
            assert_eq!(Amount::check_grammar(&text), Ok(()));
        }
    });
}

/// Finds a rate that is rounded while it is read, one that is not positive, and one that is printed as another rate.
#[test]
fn rate_is_read_exactly_and_printed_as_read() {
    const SOUND: [&str; 5] = ["1", "5", ".", "9", "9"];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = bent(bytes, &SOUND, &DIGITS).concat();
        if let Some(rate) = Rate::parse(&text) {
            assert_eq!(Rate::parse(&rate.to_string()), Some(rate));
        }
        if let Some(mid) = Mid::parse(&text) {
            assert_eq!(Mid::parse(&mid.to_string()), Some(mid));
            assert!(Rate::parse(&text).is_some(), "{text}");
            let printed: Decimal = mid.to_string().parse().unwrap();
            assert_eq!(printed, Decimal::from_str_exact(&text).unwrap());
        }
    });
}

/// Finds an instant that is printed as another one, and bounds of one text that differ by more than a millisecond.
#[test]
fn instant_is_printed_as_read() {
    const SOUND: [&str; 6] = ["2026-02-28", "T", "00:00:00", ".", "0001", "Z"];
    const PARTS: [&str; 24] = [
        "2026-02-28",
        "0000-01-01",
        "9999-12-31",
        "-",
        "T",
        "t",
        " ",
        "00:00:00",
        "23:59:60",
        "23:59:59",
        ".",
        "9",
        "999",
        "0001",
        "Z",
        "z",
        "+",
        "+00:00",
        "-23:59",
        "+14:00",
        ":",
        "2026",
        "-13-",
        "é",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = bent(bytes, &SOUND, &PARTS).concat();
        let bounds = [Bound::Lower, Bound::Upper].map(|bound| Timestamp::parse(&text, bound));
        for instant in bounds.iter().flatten() {
            let again = Timestamp::parse(&instant.to_string(), Bound::Upper);
            assert_eq!(again, Ok(*instant), "{text}");
        }
        if let [Ok(lower), Ok(upper)] = bounds {
            let between = lower.millis() - upper.millis();
            assert!((0..=1).contains(&between), "{text}");
        }
    });
}

/// Finds a second spelling of an id: a store and a log would then know one object by two names.
#[test]
fn id_has_one_spelling() {
    const SOUND: [&str; 5] = ["pq", "_", "test", "_", "01HF7YAT00408104G208104081"];
    #[derive(Debug)]
    enum Quote {}
    impl IdKind for Quote {
        const PREFIX: &'static str = "pq";
    }
    const PARTS: [&str; 14] = [
        "pq",
        "_",
        "test",
        "live",
        "TEST",
        "01HF7YAT00408104G208104081",
        "01hf7yat00408104g208104081",
        "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "I",
        "O",
        "0",
        "é",
        "\0",
    ];
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let text = bent(bytes, &SOUND, &PARTS).concat();
        if let Some(id) = Id::<Quote>::parse(&text) {
            assert_eq!(id.to_string(), text);
        }
    });
}

/// Finds a header `traceparent` that is read although it is malformed, and ids that differ from the digits of the header.
#[test]
fn trace_parent_is_read_and_printed_as_written() {
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
        let printed = parent.to_string();
        assert_eq!(text.get(2..53), printed.get(2..53));
        assert_eq!(TraceParent::parse(printed.as_bytes()), Some(parent));
        assert_ne!(parent.trace_id.min(parent.span_id.into()), 0);
        assert!(!text.starts_with("ff"), "{text}");
        assert!(text.len() == 55 || !text.starts_with("00"), "{text}");
    });
}

/// Finds a panic on bytes that are not text, such as a cut inside a character.
#[test]
fn trace_parent_of_any_bytes_does_not_panic() {
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let _ = TraceParent::parse(bytes);
    });
}
