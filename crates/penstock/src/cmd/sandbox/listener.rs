//! A partner that one check creates to receive events. The demo partner's endpoint stays unchanged, because it belongs to the
//! developer.

use std::time::Duration;

use kernel::{Amount, Asset, Mode, RequestId};
use partner_core::Tenant;
use partner_core::events::generate_secret;
use partner_core::key::{KeyKind, NewKey};
use partner_core::webhooks::signing::SigningSecret;
use partner_core::webhooks::target::AllowPrivate;
use pools_core::usecases::credit_account::Credit;
use provisioning::apply::{ApplyMode, Loosening};
use provisioning::{Setting, parse_document};
use secrecy::ExposeSecret as _;

use super::buyer::{AMOUNT, Buyer};
use super::client::Client;
use super::event::{Judge, OF_A_PAY_IN, PAID_IN};
use super::receiver::{Delivery, Receiver};
use super::seller::{Opened, PAGES, Seller};
use crate::cmd::{apply, credit};
use crate::installation::{Installation, partner_id};

/// Timeout for an event: enough for an immediate attempt and one retry.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The partner, its credentials and its receiver.
#[derive(Debug)]
pub(super) struct Listener {
    who: Tenant,
    secret_key: String,
    publishable_key: String,
    secret: SigningSecret,
    session: Opened,
    /// The id of the signed quote.
    quote: String,
    receiver: Receiver,
}

impl Listener {
    /// Listens on a free port and provisions a partner whose events go there. Each check has its own partner, so checks can share
    /// a database at the same time.
    pub(super) async fn begin(installation: &Installation) -> Result<Self, String> {
        let base = &installation.base;
        let receiver = Receiver::listen().await.map_err(|it| it.to_string())?;
        let run = RequestId::new(&*base.clock, &*base.entropy).to_string();
        let name = format!("check-{}", run.to_lowercase());
        let partner = partner_id(&name).map_err(|failure| failure.lines().join("; "))?;
        let secret = generate_secret(&*base.entropy);
        let key = |kind| {
            let (_, text) = NewKey::generate(kind, Mode::Test, base.clock.now(), &*base.entropy);
            text.expose_secret().to_owned()
        };
        let (secret_key, publishable_key) = (key(KeyKind::Secret), key(KeyKind::Publishable));
        let (secret, url) = (secret.expose_secret(), &receiver.url);
        let file = format!(
            "[[partners]]\nid = \"{name}\"\nname = \"sandbox --check\"\n\
             [partners.pools]\nenabled = true\nkyc = \"approved\"\nallowed = [\"EUR-USDT\"]\n\
             balance_gate = true\nvelocity_cap_usdt = \"1000000\"\n\
             [partners.pools.webhook]\nurl = \"{url}\"\nsecret = \"{secret}\"\n\
             [partners.gate]\nenabled = true\nflow_sessions = true\npreview_locks = true\nrails = true\n\
             allowed_domains = [\"{PAGES}\"]\n\
             [partners.gate.webhook]\nurl = \"{url}\"\nsecret = \"{secret}\"\n\
             [[partners.keys]]\nkind = \"secret\"\nkey = \"{secret_key}\"\n\
             [[partners.keys]]\nkind = \"publishable\"\nkey = \"{publishable_key}\"\n"
        );
        provision(installation, &file).await?;
        let funds = Asset::fiat("EUR").and_then(|asset| Amount::parse(AMOUNT, asset).ok());
        let credit = Credit {
            amount: funds.ok_or("the amount to credit is invalid")?,
            network: None,
            reference: format!("{name}-funds"),
        };
        let credited = credit::credit_to(installation, partner.clone(), &credit).await;
        credited.map_err(|failure| failure.lines().join("; "))?;
        Ok(Self {
            who: Tenant {
                partner,
                mode: Mode::Test,
            },
            secret_key,
            publishable_key,
            session: Opened::default(),
            quote: String::new(),
            secret: SigningSecret::parse(secret).ok_or("the generated secret is not valid")?,
            receiver,
        })
    }

    pub(super) fn seen(&self) -> String {
        format!("{} for partner {}", self.receiver.url, self.who.partner)
    }

    /// Trades, and checks the event of the trade.
    pub(super) async fn hear(
        &mut self,
        installation: &Installation,
        client: Client,
    ) -> Result<String, String> {
        let buyer = self.buyer(client);
        let (quote, _) = buyer.quote().await?;
        let trade = buyer.transact(&quote, false).await?;
        buyer.settle(&quote).await?;
        let delivery = self.next(installation, &trade).await?;
        let shown = self.buyer(client).trade(&trade).await?;
        self.judge(installation).of_trade(&delivery, &shown)
    }

    /// Creates a session, and checks its event.
    pub(super) async fn open(
        &mut self,
        installation: &Installation,
        client: Client,
    ) -> Result<String, String> {
        let key = self.who.partner.to_string();
        let (session, seen) = self.seller(client).open(&key).await?;
        self.session = session;
        let id = self.session.id.clone();
        let delivery = self.next(installation, &id).await?;
        self.judge(installation).of_created(&delivery, &id)?;
        Ok(seen)
    }

    /// Starts the session's widget.
    pub(super) async fn bootstrap(&self, client: Client) -> Result<String, String> {
        self.seller(client).bootstrap(&self.session).await
    }

    /// Completes the session, and checks its event.
    pub(super) async fn complete(
        &mut self,
        installation: &Installation,
        client: Client,
    ) -> Result<String, String> {
        let refid = self.seller(client).complete(&self.session).await?;
        let id = self.session.id.clone();
        let delivery = self.next(installation, &id).await?;
        let shown = self.seller(client).session(&self.session).await?;
        let judge = self.judge(installation);
        judge.of_completed(&delivery, &shown, &refid)
    }

    /// Requests a preview of an order.
    pub(super) async fn preview(&self, client: Client) -> Result<String, String> {
        self.seller(client).preview().await
    }

    /// Locks a rate for the order.
    pub(super) async fn lock(&mut self, client: Client) -> Result<String, String> {
        let key = format!("{}-quote", self.who.partner);
        let (quote, seen) = self.seller(client).lock(&key).await?;
        self.quote = quote;
        Ok(seen)
    }

    /// Redeems the signed quote for a new session, and checks every event of the redemption.
    pub(super) async fn pay_in(
        &mut self,
        installation: &Installation,
        client: Client,
    ) -> Result<String, String> {
        let seller = self.seller(client);
        let key = format!("{}-pay-in", self.who.partner);
        let (session, _) = seller.open(&key).await?;
        let record = seller.pay_in(&key, &self.quote, &session).await?;
        let mut awaited = OF_A_PAY_IN.to_vec();
        let mut reported = None;
        while !awaited.is_empty() {
            let delivery = self.next(installation, &record).await?;
            let (kind, data) = self.judge(installation).of_gate(&delivery)?;
            awaited.retain(|awaited| *awaited != kind);
            if kind == PAID_IN {
                reported = Some(data);
            }
        }
        let shown = self.seller(client).paid_in(&record).await?;
        if reported.as_ref() != Some(&shown) {
            return Err(format!("expected {PAID_IN} with {shown}, got {reported:?}"));
        }
        let events = OF_A_PAY_IN.len();
        Ok(format!(
            "{record} has settled; {events} events, both signatures of each verified"
        ))
    }

    fn buyer(&self, client: Client) -> Buyer<'_> {
        let key = self.secret_key.as_str();
        Buyer { client, key }
    }

    fn seller(&self, client: Client) -> Seller<'_> {
        Seller {
            client,
            secret_key: &self.secret_key,
            publishable_key: &self.publishable_key,
        }
    }

    fn judge(&self, installation: &Installation) -> Judge<'_> {
        Judge {
            secret: &self.secret,
            now: installation.base.clock.now(),
        }
    }

    /// The next delivery. The error names the last attempt to deliver an event about `object`.
    async fn next(
        &mut self,
        installation: &Installation,
        object: &str,
    ) -> Result<Delivery, String> {
        match self.receiver.next(EVENT_TIMEOUT).await {
            Some(delivery) => Ok(delivery),
            None => Err(self.no_event(installation, object).await),
        }
    }

    /// Why no event arrived, according to the queue.
    async fn no_event(&self, installation: &Installation, object: &str) -> String {
        let store = &installation.base.store;
        let queued = store.deliveries_of(&self.who, object).await;
        let why = match queued.as_deref() {
            Ok([.., delivery]) => match &delivery.last_error {
                Some(error) => format!("the last attempt: {error}"),
                None => "it was never attempted".to_owned(),
            },
            Ok([]) => "no delivery is queued".to_owned(),
            Err(error) => kernel::causes(error),
        };
        format!("no event arrived within {EVENT_TIMEOUT:?}; {why}")
    }

    /// Suspends the partner, so that its keys are refused and it receives no more events.
    pub(super) async fn end(self, installation: &Installation) -> Result<(), String> {
        let name = &self.who.partner;
        let file = format!(
            "[[partners]]\nid = \"{name}\"\nname = \"sandbox --check\"\nstatus = \"suspended\"\n"
        );
        provision(installation, &file).await
    }
}

async fn provision(installation: &Installation, file: &str) -> Result<(), String> {
    let setting = Setting {
        mode: Mode::Test,
        allow_private: AllowPrivate::Loopback,
    };
    let document = parse_document(file, setting).map_err(|faults| faults.to_string())?;
    let applied = apply::apply(
        installation,
        &document,
        ApplyMode::Commit,
        Loosening::Refuse,
    )
    .await;
    applied.map(|_| ()).map_err(|error| kernel::causes(&error))
}
