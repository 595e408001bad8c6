//! The sandbox's rail, which a test can make silent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{CancelReport, Rail, RailOrder};
use gate_core::rail::{Instructions, RailReport};
use providers::SandboxRail;

/// Responds as the sandbox's rail does, except while it is silent.
#[derive(Debug, Default)]
pub struct SilencedRail(AtomicBool);

impl SilencedRail {
    /// Makes the rail silent, or lets it respond again.
    pub fn set_silent(&self, silent: bool) {
        self.0.store(silent, Ordering::SeqCst);
    }

    fn sandbox(&self) -> Option<SandboxRail> {
        (!self.0.load(Ordering::SeqCst)).then_some(SandboxRail)
    }
}

#[async_trait]
impl Rail for SilencedRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        self.sandbox()?.instructions(order).await
    }

    async fn advance(&self, order: &RailOrder, attempt: u32) -> Option<RailReport> {
        self.sandbox()?.advance(order, attempt).await
    }

    fn ask_again(&self, order: &RailOrder, attempt: u32) -> Option<Duration> {
        SandboxRail.ask_again(order, attempt)
    }

    async fn cancel(&self, order: &RailOrder) -> Option<CancelReport> {
        self.sandbox()?.cancel(order).await
    }
}
