//! What a widget can offer: assets, networks, methods, limits and indicative prices of each side.

use std::sync::Arc;

use kernel::rates::{Side, SourceRate};
use kernel::{Amount, Asset};
use partner_core::ports::RateSource;

use crate::catalogue::{Catalogue, CountryCode, Limits, Listing, Method, Network};
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

/// What restricts the options of one widget.
struct Restriction<'c, 's> {
    catalogue: &'c Catalogue,
    /// The currency of the session, or the country's; `None` means all.
    currency: Option<Asset>,
    country: Option<CountryCode>,
    terms: Option<&'s Terms>,
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
        let catalogue: &Catalogue = &self.catalogue;
        let own = country.and_then(|code| catalogue.country(code));
        let restriction = Restriction {
            catalogue,
            currency: terms
                .map(|terms| terms.currency)
                .or(own.map(|country| country.currency)),
            country,
            terms,
        };
        let flow = terms.and_then(|terms| terms.flow);
        let asked = Flow::ALL
            .into_iter()
            .filter(|side| flow.is_none_or(|flow| flow == *side));
        let mut sides: Vec<SideOptions<'_>> =
            asked.filter_map(|side| restriction.side(side)).collect();
        if let Some(terms) = terms {
            self.price(&mut sides, terms, wanted).await;
        }
        sides
    }

    /// Adds the prices of the session's amount. Asks for the rate of each asset once.
    async fn price(&self, sides: &mut [SideOptions<'_>], terms: &Terms, wanted: PricedFor<'_>) {
        let currency = terms.currency;
        // An amount with more digits than the currency has no price.
        let Ok(fiat) = Amount::parse(terms.amount.as_str(), currency) else {
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

impl<'c> Restriction<'c, '_> {
    fn side(&self, side: Flow) -> Option<SideOptions<'c>> {
        let (assets, methods) = match side {
            Flow::OnRamp => self.ramp(Side::OnRamp),
            Flow::OffRamp => self.ramp(Side::OffRamp),
            Flow::Swap => (self.swapped(), Vec::new()),
        };
        (!assets.is_empty()).then_some(SideOptions {
            side,
            assets,
            methods,
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
        self.target_token().is_none() || self.is_named(listing)
    }

    /// Whether the session names the asset.
    fn is_named(&self, listing: &Listing) -> bool {
        let named = self.target_token();
        named.is_some_and(|target| target.eq_ignore_ascii_case(listing.asset.code()))
    }

    fn target_token(&self) -> Option<&str> {
        self.terms?.target_token.as_deref()
    }

    /// Whether the session allows the chain.
    fn is_on(&self, network: &Network) -> bool {
        let target = self.terms.and_then(|it| it.target_network.as_deref());
        target.is_none_or(|target| target.eq_ignore_ascii_case(&network.chain))
    }

    /// Whether the session's `wallet_address`, if it has one, is that of a wallet on the chain.
    fn fits_wallet(&self, network: &Network) -> bool {
        let wallet = self.terms.and_then(|it| it.wallet_address.as_deref());
        let fits = |wallet| {
            network.address_form().is_some_and(|form| {
                let checked = self.catalogue.check_wallet(&network.chain, form, wallet);
                checked.is_ok()
            })
        };
        wallet.is_none_or(fits)
    }
}
