//! Quotes: an order is validated, priced, and stored if it is firm.
//!
//! The checks run in the order of the contract (rule `pools.quote.order`): shape, currency, network, address,
//! precision; then availability, with rates before the engine; then the order's size.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::profile::{Network, Pool, PoolId, PoolTerms, PoolsProfile};
use kernel::address::asset_of_contract;
use kernel::{Amount, AmountError, Asset, Clock, Entropy, StoreError, StoreResult};
use partner_core::ports::RateSource;
use partner_core::{Access, Tenant};

use crate::destination::{AddressError, DestNetwork, Destination, EvmNetwork};
use crate::ports::{Depth, Engine, NewQuote, Order, QuoteQueue};
use crate::pricing::{self, Mids, PriceError, Priced};
use crate::quote::{Quote, QuoteId, Side, Terms};

/// The fields of a quote request, unchanged.
#[derive(Debug, Clone, Default)]
pub struct QuoteInput {
    /// `on_ramp` or `off_ramp`.
    pub side: Option<String>,
    /// An ISO 4217 code.
    pub fiat_currency: Option<String>,
    /// An asset symbol.
    pub crypto_currency: Option<String>,
    /// A positive decimal: fiat paid in, or crypto sold.
    pub amount: Option<String>,
    /// The chain; `tron` if absent.
    pub crypto_network: Option<String>,
    /// `firm` or `indicative`; `firm` if absent.
    pub kind: Option<String>,
    /// An address on the delivery network; required for a purchase.
    pub dest_address: Option<String>,
    /// A network of the delivery allowlist; the quoted network if absent.
    pub dest_network: Option<String>,
}

kernel::closed_list! {
    /// The kind of a quote: firm or indicative.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum QuoteKind {
        /// Executable once, for a short time.
        Firm = "firm",
        /// Only a price, which is never stored.
        Indicative = "indicative",
    }
}

/// The error in a quote request, in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuoteInputError {
    /// Required fields are absent, in the order of the request.
    #[error("{}", required_text(.0))]
    Missing(Vec<&'static str>),
    /// A purchase has no address, and all earlier checks passed.
    #[error("`destAddress` is required for `on_ramp`")]
    MissingAddress,
    /// A field does not have one of its allowed values.
    #[error("`{0}` must be one of {1}")]
    NotAllowed(&'static str, &'static str),
    /// The amount is not a positive decimal string.
    #[error("`amount`: {0}")]
    Amount(AmountError),
    /// The code is not a known currency or asset.
    #[error("{0}; what was sent is no known code")]
    UnknownCurrency(Leg),
    /// The code is known, but it is not the pool's.
    #[error("{0}")]
    CurrencyMismatch(Leg),
    /// The network is not one of the pool's.
    #[error("`cryptoNetwork` (`tron` where absent) must be one of {networks} for pool {pool}")]
    NetworkNotSupported {
        pool: PoolId,
        /// The pool's networks, as text.
        networks: String,
    },
    /// The network is not on the delivery allowlist.
    #[error("`destNetwork` must be one of {networks}")]
    DestNetworkNotSupported {
        /// The delivery allowlist, as text.
        networks: String,
    },
    /// The destination address is malformed, or no one has its key.
    #[error("`destAddress`: {0}")]
    Address(AddressError),
    /// The pool has native addresses, and the destination address is not one of the delivery network.
    #[error(
        "`destAddress`: {error}; this pool delivers on {network} only to its native addresses, so name the network of the address in \
         `destNetwork` or `cryptoNetwork`"
    )]
    NotNative {
        error: AddressError,
        network: &'static str,
    },
    /// The destination address is the contract of an asset.
    #[error(
        "`destAddress`: this is the address of {asset} itself on {network}, not of a wallet; coins sent to it are lost"
    )]
    Contract {
        asset: &'static str,
        network: &'static str,
    },
}

/// A request field that must name a leg of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    pub field: &'static str,
    /// The asset of the pool's leg.
    pub expected: Asset,
    pub pool: PoolId,
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            expected,
            pool,
        } = self;
        write!(f, "`{field}` must be {expected} for pool {pool}")
    }
}

fn words(list: impl IntoIterator<Item = &'static str>) -> String {
    list.into_iter().collect::<Vec<_>>().join(", ")
}

/// A quote request that passed all checks of its form.
#[derive(Debug, Clone)]
struct ValidInput {
    kind: QuoteKind,
    order: Order,
}

/// The result of a quote request.
#[derive(Debug, Clone)]
pub enum QuoteResult {
    /// A stored firm quote.
    Firm(Quote, PoolTerms),
    /// An indicative price.
    Indicative(Priced, PoolTerms),
    /// No price is currently available. Nothing is stored.
    Unavailable(Unavailable),
}

kernel::closed_list! {
    /// Why an order cannot currently be priced.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unavailable {
        /// The engine lacks depth, or the operator has marked the pool unavailable.
        Dry = "pool_dry",
        /// The engine did not respond within its timeout.
        Engine = "engine_unavailable",
        /// No source has a rate within its maximum age.
        Rate = "rate_unavailable",
    }
}

/// Why a quote request has no result.
#[derive(Debug, thiserror::Error)]
pub enum QuoteError {
    /// The request is invalid.
    #[error(transparent)]
    Ask(#[from] QuoteInputError),
    /// A leg or the order's size is out of range.
    #[error(transparent)]
    Price(#[from] PriceError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Clone)]
pub struct CreateQuote {
    /// The source of rates.
    pub rates: Arc<dyn RateSource>,
    /// The liquidity engine.
    pub engine: Arc<dyn Engine>,
    /// The queue that stores firm quotes.
    pub queue: Arc<QuoteQueue>,
    /// The clock for ids.
    pub clock: Arc<dyn Clock>,
    /// Randomness for ids.
    pub entropy: Arc<dyn Entropy>,
    /// The time from creation to expiry of a firm quote.
    pub ttl: Duration,
}

impl CreateQuote {
    /// Quotes an order in a pool that the partner may use.
    #[tracing::instrument(target = "penstock_trace", level = "debug", skip_all)]
    pub async fn quote(
        &self,
        access: &Access<PoolsProfile>,
        pool: &Pool,
        ask: &QuoteInput,
    ) -> Result<QuoteResult, QuoteError> {
        let ValidInput { kind, order } = ask.validate(pool)?;
        let mids = match self.mids(&order).await {
            Some(mids) => mids,
            None => return Ok(QuoteResult::Unavailable(Unavailable::Rate)),
        };
        if let Some(reason) = self.lack(&access.tenant, pool, &order).await {
            return Ok(QuoteResult::Unavailable(reason));
        }
        let terms = access.profile.terms_in(&pool.id);
        let priced = pricing::price(&pool.id, order.side, order.amount, &mids, &terms)?;
        match kind {
            QuoteKind::Indicative => Ok(QuoteResult::Indicative(priced, terms)),
            QuoteKind::Firm => Ok(QuoteResult::Firm(
                self.store(access, &order, priced).await?,
                terms,
            )),
        }
    }

    async fn mids(&self, order: &Order) -> Option<Mids> {
        let (fiat, crypto) = (order.pool.fiat(), order.pool.crypto());
        let pair = self.rates.rate(fiat, crypto, order.amount).await?;
        let usdt = match Asset::crypto("USDT")? {
            usdt if usdt == crypto => pair.mid,
            usdt => self.rates.rate(fiat, usdt, order.amount).await?.mid,
        };
        Some(Mids { pair, usdt })
    }

    async fn lack(&self, who: &Tenant, pool: &Pool, order: &Order) -> Option<Unavailable> {
        if !pool.available {
            return Some(Unavailable::Dry);
        }
        match self.engine.depth(who, order).await {
            None => Some(Unavailable::Engine),
            Some(Depth::Insufficient) => Some(Unavailable::Dry),
            Some(Depth::Enough) => None,
        }
    }

    async fn store(
        &self,
        access: &Access<PoolsProfile>,
        order: &Order,
        priced: Priced,
    ) -> StoreResult<Quote> {
        let terms = Terms {
            pool: order.pool,
            side: order.side,
            network: order.network,
            fiat: priced.fiat,
            crypto: priced.crypto,
            rate: priced.rate,
            mid: Some(priced.mid),
            spread_bps: priced.spread_bps,
            fee_bps: priced.fee_bps,
            notional: priced.notional,
            destination: order.destination.clone(),
        };
        let id = QuoteId::new(access.tenant.mode, self.clock.now(), self.entropy.as_ref());
        self.queue
            .submit(NewQuote {
                who: access.tenant.clone(),
                id,
                terms,
                ttl: self.ttl,
            })
            .await
    }
}

impl QuoteInput {
    /// Validates the form of the request, in the order shape, currency, network, address, precision.
    fn validate(&self, pool: &Pool) -> Result<ValidInput, QuoteInputError> {
        let (Some(side), Some(fiat), Some(crypto), Some(amount)) = (
            self.side.as_deref(),
            self.fiat_currency.as_deref(),
            self.crypto_currency.as_deref(),
            self.amount.as_deref(),
        ) else {
            return Err(QuoteInputError::Missing(self.missing()));
        };
        let side =
            Side::parse(side).ok_or(QuoteInputError::NotAllowed("side", "on_ramp, off_ramp"))?;
        let kind = self.kind()?;
        Amount::check_grammar(amount).map_err(QuoteInputError::Amount)?;

        let leg = |field, expected| Leg {
            field,
            expected,
            pool: pool.id,
        };
        let fiat_leg = leg("fiatCurrency", pool.id.fiat());
        let crypto_leg = leg("cryptoCurrency", pool.id.crypto());
        let fiat = Asset::fiat(fiat).ok_or(QuoteInputError::UnknownCurrency(fiat_leg))?;
        let crypto = Asset::crypto(crypto).ok_or(QuoteInputError::UnknownCurrency(crypto_leg))?;
        for (asset, leg) in [(fiat, fiat_leg), (crypto, crypto_leg)] {
            if asset != leg.expected {
                return Err(QuoteInputError::CurrencyMismatch(leg));
            }
        }
        let network = self.network(pool)?;
        let dest_network = self.dest_network(pool, network)?;
        let destination = self.destination(side, dest_network, pool.native_addresses)?;
        let input = match side {
            Side::OnRamp => fiat,
            Side::OffRamp => crypto,
        };
        let amount = Amount::parse(amount, input).map_err(QuoteInputError::Amount)?;
        Ok(ValidInput {
            kind,
            order: Order {
                pool: pool.id,
                side,
                amount,
                network,
                destination,
            },
        })
    }

    /// The required fields that are absent. A purchase requires an address.
    fn missing(&self) -> Vec<&'static str> {
        let is_purchase = self.side.as_deref() == Some(Side::OnRamp.as_str());
        let fields = [
            ("side", self.side.is_none()),
            ("fiatCurrency", self.fiat_currency.is_none()),
            ("cryptoCurrency", self.crypto_currency.is_none()),
            ("amount", self.amount.is_none()),
            ("destAddress", is_purchase && self.dest_address.is_none()),
        ];
        let absent = fields.into_iter().filter(|(_, is_absent)| *is_absent);
        absent.map(|(name, _)| name).collect()
    }

    fn kind(&self) -> Result<QuoteKind, QuoteInputError> {
        let text = self.kind.as_deref().unwrap_or(QuoteKind::Firm.as_str());
        QuoteKind::parse(text).ok_or(QuoteInputError::NotAllowed("type", "firm, indicative"))
    }

    fn network(&self, pool: &Pool) -> Result<Network, QuoteInputError> {
        let named = self
            .crypto_network
            .as_deref()
            .unwrap_or(Network::Tron.as_str());
        let network = Network::parse(named).filter(|network| pool.networks.contains(network));
        network.ok_or_else(|| QuoteInputError::NetworkNotSupported {
            pool: pool.id,
            networks: words(pool.networks.iter().map(|known| known.as_str())),
        })
    }

    /// The delivery network. The allowlist has EVM networks; a pool with native addresses also allows its own other
    /// networks.
    fn dest_network(&self, pool: &Pool, quoted: Network) -> Result<DestNetwork, QuoteInputError> {
        let Some(named) = self.dest_network.as_deref() else {
            return Ok(DestNetwork::Quoted(quoted));
        };
        let own = pool.networks.iter().copied();
        let own = own.filter(|network| pool.native_addresses && !network.is_evm());
        let evm = EvmNetwork::ALL.into_iter().map(DestNetwork::Named);
        let allowed: Vec<_> = evm.chain(own.map(DestNetwork::Quoted)).collect();
        let found = allowed.iter().find(|network| network.as_str() == named);
        found
            .copied()
            .ok_or_else(|| QuoteInputError::DestNetworkNotSupported {
                networks: words(allowed.iter().map(|network| network.as_str())),
            })
    }

    /// The delivery target. A purchase requires an address. An address of a sale is optional but must be valid.
    fn destination(
        &self,
        side: Side,
        network: DestNetwork,
        native: bool,
    ) -> Result<Option<Destination>, QuoteInputError> {
        let address = match (self.dest_address.as_deref(), side) {
            (None, Side::OffRamp) => return Ok(None),
            (None, Side::OnRamp) => return Err(QuoteInputError::MissingAddress),
            (Some(text), _) => network.address(native, text),
        };
        let name = network.as_str();
        let address = address.map_err(|error| match error {
            AddressError::Invalid | AddressError::NotTron | AddressError::NotSolana if native => {
                let network = name;
                QuoteInputError::NotNative { error, network }
            }
            _ => QuoteInputError::Address(error),
        })?;
        if let Some(asset) = asset_of_contract(name, address.as_str()) {
            return Err(QuoteInputError::Contract {
                asset,
                network: name,
            });
        }
        Ok((side == Side::OnRamp).then_some(Destination { address, network }))
    }
}

fn required_text(missing: &[&str]) -> String {
    let verb = if missing.len() == 1 { "is" } else { "are" };
    let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    format!("{} {verb} required", names.join(", "))
}
