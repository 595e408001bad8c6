//! A partner of the check's own that receives events: the demo partner's endpoint is the
//! developer's, and stays as it is.

use std::time::Duration;

use kernel::{Mode, RequestId};
use partner_core::Tenant;
use partner_core::events::generate_secret;
use partner_core::key::{KeyKind, NewKey};
use partner_core::provision::{Setting, parse_document};
use partner_core::usecases::apply::Run;
use partner_core::webhooks::signing::SigningSecret;
use partner_core::webhooks::target::AllowPrivate;
use secrecy::ExposeSecret as _;

use super::buyer::Buyer;
use super::client::Client;
use super::event;
use super::receiver::Receiver;
use crate::cmd::apply;
use crate::installation::{Installation, partner_id};

/// How long an event may take: an attempt at once, and the one after it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The partner, its credentials, and its receiver.
#[derive(Debug)]
pub(super) struct Listener {
    who: Tenant,
    key: String,
    secret: SigningSecret,
    receiver: Receiver,
}

impl Listener {
    /// Listens on a free port, and provisions a partner whose events go there. No two checks share
    /// one, also when they work on one database at the same time.
    pub(super) async fn begin(installation: &Installation) -> Result<Self, String> {
        let base = &installation.base;
        let receiver = Receiver::listen().await.map_err(|it| it.to_string())?;
        let run = RequestId::new(&*base.clock, &*base.entropy).to_string();
        let name = format!("check-{}", run.to_lowercase());
        let partner = partner_id(&name).map_err(|failure| failure.lines().join("; "))?;
        let secret = generate_secret(&*base.entropy);
        let (kind, now) = (KeyKind::Secret, base.clock.now());
        let (_, key) = NewKey::generate(kind, Mode::Test, now, &*base.entropy);
        let (key, secret) = (key.expose_secret().to_owned(), secret.expose_secret());
        let file = format!(
            "[[partners]]\nid = \"{name}\"\nname = \"sandbox --check\"\n\
             [partners.pools]\nenabled = true\nkyc = \"approved\"\nallowed = [\"EUR-USDT\"]\n\
             [partners.pools.webhook]\nurl = \"{}\"\nsecret = \"{secret}\"\n\
             [[partners.keys]]\nkind = \"secret\"\nkey = \"{key}\"\n",
            receiver.url
        );
        provision(installation, &file).await?;
        Ok(Self {
            who: Tenant {
                partner,
                mode: Mode::Test,
            },
            key,
            secret: SigningSecret::parse(secret).ok_or("a secret that does not read back")?,
            receiver,
        })
    }

    pub(super) fn seen(&self) -> String {
        format!("{} for partner {}", self.receiver.url, self.who.partner)
    }

    /// Trades, and judges the event that comes of it.
    pub(super) async fn hear(
        &mut self,
        installation: &Installation,
        client: Client,
    ) -> Result<String, String> {
        let key = self.key.as_str();
        let buyer = Buyer { client, key };
        let (quote, _) = buyer.quote().await?;
        let trade = buyer.transact(&quote, false).await?;
        buyer.settle(&quote).await?;
        let Some(delivery) = self.receiver.next(PATIENCE).await else {
            return Err(self.silence(installation, &trade).await);
        };
        let shown = buyer.trade(&trade).await?;
        event::judge(
            &delivery,
            &self.secret,
            &shown,
            installation.base.clock.now(),
        )
    }

    /// Why nothing came, as far as the queue knows.
    async fn silence(&self, installation: &Installation, trade: &str) -> String {
        let store = &installation.base.store;
        let queued = store.deliveries_of(&self.who, trade).await;
        let why = match queued.as_deref() {
            Ok([delivery]) => match &delivery.last_error {
                Some(error) => format!("the last attempt: {error}"),
                None => "it was never attempted".to_owned(),
            },
            Ok(_) => "no delivery is queued".to_owned(),
            Err(fault) => runtime::causes(fault),
        };
        format!("no event arrived within {PATIENCE:?}; {why}")
    }

    /// The partner can do nothing any more, and hears of nothing.
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
    let applied = apply::apply(installation, &document, Run::Commit).await;
    applied.map(|_| ()).map_err(|error| runtime::causes(&error))
}
