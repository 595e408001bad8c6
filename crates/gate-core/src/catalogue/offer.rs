//! What the catalogue offers to somebody somewhere.

use kernel::Asset;
use kernel::rates::Side;

use super::{Catalogue, Country, CountryCode, Currency, Listing, Method};

/// Where the user is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Region {
    /// The caller says so: whatever it wrote, in upper case.
    Asked(String),
    /// The edge that the request came through says so.
    Edge(CountryCode),
    /// Nobody does.
    Unknown,
}

/// Who said where the user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeoSource {
    /// The caller.
    Query,
    /// The edge.
    Edge,
    /// Nobody.
    None,
}

impl GeoSource {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Edge => "edge",
            Self::None => "none",
        }
    }
}

impl Region {
    /// What the caller wrote wins; what the edge wrote counts if it is a country's code.
    #[must_use]
    pub fn of(asked: Option<&str>, edge: Option<&str>) -> Self {
        match asked.filter(|text| !text.is_empty()) {
            Some(text) => Self::Asked(text.to_uppercase()),
            None => edge
                .and_then(CountryCode::parse)
                .map_or(Self::Unknown, Self::Edge),
        }
    }

    /// Only what the caller wrote: routes that know better than the edge do not ask it.
    #[must_use]
    pub fn without_edge(self) -> Self {
        match self {
            Self::Asked(_) => self,
            Self::Edge(_) | Self::Unknown => Self::Unknown,
        }
    }

    /// Who said so.
    #[must_use]
    pub const fn source(&self) -> GeoSource {
        match self {
            Self::Asked(_) => GeoSource::Query,
            Self::Edge(_) => GeoSource::Edge,
            Self::Unknown => GeoSource::None,
        }
    }

    /// The code, as it was said.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Asked(text) => Some(text),
            Self::Edge(code) => Some(code.as_str()),
            Self::Unknown => None,
        }
    }
}

/// Whom a list is for.
enum Audience<'c> {
    /// Nobody in particular.
    Everybody,
    /// The people of a country that is served.
    Country(&'c Country),
    /// People who are not served.
    Nobody,
}

/// What may be asked about a corridor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enquiry {
    /// Where the user is.
    pub region: Region,
    /// What the user pays in; `None`: the country's currency.
    pub currency: Option<String>,
    /// What the user buys or sells; `None`: anything.
    pub asset: Option<String>,
    /// Which of the two; `None`: either.
    pub side: Option<Side>,
}

/// Why somebody cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ineligible {
    /// Nobody said where the user is.
    CountryUnresolved,
    /// The country is not served.
    CountryNotSupported,
    /// The currency is not in the catalogue.
    CurrencyNotSupported,
    /// The asset is not in the catalogue, or not offered at present.
    AssetNotSupported,
    /// Each is served, and not together.
    CorridorNotAvailable,
}

impl Ineligible {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CountryUnresolved => "country_unresolved",
            Self::CountryNotSupported => "country_not_supported",
            Self::CurrencyNotSupported => "currency_not_supported",
            Self::AssetNotSupported => "asset_not_supported",
            Self::CorridorNotAvailable => "corridor_not_available",
        }
    }
}

/// The answer to an enquiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eligibility {
    /// Why not; `None`: the user can be served.
    pub reason: Option<Ineligible>,
    /// The country it was judged for.
    pub country: Option<String>,
    /// The currency it was judged for.
    pub currency: Option<String>,
    /// The asset it was judged for.
    pub asset: Option<String>,
    /// Who said where the user is.
    pub source: GeoSource,
}

impl Catalogue {
    /// The countries of a code, served or not as is asked for. An unknown code has none.
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

    /// The currencies that people of a region pay in.
    pub fn currencies_in(&self, region: &Region) -> impl Iterator<Item = &Currency> {
        let audience = self.audience(region);
        let theirs = move |it: &&Currency| audience.pays_in(it.asset);
        self.currencies().iter().filter(theirs)
    }

    /// The methods of a side in a currency, else those that people of a region have.
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

    /// The assets that go a way, for a currency, for people of a region, each with the currency that
    /// chooses its limits. A currency that is named is enough: only then the edge is not asked where
    /// the user is.
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

    /// Can somebody be served?
    #[must_use]
    pub fn eligibility(&self, enquiry: &Enquiry) -> Eligibility {
        let audience = self.audience(&enquiry.region);
        let own = match audience {
            Audience::Country(country) => Some(country.currency.code().to_owned()),
            Audience::Everybody | Audience::Nobody => None,
        };
        let upper = |text: &String| text.to_uppercase();
        Eligibility {
            reason: self.ineligible(&audience, enquiry),
            country: enquiry.region.code().map(str::to_owned),
            currency: enquiry.currency.as_ref().map(upper).or(own),
            asset: enquiry.asset.as_ref().map(upper),
            source: enquiry.region.source(),
        }
    }

    /// Is an asset bought with, or sold for, a currency, and by the people of a country where one is
    /// named?
    ///
    /// # Errors
    /// [`Ineligible`]: the first reason against it.
    pub fn offers(
        &self,
        side: Side,
        currency: Asset,
        listing: &Listing,
        country: Option<CountryCode>,
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
        let open = theirs && self.is_corridor(side, currency, listing);
        open.then_some(()).ok_or(Ineligible::CorridorNotAvailable)
    }

    /// Is a currency, and the asset where one is named, served on a side, or where none is named on
    /// either: for whomever?
    ///
    /// # Errors
    /// [`Ineligible`]: the first reason against it.
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

    fn ineligible(&self, audience: &Audience<'_>, enquiry: &Enquiry) -> Option<Ineligible> {
        let country = match audience {
            Audience::Country(country) => country,
            Audience::Everybody => return Some(Ineligible::CountryUnresolved),
            Audience::Nobody => return Some(Ineligible::CountryNotSupported),
        };
        let own = country.currency.code();
        let currency = enquiry.currency.as_deref().unwrap_or(own);
        let served = self.serves(currency, enquiry.asset.as_deref(), enquiry.side);
        let theirs = currency.eq_ignore_ascii_case(own);
        let foreign = (!theirs).then_some(Ineligible::CorridorNotAvailable);
        served.err().or(foreign)
    }

    fn audience(&self, region: &Region) -> Audience<'_> {
        let Some(code) = region.code() else {
            return Audience::Everybody;
        };
        let country = CountryCode::parse(code).and_then(|code| self.country(code));
        country
            .filter(|country| country.supported)
            .map_or(Audience::Nobody, Audience::Country)
    }
}

impl Audience<'_> {
    fn pays_in(&self, currency: Asset) -> bool {
        match self {
            Self::Everybody => true,
            Self::Country(country) => country.currency == currency,
            Self::Nobody => false,
        }
    }
}

/// Which currencies a list is for.
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
            Audience::Everybody => Self::All,
            Audience::Country(country) => Self::One(country.currency),
            Audience::Nobody => Self::None,
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
