//! A partner that one check creates to receive events. The demo partner's endpoint stays unchanged, because it belongs to the
//! developer.

use kernel::{Amount, Asset, Mode, RequestId};
use partner_core::events::generate_secret;
use partner_core::key::{KeyKind, NewKey};
use partner_core::webhooks::signing::SigningSecret;
use partner_core::webhooks::target::AllowPrivate;
use partner_core::{PartnerId, Tenant};
use pools_core::usecases::credit_account::Credit;
use provisioning::apply::{ApplyMode, Loosening};
use provisioning::{Setting, parse_document};
use secrecy::ExposeSecret as _;

use super::calls::EVENT_TIMEOUT;
use super::receiver::Receiver;
use crate::cmd::{apply, credit};
use crate::installation::{Installation, partner_id};

/// The amount of a purchase in EUR, and of a session. Its fraction settles on the first poll.
pub(super) const AMOUNT: &str = "100.00";
/// The origin of the partner's pages.
pub(super) const PAGES: &str = "https://shop.example";

/// A partner with its keys.
pub(super) struct Partner {
    pub(super) who: Tenant,
    pub(super) secret_key: String,
    pub(super) publishable_key: String,
}

/// The receiver of a partner's events, and the secret that verifies them.
pub(super) struct Listener {
    pub(super) secret: SigningSecret,
    pub(super) receiver: Receiver,
}

impl Listener {
    /// Listens on a free port and provisions a partner whose events go there. Each check has its own partner, so checks can share
    /// a database at the same time.
    pub(super) async fn begin(installation: &Installation) -> Result<(Partner, Self), String> {
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
        fund(installation, partner.clone(), format!("{name}-funds")).await?;
        let mode = Mode::Test;
        let partner = Partner {
            who: Tenant { partner, mode },
            secret_key,
            publishable_key,
        };
        let secret = SigningSecret::parse(secret).ok_or("the generated secret is not valid")?;
        Ok((partner, Self { secret, receiver }))
    }
}

/// Credits a partner with the amount of a purchase. Returns the new balance.
pub(super) async fn fund(
    installation: &Installation,
    partner: PartnerId,
    reference: String,
) -> Result<String, String> {
    let amount = Asset::fiat("EUR").and_then(|asset| Amount::parse(AMOUNT, asset).ok());
    let credit = Credit {
        amount: amount.ok_or("the amount to credit is invalid")?,
        network: None,
        reference,
    };
    let credited = credit::credit_to(installation, partner, &credit).await;
    let credited = credited.map_err(|failure| failure.lines().join("; "))?;
    Ok(credited.balance.to_string())
}

/// Why no event about an object arrived, according to the queue.
pub(super) async fn no_event(installation: &Installation, who: &Tenant, object: &str) -> String {
    let store = &installation.base.store;
    let queued = store.deliveries_of(who, object).await;
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

/// Suspends a partner, so that its keys are refused and it receives no more events.
pub(super) async fn suspend(
    installation: &Installation,
    partner: &PartnerId,
) -> Result<(), String> {
    let file = format!(
        "[[partners]]\nid = \"{partner}\"\nname = \"sandbox --check\"\nstatus = \"suspended\"\n"
    );
    provision(installation, &file).await
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
