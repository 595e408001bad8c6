//! The parser of the catalogue file, which has six lists of tables.
//!
//! Parsing continues after an error, so that one run reports every error of the file.

mod networks;
mod times;

use kernel::rates::{Side, WHOLE_BPS};
use kernel::{Amount, Asset};
use partner_core::tables::{self, Faults, Field, Section, Shape, Sink};

use networks::{NETWORK, PAYOUT_FEE};
use times::{PAYMENT_USUAL_TIME, PAYOUT_USUAL_TIME, SWAP_USUAL_TIME, pay_within, usual_time};

use super::{
    Catalogue, Country, CountryCode, Currency, Limits, Listing, Method, PAY_WITHIN, SwapOffer,
};
use crate::payout::AccountForm;
use crate::verification::VerificationRule;

const ROOT: Shape = Shape {
    name: "",
    keys: &[
        "countries",
        "currencies",
        "assets",
        "payment_methods",
        "payout_methods",
        "swaps",
    ],
};
const COUNTRY: Shape = Shape {
    name: "countries",
    keys: &["code", "name", "currency", "supported", "verification"],
};
const VERIFICATION: Shape = Shape {
    name: "countries.verification",
    keys: &["above", "currency"],
};
const CURRENCY: Shape = Shape {
    name: "currencies",
    keys: &["code", "symbol", "name"],
};
const ASSET: Shape = Shape {
    name: "assets",
    keys: &[
        "symbol",
        "name",
        "decimals",
        "active",
        "sides",
        "currencies",
        "limits",
        "networks",
    ],
};
const LIMITS: Shape = Shape {
    name: "assets.limits",
    keys: &["currency", "min_amount", "max_amount"],
};
const PAYMENT_METHOD: Shape = Shape {
    name: "payment_methods",
    keys: &[
        "id",
        "name",
        "currency",
        "service_bps",
        "service_least",
        "pay_within",
        "usual_time",
    ],
};
const PAYOUT_METHOD: Shape = Shape {
    name: "payout_methods",
    keys: &[
        "id",
        "name",
        "currency",
        "account",
        "service_bps",
        "service_least",
        "pay_within",
        "usual_time",
    ],
};
const SWAP: Shape = Shape {
    name: "swaps",
    keys: &[
        "currency",
        "service_bps",
        "service_least",
        "pay_within",
        "usual_time",
    ],
};
const SHAPES: [&Shape; 14] = [
    &ROOT,
    &COUNTRY,
    &VERIFICATION,
    &CURRENCY,
    &ASSET,
    &LIMITS,
    &NETWORK,
    &PAYOUT_FEE,
    &PAYMENT_METHOD,
    &PAYMENT_USUAL_TIME,
    &PAYOUT_METHOD,
    &PAYOUT_USUAL_TIME,
    &SWAP,
    &SWAP_USUAL_TIME,
];

/// Maximum characters of a name, an id or a chain.
const LONGEST_NAME: usize = 64;
const LONGEST_ID: usize = 32;
/// Maximum digits of an amount.
const MOST_DECIMALS: u8 = kernel::UNITS_SCALE;

const CODE: &str = "an active ISO 4217 code such as EUR";
const LISTED: &str = "a currency of [[currencies]]";
const RULE: &str = "never, always or { above = \"150.00\", currency = \"EUR\" }";
const ACCOUNT: &str = "iban, uk or us";
const ID: &str = "1 to 32 of a-z, 0-9, _ and -";

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<Catalogue, Faults> {
    tables::read(text, &ROOT, &SHAPES, |sink, root| {
        let currencies = currencies(sink, root);
        let mut reading = Reading { currencies };
        let countries = reading.countries(sink, root);
        let assets = reading.assets(sink, root);
        let mut methods = reading.methods(sink, root, Side::OnRamp);
        methods.extend(reading.methods(sink, root, Side::OffRamp));
        let swaps = reading.swaps(sink, root);
        Catalogue {
            countries,
            currencies: std::mem::take(&mut reading.currencies),
            assets,
            methods,
            swaps,
        }
    })
}

fn currencies(sink: &mut Sink<'_>, root: &Section<'_, '_>) -> Vec<Currency> {
    let mut currencies: Vec<Currency> = Vec::new();
    for table in list(sink, root, "currencies", &CURRENCY) {
        let code = table.required(sink, "code", CODE);
        let asset = code.and_then(|field| {
            let asset = field.read(sink, CODE, exact_fiat)?;
            let earlier = currencies.iter().any(|it| it.asset == asset);
            once(sink, &field, earlier, "currency");
            Some(asset)
        });
        let symbol = label(sink, &table, "symbol", "what stands beside amounts");
        let name = label(sink, &table, "name", "the currency's name");
        if let (Some(asset), Some(symbol), Some(name)) = (asset, symbol, name) {
            currencies.push(Currency {
                asset,
                symbol,
                name,
            });
        }
    }
    currencies
}

/// Parses the lists that refer to currencies, after the list of currencies.
struct Reading {
    currencies: Vec<Currency>,
}

impl Reading {
    fn countries(&self, sink: &mut Sink<'_>, root: &Section<'_, '_>) -> Vec<Country> {
        let mut countries: Vec<Country> = Vec::new();
        for table in list(sink, root, "countries", &COUNTRY) {
            let expected = "an ISO 3166 code of two letters such as DE";
            let code = table.required(sink, "code", expected);
            let code = code.and_then(|field| {
                let exact =
                    |text: &str| CountryCode::parse(text).filter(|code| code.as_str() == text);
                let code = field.read(sink, expected, exact)?;
                let earlier = countries.iter().any(|it| it.code == code);
                once(sink, &field, earlier, "country");
                Some(code)
            });
            let name = label(sink, &table, "name", "the country's name");
            let currency = self.currency(sink, &table);
            let supported = table.flag(sink, "supported");
            let verification = self.verification(sink, &table);
            if let (Some(code), Some(name), Some(currency), Some(verification)) =
                (code, name, currency, verification)
            {
                countries.push(Country {
                    code,
                    name,
                    currency,
                    supported,
                    verification,
                });
            }
        }
        countries
    }

    /// When users of a country must be verified. A country without the key always asks for it.
    fn verification(
        &self,
        sink: &mut Sink<'_>,
        table: &Section<'_, '_>,
    ) -> Option<VerificationRule> {
        let Some(field) = table.field("verification") else {
            return Some(VerificationRule::Always);
        };
        if !field.is_table() {
            return field.read(sink, RULE, |text| match text {
                "never" => Some(VerificationRule::Never),
                "always" => Some(VerificationRule::Always),
                _ => None,
            });
        }
        let above = table.section(sink, "verification", &VERIFICATION)?;
        let field = above.required(sink, "above", AMOUNT);
        let currency = self.currency(sink, &above);
        let amount = amount(sink, &field?, currency?)?;
        Some(VerificationRule::Above(amount))
    }

    fn assets(&self, sink: &mut Sink<'_>, root: &Section<'_, '_>) -> Vec<Listing> {
        let mut assets: Vec<Listing> = Vec::new();
        for table in list(sink, root, "assets", &ASSET) {
            let asset = asset(sink, &table, &assets);
            let name = label(sink, &table, "name", "the asset's name");
            let active = table.field("active").is_none() || table.flag(sink, "active");
            let sides = sides(sink, &table);
            let currencies = self.list_of_currencies(sink, &table);
            let networks = self.networks(sink, &table, asset, &assets);
            let limits = self.limits(sink, &table);
            if let (Some(asset), Some(name), Some((limits, further_limits))) = (asset, name, limits)
            {
                assets.push(Listing {
                    asset,
                    name,
                    active,
                    sides,
                    currencies,
                    networks,
                    limits,
                    further_limits,
                });
            }
        }
        assets
    }

    fn list_of_currencies(
        &self,
        sink: &mut Sink<'_>,
        table: &Section<'_, '_>,
    ) -> Option<Vec<Asset>> {
        let found = table
            .field("currencies")?
            .list(sink, LISTED, |text| self.listed(text));
        Some(found.into_iter().map(|(_, currency)| currency).collect())
    }

    /// Parses one table of limits or a list of them, one per currency. `None` if the key is absent.
    fn limits(
        &self,
        sink: &mut Sink<'_>,
        table: &Section<'_, '_>,
    ) -> Option<(Limits, Vec<Limits>)> {
        let expected = "{ currency = \"EUR\", min_amount = \"10.00\", max_amount = \"50000.00\" }";
        let field = table.required(sink, "limits", expected)?;
        let tables = if field.is_list() {
            table.sections(sink, "limits", &LIMITS)
        } else {
            table.section(sink, "limits", &LIMITS).into_iter().collect()
        };
        if field.is_list() && tables.is_empty() {
            sink.add(field.at, &field.path, format!("expected {expected}"));
        }
        let mut found: Vec<Limits> = Vec::new();
        for table in tables {
            let Some(limits) = self.limits_of_currency(sink, &table) else {
                continue;
            };
            if let Some(field) = table.field("currency") {
                let currency = limits.min.asset();
                let earlier = found.iter().any(|it| it.min.asset() == currency);
                once(sink, &field, earlier, "currency of limits");
            }
            found.push(limits);
        }
        let mut found = found.into_iter();
        found.next().map(|first| (first, found.collect()))
    }

    fn limits_of_currency(&self, sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Option<Limits> {
        let currency = self.currency(sink, table);
        let least = table.required(sink, "min_amount", AMOUNT);
        let most = table.required(sink, "max_amount", AMOUNT);
        let currency = currency?;
        let min = least.and_then(|field| amount(sink, &field, currency))?;
        let most = most?;
        let max = amount(sink, &most, currency)?;
        if max.units() < min.units() {
            most.refuse(sink, &format!("expected at least min_amount, {min}"));
        }
        Some(Limits { min, max })
    }

    fn methods(&self, sink: &mut Sink<'_>, root: &Section<'_, '_>, side: Side) -> Vec<Method> {
        let (key, shape, usual_shape) = match side {
            Side::OnRamp => ("payment_methods", &PAYMENT_METHOD, &PAYMENT_USUAL_TIME),
            Side::OffRamp => ("payout_methods", &PAYOUT_METHOD, &PAYOUT_USUAL_TIME),
        };
        let mut methods: Vec<Method> = Vec::new();
        for table in root.sections(sink, key, shape) {
            let field = table.required(sink, "id", ID);
            let id = field.and_then(|field| Some((field.read(sink, ID, self::id)?, field)));
            let name = label(sink, &table, "name", "the method's name");
            let currency = self.currency(sink, &table);
            let account = table.field("account");
            let account = account.and_then(|field| field.read(sink, ACCOUNT, AccountForm::parse));
            let fee = service_fee(sink, &table, currency);
            let within = pay_within(sink, &table);
            let usual_time = usual_time(sink, &table, usual_shape);
            let Some(currency) = currency else { continue };
            let Some((id, field)) = id else { continue };
            let earlier = |it: &Method| it.id == id && it.currency == currency;
            once(
                sink,
                &field,
                methods.iter().any(earlier),
                "method of a currency",
            );
            if let (Some(name), Some((service_bps, service_least))) = (name, fee) {
                let pay_within = within.unwrap_or_else(|| Method::default_pay_within(side, &id));
                methods.push(Method {
                    id,
                    name,
                    currency,
                    side,
                    account,
                    service_bps,
                    service_least,
                    pay_within,
                    usual_time,
                });
            }
        }
        methods
    }

    fn swaps(&self, sink: &mut Sink<'_>, root: &Section<'_, '_>) -> Vec<SwapOffer> {
        let mut swaps: Vec<SwapOffer> = Vec::new();
        for table in root.sections(sink, "swaps", &SWAP) {
            let currency = self.currency(sink, &table);
            let fee = service_fee(sink, &table, currency);
            let within = pay_within(sink, &table);
            let usual_time = usual_time(sink, &table, &SWAP_USUAL_TIME);
            if let (Some(currency), Some(field)) = (currency, table.field("currency")) {
                let earlier = swaps.iter().any(|it| it.currency == currency);
                once(sink, &field, earlier, "currency of swaps");
            }
            if let (Some(currency), Some((service_bps, service_least))) = (currency, fee) {
                swaps.push(SwapOffer {
                    currency,
                    service_bps,
                    service_least,
                    pay_within: within.unwrap_or(PAY_WITHIN),
                    usual_time,
                });
            }
        }
        swaps
    }

    /// The currency that a table names.
    fn currency(&self, sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Option<Asset> {
        table
            .required(sink, "currency", LISTED)?
            .read(sink, LISTED, |text| self.listed(text))
    }

    fn listed(&self, text: &str) -> Option<Asset> {
        let asset = exact_fiat(text)?;
        self.currencies
            .iter()
            .any(|it| it.asset == asset)
            .then_some(asset)
    }
}

/// The service fee of a method or of swaps: its share and its minimum, both zero unless the table says otherwise.
fn service_fee(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    currency: Option<Asset>,
) -> Option<(u16, Amount)> {
    let bps = table.field("service_bps");
    let bps = bps.map_or(Some(0), |field| field.whole(sink, WHOLE_BPS));
    let currency = currency?;
    let least = table.field("service_least");
    let least = least.map_or(Some(Amount::zero(currency)), |field| {
        amount(sink, &field, currency)
    });
    Some((bps?, least?))
}

/// A required list.
fn list<'d, 's>(
    sink: &mut Sink<'_>,
    root: &Section<'d, 's>,
    key: &'static str,
    shape: &'static Shape,
) -> Vec<Section<'d, 's>> {
    let before = sink.count();
    let found = root.sections(sink, key, shape);
    if found.is_empty() && sink.count() == before {
        let problem = format!("missing; expected at least one [[{key}]]");
        sink.add(root.at, key, problem);
    }
    found
}

fn asset(sink: &mut Sink<'_>, table: &Section<'_, '_>, earlier: &[Listing]) -> Option<Asset> {
    let expected = "2 to 12 of A-Z and 0-9, and no currency's code";
    let symbol = table.required(sink, "symbol", expected);
    let digits = table.required(sink, "decimals", "a whole number from 0 to 8");
    let symbol = symbol.and_then(|field| {
        let exact = |text: &str| Asset::listed(text, scale_of(text)).filter(|it| it.code() == text);
        let asset = field.read(sink, expected, exact)?;
        let listed = earlier.iter().any(|it| it.asset.code() == asset.code());
        once(sink, &field, listed, "asset");
        Some(asset)
    });
    let digits = digits.and_then(|field| Some((field.whole(sink, MOST_DECIMALS)?, field)));
    let (symbol, (digits, field)) = (symbol?, digits?);
    let asset = Asset::listed(symbol.code(), digits);
    if asset.is_none() {
        let built_in = symbol.scale();
        field.refuse(
            sink,
            &format!("expected {built_in}, the digits of {symbol}"),
        );
    }
    asset
}

/// The digits of an asset: those of the built-in asset if there is one, otherwise the digits that the file declares.
fn scale_of(symbol: &str) -> u8 {
    Asset::crypto(symbol).map_or(MOST_DECIMALS, |asset| asset.scale())
}

fn sides(sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Vec<Side> {
    let Some(field) = table.field("sides") else {
        return vec![Side::OnRamp, Side::OffRamp];
    };
    let found = field.list(sink, "on_ramp or off_ramp", Side::parse);
    found.into_iter().map(|(_, side)| side).collect()
}

const AMOUNT: &str = "a decimal such as \"10.00\", with the currency's digits at most";

/// Parses an amount, which may be zero.
fn amount(sink: &mut Sink<'_>, field: &Field<'_, '_>, currency: Asset) -> Option<Amount> {
    field.number(sink, AMOUNT, |text| match Amount::parse(text, currency) {
        Ok(amount) => Some(amount),
        Err(kernel::AmountError::Zero) => Some(Amount::zero(currency)),
        Err(_) => None,
    })
}

fn label(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    key: &'static str,
    expected: &str,
) -> Option<String> {
    table
        .required(sink, key, expected)?
        .label(sink, LONGEST_NAME)
}

fn once(sink: &mut Sink<'_>, field: &Field<'_, '_>, earlier: bool, noun: &str) {
    if earlier {
        field.refuse(sink, &format!("expected every {noun} once"));
    }
}

/// Parses an upper-case currency code.
fn exact_fiat(text: &str) -> Option<Asset> {
    Asset::fiat(text).filter(|asset| asset.code() == text)
}

fn id(text: &str) -> Option<String> {
    let letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let fits = (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(letter);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
