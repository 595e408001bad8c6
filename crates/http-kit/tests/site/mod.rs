//! Facts about a service whose clock and entropy are fixed.

use std::sync::Arc;

use http_kit::ServiceInfo;
use kernel::{Clock, Entropy, Timestamp};

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000).unwrap()
    }
}

impl Entropy for Fixed {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(7);
    }
}

pub(crate) fn site() -> ServiceInfo {
    ServiceInfo::new("/docs", Arc::new(Fixed), Arc::new(Fixed))
}
