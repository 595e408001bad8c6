//! Values that are hard to parse.

use serde_json::{Value, json};

use crate::dice::Dice;

/// Texts that have broken parsers before.
const TEXTS: [&str; 46] = [
    "",
    " ",
    "\0",
    "EUR\0",
    "\u{0}\u{0}\u{0}",
    "\n",
    "a\r\nX-Injected: 1",
    "\t",
    "\u{1b}[31mred",
    "\u{7f}",
    "\u{80}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{200d}",
    "\u{2028}",
    "\u{202e}RUE",
    "\u{feff}EUR",
    "\u{fffd}",
    "\u{ffff}",
    "\u{10ffff}",
    "e\u{301}",
    "é",
    "ﬀ",
    "ＥＵＲ",
    "еur",
    "İ",
    "ß",
    "💰",
    "👩‍👩‍👧‍👦",
    "٣",
    "１００",
    "null",
    "undefined",
    "true",
    "[object Object]",
    "' OR 1=1 --",
    "\"; DROP TABLE trades; --",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "%s%n%x",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "\\",
    "\"}",
    "%00",
];

/// Numbers as texts; most are not valid amounts.
const AMOUNTS: &str = "0 0.0 0.00000000 -0 -1 +1 01 00 .5 1. 1..2 1e3 1E-3 0x10 1,5 1_000 NaN \
    Infinity -Infinity 1/2 0.01 0.001 100.000 100.001 10.00 9.99 99999.99 100000.01 10000000000 10000000000.01 \
    9223372036854775807 9223372036854775808 92233720368.54775807 92233720368.54775808 \
    79228162514264337593543950335 79228162514264337593543950336 \
    340282366920938463463374607431768211456 1000000000000000000000000000000 \
    0.1234567890123456789012345678 0.000000000000000000000000000000000000000001";

/// Instants; most are malformed.
const INSTANTS: &str = "2026-05-25 2026-05-25T12:00:00Z 2026-05-25T12:00:00.123456789Z \
    2026-05-25T12%3A00%3A00%2B02%3A00 2026-05-25T12:00:00+02:00 1990-12-31T23:59:60Z 0000-01-01 \
    9999-12-31T23:59:59.999Z 10000-01-01 -0001-01-01 2026-02-29 2026-13-01 2026-05-25T24:00:00Z \
    2026-05-25T12:00:00 2026-05-25t12:00:00z 1969-12-31T23:59:59Z 1779710400 yesterday \
    2026-05-25T12:00:00%2B99:99";

/// Integers as texts.
const INTEGERS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "2",
    "50",
    "100",
    "101",
    "200",
    "201",
    "-0",
    "+5",
    "5.0",
    "1e1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999999999999999999",
    "",
];

pub(crate) fn amount(dice: &Dice) -> String {
    dice.among(AMOUNTS)
}

pub(crate) fn instant(dice: &Dice) -> String {
    dice.among(INSTANTS)
}

pub(crate) fn integer(dice: &Dice) -> String {
    dice.word(&INTEGERS)
}

/// A text that replaces another.
pub(crate) fn text(dice: &Dice, old: &str) -> String {
    match dice.below(12) {
        0..=3 => dice.word(&TEXTS),
        4 => amount(dice),
        5 => old.to_uppercase(),
        6 => old.to_lowercase(),
        7 => format!(" {old}"),
        8 => format!("{old}{}", dice.word(&TEXTS)),
        9 => old.chars().skip(1).collect(),
        10 => old.repeat(2),
        _ => dice
            .word(&["x", "9", "é", "_"])
            .repeat(*dice.pick(&[33, 255, 256, 5_000, 60_000])),
    }
}

/// A value of any type that replaces another.
pub(crate) fn value(dice: &Dice, old: &Value) -> Value {
    match dice.below(16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(dice.between(-1_000, 1_000)),
        3 => json!(u64::MAX),
        4 => json!(1.5e300),
        5 => json!([]),
        6 => json!({}),
        7 => json!([old]),
        8 => json!({ "value": old }),
        9 => deep(*dice.pick(&[2, 30, 31, 32, 33, 120])),
        10 | 11 => json!(amount(dice)),
        _ => json!(text(dice, old.as_str().unwrap_or("x"))),
    }
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({ "a": inner })
        }
    })
}

/// Percent-encoded for a path or query.
pub(crate) fn escaped(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte) {
            written.push(byte as char);
        } else {
            written += &format!("%{byte:02X}");
        }
    }
    written
}
