//! Instants, in whole milliseconds of UTC.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Timelike, Utc};

/// An instant of UTC, cut to whole milliseconds, so that the stored value equals the shown one.
///
/// Printed as RFC 3339 with `Z` and three fractional digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why a text is not an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// Neither RFC 3339 nor a date.
    #[error(
        "expected an RFC 3339 timestamp such as 2026-05-25T12:00:00Z or a date such as 2026-05-25"
    )]
    Unreadable,
    /// The text is valid with a `Z` at its end: it names no time zone.
    #[error("the time zone is missing; end a UTC time with Z, as in 2026-05-25T12:00:00Z")]
    NoZone,
    /// The text is valid with a plus sign in place of its space: the `+` of the offset was not encoded.
    #[error("the offset's `+` arrived as a space; encode it as %2B in a query string")]
    PlusAsSpace,
}

/// How an instant between two milliseconds is rounded if it bounds a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// An inclusive lower bound: rounded up, so that the range includes no earlier instant.
    Lower,
    /// An inclusive upper bound: rounded down, so that the range includes no later instant. An exclusive lower bound is rounded down
    /// too, so that the range includes every later instant.
    Upper,
}

/// Years 0000 to 9999, the range of RFC 3339.
const MIN: i64 = -62_167_219_200_000;
const MAX: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The earliest instant that can be printed.
    pub const EARLIEST: Self = Self(MIN);

    /// From milliseconds since 1970; `None` outside the years 0000 to 9999.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Option<Self> {
        if millis >= MIN && millis <= MAX {
            Some(Self(millis))
        } else {
            None
        }
    }

    /// From a chrono instant, cut down to the millisecond.
    #[must_use]
    pub fn from_utc(instant: DateTime<Utc>) -> Self {
        Self(instant.timestamp_millis().clamp(MIN, MAX))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This instant plus a duration, limited to the years that can be printed.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis_of(span)).min(MAX))
    }

    /// This instant minus a duration, limited to the years that can be printed.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis_of(span)).max(MIN))
    }

    /// The duration since an earlier instant; zero if that instant is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }

    /// Parses RFC 3339 with any offset, or a date alone (the start of that UTC day). The seconds may be absent. A leap second counts
    /// as the last millisecond before it. An instant between two milliseconds is rounded as `bound` says.
    ///
    /// # Errors
    /// [`TimestampError`] with the expected form.
    pub fn parse(text: &str, bound: Bound) -> Result<Self, TimestampError> {
        if let Some(found) = parse_date(text).or_else(|| parse_rfc3339(text, bound)) {
            return Ok(found);
        }
        let mended = text.replacen(' ', "+", 1);
        if mended != text && parse_rfc3339(&mended, bound).is_some() {
            return Err(TimestampError::PlusAsSpace);
        }
        if parse_rfc3339(&format!("{text}Z"), bound).is_some() {
            return Err(TimestampError::NoZone);
        }
        Err(TimestampError::Unreadable)
    }
}

fn millis_of(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn parse_date(text: &str) -> Option<Timestamp> {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shape {
        return None;
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    let midnight: NaiveDateTime = date.and_hms_opt(0, 0, 0)?;
    Timestamp::from_millis(midnight.and_utc().timestamp_millis())
}

fn parse_rfc3339(text: &str, bound: Bound) -> Option<Timestamp> {
    // chrono also accepts a space for the `T`; the published form of RFC 3339 does not.
    if !matches!(text.as_bytes().get(10), Some(b'T' | b't')) {
        return None;
    }
    let instant = DateTime::parse_from_rfc3339(&with_seconds(text)).ok()?;
    let nanos = instant.nanosecond();
    if nanos >= 1_000_000_000 {
        return Timestamp::from_millis(instant.timestamp().checked_mul(1000)?.checked_add(999)?);
    }
    let floor = instant.timestamp_millis();
    let between = nanos % 1_000_000 != 0;
    let millis = if between && bound == Bound::Lower {
        floor.checked_add(1)?
    } else {
        floor
    };
    Timestamp::from_millis(millis)
}

/// Adds the seconds that RFC 3339 requires, if the offset follows the minutes.
fn with_seconds(text: &str) -> Cow<'_, str> {
    match (text.as_bytes().get(16), text.split_at_checked(16)) {
        (Some(b'Z' | b'z' | b'+' | b'-'), Some((minutes, offset))) => {
            format!("{minutes}:00{offset}").into()
        }
        _ => text.into(),
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = DateTime::from_timestamp_millis(self.0).ok_or(fmt::Error)?;
        f.write_str(&instant.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

crate::debug_as_display!(Timestamp);

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        match Timestamp::parse(text, Bound::Lower) {
            Ok(at) => at.to_string(),
            Err(error) => format!("{error:?}"),
        }
    }

    // rule: time.output, time.input-offset, time.input-date, time.input-leap
    #[test]
    fn timestamp_parses_examples_of_rfc_3339() {
        assert_eq!(read("1985-04-12T23:20:50.52Z"), "1985-04-12T23:20:50.520Z");
        assert_eq!(
            read("1996-12-19T16:39:57-08:00"),
            "1996-12-20T00:39:57.000Z"
        );
        assert_eq!(read("1990-12-31T23:59:60Z"), "1990-12-31T23:59:59.999Z");
        assert_eq!(
            read("1990-12-31T15:59:60-08:00"),
            "1990-12-31T23:59:59.999Z"
        );
        assert_eq!(
            read("1937-01-01T12:00:27.87+00:20"),
            "1937-01-01T11:40:27.870Z"
        );
        assert_eq!(read("2026-05-25"), "2026-05-25T00:00:00.000Z");
        assert_eq!(read("2026-05-25t01:02:03z"), "2026-05-25T01:02:03.000Z");
    }

    // rule: time.input-seconds
    #[test]
    fn timestamp_without_seconds_is_the_start_of_its_minute() {
        for text in [
            "2026-05-25T12:34Z",
            "2026-05-25t12:34z",
            "2026-05-25T14:34+02:00",
            "2026-05-25T10:34-02:00",
        ] {
            assert_eq!(read(text), "2026-05-25T12:34:00.000Z", "{text}");
        }
        for bad in ["2026-05-25T12Z", "2026-05-25T12:60Z", "2026-05-25T12:3Z"] {
            assert_eq!(read(bad), "Unreadable", "{bad}");
        }
        assert_eq!(read("2026-05-25T12:34 02:00"), "PlusAsSpace");
    }

    // rule: time.input-zone
    #[test]
    fn time_without_zone_is_refused_by_name() {
        for bad in [
            "2026-05-25T12:00:00",
            "2026-05-25T12:00",
            "2026-05-25T12:00:00.5",
        ] {
            assert_eq!(read(bad), "NoZone", "{bad}");
        }
    }

    #[test]
    fn timestamp_parser_refuses_other_texts() {
        for bad in [
            "",
            "yesterday",
            "2026-05-25 12:00:00Z",
            "2026-5-25",
            "2026-02-30",
            "1716638400",
            "2026-05-25T25:00:00Z",
            "+2026-05-25",
        ] {
            assert_eq!(read(bad), "Unreadable", "{bad}");
        }
        assert_eq!(read("2026-05-25T12:00:00 02:00"), "PlusAsSpace");
    }

    #[test]
    fn bound_between_milliseconds_is_rounded_inwards() {
        let text = "2026-05-25T12:00:00.1234Z";
        let lower = Timestamp::parse(text, Bound::Lower).unwrap();
        let upper = Timestamp::parse(text, Bound::Upper).unwrap();
        assert_eq!(lower.to_string(), "2026-05-25T12:00:00.124Z");
        assert_eq!(upper.to_string(), "2026-05-25T12:00:00.123Z");
    }

    proptest! {
        // rule: time.output
        #[test]
        fn printed_timestamp_parses_again(millis in MIN..=MAX) {
            let instant = Timestamp::from_millis(millis).unwrap();
            let text = instant.to_string();
            prop_assert_eq!(text.len(), "2026-05-25T12:00:00.000Z".len());
            for bound in [Bound::Lower, Bound::Upper] {
                prop_assert_eq!(Timestamp::parse(&text, bound), Ok(instant));
            }
        }

        // rule: time.input-offset
        #[test]
        fn timestamp_is_independent_of_offset(millis in -2_000_000_000_000..4_000_000_000_000_i64, minutes in -1439..=1439_i32) {
            let offset = FixedOffset::east_opt(minutes * 60).unwrap();
            let text = DateTime::from_timestamp_millis(millis).unwrap().with_timezone(&offset).to_rfc3339();
            prop_assert_eq!(Timestamp::parse(&text, Bound::Lower).map(Timestamp::millis), Ok(millis));
        }

        #[test]
        fn instant_between_milliseconds_is_rounded_inwards(seconds in 0..4_000_000_000_i64, nanos in 0..1_000_000_000_u32) {
            let text = DateTime::from_timestamp(seconds, nanos).unwrap().to_rfc3339_opts(SecondsFormat::Nanos, true);
            let (exact, units) = (i128::from(seconds) * 1_000_000_000 + i128::from(nanos), 1_000_000);
            let [lower, upper] = [Bound::Lower, Bound::Upper].map(|bound| i128::from(Timestamp::parse(&text, bound).unwrap().millis()) * units);
            prop_assert!(exact <= lower && lower - exact < units);
            prop_assert!(upper <= exact && exact - upper < units);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in ".{0,40}|[0-9TZtz:. +-]{8,32}") {
            if let Ok(instant) = Timestamp::parse(&text, Bound::Lower) {
                prop_assert_eq!(Timestamp::parse(&instant.to_string(), Bound::Lower), Ok(instant));
            }
        }
    }
}
