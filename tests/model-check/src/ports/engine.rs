//! The engine of the model.

use super::*;

#[async_trait]
impl Engine for Ports {
    async fn depth(&self, _: &Order) -> Option<Depth> {
        None
    }

    async fn hold(&self, trade: TradeId, _: &Order, _: Amount) -> Option<Hold> {
        let (view, now) = self.0.turn(Call::Hold).await;
        let mut far = (*view.far).clone();
        let answer = match view.fault {
            Fault::Refused => Some(Hold::Refused),
            Fault::Lost => None,
            Fault::Unheard => {
                far.hold(trade);
                None
            }
            Fault::None | Fault::Away | Fault::Lapsed | Fault::Earlier | Fault::Contradiction => {
                Some(far.hold(trade))
            }
        };
        self.0.leave_far(now, far);
        self.0.told(&answer);
        answer
    }

    async fn confirm(&self, trade: TradeId) -> Option<Confirmation> {
        let (view, now) = self.0.turn(Call::Confirm).await;
        let mut far = (*view.far).clone();
        let answer = match view.fault {
            Fault::Lost => None,
            Fault::Unheard => {
                far.confirm(trade);
                None
            }
            Fault::Lapsed => Some(Confirmation::Lapsed),
            Fault::None | Fault::Away | Fault::Refused | Fault::Earlier | Fault::Contradiction => {
                Some(far.confirm(trade))
            }
        };
        self.0.leave_far(now, far);
        self.0.told(&answer);
        answer
    }

    async fn let_go(&self, trade: TradeId) -> Option<()> {
        let (view, now) = self.0.turn(Call::LetGo).await;
        let mut far = (*view.far).clone();
        let answer = (view.fault == Fault::None).then(|| far.let_go(trade));
        self.0.leave_far(now, far);
        answer
    }

    async fn report(&self, enquiry: &TradeReportRequest) -> Option<EngineReport> {
        let (view, _) = self.0.turn(Call::Report).await;
        let answer = match view.fault {
            Fault::Lost | Fault::Unheard => None,
            Fault::Earlier => Some(view.far.earlier_report(enquiry)),
            Fault::Contradiction => Some(contradiction(enquiry.attempt)),
            Fault::None | Fault::Away | Fault::Refused | Fault::Lapsed => {
                Some(view.far.report(enquiry))
            }
        };
        self.0.told(&answer);
        answer
    }

    fn name(&self) -> EngineName {
        EngineName::built_in("engine")
    }

    /// Nothing: a lease lasts what it lasts beyond this.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}
