//! The background tasks of the gate.

use std::sync::Arc;

use gate_core::events::RenderResource;
use gate_core::rail::Finding;
use gate_core::usecases::advance_rails::AdvanceRails;
use gate_core::usecases::advance_verifications::AdvanceVerifications;
use gate_core::usecases::compare_customers::CompareCustomers;
use gate_core::usecases::context::GateContext;
use gate_core::usecases::wake_rail::Waking;
use gate_core::usecases::watch_rails::WatchRails;
use instruments::upstream;

use super::Runtime;
use crate::background::delete_unused_quotes;
use crate::customer_forms::compare_customers;
use crate::elsewhere::{Configured, count_held};
use crate::polls::{settle_rails, settle_verifications, sweep_sessions, watch_rails};

impl Runtime {
    /// What the use cases of the gate share. `render` renders the resources of events.
    #[must_use]
    pub fn gate_context(&self, render: RenderResource) -> GateContext {
        GateContext {
            store: self.base.store.clone(),
            sealer: Arc::clone(&self.base.sealer),
            entropy: Arc::clone(&self.base.entropy),
            render,
        }
    }

    /// Starts expiring overdue gate sessions, until shutdown, unless the configuration disables it.
    pub fn sweep_sessions(&self, context: GateContext) {
        let (store, config) = (self.base.store.clone(), &self.base.config);
        if let Some(every) = config.session_sweep {
            let pace = (config.mode, every);
            self.tasks.start("session_sweep", move |stop| {
                sweep_sessions(context.clone(), pace, store.clone(), stop)
            });
        }
    }

    /// Starts asking each rail about its records, and counting open items and what other upstreams hold, until shutdown.
    pub fn settle_rails(&self, context: &GateContext) {
        upstream::rail_begin(
            &Finding::ALL.map(Finding::as_str),
            &Waking::ALL.map(Waking::as_str),
        );
        let mode = self.base.config.mode;
        for rail in self.rails.iter() {
            let store = self.base.store.clone();
            let settling = AdvanceRails {
                context: context.clone(),
                rail: Arc::clone(rail),
            };
            self.tasks.start("rails", move |stop| {
                settle_rails(settling.clone(), mode, store.clone(), stop)
            });
            let store = self.base.store.clone();
            let watching = WatchRails {
                context: context.clone(),
                rail: Arc::clone(rail),
            };
            self.tasks.start("watched_rails", move |stop| {
                watch_rails(watching.clone(), mode, store.clone(), stop)
            });
        }
        let store = self.base.store.clone();
        let configured = Configured {
            rails: self.rails.names(),
            verifiers: self.verifiers.names(),
        };
        self.tasks.start("held_elsewhere", move |stop| {
            count_held(store.clone(), mode, configured.clone(), stop)
        });
    }

    /// Starts asking each verifier about its verifications, until shutdown.
    pub fn settle_verifications(&self, context: &GateContext) {
        let mode = self.base.config.mode;
        for verifier in self.verifiers.iter() {
            let store = self.base.store.clone();
            let settling = AdvanceVerifications {
                context: context.clone(),
                verifier: Arc::clone(verifier),
            };
            self.tasks.start("verifications", move |stop| {
                settle_verifications(settling.clone(), mode, store.clone(), stop)
            });
        }
    }

    /// Starts filling in the forms of comparison of customers that an earlier version stored, until shutdown.
    pub fn compare_customers(&self) {
        let (store, mode) = (self.base.store.clone(), self.base.config.mode);
        let comparing = CompareCustomers {
            store: self.base.store.clone(),
            sealer: Arc::clone(&self.base.sealer),
        };
        self.tasks.start("customer_forms", move |stop| {
            compare_customers(comparing.clone(), mode, store.clone(), stop)
        });
    }

    /// Starts deleting quotes of the widget that were not redeemed when their session ended, until shutdown.
    pub fn delete_unused_quotes(&self) {
        let (store, mode) = (self.base.store.clone(), self.base.config.mode);
        self.tasks.start("unused_quotes", move |stop| {
            delete_unused_quotes(store.clone(), store.clone(), mode, stop)
        });
    }
}
