//! The operator's file of sources.
//!
//! ```toml
//! max_age_ms = 10000          # older prices are not used
//! max_spread_bps = 50         # a price further from the median is dropped
//! min_sources = 2             # a rate needs this many prices near the median
//! max_width_bps = 200         # a book whose ask is further above its bid has no price; absent: 200
//! max_move_bps = 200          # how far a rate may move within a minute; absent: any distance
//! refresh_ms = 2000           # pause between two calls of a source; absent: 2000
//! timeout_ms = 1000           # timeout of one call; absent: 1000
//!
//! [[pairs]]
//! pair = "EUR-USDT"
//! spread_bps = 25
//!
//! [[sources]]
//! name = "alpha"
//! url = "https://rates.alpha.example/v1/tickers"
//! headers = [{ name = "Authorization", prefix = "Bearer ", env = "ALPHA_TOKEN" }]
//!
//! [[sources.prices]]
//! pair = "EUR-USDT"
//! bid = "/eur_usdt/bid"       # JSON Pointers; or `mid`
//! ask = "/eur_usdt/ask"
//! time = "/eur_usdt/at"       # absent: the time of the call
//! time_form = "rfc3339"       # or seconds, milliseconds
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use kernel::rates::WHOLE_BPS;
use partner_core::tables::{self, Field, Section, Shape, Sink, TableError};
use partner_core::text;
use pools_core::profile::PoolId;
use url::Url;

use super::json::{Pointer, TimeForm};
use super::source::{Lookup, Quoted, Source};
use super::{Pair, Terms};
use crate::static_rates::RatesError;

const ROOT: Shape = Shape {
    name: "",
    keys: &[
        "max_age_ms",
        "max_spread_bps",
        "min_sources",
        "max_width_bps",
        "max_move_bps",
        "refresh_ms",
        "timeout_ms",
        "pairs",
        "sources",
    ],
};
const PAIR: Shape = Shape {
    name: "pairs",
    keys: &["pair", "spread_bps"],
};
const SOURCE: Shape = Shape {
    name: "sources",
    keys: &["name", "url", "headers", "prices"],
};
const HEADER: Shape = Shape {
    name: "sources.headers",
    keys: &["name", "prefix", "value", "env", "file"],
};
const PRICE: Shape = Shape {
    name: "sources.prices",
    keys: &["pair", "mid", "bid", "ask", "inverse", "time", "time_form"],
};
const SHAPES: &[&Shape] = &[&ROOT, &PAIR, &SOURCE, &HEADER, &PRICE];

const DEFAULT_MAX_WIDTH_BPS: u16 = 200;
const DEFAULT_REFRESH_MILLIS: u64 = 2_000;
const DEFAULT_TIMEOUT_MILLIS: u64 = 1_000;
/// Maximum duration in the file, in milliseconds: one hour.
const MAX_MILLIS: u64 = 3_600_000;
/// Maximum number of sources, of pairs, and of prices per source.
const MAX_ENTRIES: usize = 64;
/// Maximum characters of a source's name.
const MAX_NAME_CHARS: usize = 64;

const PAIR_FORM: &str = "a fiat and a crypto code such as EUR-USDT";
const POINTER_FORM: &str = "a JSON Pointer such as /data/0/mid";

/// The content of a file.
pub(super) struct Sources {
    pub(super) terms: Terms,
    pub(super) pairs: BTreeMap<PoolId, Pair>,
    pub(super) sources: Vec<Source>,
}

type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

pub(super) fn read(path: &Path, environment: Environment<'_>) -> Result<Sources, Vec<RatesError>> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![RatesError {
            file: file.clone(),
            line: None,
            expected: format!("expected a readable TOML file of [[sources]] ({error})"),
        }]
    })?;
    let found = tables::read(&text, &ROOT, SHAPES, |sink, root| {
        document(sink, root, environment)
    });
    let named = |error: &TableError| RatesError {
        file: file.clone(),
        line: Some(error.line),
        expected: match &*error.key {
            "" => error.problem.clone(),
            key => format!("{key}: {}", error.problem),
        },
    };
    match found {
        Ok(Some(sources)) => Ok(sources),
        // The reader of each section has reported its missing values.
        Ok(None) => Err(Vec::new()),
        Err(faults) => Err(faults.0.iter().map(named).collect()),
    }
}

fn document(
    sink: &mut Sink<'_>,
    root: &Section<'_, '_>,
    environment: Environment<'_>,
) -> Option<Sources> {
    let terms = terms(sink, root);
    let pairs = pairs(sink, root);
    let mut sources: Vec<Source> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for section in bounded(sink, root, "sources", &SOURCE) {
        if let Some(field) = section.field("name") {
            let name = text::comparable(field.text().unwrap_or_default());
            if names.contains(&name) {
                field.refuse(sink, "expected a name that no other source has");
            }
            names.push(name);
        }
        sources.extend(source(sink, &section, &pairs, environment));
    }
    let terms = terms?;
    for (pair, (at, _)) in &pairs {
        let serving = sources.iter().filter(|source| source.serves(*pair)).count();
        if sink.count() == 0 && serving < terms.min_sources {
            let needed = terms.min_sources;
            let problem = format!(
                "expected at least {needed} sources (min_sources) of {pair}, found {serving}"
            );
            sink.add(*at, "pairs.pair", problem);
        }
    }
    Some(Sources {
        terms,
        pairs: pairs
            .into_iter()
            .map(|(pair, (_, bps))| (pair, Pair::new(bps)))
            .collect(),
        sources,
    })
}

fn terms(sink: &mut Sink<'_>, root: &Section<'_, '_>) -> Option<Terms> {
    let age_form = "the maximum age of a price, in milliseconds";
    let age = root.required(sink, "max_age_ms", age_form);
    let max_age = age.as_ref().and_then(|field| millis(sink, field));
    let near_form = "the maximum distance of a price from the median, in basis points";
    let near = root.required(sink, "max_spread_bps", near_form);
    let max_spread_bps = near.and_then(|field| field.whole(sink, WHOLE_BPS));
    let least = root.required(
        sink,
        "min_sources",
        "the number of prices near the median that a rate needs",
    );
    let min_sources = least.and_then(|field| {
        let least = field.whole(sink, MAX_ENTRIES)?;
        if least == 0 {
            field.refuse(sink, "expected at least one");
        }
        Some(least)
    });
    let max_width_bps = match root.field("max_width_bps") {
        Some(field) => positive_bps(sink, &field, "expected at least 1")?,
        None => DEFAULT_MAX_WIDTH_BPS,
    };
    let any_move = "expected at least 1; omit the key if a rate may move any distance";
    let max_move_bps = match root.field("max_move_bps") {
        Some(field) => Some(positive_bps(sink, &field, any_move)?),
        None => None,
    };
    let mut span = |key, absent| match root.field(key) {
        Some(field) => millis(sink, &field),
        None => Some(Duration::from_millis(absent)),
    };
    let (refresh, timeout) = (
        span("refresh_ms", DEFAULT_REFRESH_MILLIS)?,
        span("timeout_ms", DEFAULT_TIMEOUT_MILLIS)?,
    );
    let max_age = max_age?;
    if let Some(field) = age.filter(|_| max_age < refresh.saturating_add(timeout)) {
        let round = refresh.saturating_add(timeout).as_millis();
        field.refuse(
            sink,
            &format!("expected at least {round} (refresh_ms plus timeout_ms): otherwise prices become too old between two responses"),
        );
    }
    Some(Terms {
        max_age,
        max_spread_bps: max_spread_bps?,
        min_sources: min_sources?,
        max_width_bps,
        max_move_bps,
        refresh,
        timeout,
    })
}

/// Basis points of at least one.
fn positive_bps(sink: &mut Sink<'_>, field: &Field<'_, '_>, problem: &str) -> Option<u16> {
    let max_bps = field.whole(sink, WHOLE_BPS)?;
    if max_bps == 0 {
        field.refuse(sink, problem);
    }
    Some(max_bps)
}

fn millis(sink: &mut Sink<'_>, field: &Field<'_, '_>) -> Option<Duration> {
    let millis = field.whole(sink, MAX_MILLIS)?;
    if millis == 0 {
        field.refuse(sink, "expected at least one millisecond");
    }
    Some(Duration::from_millis(millis))
}

/// The pairs, each with its spread and the position of its name in the file.
fn pairs(sink: &mut Sink<'_>, root: &Section<'_, '_>) -> BTreeMap<PoolId, (usize, u16)> {
    let mut found = BTreeMap::new();
    for section in bounded(sink, root, "pairs", &PAIR) {
        let spread = section.required(
            sink,
            "spread_bps",
            "the spread of the quoted rate, in basis points",
        );
        let spread = spread.and_then(|field| field.whole(sink, WHOLE_BPS));
        let Some(field) = section.required(sink, "pair", PAIR_FORM) else {
            continue;
        };
        let (Some(pair), Some(spread)) = (field.read(sink, PAIR_FORM, PoolId::parse), spread)
        else {
            continue;
        };
        if found.insert(pair, (field.at, spread)).is_some() {
            field.refuse(sink, "expected each pair only once");
        }
    }
    found
}

fn source(
    sink: &mut Sink<'_>,
    section: &Section<'_, '_>,
    pairs: &BTreeMap<PoolId, (usize, u16)>,
    environment: Environment<'_>,
) -> Option<Source> {
    let name = section.required(sink, "name", "the name of the source in logs");
    let name = name.and_then(|field| field.unique_label(sink, MAX_NAME_CHARS));
    let url_form =
        "http:// or https://, a host, an optional path and an optional query, without credentials";
    let uri = section.required(sink, "url", url_form);
    let uri = uri.and_then(|field| {
        let uri = field.text().and_then(address);
        if uri.is_none() {
            // The value is not shown, because it may contain a password.
            field.refuse_unseen(sink, &format!("expected {url_form}"));
        }
        uri
    });
    let headers = section.sections(sink, "headers", &HEADER);
    let headers: Vec<_> = headers
        .iter()
        .filter_map(|section| header(sink, section, environment))
        .collect();
    let mut lookups = BTreeMap::new();
    for section in bounded(sink, section, "prices", &PRICE) {
        let Some(field) = section.required(sink, "pair", PAIR_FORM) else {
            continue;
        };
        let pair = field.read(sink, PAIR_FORM, PoolId::parse);
        if pair.is_some_and(|pair| !pairs.contains_key(&pair)) {
            field.refuse(sink, "expected a pair of [[pairs]]");
        }
        if let (Some(pair), Some(lookup)) = (pair, lookup(sink, &section))
            && lookups.insert(pair, lookup).is_some()
        {
            field.refuse(sink, "expected each pair only once");
        }
    }
    Some(Source::new(name?, uri?, headers, lookups))
}

/// A list of one to [`MAX_ENTRIES`] tables.
fn bounded<'d, 's>(
    sink: &mut Sink<'_>,
    section: &Section<'d, 's>,
    key: &'static str,
    shape: &'static Shape,
) -> Vec<Section<'d, 's>> {
    let found = section.sections(sink, key, shape);
    if !(1..=MAX_ENTRIES).contains(&found.len()) {
        let problem = format!(
            "expected 1 to {MAX_ENTRIES} of [[{}]], found {}",
            shape.name,
            found.len()
        );
        sink.add(section.at, shape.name, problem);
    }
    found
}

fn address(text: &str) -> Option<Uri> {
    let url = Url::parse(text).ok()?;
    let known = matches!(url.scheme(), "http" | "https") && url.has_host();
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    url.as_str().parse().ok().filter(|_| known && bare)
}

fn lookup(sink: &mut Sink<'_>, section: &Section<'_, '_>) -> Option<Lookup> {
    let mut at = |key| {
        let field = section.field(key)?;
        Some(field.read(sink, POINTER_FORM, Pointer::parse))
    };
    let (mid, bid, ask, time) = (at("mid"), at("bid"), at("ask"), at("time"));
    let price = match (mid, bid, ask) {
        (Some(mid), None, None) => mid.map(Quoted::Mid),
        (None, Some(bid), Some(ask)) => bid.zip(ask).map(|(bid, ask)| Quoted::BidAndAsk(bid, ask)),
        _ => {
            sink.add(
                section.at,
                "sources.prices",
                "expected either mid, or bid and ask",
            );
            None
        }
    };
    let form = section.field("time_form").map(|field| {
        if time.is_none() {
            field.refuse(sink, "expected the key time too, which locates the instant");
        }
        field.read(sink, "rfc3339, seconds or milliseconds", TimeForm::parse)
    });
    let form = form.unwrap_or(Some(TimeForm::Rfc3339));
    let made_at = match time {
        Some(at) => Some((at?, form?)),
        None => None,
    };
    Some(Lookup {
        price: price?,
        inverse: section.flag(sink, "inverse"),
        made_at,
    })
}

/// Reads a header. A secret value comes from a variable or a file.
fn header(
    sink: &mut Sink<'_>,
    section: &Section<'_, '_>,
    environment: Environment<'_>,
) -> Option<(HeaderName, HeaderValue)> {
    let form = "the name of a header such as X-Api-Key";
    let name = section.required(sink, "name", form)?;
    let name = name.read(sink, form, |text| {
        HeaderName::from_bytes(text.as_bytes()).ok()
    });
    let prefix = section.field("prefix").and_then(|field| {
        let text = field.text();
        if text.is_none() {
            field.refuse(sink, "expected a string");
        }
        text
    });
    let given = ["value", "env", "file"].map(|key| section.field(key));
    let (value, field) = match given {
        [Some(field), None, None] => (field.text().map(str::to_owned), field),
        [None, Some(field), None] => (field.text().and_then(environment), field),
        [None, None, Some(field)] => {
            let file = field.text();
            let read = file.and_then(|file| std::fs::read_to_string(file).ok());
            (read, field)
        }
        _ => {
            let problem =
                "expected one of value, env (the name of a variable) and file (the name of a file)";
            sink.add(section.at, "sources.headers", problem);
            return None;
        }
    };
    let value = value.filter(|value| !value.trim().is_empty());
    let value = value.map(|value| format!("{}{}", prefix.unwrap_or_default(), value.trim()));
    let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
    let Some(mut value) = value else {
        let problem = "expected a value of printable characters; it is empty, unreadable or has other characters";
        field.refuse_unseen(sink, problem);
        return None;
    };
    value.set_sensitive(true);
    Some((name?, value))
}
