//! Rows of the queue that could not be read. Claims leave them out for a while, so that every other delivery continues.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use instruments::faults;
use kernel::{StoreResult, Timestamp, causes};

/// How long an unreadable row is left out.
const LEFT_OUT_FOR: Duration = Duration::from_secs(60);
/// Maximum number of rows that are left out. After that, the row that was left out first is read again.
const MAX_LEFT_OUT: usize = 1_000;

/// The rows that are left out, and until when. Rows whose keys are unreadable too share the key `None`.
#[derive(Debug)]
pub struct LeftOutRows<K>(Mutex<BTreeMap<Option<K>, Timestamp>>);

impl<K> Default for LeftOutRows<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Ord> LeftOutRows<K> {
    /// The keys of the rows that are left out at an instant.
    pub fn keys(&self, now: Timestamp) -> Vec<K> {
        let mut rows = self.lock();
        rows.retain(|_, until| now < *until);
        rows.keys().flatten().cloned().collect()
    }

    /// Returns a row that could be read. Leaves any other row out, counts it and logs it, once for each time that it is left out.
    pub fn readable<T>(&self, key: Option<K>, read: StoreResult<T>, now: Timestamp) -> Option<T> {
        let error = match read {
            Ok(row) => return Some(row),
            Err(error) => error,
        };
        if self.leave_out(key, now) {
            faults::of_store(&error);
            tracing::error!(
                error.chain = causes(&error),
                "A row of the delivery queue cannot be read; it is left out for a minute. Run `penstock verify`"
            );
        }
        None
    }

    /// Returns false if the row was left out already.
    fn leave_out(&self, key: Option<K>, now: Timestamp) -> bool {
        let mut rows = self.lock();
        rows.retain(|_, until| now < *until);
        if rows.contains_key(&key) {
            return false;
        }
        if rows.len() >= MAX_LEFT_OUT {
            let first = rows.iter().min_by_key(|(_, until)| **until);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                rows.remove(&first);
            }
        }
        rows.insert(key, now.plus(LEFT_OUT_FOR));
        true
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<K>, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kernel::StoreError;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000).unwrap()
    }

    fn unreadable() -> StoreResult<()> {
        Err(StoreError::Retry)
    }

    // rule: background.unreadable
    #[test]
    fn unreadable_row_is_left_out_for_a_minute_and_read_again_after_it() {
        let rows = LeftOutRows::<i64>::default();
        assert_eq!(rows.readable(Some(1), Ok(7), at(0)), Some(7));
        assert_eq!(rows.readable(Some(1), unreadable(), at(0)), None);
        assert_eq!(rows.readable(None, unreadable(), at(0)), None);
        assert_eq!(rows.keys(at(59)), [1]);
        assert!(!rows.leave_out(Some(1), at(59)), "it is logged once");
        assert!(!rows.leave_out(None, at(59)));
        assert!(rows.keys(at(60)).is_empty());
        assert!(rows.leave_out(Some(1), at(60)));
        assert_eq!(rows.keys(at(119)), [1]);
    }

    #[test]
    fn row_that_was_left_out_first_is_read_again_when_too_many_are() {
        let (rows, last) = (LeftOutRows::default(), i64::try_from(MAX_LEFT_OUT).unwrap());
        for second in 0..=50 {
            assert!(rows.leave_out(Some(second), at(second)));
        }
        for row in 51..=last {
            assert!(rows.leave_out(Some(row), at(50)));
        }
        let keys = rows.keys(at(50));
        assert_eq!((keys.len(), keys[0]), (MAX_LEFT_OUT, 1));
    }
}
