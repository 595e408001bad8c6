//! An engine of the operator, called over HTTP: `http:<url>`, with the published contract `engine-v1`.
//!
//! A late response, a broken connection, a status other than 200 and a malformed body all count as no response. No decision is
//! based on a missing response: the next poll asks again under the same trade id.
//!
//! The calls of polls have permits of their own, so that slow reports delay no other call. The permits are divided evenly among
//! partners, so that partners whose orders or reports hang delay no other partner.

mod contract;
mod wire;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Amount, Named, UpstreamName};
use partner_core::Tenant;
use partner_core::ports::Ticket;
use pools_core::ports::{Confirmation, Depth, Engine, Hold, Order, TradeReportRequest};
use pools_core::trade::{EngineReport, TradeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{UpstreamSecret, UpstreamUrl};
use crate::client::Caller;
use crate::contract::Call;
use crate::upstream::{HttpUpstream, NO_BODY, Silence, read_shown};

pub use contract::openapi;

/// Timeout of one call. A poll makes two calls within its lease, which is two seconds longer than this timeout.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

pub struct HttpEngine {
    upstream: HttpUpstream,
    name: UpstreamName,
}

impl HttpEngine {
    /// An engine at this URL. Each call carries this secret.
    ///
    /// # Errors
    /// An error if the URL is `https` and the machine trusts no certificate.
    pub fn new(
        url: UpstreamUrl,
        secret: Option<&UpstreamSecret>,
        timeout: Duration,
    ) -> io::Result<Self> {
        Ok(Self {
            name: url.name(),
            upstream: HttpUpstream::new(url, secret, timeout, MAX_RESPONSE_BYTES)?,
        })
    }

    /// Sets a name other than the URL's.
    #[must_use]
    pub fn named(mut self, name: UpstreamName) -> Self {
        self.name = name;
        self
    }

    /// Calls the engine, and logs when it starts or stops responding.
    async fn ask<A: DeserializeOwned>(
        &self,
        caller: Caller<'_>,
        call: &Call,
        trade: Option<TradeId>,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<A, Silence> {
        let id = trade.map_or(String::new(), |trade| trade.to_string());
        let sent = self.upstream.send(caller, call, &id, body).await;
        let response = sent.and_then(|response| read_shown(&response));
        let name = call.id;
        match &response {
            Ok(_) if self.upstream.turns(true) => {
                tracing::info!(operation = name, "The engine responds again");
            }
            Ok(_) => {}
            Err(error) => {
                let trade = trade.map(tracing::field::display);
                if self.upstream.turns(false) {
                    tracing::warn!(operation = name, trade.id = trade, error = %error, "The engine gave no valid response; check the engine and its URL");
                } else {
                    tracing::debug!(operation = name, trade.id = trade, error = %error, "The engine still gives no valid response");
                }
            }
        }
        response
    }

    async fn confirm_for(&self, caller: Caller<'_>, trade: TradeId) -> Option<Confirmation> {
        let asked = self.ask(caller, &contract::CONFIRM, Some(trade), NO_BODY);
        let response: wire::ConfirmAnswer = asked.await.ok()?;
        Some(response.status.into())
    }
}

impl Named for HttpEngine {
    fn name(&self) -> UpstreamName {
        self.name.clone()
    }
}

#[async_trait]
impl Engine for HttpEngine {
    async fn depth(&self, who: &Tenant, order: &Order) -> Option<Depth> {
        let order = wire::Order::of(order);
        let caller = Caller::Partner(&who.partner);
        let asked = self.ask(caller, &contract::DEPTH, None, Some(&order));
        let response: wire::DepthAnswer = asked.await.ok()?;
        Some(response.status.into())
    }

    async fn hold(
        &self,
        who: &Tenant,
        trade: TradeId,
        order: &Order,
        output: Amount,
    ) -> Option<Hold> {
        let deal = wire::Deal::of(order, output);
        let caller = Caller::Partner(&who.partner);
        let asked = self.ask(caller, &contract::HOLD, Some(trade), Some(&deal));
        let response: Result<wire::HoldAnswer, Silence> = asked.await;
        match response {
            Ok(response) => Some(response.status.into()),
            Err(silence) => silence.is_unsent().then_some(Hold::Unsent),
        }
    }

    async fn confirm(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.confirm_for(Caller::Partner(&who.partner), trade).await
    }

    async fn confirm_again(&self, who: &Tenant, trade: TradeId) -> Option<Confirmation> {
        self.confirm_for(Caller::Poll(&who.partner), trade).await
    }

    async fn release(&self, who: &Tenant, trade: TradeId) -> Option<()> {
        let caller = Caller::Partner(&who.partner);
        let asked = self.ask(caller, &contract::RELEASE, Some(trade), NO_BODY);
        let _: wire::ReleaseAnswer = asked.await.ok()?;
        Some(())
    }

    async fn report(&self, who: &Tenant, request: &TradeReportRequest) -> Option<EngineReport> {
        let (caller, trade) = (Caller::Poll(&who.partner), Some(request.trade));
        let asked = self.ask(caller, &contract::REPORT, trade, NO_BODY);
        let response: wire::Report = asked.await.ok()?;
        Some(response.into())
    }

    fn admit_poll(&self, who: &Tenant) -> Option<Ticket> {
        let permit = self.upstream.client.admit_poll(&who.partner);
        if permit.is_none() {
            tracing::debug!(partner.id = %who.partner, "Too many polls wait for the engine; this one returns the current status");
        }
        Some(Ticket(Box::new(permit?)))
    }

    fn timeout(&self) -> Duration {
        self.upstream.timeout
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Asset, Mode};
    use partner_core::PartnerId;
    use pools_core::profile::{Network, PoolId};
    use pools_core::quote::Side;
    use pools_core::trade::TradeStatus;
    use test_support::http::{Reply, Upstream};

    use super::*;

    #[test]
    fn malformed_response_is_shown_shortened() {
        let error_of = |word: &str| {
            let body = format!(r#"{{"status":"{word}"}}"#);
            let unread = serde_json::from_str::<wire::HoldAnswer>(&body).unwrap_err();
            Silence::ShownBody(unread).to_string()
        };
        let wrong = error_of("heldd");
        assert!(wrong.contains("unknown variant `heldd`"), "{wrong}");
        assert!(error_of(&"x".repeat(60_000)).len() < 300);
    }

    /// An engine on this machine. It responds by the last segment of the path.
    fn engine() -> HttpEngine {
        let far = Upstream::start(|request| {
            let status = match request.path().rsplit('/').next().unwrap() {
                "depth" => "enough",
                "hold" => "held",
                "confirm" => "confirmed",
                _ => "in_progress",
            };
            Reply::json(200, &format!(r#"{{"status":"{status}"}}"#))
        });
        let url = UpstreamUrl::parse(&far.url()).unwrap();
        HttpEngine::new(url, None, Duration::from_secs(20)).unwrap()
    }

    fn tenant(partner: &str) -> Tenant {
        Tenant {
            partner: PartnerId::parse(partner).unwrap(),
            mode: Mode::Test,
        }
    }

    fn acme() -> Tenant {
        tenant("acme")
    }

    fn request() -> TradeReportRequest {
        let eur = Asset::fiat("EUR").unwrap();
        TradeReportRequest {
            trade: TradeId::parse("txn_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap(),
            order: Order {
                pool: PoolId::parse("EUR-USDT").unwrap(),
                side: Side::OnRamp,
                amount: Amount::parse("100.00", eur).unwrap(),
                network: Network::Tron,
                destination: None,
            },
            attempt: 1,
            known: TradeStatus::Reserved,
        }
    }

    // rule: pools.poll.even-share, pools.engine.unsent
    #[tokio::test]
    async fn polls_ask_while_orders_have_no_permit() {
        let mut engine = engine();
        let (request, patient) = (request(), engine.upstream.timeout);
        let (trade, order) = (request.trade, &request.order);
        let permits = engine.upstream.client.all_permits();
        engine.upstream.timeout = Duration::from_millis(100);
        assert_eq!(engine.depth(&acme(), order).await, None);
        let unsent = engine.hold(&acme(), trade, order, order.amount).await;
        assert_eq!(unsent, Some(Hold::Unsent));
        assert_eq!(engine.confirm(&acme(), trade).await, None);
        engine.upstream.timeout = patient;
        let confirmed = engine.confirm_again(&acme(), trade).await;
        assert_eq!(confirmed, Some(Confirmation::Confirmed));
        let report = engine.report(&acme(), &request).await;
        assert_eq!(report, Some(EngineReport::InProgress));
        drop(permits);
        let held = engine.hold(&acme(), trade, order, order.amount).await;
        assert_eq!(held, Some(Hold::Held));
    }
    // rule: pools.poll.even-share
    #[tokio::test]
    async fn polls_are_divided_evenly_among_partners() {
        let engine = engine();
        let admitted = |partner: &str| -> Vec<Ticket> {
            let who = tenant(partner);
            std::iter::from_fn(|| engine.admit_poll(&who)).collect()
        };
        let of_acme = admitted("acme");
        let of_globex = admitted("globex");
        assert_eq!((of_acme.len(), of_globex.len()), (32, 16));
        let of_initech = engine.admit_poll(&tenant("initech"));
        assert!(of_initech.is_some());
        drop(of_acme);
        assert_eq!(admitted("acme").len(), 24);
    }
}
