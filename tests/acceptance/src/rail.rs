//! The rail: the sandbox's or a replacement, which a test can make silent.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use gate_core::ports::{CancelReport, GivenUp, Rail, RailOrder, RailPoll, RailSimulation};
use gate_core::rail::{Instructions, RailAnswer};
use kernel::{Named, UpstreamName};
use parking_lot::Mutex;
use partner_core::PartnerId;
use partner_core::origin::Origin;
use providers::{SandboxPages, SandboxRail};

use crate::world::World;

/// The sandbox's rail of a world.
pub fn sandbox_rail(world: &World) -> SandboxRail {
    SandboxRail::new(
        world.ticking(),
        world.setup().settles_after,
        sandbox_pages(),
    )
}

/// The sandbox's pages at the usual address of the widget.
pub(crate) fn sandbox_pages() -> SandboxPages {
    let pages = SandboxPages::default();
    pages.are_at(Origin::of_address(([127, 0, 0, 1], 4030).into()));
    pages
}

type Meanwhile = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Responds as the sandbox's rail or its replacement does, except while it is silent.
pub struct SilencedRail {
    is_silent: AtomicBool,
    behind: Mutex<Arc<dyn Rail>>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl fmt::Debug for SilencedRail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SilencedRail")
    }
}

impl SilencedRail {
    /// The sandbox's rail of a world.
    pub(crate) fn new(world: &World) -> Self {
        Self {
            is_silent: AtomicBool::default(),
            behind: Mutex::new(Arc::new(sandbox_rail(world))),
            meanwhile: Mutex::default(),
        }
    }

    /// Makes the rail silent, or lets it respond again.
    pub fn set_silent(&self, silent: bool) {
        self.is_silent.store(silent, Ordering::SeqCst);
    }

    /// Replaces the sandbox with another rail.
    pub fn becomes(&self, rail: Arc<dyn Rail>) {
        *self.behind.lock() = rail;
    }

    /// Runs an action between the next poll or request for instructions and its response.
    pub fn meanwhile(&self, action: impl Future<Output = ()> + Send + 'static) {
        *self.meanwhile.lock() = Some(Box::pin(action));
    }

    async fn pass(&self) {
        let meanwhile = self.meanwhile.lock().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
    }

    fn behind(&self) -> Arc<dyn Rail> {
        Arc::clone(&self.behind.lock())
    }

    /// The rail that responds; `None` while it is silent.
    fn responding(&self) -> Option<Arc<dyn Rail>> {
        (!self.is_silent.load(Ordering::SeqCst)).then(|| self.behind())
    }
}

impl Named for SilencedRail {
    fn name(&self) -> UpstreamName {
        self.behind().name()
    }
}

#[async_trait]
impl Rail for SilencedRail {
    async fn instructions(&self, order: &RailOrder) -> Option<Instructions> {
        self.pass().await;
        self.responding()?.instructions(order).await
    }

    async fn advance(&self, order: &RailOrder, poll: RailPoll) -> RailAnswer {
        self.pass().await;
        match self.responding() {
            Some(rail) => rail.advance(order, poll).await,
            None => RailAnswer::Silent,
        }
    }

    async fn watch(&self, order: &RailOrder) -> RailAnswer {
        match self.responding() {
            Some(rail) => rail.watch(order).await,
            None => RailAnswer::Silent,
        }
    }

    fn ask_again(&self, order: &RailOrder, attempt: u32) -> Option<Duration> {
        self.behind().ask_again(order, attempt)
    }

    fn polls_hang(&self, partner: &PartnerId) -> bool {
        self.behind().polls_hang(partner)
    }

    async fn cancel(&self, order: &RailOrder, given_up: GivenUp) -> Option<CancelReport> {
        self.responding()?.cancel(order, given_up).await
    }

    fn simulation(&self) -> Option<Arc<dyn RailSimulation>> {
        self.behind().simulation()
    }
}
