//! Tests of the offer per region, with the built-in catalogue.

use super::*;

fn catalogue() -> Catalogue {
    Catalogue::built_in().unwrap()
}

fn asked(code: &str) -> Region {
    Region::of(Some(code), Some("GB"))
}

fn edge(code: &str) -> Region {
    Region::of(None, Some(code))
}

fn joined<'t>(words: impl Iterator<Item = &'t str>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

// rule: gate.catalogue.built-in
#[test]
fn built_in_catalogue_has_required_entries() {
    let catalogue = catalogue();
    for (code, currency) in [
        ("DE", "EUR"),
        ("FR", "EUR"),
        ("NL", "EUR"),
        ("ES", "EUR"),
        ("IT", "EUR"),
        ("GB", "GBP"),
        ("US", "USD"),
    ] {
        let country = catalogue
            .country(CountryCode::parse(code).unwrap())
            .unwrap();
        assert_eq!(
            (country.currency.code(), country.supported),
            (currency, true)
        );
    }
    assert!(
        catalogue
            .countries()
            .iter()
            .any(|country| !country.supported)
    );
    for (symbol, digits) in [("USDT", 6), ("USDC", 6), ("BTC", 8), ("ETH", 8)] {
        let listing = catalogue.asset(symbol).unwrap();
        assert_eq!((listing.asset.scale(), listing.active), (digits, true));
        assert!(!listing.networks.is_empty());
        for code in ["EUR", "GBP", "USD"] {
            let currency = catalogue.currency(code).unwrap().asset;
            for side in [Side::OnRamp, Side::OffRamp] {
                assert!(catalogue.is_corridor(side, currency, listing));
            }
        }
    }
}

// rule: gate.catalogue.look-up
#[test]
fn codes_are_case_insensitive_and_names_are_not() {
    let catalogue = catalogue();
    let eur = catalogue.currency("eur").unwrap().asset;
    let usdt = catalogue.asset("usdt").unwrap();
    assert!(usdt.network("tron").is_some() && usdt.network("TRON").is_none());
    assert!(catalogue.method(Side::OnRamp, eur, "sepa").is_some());
    assert!(catalogue.method(Side::OnRamp, eur, "SEPA").is_none());
    assert!(catalogue.method(Side::OnRamp, eur, "ach").is_none());
    assert!(catalogue.currency("CHF").is_none() && catalogue.asset("EUR").is_none());
}

// rule: gate.capabilities.geography
#[test]
fn query_region_overrides_edge_region() {
    for (asked, edge, source, code) in [
        (Some("de"), Some("GB"), GeoSource::Query, Some("DE")),
        (
            Some("nowhere"),
            Some("GB"),
            GeoSource::Query,
            Some("NOWHERE"),
        ),
        (Some(""), Some("gb"), GeoSource::Edge, Some("GB")),
        (None, Some("XX"), GeoSource::None, None),
        (None, Some("T1"), GeoSource::None, None),
        (None, None, GeoSource::None, None),
    ] {
        let region = Region::of(asked, edge);
        assert_eq!((region.source(), region.code()), (source, code));
    }
}

// rule: gate.capabilities.filters, gate.capabilities.unknown-region, gate.capabilities.unsupported-country
#[test]
fn lists_are_restricted_to_known_region() {
    let catalogue = catalogue();
    let currencies =
        |region: &Region| joined(catalogue.currencies_in(region).map(|it| it.asset.code()));
    let methods = |currency: Option<&str>, region: &Region| {
        joined(
            catalogue
                .methods_in(Side::OnRamp, currency, region)
                .map(|it| it.id.as_str()),
        )
    };
    for (region, expected, paid_by) in [
        (
            Region::Unknown,
            "EUR GBP USD JPY",
            "sepa card faster_payments card ach card",
        ),
        (asked("de"), "EUR", "sepa card"),
        (edge("GB"), "GBP", "faster_payments card"),
        (asked("JP"), "", ""),
        (edge("BR"), "", ""),
        (asked("nowhere"), "", ""),
    ] {
        assert_eq!(currencies(&region), expected, "{region:?}");
        assert_eq!(methods(None, &region), paid_by, "{region:?}");
        assert_eq!(methods(Some("usd"), &region), "ach card", "{region:?}");
        assert_eq!(methods(Some("XYZ"), &region), "", "{region:?}");
    }
    let countries = |code, supported| catalogue.countries_of(code, supported).count();
    assert_eq!(countries(None, None), 8);
    assert_eq!(countries(None, Some(false)), 1);
    assert_eq!(
        (
            countries(Some("jp"), None),
            countries(Some("JP"), Some(true))
        ),
        (1, 0)
    );
    assert_eq!(countries(Some("ZZ"), None), 0);
}

// rule: gate.capabilities.filters
#[test]
fn assets_are_restricted_to_corridor() {
    let text = super::super::BUILT_IN
        .replacen("decimals = 8", "decimals = 8\nsides = [\"off_ramp\"]", 1) // BTC
        .replace(
            "name = \"Ether\"",
            "name = \"Ether\"\ncurrencies = [\"GBP\", \"JPY\"]",
        );
    let catalogue = Catalogue::parse(&text).unwrap();
    let assets = |side, currency, region: &Region| {
        let found = catalogue.assets_in(side, currency, region);
        joined(found.map(|(it, _)| it.asset.code()))
    };
    let (on, off) = (Some(Side::OnRamp), Some(Side::OffRamp));
    for (side, currency, region, expected) in [
        (None, None, Region::Unknown, "USDT USDC BTC ETH"),
        (on, None, Region::Unknown, "USDT USDC ETH"),
        (off, None, asked("DE"), "USDT USDC BTC"),
        (on, None, edge("GB"), "USDT USDC ETH"),
        (on, Some("eur"), edge("GB"), "USDT USDC"),
        (on, Some("gbp"), asked("DE"), ""),
        (None, Some("JPY"), Region::Unknown, ""),
        (None, Some("XYZ"), Region::Unknown, ""),
        (None, None, asked("JP"), ""),
    ] {
        let found = assets(side, currency, &region);
        assert_eq!(found, expected, "{side:?} {currency:?} {region:?}");
    }
}

// rule: gate.eligibility.reasons, gate.eligibility.order
#[test]
fn ineligibility_reports_first_reason() {
    let text = super::super::BUILT_IN
        .replace("name = \"Ether\"", "name = \"Ether\"\nactive = false")
        .replace(
            "name = \"Bitcoin\"",
            "name = \"Bitcoin\"\nsides = [\"on_ramp\"]",
        );
    let catalogue = Catalogue::parse(&text).unwrap();
    let checked = |region: Region, currency: Option<&str>, asset: Option<&str>, side| {
        catalogue.eligibility(&EligibilityQuery {
            region,
            currency: currency.map(str::to_owned),
            asset: asset.map(str::to_owned),
            side,
        })
    };
    let reason = |region, currency, asset| {
        checked(region, currency, asset, None)
            .reason
            .map(Ineligible::as_str)
    };
    let wrong = Some("nothing");
    assert_eq!(
        reason(Region::Unknown, wrong, wrong),
        Some("country_unresolved")
    );
    assert_eq!(
        reason(asked("JP"), wrong, wrong),
        Some("country_not_supported")
    );
    assert_eq!(
        reason(asked("ZZ"), wrong, wrong),
        Some("country_not_supported")
    );
    assert_eq!(
        reason(asked("DE"), wrong, wrong),
        Some("currency_not_supported")
    );
    assert_eq!(
        reason(asked("DE"), Some("eur"), wrong),
        Some("asset_not_supported")
    );
    assert_eq!(
        reason(asked("DE"), None, Some("ETH")),
        Some("asset_not_supported")
    );
    assert_eq!(
        reason(asked("DE"), Some("JPY"), None),
        Some("corridor_not_available")
    );
    assert_eq!(
        reason(asked("DE"), Some("GBP"), None),
        Some("corridor_not_available")
    );
    assert_eq!(reason(asked("DE"), None, Some("btc")), None);
    let sold = checked(asked("DE"), None, Some("BTC"), Some(Side::OffRamp));
    assert_eq!(sold.reason, Some(Ineligible::CorridorNotAvailable));
    let named = checked(edge("DE"), None, Some("usdt"), None);
    assert_eq!((named.reason, named.source), (None, GeoSource::Edge));
    let of = [named.country, named.currency, named.asset];
    assert_eq!(of.map(Option::unwrap), ["DE", "EUR", "USDT"]);
}

// rule: gate.catalogue.swaps
#[test]
fn swap_needs_a_source_that_is_sold_and_a_target_that_is_bought() {
    let text = super::super::BUILT_IN
        .replace("name = \"Ether\"", "name = \"Ether\"\nactive = false")
        .replace(
            "name = \"Bitcoin\"",
            "name = \"Bitcoin\"\nsides = [\"on_ramp\"]",
        )
        .replace(
            "[[swaps]]\ncurrency = \"GBP\"\nservice_bps = 50\nservice_least = \"0.25\"\npay_within = \"30m\"\nusual_time = { from = \"5m\", to = \"30m\" }\n",
            "",
        );
    let catalogue = Catalogue::parse(&text).unwrap();
    let checked = |currency, [source, target]: [&str; 2], country| {
        let [source, target] = [source, target].map(|symbol| catalogue.asset(symbol).unwrap());
        let currency = Asset::fiat(currency).unwrap();
        let country = CountryCode::parse(country);
        catalogue.offers_swap(currency, source, target, country)
    };
    let closed = Err(Ineligible::CorridorNotAvailable);
    for (currency, pair, country, expected) in [
        ("EUR", ["USDC", "USDT"], "DE", Ok(())),
        ("EUR", ["USDC", "BTC"], "DE", Ok(())),
        ("EUR", ["BTC", "USDC"], "DE", closed),
        (
            "EUR",
            ["ETH", "USDT"],
            "DE",
            Err(Ineligible::AssetNotSupported),
        ),
        ("EUR", ["USDC", "USDT"], "GB", closed),
        ("GBP", ["USDC", "USDT"], "GB", closed),
        (
            "EUR",
            ["USDC", "USDT"],
            "JP",
            Err(Ineligible::CountryNotSupported),
        ),
    ] {
        let found = checked(currency, pair, country);
        assert_eq!(found, expected, "{currency} {pair:?} {country}");
    }
}
