//! The quota: the number of live sessions that a partner may create in a calendar month.

use std::fmt;

use kernel::Timestamp;

/// A calendar month of UTC, such as `2026-05`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Month(String);

impl Month {
    /// The month of an instant, in UTC.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        // RFC 3339 starts with the four digits of the year and the month.
        Self(at.to_string().chars().take(7).collect())
    }

    /// Parses a text such as `2026-05`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let at = Timestamp::parse(&format!("{text}-01"), kernel::Bound::Lower).ok()?;
        Some(Self::of(at)).filter(|month| month.0 == text)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of live sessions that a partner created in the latest month with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    pub month: Month,
    /// The number of sessions.
    pub created: u64,
}

/// The quota of the month is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session quota of this month is used up")]
pub struct Exhausted;

impl Tally {
    /// The tally after one more session. The first session of a new month starts at 1.
    ///
    /// # Errors
    /// [`Exhausted`] if the quota allows no further session.
    pub fn count(
        before: Option<&Self>,
        now: Timestamp,
        quota: Option<u64>,
    ) -> Result<Self, Exhausted> {
        let month = Month::of(now);
        let created = Self::in_month(before, &month);
        if quota.is_some_and(|quota| created >= quota) {
            return Err(Exhausted);
        }
        Ok(Self {
            month,
            created: created.saturating_add(1),
        })
    }

    /// Whether the quota allows no further session.
    #[must_use]
    pub fn used_up(tally: Option<&Self>, now: Timestamp, quota: Option<u64>) -> bool {
        Self::count(tally, now, quota).is_err()
    }

    fn in_month(tally: Option<&Self>, month: &Month) -> u64 {
        tally
            .filter(|tally| tally.month == *month)
            .map_or(0, |tally| tally.created)
    }
}

#[cfg(test)]
mod tests {
    use kernel::Bound;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text, Bound::Lower).unwrap()
    }

    // rule: gate.quota.exhausted
    #[test]
    fn tally_restarts_each_utc_month() {
        let last = at("2026-05-31T23:59:59.999Z");
        let first = Tally::count(None, last, Some(2)).unwrap();
        let second = Tally::count(Some(&first), last, Some(2)).unwrap();
        assert_eq!(
            (second.created, second.month.to_string().as_str()),
            (2, "2026-05")
        );
        assert_eq!(Tally::count(Some(&second), last, Some(2)), Err(Exhausted));
        assert!(Tally::used_up(Some(&second), last, Some(2)));
        let june = Tally::count(Some(&second), at("2026-06-01"), Some(2)).unwrap();
        assert_eq!(
            (june.created, june.month),
            (1, Month::parse("2026-06").unwrap())
        );
        assert_eq!(Tally::count(None, last, Some(0)), Err(Exhausted));
    }

    // rule: gate.quota.live-only
    #[test]
    fn tally_counts_without_quota() {
        let before = Tally {
            month: Month::parse("2026-05").unwrap(),
            created: u64::MAX,
        };
        let after = Tally::count(Some(&before), at("2026-05-02"), None).unwrap();
        assert_eq!(after.created, u64::MAX);
        assert!(!Tally::used_up(Some(&before), at("2026-05-02"), None));
    }

    #[test]
    fn month_requires_year_and_month() {
        for bad in ["", "2026", "2026-5", "2026-13", "2026-05-01", "26-05"] {
            assert_eq!(Month::parse(bad), None, "{bad}");
        }
    }
}
