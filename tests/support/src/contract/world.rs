//! A small world for store tests: partners with funds, quotes, transacts and polls over the ports, as in the use cases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::{
    Amount, Asset, AssetKind, Clock as _, Mid, Mode, Rate, StoreResult, Timestamp, UpstreamName,
};
use partner_core::events::{
    DeliveryId, Endpoint, EndpointId, EndpointSecret, NewEvent, Service, seal_body, secret_place,
};
use partner_core::idempotency::{Fingerprint, IdempotencyKey, Scope};
use partner_core::key::{KeyHash, KeyId, KeyKind, NewKey};
use partner_core::ports::{KeySweep, KeysSwept};
use partner_core::sealing::{MasterKey, Sealed, Sealer};
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::batch::{Refusal, TransactCommand, TransactOutcome};
use pools_core::destination::{DestNetwork, Destination, EvmAddress, EvmNetwork};
use pools_core::events::event_id;
use pools_core::ledger::{Account, AccountKind, Entry, EntryId, Reason, Transfer};
use pools_core::ports::{Deposit, Hold, NewQuote, PoolsTx};
use pools_core::profile::{Kyc, Network, Pool, PoolId, PoolTerms, PoolsAccess, PoolsProfile};
use pools_core::quote::{Quote, QuoteId, Side, Terms};
use pools_core::trade::{EngineReport, Lease, Step, Trade, TradeId};
use pools_core::usecases::catch_up::CatchUpVelocity;
use provisioning::ports::ProvisionTx;

use crate::contract::fixture::{Fixture, ManualClock, Ports, WINDOW};
pub(crate) use crate::contract::outcomes::{assert_guarded, assert_opened};
pub(crate) use crate::contract::seeded::Seeded;

pub(crate) const MILLI: Duration = Duration::from_millis(1);
/// Lifetime of quotes.
pub(crate) const QUOTE_TTL: Duration = Duration::from_secs(15);

/// Outcome of one command of a batch.
pub(crate) type Decided = Result<TransactOutcome, Refusal>;

/// A store with partners.
#[expect(
    missing_debug_implementations,
    reason = "a fixture has no text of its own"
)]
pub struct World<F> {
    pub(crate) fixture: F,
    pub(crate) entropy: Seeded,
    window: Duration,
}

/// A partner with one secret key.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) who: Tenant,
    pub(crate) key: KeyId,
    pub(crate) hash: KeyHash,
}

/// Sweeps everything of mode test that has expired, from the oldest record on.
pub(crate) const fn expired_keys(service: Service) -> KeySweep {
    KeySweep {
        mode: Mode::Test,
        service,
        after: None,
        age: Duration::ZERO,
        grace: Duration::ZERO,
    }
}

/// The key that seals everything in a contract's database.
pub(crate) fn sealer() -> Sealer {
    Sealer::new(&MasterKey::new([7; 32]))
}

/// A stored response that no replay can read.
pub(crate) const MALFORMED: &[u8] = b"malformed";

/// The data in every event body, of the pools and of the gate.
pub(crate) fn body_text(object: &str, kind: &str, id: &str) -> String {
    format!(
        r#"{{"eventId":"{id}","type":"{kind}","transactId":"{object}","id":"{id}","data":{{"id":"{object}"}}}}"#
    )
}

pub(crate) fn eur() -> Asset {
    Asset::fiat("EUR").unwrap()
}

pub(crate) fn usdt() -> Asset {
    Asset::crypto("USDT").unwrap()
}

pub(crate) fn pool() -> PoolId {
    PoolId::of(eur(), usdt())
}

pub(crate) fn amount(text: &str, asset: Asset) -> Amount {
    if text == "0" {
        Amount::zero(asset)
    } else {
        Amount::parse(text, asset).unwrap()
    }
}

pub(crate) fn tenant(name: &str, mode: Mode) -> Tenant {
    Tenant {
        partner: PartnerId::parse(name).unwrap(),
        mode,
    }
}

/// A profile that may buy and sell in EUR-USDT on a pre-funded balance, without a cap.
pub(crate) fn profile() -> PoolsProfile {
    let terms = PoolTerms {
        off_ramp: true,
        ..PoolTerms::default()
    };
    PoolsProfile {
        enabled: true,
        access: PoolsAccess::Active,
        kyc: Kyc::Approved,
        tier: "standard".to_owned(),
        allowed: BTreeSet::from([pool()]),
        balance_gate: true,
        velocity_cap: None,
        iban: None,
        funding_reference: "REF".to_owned(),
        terms: BTreeMap::from([(pool(), terms)]),
    }
}

/// A profile with the partner's own funding reference; `acme` keeps the default.
pub(crate) fn own(who: &Tenant, profile: &PoolsProfile) -> PoolsProfile {
    let mut profile = profile.clone();
    if who.partner.as_str() != "acme" {
        profile.funding_reference = who.partner.as_str().to_owned();
    }
    profile
}

/// Terms of an order. Its value in USDT is the crypto leg.
pub(crate) fn terms(side: Side, units: i64) -> Terms {
    let destination = Destination {
        address: EvmAddress::parse("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
            .unwrap()
            .into(),
        network: DestNetwork::Named(EvmNetwork::Ethereum),
    };
    Terms {
        pool: pool(),
        side,
        network: Network::Ethereum,
        fiat: Amount::from_units(units, eur()).unwrap(),
        crypto: Amount::from_units(units, usdt()).unwrap(),
        rate: Rate::parse("1").unwrap(),
        mid: Mid::parse("1.085"),
        spread_bps: 25,
        fee_bps: 30,
        notional: units,
        destination: (side == Side::OnRamp).then_some(destination),
    }
}

/// An engine's report that it has delivered.
pub(crate) fn delivered() -> EngineReport {
    EngineReport::Delivered("fill".into())
}

/// One whole unit of a currency, in units of 10^-8.
pub(crate) const ONE: i64 = 100_000_000;

impl<F: Fixture> World<F> {
    /// A store without partners.
    pub fn new(fixture: F) -> Self {
        Self {
            fixture,
            entropy: Seeded::new(7),
            window: WINDOW,
        }
    }

    pub(crate) fn ports(&self) -> &Ports {
        self.fixture.ports()
    }

    pub(crate) fn clock(&self) -> &ManualClock {
        self.fixture.clock()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Runs one step of a sweep.
    pub(crate) async fn sweep_keys(&self, sweep: KeySweep, limit: u32) -> KeysSwept {
        let housekeeping = &self.ports().housekeeping;
        let swept = housekeeping.idempotency_sweep(&sweep, limit).await;
        swept.unwrap()
    }

    /// Opens the database again with another velocity window.
    pub(crate) async fn reopen(&mut self, window: Duration) {
        self.window = window;
        self.fixture.reopen(window).await;
    }

    // ---- the operator ------------------------------------------------------------------------

    /// Begins a change by the operator.
    pub(crate) async fn provision_begin(&self, name: &'static str) -> Box<dyn ProvisionTx> {
        let provision = &self.ports().provision;
        provision.provision_begin(name).await.unwrap()
    }

    /// Creates a partner of mode test with a key.
    pub(crate) async fn member(&self, name: &str) -> Member {
        self.member_with(name, Mode::Test, &profile()).await
    }

    pub(crate) async fn member_with(
        &self,
        name: &str,
        mode: Mode,
        profile: &PoolsProfile,
    ) -> Member {
        let who = tenant(name, mode);
        let profile = &own(&who, profile);
        let (key, _) = NewKey::generate(KeyKind::Secret, mode, self.now(), &self.entropy);
        let listed = Pool {
            id: pool(),
            networks: vec![Network::Ethereum, Network::Tron],
            available: true,
            native_addresses: false,
        };
        let mut tx = self.provision_begin("member").await;
        tx.pool_put(mode, &listed).await.unwrap();
        tx.partner_put(mode, &partner(name, PartnerStatus::Active))
            .await
            .unwrap();
        tx.pools_profile_put(&who, profile).await.unwrap();
        tx.key_insert(&who, &key).await.unwrap();
        tx.config_version_raise().await.unwrap();
        tx.commit().await.unwrap();
        Member {
            who,
            key: key.record.id,
            hash: key.hash,
        }
    }

    pub(crate) async fn reprofile(&self, member: &Member, profile: &PoolsProfile) {
        let mut tx = self.provision_begin("reprofile").await;
        let profile = own(&member.who, profile);
        tx.pools_profile_put(&member.who, &profile).await.unwrap();
        tx.config_version_raise().await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) fn endpoint(&self, mode: Mode, service: Service, url: &str) -> Endpoint {
        let id = EndpointId::new(mode, self.now(), &self.entropy);
        let place = secret_place(id);
        let secret = EndpointSecret {
            sealed: sealer().seal(&place, b"whsec_", &self.entropy).unwrap(),
            created_at: self.now(),
            expires_at: None,
        };
        Endpoint {
            id,
            service,
            url: url.to_owned(),
            secrets: vec![secret],
        }
    }

    pub(crate) async fn set_endpoint(&self, member: &Member, endpoint: &Endpoint) {
        let mut tx = self.provision_begin("endpoint").await;
        tx.endpoint_put(&member.who, endpoint).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Gives a partner a new endpoint for events of a service.
    pub(crate) async fn listen(&self, member: &Member, service: Service, url: &str) -> Endpoint {
        let endpoint = self.endpoint(member.who.mode, service, url);
        self.set_endpoint(member, &endpoint).await;
        endpoint
    }

    /// Credits a deposit, as `penstock balance credit` does.
    pub(crate) async fn fund(&self, who: &Tenant, amount: Amount, reference: &str) -> Account {
        self.fund_over(self.ports(), who, amount, reference).await
    }

    /// Credits a deposit over another process's ports.
    pub(crate) async fn fund_over(
        &self,
        ports: &Ports,
        who: &Tenant,
        amount: Amount,
        reference: &str,
    ) -> Account {
        let mut tx = ports.store.begin("fund").await.unwrap();
        let before = tx.account_lock(who, amount.asset()).await.unwrap();
        let now = tx.now().await.unwrap();
        let (after, entry) = self.credit(who, &before, amount, reference, now);
        tx.entry_post(who, &before, &entry).await.unwrap();
        let deposit = Deposit {
            reference: reference.to_owned(),
            amount,
            network: (amount.asset().kind() == AssetKind::Crypto).then_some(Network::Ethereum),
            entry: entry.id,
            created_at: now,
        };
        tx.deposit_insert(who, &deposit).await.unwrap();
        let stored = tx.commitment_get(who, amount.asset()).await.unwrap();
        let committed = stored.unwrap_or_default().saturating_add(amount.units());
        tx.commitment_put(who, amount.asset(), committed)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        after
    }

    pub(crate) fn credit(
        &self,
        who: &Tenant,
        before: &Account,
        amount: Amount,
        reference: &str,
        now: Timestamp,
    ) -> (Account, Entry) {
        let transfer = Transfer {
            debit: AccountKind::Outside,
            credit: AccountKind::Partner,
            amount,
            reason: match amount.asset().kind() {
                AssetKind::Fiat => Reason::PayinCredit,
                AssetKind::Crypto => Reason::CryptoReceipt,
            },
        };
        let (after, mark) = before.post(&transfer).unwrap();
        let id = EntryId::new(who.mode, now, &self.entropy);
        (
            after,
            Entry {
                id,
                transfer,
                mark,
                reference: reference.to_owned(),
                trade: None,
                created_at: now,
            },
        )
    }

    // ---- quotes and transacts ----------------------------------------------------------------

    pub(crate) fn new_quote(&self, who: &Tenant, terms: Terms) -> NewQuote {
        let id = QuoteId::new(who.mode, self.now(), &self.entropy);
        NewQuote {
            who: who.clone(),
            id,
            terms,
            ttl: QUOTE_TTL,
        }
    }

    pub(crate) async fn quote(&self, who: &Tenant, terms: Terms) -> Quote {
        let new = self.new_quote(who, terms);
        let opened = self.ports().quotes.quotes_open(&[new]).await;
        opened.unwrap().remove(0)
    }

    /// Quotes a purchase of N whole euros.
    pub(crate) async fn buy(&self, member: &Member, euros: i64) -> Quote {
        self.quote(&member.who, terms(Side::OnRamp, euros * ONE))
            .await
    }

    /// Makes a transact of a quote under a new key, with the engine's consent.
    pub(crate) fn command(&self, member: &Member, quote: QuoteId) -> TransactCommand {
        let key = format!("key-{}", self.entropy.next());
        self.command_under(member, quote, &key, quote.to_string().as_bytes())
    }

    pub(crate) fn command_under(
        &self,
        member: &Member,
        quote: QuoteId,
        key: &str,
        asks: &[u8],
    ) -> TransactCommand {
        TransactCommand {
            key: member.key,
            scope: Scope {
                tenant: member.who.clone(),
                route: format!("POST /v1/pools/{}/transact", pool()),
                key: IdempotencyKey::parse(key.as_bytes()).unwrap(),
            },
            fingerprint: Fingerprint::of(asks),
            pool: pool(),
            quote,
            trade: TradeId::new(member.who.mode, self.now(), &self.entropy),
            entry: EntryId::new(member.who.mode, self.now(), &self.entropy),
            engine: UpstreamName::built_in("engine-a"),
            hold: Some(Hold::Held),
        }
    }

    pub(crate) async fn transact(&self, batch: &[TransactCommand]) -> Vec<Decided> {
        self.ports().transact.transact(batch).await.unwrap()
    }

    /// Runs one command, and runs it again after a catch-up if its running total was behind.
    pub(crate) async fn transact_one(&self, command: TransactCommand) -> Decided {
        let queue = |command| async move { Ok(self.transact(&[command]).await.remove(0)) };
        self.catch_up().submit(command, queue).await.unwrap()
    }

    /// Catches running totals up with the window.
    pub(crate) fn catch_up(&self) -> CatchUpVelocity {
        CatchUpVelocity {
            store: self.ports().store.clone(),
            window: self.window,
        }
    }

    /// Quotes and executes a purchase, which the balance must cover.
    pub(crate) async fn trade(&self, member: &Member, side: Side, units: i64) -> Trade {
        let quote = self.quote(&member.who, terms(side, units)).await;
        match self.transact_one(self.command(member, quote.id)).await {
            Ok(TransactOutcome::Opened(trade)) => trade,
            other => panic!("expected a trade, got {other:?}"),
        }
    }

    // ---- polls -------------------------------------------------------------------------------

    /// Applies an engine's report as a status poll does: claim, ask, apply.
    pub(crate) async fn report(&self, who: &Tenant, id: TradeId, report: EngineReport) -> Trade {
        let token = self.claim(who, id).await.unwrap();
        let mut tx = self.ports().store.begin("poll").await.unwrap();
        let velocity = tx.velocity_lock(who).await.unwrap();
        let trade = tx.trade_lock(who, id).await.unwrap().unwrap();
        let now = tx.now().await.unwrap();
        let steps = trade.steps(&report, now).unwrap();
        let Some(last) = steps.last() else {
            tx.trade_unclaim(who, id, token)
                .await
                .unwrap()
                .won()
                .unwrap();
            tx.commit().await.unwrap();
            return trade;
        };
        tx.trade_apply(who, &trade, &steps, token)
            .await
            .unwrap()
            .won()
            .unwrap();
        for step in &steps {
            self.follow(tx.as_mut(), who, &trade, step, now)
                .await
                .unwrap();
        }
        if let (true, Some(velocity)) = (last.leaves_velocity, velocity) {
            let without = velocity.remove_trade(trade.terms.notional, trade.created_at);
            tx.velocity_put(who, &without).await.unwrap();
        }
        tx.commit().await.unwrap();
        Trade {
            state: last.state.clone(),
            attempts: trade.attempts,
            lease: None,
            ..trade
        }
    }

    /// Claims an attempt under a random token and returns the token.
    pub(crate) async fn claim(&self, who: &Tenant, id: TradeId) -> StoreResult<u64> {
        let token = self.entropy.next();
        let mut tx = self.ports().store.begin("claim").await?;
        let trade = tx.trade_lock(who, id).await?.unwrap();
        let lease = Lease {
            token,
            until: tx.now().await?.plus(Duration::from_secs(12)),
        };
        tx.trade_claim(who, id, trade.attempts + 1, lease)
            .await?
            .won()?;
        tx.commit().await?;
        Ok(token)
    }

    /// Writes the transfer and the event of a step.
    pub(crate) async fn follow(
        &self,
        tx: &mut dyn PoolsTx,
        who: &Tenant,
        trade: &Trade,
        step: &Step,
        now: Timestamp,
    ) -> StoreResult<()> {
        if let Some((transfer, part)) = step.transfer {
            let before = tx.account_lock(who, transfer.amount.asset()).await?;
            let (_, mark) = before.post(&transfer).unwrap();
            let entry = Entry {
                id: EntryId::new(who.mode, now, &self.entropy),
                transfer,
                mark,
                reference: trade.quote.to_string(),
                trade: Some((trade.id, part)),
                created_at: now,
            };
            tx.entry_post(who, &before, &entry).await?;
        }
        match step.event {
            Some(event) => {
                tx.event_insert(&self.event(
                    who,
                    trade,
                    event.as_str(),
                    &event_id(trade, event),
                    now,
                ))
                .await
            }
            None => Ok(()),
        }
    }

    pub(crate) fn event(
        &self,
        who: &Tenant,
        trade: &Trade,
        kind: &str,
        id: &str,
        now: Timestamp,
    ) -> NewEvent {
        NewEvent {
            tenant: who.clone(),
            id: id.to_owned(),
            service: Service::Pools,
            kind: kind.to_owned(),
            object_id: trade.id.to_string(),
            body: self.body(who, &trade.id.to_string(), kind, id),
            created_at: now,
            delivery: DeliveryId::new(who.mode, now, &self.entropy),
        }
    }

    /// Renders a body with the common data, sealed for its event.
    pub(crate) fn body(&self, who: &Tenant, object: &str, kind: &str, id: &str) -> Sealed {
        let body = body_text(object, kind, id);
        seal_body(&sealer(), who, id, body.as_bytes(), &self.entropy).unwrap()
    }
}

pub(crate) fn partner(name: &str, status: PartnerStatus) -> Partner {
    Partner {
        id: PartnerId::parse(name).unwrap(),
        name: format!("{name} Ltd"),
        status,
    }
}
