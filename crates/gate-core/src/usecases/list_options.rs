//! What a widget can offer: assets, networks, methods, limits and indicative prices of each side.

use std::sync::Arc;

use kernel::rates::{Side, SourceRate};
use kernel::{Amount, Asset};
use partner_core::ports::RateSource;

use crate::catalogue::{
    Catalogue, CountryCode, Ineligible, Limits, Listing, Method, Network, UsualTime,
};
use crate::pricing::{Priced, price, price_received};
use crate::session::{Flow, Terms};

/// Lists the options of widgets.
#[derive(Clone)]
pub struct ListOptions {
    pub catalogue: Arc<Catalogue>,
    /// The source of rates.
    pub rates: Arc<dyn RateSource>,
}

/// What one side of a widget offers. It has at least one asset, a swap at least two. A swap has neither methods nor prices.
#[derive(Debug)]
pub struct SideOptions<'c> {
    /// Purchase, sale or swap.
    pub side: Flow,
    pub assets: Vec<AssetOption<'c>>,
    pub methods: Vec<&'c Method>,
    /// How long a swap usually takes, if the widget has one currency and the catalogue says so. A purchase and a sale take as long as
    /// their method.
    pub usual_time: Option<UsualTime>,
    /// The prices of the session's amount, as far as rates are known.
    pub indicative: Vec<Indicative<'c>>,
}

/// An asset that a side offers.
#[derive(Debug)]
pub struct AssetOption<'c> {
    /// The asset.
    pub listing: &'c Listing,
    /// The chains that the session allows and whose addresses Penstock can check. Never empty.
    pub networks: Vec<&'c Network>,
    /// The recommended limits in the widget's currency, if the catalogue has any.
    pub limits: Option<&'c Limits>,
}

/// The price of the session's amount by one method. A sale is priced from the fiat that the user receives.
#[derive(Debug)]
pub struct Indicative<'c> {
    pub asset: Asset,
    pub method: &'c Method,
    /// The price.
    pub priced: Priced,
}

/// What the indicative prices are for, as a query names it. The case of the chain matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PricedFor<'q> {
    /// One asset; `None` means each.
    pub asset: Option<&'q str>,
    /// One chain; `None` means the first one of the asset.
    pub network: Option<&'q str>,
}

/// Why no choice of a widget can pay a session, in any country.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unpayable {
    /// The catalogue does not offer the currency, the asset or the flow.
    #[error("the catalogue does not offer `currency` with `target_token` and `flow`")]
    NotOffered(Ineligible),
    /// No asset that the session allows is on its network.
    #[error("`target_network`: the widget offers no such network for the session's asset")]
    NetworkNotSupported,
    /// The address is that of a wallet on none of the networks.
    #[error("`wallet_address`: this is no wallet on any network that the session allows")]
    InvalidAddress,
    /// The amount has more digits than its currency.
    #[error("`amount`: the amount has more fractional digits than its currency")]
    AmountPrecision,
    /// The fees of every choice are at least the amount.
    #[error("`amount`: the fees of every payment method are at least the amount")]
    AmountOutOfRange,
    /// The amount is outside all recommended limits and has no price either.
    #[error("`amount`: no choice has a price for an amount so far outside of the limits")]
    AmountWithoutPrice,
}

impl Unpayable {
    /// The text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotOffered(reason) => reason.as_str(),
            Self::NetworkNotSupported => "network_not_supported",
            Self::InvalidAddress => "invalid_address",
            Self::AmountPrecision => "amount_precision",
            Self::AmountOutOfRange | Self::AmountWithoutPrice => "amount_out_of_range",
        }
    }
}

/// The reason why no choice of a widget can pay a session of these terms, in any country; `None` if a choice can. Rates and
/// recommended limits do not count.
#[must_use]
pub fn unpayable(catalogue: &Catalogue, terms: &Terms) -> Option<Unpayable> {
    let session = Restriction::of(catalogue, Some(terms), None);
    if terms.flow == Some(Flow::Swap) {
        return session.unpayable_swap(terms);
    }
    let any_wallet = Restriction {
        wallet: None,
        ..session
    };
    let any_network = Restriction {
        network: None,
        ..any_wallet
    };
    if any_network.is_empty() {
        return Some(Unpayable::NotOffered(any_network.not_offered(terms)));
    }
    if any_wallet.is_empty() {
        return Some(Unpayable::NetworkNotSupported);
    }
    if session.is_empty() {
        return Some(Unpayable::InvalidAddress);
    }
    let Some(amount) = terms.fiat() else {
        return Some(Unpayable::AmountPrecision);
    };
    let is_covered = session
        .sides()
        .any(|side| session.covers_fees(&side, amount));
    (!is_covered).then_some(Unpayable::AmountOutOfRange)
}

/// What restricts the options of one widget.
#[derive(Clone, Copy)]
struct Restriction<'c, 's> {
    catalogue: &'c Catalogue,
    /// The currency of the session, or the country's; `None` means all.
    currency: Option<Asset>,
    country: Option<CountryCode>,
    /// The session's flow; `None` means all.
    flow: Option<Flow>,
    /// The session's `target_token`, `target_network` and `wallet_address`.
    token: Option<&'s str>,
    network: Option<&'s str>,
    wallet: Option<&'s str>,
}

impl ListOptions {
    /// The options of a session, or of the open widget, for users of a country.
    ///
    /// A side without any offer is absent. A session with a flow has this side alone. Prices are those that
    /// `wanted` names.
    pub async fn list(
        &self,
        terms: Option<&Terms>,
        country: Option<CountryCode>,
        wanted: PricedFor<'_>,
    ) -> Vec<SideOptions<'_>> {
        let restriction = Restriction::of(&self.catalogue, terms, country);
        let mut sides: Vec<SideOptions<'_>> = restriction.sides().collect();
        if let Some(terms) = terms {
            self.price(&mut sides, terms, wanted).await;
        }
        sides
    }

    /// The reason why no choice can pay a new session of these terms: that of [`unpayable`], or an amount outside all recommended limits
    /// that has no price while rates are known. Rates are asked for such an amount only. A swap has no price before it is quoted.
    pub async fn unpayable(&self, terms: &Terms) -> Option<Unpayable> {
        if let Some(reason) = unpayable(&self.catalogue, terms) {
            return Some(reason);
        }
        let amount = terms.fiat()?;
        let session = Restriction::of(&self.catalogue, Some(terms), None);
        let sides: Vec<SideOptions<'_>> = session.sides().collect();
        let is_swap = |side: &SideOptions<'_>| side.methods.is_empty();
        if sides.iter().all(is_swap) || sides.iter().any(|side| side.advises(amount)) {
            return None;
        }
        let is_priced = self.is_priced(&sides, amount).await;
        (is_priced == Some(false)).then_some(Unpayable::AmountWithoutPrice)
    }

    /// Whether an amount has a price by any choice of purchases and sales; `None` if no rate is known.
    async fn is_priced(&self, sides: &[SideOptions<'_>], amount: Amount) -> Option<bool> {
        let mut found = None;
        for side in sides.iter().filter(|side| !side.methods.is_empty()) {
            for option in &side.assets {
                let asset = option.listing.asset;
                let Some(rate) = self.rates.rate(amount.asset(), asset, amount).await else {
                    continue;
                };
                found = Some(false);
                let has_price = |network: &Network| {
                    let mut methods = side.methods.iter();
                    methods.any(|it| indicative((asset, network), it, amount, &rate).is_some())
                };
                if option.networks.iter().any(|network| has_price(network)) {
                    return Some(true);
                }
            }
        }
        found
    }

    /// Adds the prices of the session's amount. Asks for the rate of each asset once.
    async fn price(&self, sides: &mut [SideOptions<'_>], terms: &Terms, wanted: PricedFor<'_>) {
        let currency = terms.currency;
        // An amount with more digits than the currency has no price.
        let Some(fiat) = terms.fiat() else {
            return;
        };
        let mut rates: Vec<(Asset, Option<SourceRate>)> = Vec::new();
        for side in sides.iter().filter(|side| !side.methods.is_empty()) {
            for option in &side.assets {
                let asset = option.listing.asset;
                let is_known = rates.iter().any(|(known, _)| *known == asset);
                if !is_known && option.priced_on(wanted).is_some() {
                    rates.push((asset, self.rates.rate(currency, asset, fiat).await));
                }
            }
        }
        let rate_of = |asset| {
            let found = rates.iter().find(|(known, _)| *known == asset);
            found.and_then(|(_, rate)| rate.as_ref())
        };
        for side in sides {
            let priced = side.assets.iter().flat_map(|option| {
                let asset = option.listing.asset;
                let found = option.priced_on(wanted).zip(rate_of(asset));
                side.methods.iter().filter_map(move |method| {
                    let (network, rate) = found?;
                    indicative((asset, network), method, fiat, rate)
                })
            });
            side.indicative = priced.collect();
        }
    }
}

impl SideOptions<'_> {
    /// Whether an amount is within the recommended limits of an asset. An asset without limits takes every amount.
    fn advises(&self, amount: Amount) -> bool {
        let is_within = |limits: &Limits| {
            let range = limits.min.units()..=limits.max.units();
            range.contains(&amount.units())
        };
        let mut assets = self.assets.iter();
        assets.any(|asset| asset.limits.is_none_or(is_within))
    }
}

impl<'c> AssetOption<'c> {
    /// The chain that the asset is priced on. `None` if no price of it is wanted.
    fn priced_on(&self, wanted: PricedFor<'_>) -> Option<&'c Network> {
        let code = self.listing.asset.code();
        let is_wanted = wanted
            .asset
            .is_none_or(|asset| code.eq_ignore_ascii_case(asset));
        let mut networks = self.networks.iter().copied();
        networks.find(|it| is_wanted && wanted.network.is_none_or(|network| it.chain == network))
    }
}

/// The price of one asset on a chain by one method. `None` if the amount is out of range.
fn indicative<'c>(
    (asset, network): (Asset, &Network),
    method: &'c Method,
    fiat: Amount,
    source: &SourceRate,
) -> Option<Indicative<'c>> {
    let schedule = method.fees(network);
    let priced = match method.side {
        Side::OnRamp => price(method.side, fiat, asset, source, &schedule),
        Side::OffRamp => price_received(fiat, asset, source, &schedule),
    };
    Some(Indicative {
        asset,
        method,
        priced: priced.ok()?,
    })
}

impl<'c, 's> Restriction<'c, 's> {
    fn of(
        catalogue: &'c Catalogue,
        terms: Option<&'s Terms>,
        country: Option<CountryCode>,
    ) -> Self {
        let own = country.and_then(|code| catalogue.country(code));
        Self {
            catalogue,
            currency: terms
                .map(|terms| terms.currency)
                .or(own.map(|country| country.currency)),
            country,
            flow: terms.and_then(|terms| terms.flow),
            token: terms.and_then(|terms| terms.target_token.as_deref()),
            network: terms.and_then(|terms| terms.target_network.as_deref()),
            // A sale sends nothing to a wallet.
            wallet: terms
                .filter(|terms| terms.flow != Some(Flow::OffRamp))
                .and_then(|terms| terms.wallet_address.as_deref()),
        }
    }

    /// The reason why no swap can pay the session. It needs one pair of assets, of which the wallet restricts the received one alone.
    fn unpayable_swap(&self, terms: &Terms) -> Option<Unpayable> {
        let mut networks = self.swap_targets();
        if networks.is_empty() {
            return Some(Unpayable::NotOffered(self.not_offered(terms)));
        }
        networks.retain(|network| self.is_on(network));
        if networks.is_empty() {
            return Some(Unpayable::NetworkNotSupported);
        }
        networks.retain(|network| self.fits_wallet(network));
        if networks.is_empty() {
            return Some(Unpayable::InvalidAddress);
        }
        let Some(amount) = terms.fiat() else {
            return Some(Unpayable::AmountPrecision);
        };
        let offer = self.catalogue.swaps_in(amount.asset());
        let is_covered = offer.is_some_and(|offer| {
            let mut networks = networks.into_iter();
            networks.any(|network| offer.fees(network).leave_some_of(amount))
        });
        (!is_covered).then_some(Unpayable::AmountOutOfRange)
    }

    /// The chains, whose addresses Penstock can check, of every asset that a swap of another one can deliver.
    fn swap_targets(&self) -> Vec<&'c Network> {
        let is_checked = |network: &&Network| network.address_form().is_some();
        let offers = |source: &Listing, target: &Listing| {
            self.currencies().any(|it| {
                let offered = self.catalogue.offers_swap(it, source, target, self.country);
                offered.is_ok()
            })
        };
        let is_received = |target: &&Listing| {
            let mut sources = self.catalogue.assets().iter();
            self.is_target(target)
                && sources.any(|source| {
                    source.asset != target.asset
                        && source.networks.iter().any(|it| is_checked(&it))
                        && offers(source, target)
                })
        };
        let targets = self.catalogue.assets().iter().filter(is_received);
        let networks = targets.flat_map(|target| target.networks.iter());
        networks.filter(is_checked).collect()
    }

    /// The sides with an offer.
    fn sides(&self) -> impl Iterator<Item = SideOptions<'c>> {
        let asked = Flow::ALL.into_iter();
        let asked = asked.filter(move |side| self.flow.is_none_or(|flow| flow == *side));
        asked.filter_map(move |side| self.side(side))
    }

    fn is_empty(&self) -> bool {
        self.sides().next().is_none()
    }

    /// Why the catalogue offers nothing for the session.
    fn not_offered(&self, terms: &Terms) -> Ineligible {
        let side = match self.flow {
            Some(Flow::OnRamp) => Some(Side::OnRamp),
            Some(Flow::OffRamp) => Some(Side::OffRamp),
            Some(Flow::Swap) | None => None,
        };
        let currency = terms.currency.code();
        let served = self.catalogue.serves(currency, self.token, side);
        served.err().unwrap_or(Ineligible::CorridorNotAvailable)
    }

    /// Whether the fees leave some of the amount by any choice of the side. A sale is priced from what its user receives, so its fees
    /// come on top.
    fn covers_fees(&self, side: &SideOptions<'_>, amount: Amount) -> bool {
        let targets = side.assets.iter().filter(|it| self.is_target(it.listing));
        let networks = targets.flat_map(|it| it.networks.iter().copied());
        let mut networks = networks.filter(|it| self.is_on(it));
        match side.side {
            Flow::OnRamp => networks.any(|network| {
                let mut methods = side.methods.iter();
                methods.any(|method| method.fees(network).leave_some_of(amount))
            }),
            Flow::OffRamp => true,
            Flow::Swap => self
                .catalogue
                .swaps_in(amount.asset())
                .is_some_and(|offer| networks.any(|it| offer.fees(it).leave_some_of(amount))),
        }
    }

    fn side(&self, side: Flow) -> Option<SideOptions<'c>> {
        let (assets, methods) = match side {
            Flow::OnRamp => self.ramp(Side::OnRamp),
            Flow::OffRamp => self.ramp(Side::OffRamp),
            Flow::Swap => (self.swapped(), Vec::new()),
        };
        let swaps = self.currency.filter(|_| side == Flow::Swap);
        let swaps = swaps.and_then(|currency| self.catalogue.swaps_in(currency));
        (!assets.is_empty()).then_some(SideOptions {
            side,
            assets,
            methods,
            usual_time: swaps.and_then(|offer| offer.usual_time),
            indicative: Vec::new(),
        })
    }

    fn ramp(&self, side: Side) -> (Vec<AssetOption<'c>>, Vec<&'c Method>) {
        let listings = self.catalogue.assets().iter();
        let assets: Vec<AssetOption<'c>> = listings
            .filter(|listing| self.is_target(listing))
            .filter(|listing| self.currencies().any(|it| self.offers(side, it, listing)))
            .filter_map(|listing| self.option(listing, |it| self.is_on(it) && self.fits_wallet(it)))
            .collect();
        let offered = |method: &&Method| {
            self.currencies().any(|it| it == method.currency)
                && assets
                    .iter()
                    .any(|it| self.offers(side, method.currency, it.listing))
        };
        let methods = self.catalogue.methods(side).filter(|it| it.is_for_widget());
        let methods = methods.filter(offered).collect();
        (assets, methods)
    }

    /// The assets that can be sent and received in a swap. Empty if there is no pair of them that the session allows.
    fn swapped(&self) -> Vec<AssetOption<'c>> {
        let both = |currency, it: &Listing| {
            let offered = self.catalogue.offers_swap(currency, it, it, self.country);
            offered.is_ok()
        };
        let listings = self.catalogue.assets().iter();
        let assets: Vec<AssetOption<'c>> = listings
            .filter(|listing| self.currencies().any(|it| both(it, listing)))
            .filter_map(|listing| {
                // The session's chain is that of the asset that the user receives.
                let is_on = |it: &Network| !self.is_named(listing) || self.is_on(it);
                // An asset that is only sent does not touch the wallet.
                let fits = |it: &Network| !self.is_target(listing) || self.fits_wallet(it);
                self.option(listing, |it| is_on(it) && fits(it))
            })
            .collect();
        let is_received = |it: &AssetOption<'_>| {
            self.is_target(it.listing) && it.networks.iter().any(|network| self.is_on(network))
        };
        if assets.len() > 1 && assets.iter().any(is_received) {
            assets
        } else {
            Vec::new()
        }
    }

    /// An asset with those of its chains that are allowed and whose addresses Penstock can check.
    fn option(
        &self,
        listing: &'c Listing,
        is_allowed: impl Fn(&Network) -> bool,
    ) -> Option<AssetOption<'c>> {
        let networks = listing.networks.iter();
        let networks: Vec<&Network> = networks
            .filter(|network| network.address_form().is_some() && is_allowed(network))
            .collect();
        let limits = listing.limits_in(self.currency);
        let limits = Some(limits).filter(|limits| {
            self.currency
                .is_none_or(|currency| limits.min.asset() == currency)
        });
        (!networks.is_empty()).then_some(AssetOption {
            listing,
            networks,
            limits,
        })
    }

    fn currencies(&self) -> impl Iterator<Item = Asset> {
        let known = self.catalogue.currencies().iter().map(|it| it.asset);
        known.filter(|asset| self.currency.is_none_or(|currency| currency == *asset))
    }

    fn offers(&self, side: Side, currency: Asset, listing: &Listing) -> bool {
        let offered = self.catalogue.offers(side, currency, listing, self.country);
        let mut methods = self.catalogue.methods_for(side, currency);
        offered.is_ok() && methods.any(Method::is_for_widget)
    }

    /// Whether the session allows the asset.
    fn is_target(&self, listing: &Listing) -> bool {
        self.token.is_none() || self.is_named(listing)
    }

    /// Whether the session names the asset.
    fn is_named(&self, listing: &Listing) -> bool {
        let code = listing.asset.code();
        self.token.is_some_and(|it| it.eq_ignore_ascii_case(code))
    }

    /// Whether the session allows the chain.
    fn is_on(&self, network: &Network) -> bool {
        let chain = &network.chain;
        self.network.is_none_or(|it| it.eq_ignore_ascii_case(chain))
    }

    /// Whether the session's `wallet_address`, if it has one, is that of a wallet on the chain.
    fn fits_wallet(&self, network: &Network) -> bool {
        let fits = |wallet| {
            network.address_form().is_some_and(|form| {
                let checked = self.catalogue.check_wallet(&network.chain, form, wallet);
                checked.is_ok()
            })
        };
        self.wallet.is_none_or(fits)
    }
}
