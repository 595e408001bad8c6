//! The liquidity engine: the sandbox's or a replacement, unless a test scripts
//! a response.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Named, UpstreamName};
use parking_lot::Mutex;
use partner_core::Tenant;
use partner_core::ports::Ticket;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{Contradiction, EngineReport, TradeId};
use providers::SandboxEngine;

/// One call the engine has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A depth request.
    Depth(Order),
    /// A hold request.
    Hold(TradeId, Order),
    /// A confirmation.
    Confirm(TradeId),
    Release(TradeId),
    /// A report request.
    Report(TradeReportRequest),
}

/// How the engine responds to one kind of call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<T> {
    /// As the sandbox or its replacement does.
    Sandbox,
    /// Never responds.
    Silent,
    /// Always responds with this value.
    Says(T),
    /// Responds with one of these per call, then as the sandbox does. `None` is silence.
    Then(Vec<Option<T>>),
}

impl<T: Clone> Reply<T> {
    /// The scripted response, or `None` if the sandbox responds.
    fn next(&mut self) -> Option<Option<T>> {
        match self {
            Self::Sandbox => None,
            Self::Silent => Some(None),
            Self::Says(answer) => Some(Some(answer.clone())),
            Self::Then(answers) if answers.is_empty() => None,
            Self::Then(answers) => Some(answers.remove(0)),
        }
    }
}

type Hook = Arc<dyn Fn(Asked) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

struct Script {
    name: UpstreamName,
    behind: Arc<dyn Engine>,
    hold: Reply<Hold>,
    confirm: Reply<Confirmation>,
    report: Reply<EngineReport>,
    meanwhile: Option<Hook>,
    asked: Vec<Asked>,
    contradictions: Vec<Contradiction>,
    timeout: Option<Duration>,
}

/// An engine that records every call and returns scripted responses.
pub struct ScriptedEngine(Mutex<Script>);

impl Default for ScriptedEngine {
    fn default() -> Self {
        Self(Mutex::new(Script {
            name: UpstreamName::built_in("scripted"),
            behind: Arc::new(SandboxEngine),
            hold: Reply::Sandbox,
            confirm: Reply::Sandbox,
            report: Reply::Sandbox,
            meanwhile: None,
            asked: Vec::new(),
            contradictions: Vec::new(),
            timeout: None,
        }))
    }
}

impl fmt::Debug for ScriptedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedEngine")
    }
}

impl ScriptedEngine {
    /// Replaces the sandbox with another engine.
    pub fn becomes(&self, engine: Arc<dyn Engine>) {
        self.0.lock().behind = engine;
    }

    /// Changes the engine's name, which trades record.
    pub fn named(&self, name: &'static str) {
        self.0.lock().name = UpstreamName::built_in(name);
    }

    fn behind(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.0.lock().behind)
    }

    /// Replaces the engine's timeout.
    pub fn timeout_is(&self, timeout: Duration) {
        self.0.lock().timeout = Some(timeout);
    }

    /// Scripts holds.
    pub fn hold(&self, reply: Reply<Hold>) {
        self.0.lock().hold = reply;
    }

    /// Scripts confirmations.
    pub fn confirm(&self, reply: Reply<Confirmation>) {
        self.0.lock().confirm = reply;
    }

    /// Scripts reports.
    pub fn report(&self, reply: Reply<EngineReport>) {
        self.0.lock().report = reply;
    }

    /// Runs an action between the engine's request and its response.
    pub fn meanwhile<F, W>(&self, hook: F)
    where
        F: Fn(Asked) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        self.0.lock().meanwhile = Some(Arc::new(move |asked| Box::pin(hook(asked))));
    }

    /// Removes that action.
    pub fn in_peace(&self) {
        self.0.lock().meanwhile = None;
    }

    /// Every call since the last call of this method.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.0.lock().asked)
    }

    /// Every contradiction that the rules reported since the last call of this method.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        std::mem::take(&mut self.0.lock().contradictions)
    }

    async fn note(&self, asked: Asked) {
        let hook = {
            let mut script = self.0.lock();
            script.asked.push(asked.clone());
            script.meanwhile.clone()
        };
        if let Some(hook) = hook {
            hook(asked).await;
        }
    }
}

impl Named for ScriptedEngine {
    fn name(&self) -> UpstreamName {
        self.0.lock().name.clone()
    }
}

#[async_trait]
impl Engine for ScriptedEngine {
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth> {
        self.note(Asked::Depth(order.clone())).await;
        self.behind().depth(who, order).await
    }

    async fn hold(
        &self,
        who: &Tenant,
        trade: TradeId,
        order: &Order,
        output: Amount,
    ) -> Option<Hold> {
        self.note(Asked::Hold(trade, order.clone())).await;
        let scripted = self.0.lock().hold.next();
        match scripted {
            Some(answer) => answer,
            None => self.behind().hold(who, trade, order, output).await,
        }
    }

    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.note(Asked::Confirm(trade)).await;
        let scripted = self.0.lock().confirm.next();
        match scripted {
            Some(answer) => answer,
            None => self.behind().confirm(who, trade).await,
        }
    }

    async fn confirm_again(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.note(Asked::Confirm(trade)).await;
        let scripted = self.0.lock().confirm.next();
        match scripted {
            Some(answer) => answer,
            None => self.behind().confirm_again(who, trade).await,
        }
    }

    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()> {
        self.note(Asked::Release(trade)).await;
        self.behind().release(who, trade).await
    }

    async fn report(&self, who: &Tenant, request: &TradeReportRequest) -> Option<EngineReport> {
        self.note(Asked::Report(request.clone())).await;
        let scripted = self.0.lock().report.next();
        match scripted {
            Some(answer) => answer,
            None => self.behind().report(who, request).await,
        }
    }

    fn admit_poll(&self, who: &Tenant) -> Option<Ticket> {
        self.behind().admit_poll(who)
    }

    fn contradicted(&self, contradiction: &Contradiction) {
        self.0.lock().contradictions.push(*contradiction);
    }

    fn timeout(&self) -> Duration {
        let replaced = self.0.lock().timeout;
        replaced.unwrap_or_else(|| self.behind().timeout())
    }
}
