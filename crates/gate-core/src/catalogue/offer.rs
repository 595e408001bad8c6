//! The part of the catalogue that users of a region can use.

use kernel::Asset;
use kernel::rates::Side;

use super::{Catalogue, Country, CountryCode, Currency, Listing, Method};

/// The region of the user, with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// The query parameter, in upper case. The value is not validated.
    Asked(String),
    /// The header that the edge proxy adds.
    Edge(CountryCode),
    /// Neither source names a region.
    Unknown,
}

kernel::closed_list! {
    /// The source of the region.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum GeoSource {
        /// The query parameter.
        Query = "query",
        /// The edge proxy.
        Edge = "edge",
        /// No source.
        None = "none",
    }
}

impl Region {
    /// The query parameter has priority. The edge's value counts only if it is the code of a country.
    #[must_use]
    pub fn of(asked: Option<&str>, edge: Option<&str>) -> Self {
        match asked.filter(|text| !text.is_empty()) {
            Some(text) => Self::Asked(text.to_uppercase()),
            None => edge
                .and_then(CountryCode::parse)
                .map_or(Self::Unknown, Self::Edge),
        }
    }

    /// The region of the query parameter only, for routes that ignore the edge.
    #[must_use]
    pub fn without_edge(self) -> Self {
        match self {
            Self::Asked(_) => self,
            Self::Edge(_) | Self::Unknown => Self::Unknown,
        }
    }

    /// The source of the region.
    #[must_use]
    pub const fn source(&self) -> GeoSource {
        match self {
            Self::Asked(_) => GeoSource::Query,
            Self::Edge(_) => GeoSource::Edge,
            Self::Unknown => GeoSource::None,
        }
    }

    /// The code, unchanged.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Asked(text) => Some(text),
            Self::Edge(code) => Some(code.as_str()),
            Self::Unknown => None,
        }
    }
}

/// The users that a list is for.
enum Audience<'c> {
    /// Users of an unknown region: the list is not restricted.
    UnknownRegion,
    /// Residents of a country that the operator serves.
    Country(&'c Country),
    /// Residents of a region that the operator does not serve.
    Unserved,
}

/// A query for eligibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EligibilityQuery {
    /// The region of the user.
    pub region: Region,
    /// The currency that the user pays in; `None` means the country's currency.
    pub currency: Option<String>,
    /// The asset that the user buys or sells; `None` means any.
    pub asset: Option<String>,
    /// The side; `None` means either.
    pub side: Option<Side>,
}

kernel::closed_list! {
    /// Why the operator cannot serve a user.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Ineligible {
        /// No source named the user's country.
        CountryUnresolved = "country_unresolved",
        /// The operator does not serve the country.
        CountryNotSupported = "country_not_supported",
        /// The currency is not in the catalogue.
        CurrencyNotSupported = "currency_not_supported",
        /// The asset is not in the catalogue, or is inactive.
        AssetNotSupported = "asset_not_supported",
        /// Currency, asset and country are each supported, but not in this combination.
        CorridorNotAvailable = "corridor_not_available",
    }
}

/// The result of a query for eligibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eligibility {
    /// Why the user is not eligible; `None` if the user is.
    pub reason: Option<Ineligible>,
    /// The country of the query.
    pub country: Option<String>,
    /// The currency of the query.
    pub currency: Option<String>,
    /// The asset of the query.
    pub asset: Option<String>,
    /// The source of the country.
    pub source: GeoSource,
}

impl Catalogue {
    /// The countries with a code, filtered by whether they are served. Empty for an unknown code.
    pub fn countries_of(
        &self,
        code: Option<&str>,
        supported: Option<bool>,
    ) -> impl Iterator<Item = &Country> {
        let wanted = move |country: &&Country| {
            code.is_none_or(|code| country.code.as_str().eq_ignore_ascii_case(code))
                && supported.is_none_or(|supported| country.supported == supported)
        };
        self.countries().iter().filter(wanted)
    }

    /// The currencies that residents of a region pay in.
    pub fn currencies_in(&self, region: &Region) -> impl Iterator<Item = &Currency> {
        let audience = self.audience(region);
        let theirs = move |it: &&Currency| audience.pays_in(it.asset);
        self.currencies().iter().filter(theirs)
    }

    /// The methods of a side in a currency. Without a currency, those in the currencies of the region.
    pub fn methods_in<'c>(
        &'c self,
        side: Side,
        currency: Option<&str>,
        region: &Region,
    ) -> impl Iterator<Item = &'c Method> + use<'c> {
        let wanted = match currency {
            Some(code) => Wanted::of(self.currency(code)),
            None => Wanted::by(self.audience(region)),
        };
        self.methods(side)
            .filter(move |method| wanted.has(method.currency))
    }

    /// The assets offered on a side for a currency, each with the currency that selects its limits.
    ///
    /// Without a currency, the region selects it. A named currency takes priority, so the edge's region is then
    /// ignored.
    pub fn assets_in<'c>(
        &'c self,
        side: Option<Side>,
        currency: Option<&str>,
        region: &Region,
    ) -> impl Iterator<Item = (&'c Listing, Option<Asset>)> + use<'c> {
        let wanted = match currency {
            None => Wanted::by(self.audience(region)),
            Some(code) => {
                let audience = self.audience(&region.clone().without_edge());
                Wanted::of(self.currency(code).filter(|it| audience.pays_in(it.asset)))
            }
        };
        let chosen = match wanted {
            Wanted::One(currency) => Some(currency),
            Wanted::All | Wanted::None => None,
        };
        let found = self.assets().iter().filter(move |listing| match wanted {
            Wanted::All => sides(side).any(|side| listing.sides.contains(&side)),
            Wanted::One(currency) => {
                sides(side).any(|side| self.is_corridor(side, currency, listing))
            }
            Wanted::None => false,
        });
        found.map(move |listing| (listing, chosen))
    }

    /// Decides whether the operator can serve a user.
    #[must_use]
    pub fn eligibility(&self, query: &EligibilityQuery) -> Eligibility {
        let audience = self.audience(&query.region);
        let own = match audience {
            Audience::Country(country) => Some(country.currency.code().to_owned()),
            Audience::UnknownRegion | Audience::Unserved => None,
        };
        let upper = |text: &String| text.to_uppercase();
        Eligibility {
            reason: self.ineligible(&audience, query),
            country: query.region.code().map(str::to_owned),
            currency: query.currency.as_ref().map(upper).or(own),
            asset: query.asset.as_ref().map(upper),
            source: query.region.source(),
        }
    }

    /// Checks that an asset is offered on a side for a currency and, if a country is given, to its residents.
    ///
    /// # Errors
    /// The first [`Ineligible`] reason.
    pub fn offers(
        &self,
        side: Side,
        currency: Asset,
        listing: &Listing,
        country: Option<CountryCode>,
    ) -> Result<(), Ineligible> {
        let is_open = self.is_corridor(side, currency, listing);
        self.admits(currency, listing, country, is_open)
    }

    /// Checks that one asset can be swapped for another at a value in a currency and, if a country is given, by its
    /// residents. The user could sell the source and buy the target.
    ///
    /// # Errors
    /// The first [`Ineligible`] reason.
    pub fn offers_swap(
        &self,
        currency: Asset,
        source: &Listing,
        target: &Listing,
        country: Option<CountryCode>,
    ) -> Result<(), Ineligible> {
        let is_open = |listing: &Listing, side| {
            self.swaps_in(currency).is_some() && listing.is_offered(side, currency)
        };
        for (listing, side) in [(source, Side::OffRamp), (target, Side::OnRamp)] {
            self.admits(currency, listing, country, is_open(listing, side))?;
        }
        Ok(())
    }

    fn admits(
        &self,
        currency: Asset,
        listing: &Listing,
        country: Option<CountryCode>,
        is_open: bool,
    ) -> Result<(), Ineligible> {
        let served = |code| self.country(code).filter(|country| country.supported);
        let country = country.map(served);
        if country == Some(None) {
            return Err(Ineligible::CountryNotSupported);
        }
        if !listing.active {
            return Err(Ineligible::AssetNotSupported);
        }
        let theirs = country
            .flatten()
            .is_none_or(|country| country.currency == currency);
        (theirs && is_open)
            .then_some(())
            .ok_or(Ineligible::CorridorNotAvailable)
    }

    /// Checks that a currency, and the asset if one is named, is offered in any country.
    ///
    /// Without a side, one of the two sides is enough.
    ///
    /// # Errors
    /// The first [`Ineligible`] reason.
    pub fn serves(
        &self,
        currency: &str,
        asset: Option<&str>,
        side: Option<Side>,
    ) -> Result<(), Ineligible> {
        let currency = self.currency(currency);
        let currency = currency.ok_or(Ineligible::CurrencyNotSupported)?.asset;
        let open = match asset {
            None => sides(side).any(|side| self.methods_for(side, currency).next().is_some()),
            Some(symbol) => {
                let listing = self.asset(symbol).filter(|listing| listing.active);
                let listing = listing.ok_or(Ineligible::AssetNotSupported)?;
                sides(side).any(|side| self.is_corridor(side, currency, listing))
            }
        };
        open.then_some(()).ok_or(Ineligible::CorridorNotAvailable)
    }

    fn ineligible(&self, audience: &Audience<'_>, query: &EligibilityQuery) -> Option<Ineligible> {
        let country = match audience {
            Audience::Country(country) => country,
            Audience::UnknownRegion => return Some(Ineligible::CountryUnresolved),
            Audience::Unserved => return Some(Ineligible::CountryNotSupported),
        };
        let own = country.currency.code();
        let currency = query.currency.as_deref().unwrap_or(own);
        let served = self.serves(currency, query.asset.as_deref(), query.side);
        let theirs = currency.eq_ignore_ascii_case(own);
        let foreign = (!theirs).then_some(Ineligible::CorridorNotAvailable);
        served.err().or(foreign)
    }

    fn audience(&self, region: &Region) -> Audience<'_> {
        let Some(code) = region.code() else {
            return Audience::UnknownRegion;
        };
        let country = CountryCode::parse(code).and_then(|code| self.country(code));
        country
            .filter(|country| country.supported)
            .map_or(Audience::Unserved, Audience::Country)
    }
}

impl Audience<'_> {
    fn pays_in(&self, currency: Asset) -> bool {
        match self {
            Self::UnknownRegion => true,
            Self::Country(country) => country.currency == currency,
            Self::Unserved => false,
        }
    }
}

/// The currencies that a list includes.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    One(Asset),
    None,
}

impl Wanted {
    fn of(currency: Option<&Currency>) -> Self {
        currency.map_or(Self::None, |currency| Self::One(currency.asset))
    }

    const fn by(audience: Audience<'_>) -> Self {
        match audience {
            Audience::UnknownRegion => Self::All,
            Audience::Country(country) => Self::One(country.currency),
            Audience::Unserved => Self::None,
        }
    }

    fn has(self, currency: Asset) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == currency,
            Self::None => false,
        }
    }
}

fn sides(side: Option<Side>) -> impl Iterator<Item = Side> {
    let all = [Side::OnRamp, Side::OffRamp];
    all.into_iter()
        .filter(move |one| side.is_none_or(|side| side == *one))
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
