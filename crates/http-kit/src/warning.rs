//! Warnings: what a successful response says beside its body, in the header `Penstock-Warning`.
//!
//! Each warning is a header line of its own: a code, a semicolon, a space, and a text. [`crate::finish`] writes the lines, counts
//! the warnings and logs them. A response with an error has no warning.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponseParts, Response, ResponseParts};
use instruments::http;

use crate::class::Caller;
use crate::query::Query;

/// The header of a warning.
const PENSTOCK_WARNING: HeaderName = HeaderName::from_static("penstock-warning");
/// The code of a repeat whose body differs from the first one.
const BODY_IGNORED: &str = "idempotency_body_ignored";
/// The code of a request with query parameters that its operation does not read.
const UNKNOWN_PARAMETER: &str = "unknown_parameter";

/// Maximum characters of a header line.
const MAX_LINE: usize = 300;
/// Maximum number of unknown parameters that a warning names, and maximum characters of a name.
const MAX_NAMES: usize = 5;
const MAX_NAME: usize = 40;

/// A warning about a request that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// A fixed word, which is also the label in the metrics.
    code: &'static str,
    text: Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// A sentence of the program.
    Sentence(String),
    /// Names that the client chose. They are not logged.
    Names(String),
}

/// The warnings of a response, until [`crate::finish`] writes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warning {
    /// A warning with a sentence of the program, which contains no text of the client and no comma.
    #[must_use]
    pub fn new(code: &'static str, sentence: impl Into<String>) -> Self {
        Self {
            code,
            text: Text::Sentence(sentence.into()),
        }
    }

    /// The warning of a repeat whose body differs from the first one.
    pub(crate) fn body_ignored() -> Self {
        Self::new(
            BODY_IGNORED,
            "the key was used with another body and this is the response to it; a changed order needs a new key",
        )
    }

    /// The warning of a query with parameters that are not among the known ones. `None` without such a parameter, or if the query is
    /// malformed.
    fn unknown_parameters(query: &str, known: &[String]) -> Option<Self> {
        let query = Query::read(query).ok()?;
        let mut seen = BTreeSet::new();
        let is_known = |name: &str| name.is_empty() || known.iter().any(|it| it == name);
        let names = query.names().filter(|name| !is_known(name));
        let mut unknown = names.filter(|name| seen.insert(*name));
        let named: Vec<String> = unknown.by_ref().take(MAX_NAMES).map(shown).collect();
        let mut names = named.join(" ");
        let more = unknown.count();
        if more > 0 {
            names = format!("{names} and {more} more");
        }
        (!names.is_empty()).then_some(Self {
            code: UNKNOWN_PARAMETER,
            text: Text::Names(names),
        })
    }

    /// Adds the warning to a response.
    pub(crate) fn attach(self, extensions: &mut Extensions) {
        extensions.get_or_insert_default::<Warnings>().0.push(self);
    }

    /// The header's value: printable ASCII without a comma, so that a client can split lines that were joined with commas.
    fn value(&self) -> Option<HeaderValue> {
        let (Text::Sentence(text) | Text::Names(text)) = &self.text;
        let line = format!("{}; {text}", self.code);
        let safe = |letter: char| match letter {
            ',' => ' ',
            ' '..='~' => letter,
            _ => '?',
        };
        let line: String = line.chars().take(MAX_LINE).map(safe).collect();
        HeaderValue::try_from(line).ok()
    }

    fn log(&self, caller: Option<&Caller>, route: Option<&str>) {
        let partner = caller.map(|caller| caller.tenant.partner.as_str());
        match &self.text {
            Text::Sentence(sentence) => tracing::warn!(
                warning.code = self.code,
                warning.text = sentence.as_str(),
                partner.id = partner,
                http.route = route,
                "A response carries a warning"
            ),
            Text::Names(_) => tracing::info!(
                warning.code = self.code,
                partner.id = partner,
                http.route = route,
                "A response carries a warning"
            ),
        }
    }
}

/// A handler returns a warning, or `None`, before its response.
impl IntoResponseParts for Warning {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        self.attach(response.extensions_mut());
        Ok(response)
    }
}

impl Warnings {
    /// Writes, counts and logs the warnings of a response.
    pub(crate) fn write(
        self,
        headers: &mut HeaderMap,
        caller: Option<&Caller>,
        route: Option<&str>,
    ) {
        for warning in self.0 {
            if let Some(value) = warning.value() {
                headers.append(PENSTOCK_WARNING, value);
            }
            http::warned(warning.code);
            warning.log(caller, route);
        }
    }
}

/// The query parameters that an operation reads.
pub(crate) type KnownParameters = Arc<[String]>;

/// Warns of the query parameters that an operation does not read.
pub(crate) async fn warn_of_unknown_parameters(
    State(known): State<KnownParameters>,
    request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query();
    let warning = query.and_then(|query| Warning::unknown_parameters(query, &known));
    let mut response = next.run(request).await;
    if let Some(warning) = warning {
        warning.attach(response.extensions_mut());
    }
    response
}

/// A name as a warning shows it: at most [`MAX_NAME`] characters, without those that separate names.
fn shown(name: &str) -> String {
    let safe = |letter: char| match letter {
        '!'..='~' if !matches!(letter, ',' | ';') => letter,
        _ => '?',
    };
    name.chars().take(MAX_NAME).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_query(query: &str) -> Option<String> {
        let known = ["limit".to_owned(), "status".to_owned()];
        let warning = Warning::unknown_parameters(query, &known)?;
        Some(warning.value().unwrap().to_str().unwrap().to_owned())
    }

    // rule: warning.unknown-parameter
    #[test]
    fn unknown_parameters_are_named_once_each() {
        for query in ["", "limit=5&status=open", "limit=1&limit=2", "=x", "a=%"] {
            assert_eq!(of_query(query), None, "{query}");
        }
        let named = of_query("foo=1&limit=5&created%5Bgte%5D=2&foo=2").unwrap();
        assert_eq!(named, "unknown_parameter; foo created[gte]");
        let many = of_query("a&b&c&d&e&f&g").unwrap();
        assert_eq!(many, "unknown_parameter; a b c d e and 2 more");
    }

    // rule: warning.safe
    #[test]
    fn name_of_a_parameter_injects_nothing() {
        let hostile = of_query("a%0d%0aSet-Cookie:%20b=1&%C3%A9%2C%3B%00").unwrap();
        assert_eq!(hostile, "unknown_parameter; a??Set-Cookie:?b ????");
        let long = of_query(&"x".repeat(60_000)).unwrap();
        assert_eq!(long.len(), UNKNOWN_PARAMETER.len() + 2 + MAX_NAME);
        let long: Vec<String> = (0..MAX_NAMES)
            .map(|at| format!("{}{at}", "é".repeat(39)))
            .collect();
        let long = of_query(&long.join("&")).unwrap();
        assert!(long.len() <= MAX_LINE && long.is_ascii(), "{long}");
    }

    // rule: warning.safe
    #[test]
    fn sentence_is_one_line_of_ascii_without_comma() {
        let value = |text: &str| Warning::new("c", text).value().unwrap();
        assert_eq!(value("a, b\r\nc\té"), "c; a  b??c??");
        assert_eq!(value(&"x".repeat(1_000)).len(), MAX_LINE);
        let own = Warning::body_ignored().value().unwrap();
        assert!(!own.to_str().unwrap().contains([',', '?']), "{own:?}");
    }
}
