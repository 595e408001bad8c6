//! Byte fuzzing of the strict JSON reader, against `serde_json`.

use bolero::check;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::scan::{ScanError, read_object};
use crate::bent::bent;

const PARTS: [&[u8]; 40] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\"a\"",
    b"\"b\"",
    b"\"\\u0061\"",
    b"\"a\":",
    b"\"b\":",
    b"null",
    b"true",
    b"false",
    b"0",
    b"-",
    b"1",
    b"9e9999",
    b".",
    b"e",
    b"E+",
    b" ",
    b"\n",
    b"\x0b",
    b"\\",
    b"\\n",
    b"\\u",
    b"d83d",
    b"dc00",
    b"\\ud83d\\ude00",
    b"\\u0000",
    b"\0",
    b"\x1f",
    b"\xff",
    b"\xc3",
    b"\xa9",
    b"\xef\xbb\xbf",
    b"{\"a\":{\"a\":[",
    b"[[[[[[[[[[[",
];

/// Finds a body that only our reader accepts, and a well-formed body that it refuses for an
/// undocumented reason.
#[test]
fn reader_agrees_with_serde_json_except_for_documented_refusals() {
    const SOUND: [&[u8]; 14] = [
        b"{", b"\"a\":", b"[", b"1", b",", b"\"a\"", b"]", b",", b"\"b\":", b"-", b"0", b".", b"1",
        b"}",
    ];
    check!()
        .with_iterations(50_000)
        .for_each(|bytes: &[u8]| compare(&bent(bytes, &SOUND, &PARTS).concat()));
}

/// Finds a panic on bytes that are in no dictionary, such as part of a character.
#[test]
fn reader_of_any_bytes_agrees_with_serde_json() {
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        compare(bytes);
        compare(&[b"{\"", bytes, b"\":0}"].concat());
    });
}

fn compare(bytes: &[u8]) {
    let shown = || bytes.escape_ascii().to_string();
    let ours = read_object(bytes);
    let theirs = serde_json::from_slice::<Value>(bytes);
    match (ours, theirs) {
        (Ok(node), _) => {
            assert_eq!(node.raw.trim(), std::str::from_utf8(bytes).unwrap().trim());
            let well_formed = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
            assert!(well_formed, "{}", shown());
        }
        (Err(error), Ok(value)) => match error {
            ScanError::NotAnObject => assert!(!value.is_object(), "{}", shown()),
            ScanError::TooDeep | ScanError::Nul | ScanError::DuplicateKey(_) => {}
            other => panic!("{other:?}: {}", shown()),
        },
        (Err(_), Err(_)) => {}
    }
}
