//! The engine of the model.

use kernel::Named;

use super::*;

impl Named for Ports {
    fn name(&self) -> UpstreamName {
        UpstreamName::built_in("engine")
    }
}

#[async_trait]
impl Engine for Ports {
    async fn depth(&self, _: &Tenant, _: &Order) -> Option<Depth> {
        None
    }

    async fn hold(&self, _: &Tenant, trade: TradeId, _: &Order, _: Amount) -> Option<Hold> {
        let (view, now) = self.0.turn(Call::Hold).await;
        let mut engine = (*view.engine).clone();
        let answer = match view.fault {
            Fault::Refused => Some(Hold::Refused),
            Fault::Lost => None,
            Fault::Unheard => {
                engine.hold(trade);
                None
            }
            Fault::None | Fault::Away | Fault::Lapsed | Fault::Earlier | Fault::Contradiction => {
                Some(engine.hold(trade))
            }
        };
        self.0.leave_engine(now, engine);
        self.0.receive(&answer);
        answer
    }

    async fn confirm(&self, _: &Tenant, trade: TradeId) -> Option<Confirmation> {
        let (view, now) = self.0.turn(Call::Confirm).await;
        let mut engine = (*view.engine).clone();
        let answer = match view.fault {
            Fault::Lost => None,
            Fault::Unheard => {
                engine.confirm(trade);
                None
            }
            Fault::Lapsed => Some(Confirmation::Lapsed),
            Fault::None | Fault::Away | Fault::Refused | Fault::Earlier | Fault::Contradiction => {
                Some(engine.confirm(trade))
            }
        };
        self.0.leave_engine(now, engine);
        self.0.receive(&answer);
        answer
    }

    async fn release(&self, _: &Tenant, trade: TradeId) -> Option<()> {
        let (view, now) = self.0.turn(Call::Release).await;
        let mut engine = (*view.engine).clone();
        let answer = (view.fault == Fault::None).then(|| engine.release(trade));
        self.0.leave_engine(now, engine);
        answer
    }

    async fn report(&self, _: &Tenant, request: &TradeReportRequest) -> Option<EngineReport> {
        let (view, _) = self.0.turn(Call::Report).await;
        let answer = match view.fault {
            Fault::Lost | Fault::Unheard => None,
            Fault::Earlier => Some(view.engine.earlier_report(request)),
            Fault::Contradiction => Some(contradiction(request.attempt)),
            Fault::None | Fault::Away | Fault::Refused | Fault::Lapsed => {
                Some(view.engine.report(request))
            }
        };
        self.0.receive(&answer);
        answer
    }

    /// The engine's timeout is zero, so a lease lasts only its fixed part.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}
