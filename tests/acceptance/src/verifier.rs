//! The verifier: the sandbox's or a replacement, unless a test scripts a response.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gate_core::object::JsonObject;
use gate_core::ports::{VerificationOrder, VerificationStart, Verifier};
use gate_core::verification::form::Form;
use gate_core::verification::{Contradiction, VerificationReport};
use kernel::{Clock, Named, UpstreamName};
use parking_lot::Mutex;
use providers::SandboxVerifier;

use crate::rail::sandbox_pages;

/// How long the page and the form of a scripted start count.
const LIFE: Duration = Duration::from_secs(60 * 60);

type Meanwhile = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct Script {
    is_used: bool,
    reports: VecDeque<Option<VerificationReport>>,
    form: Option<Form>,
    meanwhile: Option<Meanwhile>,
    calls: Vec<&'static str>,
    contradictions: Vec<Contradiction>,
}

/// A verifier that records every call and returns scripted responses, then those of the sandbox or its replacement.
pub struct ScriptedVerifier {
    behind: Mutex<Arc<dyn Verifier>>,
    script: Mutex<Script>,
}

impl fmt::Debug for ScriptedVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedVerifier")
    }
}

impl ScriptedVerifier {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            behind: Mutex::new(Arc::new(SandboxVerifier::new(clock, sandbox_pages()))),
            script: Mutex::default(),
        }
    }

    /// Replaces the sandbox with another verifier.
    pub fn becomes(&self, verifier: Arc<dyn Verifier>) {
        *self.behind.lock() = verifier;
    }

    fn behind(&self) -> Arc<dyn Verifier> {
        Arc::clone(&self.behind.lock())
    }

    /// Scripts the reports of the next calls, one per call. `None` is silence.
    pub fn says(&self, reports: impl IntoIterator<Item = Option<VerificationReport>>) {
        let mut script = self.script.lock();
        script.is_used = true;
        script.reports.extend(reports);
    }

    /// Makes the scripted starts ask for this form.
    pub fn asks_for(&self, form: Form) {
        self.script.lock().form = Some(form);
    }

    /// Runs an action between the next request and its response.
    pub fn meanwhile(&self, action: impl Future<Output = ()> + Send + 'static) {
        self.script.lock().meanwhile = Some(Box::pin(action));
    }

    /// Every call since the last call of this method.
    pub fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.script.lock().calls)
    }

    /// Every contradiction that the rules reported since the last call of this method.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        std::mem::take(&mut self.script.lock().contradictions)
    }

    /// The scripted report, or `None` if the sandbox or its replacement responds.
    async fn next(&self, call: &'static str) -> Option<Option<VerificationReport>> {
        let meanwhile = {
            let mut script = self.script.lock();
            script.calls.push(call);
            script.meanwhile.take()
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        self.script.lock().reports.pop_front()
    }
}

impl Named for ScriptedVerifier {
    fn name(&self) -> UpstreamName {
        self.behind().name()
    }
}

#[async_trait]
impl Verifier for ScriptedVerifier {
    async fn start(&self, order: &VerificationOrder) -> Option<VerificationStart> {
        let Some(report) = self.next("start").await else {
            return self.behind().start(order).await;
        };
        Some(VerificationStart {
            report: report?,
            url: Some(format!("https://verifier.example/{}", order.id)),
            form: self.script.lock().form.clone(),
            expires_at: Some(order.created_at.plus(LIFE)),
            reference: Some(format!("case-{}", order.id)),
        })
    }

    async fn submit(
        &self,
        order: &VerificationOrder,
        answers: &JsonObject,
    ) -> Option<VerificationReport> {
        match self.next("submit").await {
            Some(report) => report,
            None => self.behind().submit(order, answers).await,
        }
    }

    async fn report(&self, order: &VerificationOrder) -> Option<VerificationReport> {
        match self.next("report").await {
            Some(report) => report,
            None => self.behind().report(order).await,
        }
    }

    /// A verifier that a test scripts counts as a real one.
    fn is_simulated(&self) -> bool {
        !self.script.lock().is_used && self.behind().is_simulated()
    }

    fn contradicted(&self, contradiction: &Contradiction) {
        self.script.lock().contradictions.push(*contradiction);
    }
}
