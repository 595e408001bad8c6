//! The trace parent: the cause of a call in a distributed trace.

use std::fmt;

/// A position in a trace: the value of the W3C header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: u128,
    /// The id of the span that causes what carries the header.
    pub span_id: u64,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

impl TraceParent {
    /// Parses the header's value. Any other form counts as absent.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let (head, rest) = text.split_at_checked(55)?;
        let mut parts = head.split('-');
        let version = lower_hex(parts.next()?, 2)?;
        let trace_id = lower_hex(parts.next()?, 32)?;
        let span_id = u64::try_from(lower_hex(parts.next()?, 16)?).ok()?;
        let flags = lower_hex(parts.next()?, 2)?;
        // A later version may add parts; version 00 has no further parts.
        let closed = rest.is_empty() || version > 0 && rest.starts_with('-');
        let sound = parts.next().is_none() && closed && version != 0xff;
        (sound && trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
        })
    }
}

/// The header's value in version 00.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id, span_id, ..
        } = self;
        let flags = u8::from(self.sampled);
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

fn lower_hex(text: &str, length: usize) -> Option<u128> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != length || !text.bytes().all(lower) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn recommended_form_is_parsed_and_printed_unchanged() {
        let read = TraceParent::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(read.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(read.span_id, 0xb7ad_6b71_6920_3331);
        assert!(read.sampled);
        assert_eq!(read.to_string(), GOOD);
        let unsampled = GOOD.replace("-01", "-00");
        let read = TraceParent::parse(unsampled.as_bytes()).unwrap();
        assert!(!read.sampled);
        assert_eq!(read.to_string(), unsampled);
    }

    #[test]
    fn later_version_is_printed_as_version_00() {
        let later = format!("cc{}-what-comes", GOOD[2..].replace("-01", "-03"));
        let read = TraceParent::parse(later.as_bytes()).unwrap();
        assert_eq!(read.to_string(), GOOD);
    }

    #[test]
    fn leading_zeros_are_printed() {
        let small = TraceParent {
            trace_id: 1,
            span_id: 2,
            sampled: false,
        };
        let text = "00-00000000000000000000000000000001-0000000000000002-00";
        assert_eq!(small.to_string(), text);
        assert_eq!(TraceParent::parse(text.as_bytes()), Some(small));
    }

    #[test]
    fn other_traceparent_counts_as_absent() {
        let refused = [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-more"),
            format!("{GOOD} "),
            GOOD.to_uppercase(),
            GOOD.replace("00-", "ff-"),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace('-', "_"),
            GOOD.replace("b7ad", "+7ad"),
            format!("cc{}what", &GOOD[2..]),
            "é".repeat(40),
        ];
        for text in refused {
            assert_eq!(TraceParent::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(TraceParent::parse(&[0xff; 55]), None);
    }
}
