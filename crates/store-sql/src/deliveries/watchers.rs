//! The workers that the store wakes after deliveries were queued.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use partner_core::ports::QueueWaker;

/// The workers of this process that still exist.
#[derive(Default)]
pub struct Watchers(Mutex<Vec<Weak<dyn QueueWaker>>>);

impl Watchers {
    pub fn add(&self, wake: &Arc<dyn QueueWaker>) {
        let mut watchers = self.lock();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(wake));
    }

    pub fn wake(&self) {
        let watchers = self.lock();
        let existing = watchers.iter().filter_map(Weak::upgrade);
        existing.for_each(|watcher| watcher.wake());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<dyn QueueWaker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
