//! The identity of an upstream: an engine, a rail or a verifier.
//!
//! Each obligation names the upstream that holds it, and only that one is asked about it.

use std::fmt;
use std::sync::Arc;

/// The name of an upstream, which each obligation records: a trade its engine, a payment its rail, a verification its verifier. 1 to
/// 2,048 visible ASCII characters.
///
/// Upstreams of one kind with the same name share their obligations: each may be asked about what another one holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamName(Arc<str>);

/// Maximum characters of a name.
const LONGEST: usize = 2_048;

impl UpstreamName {
    /// Parses a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=LONGEST).contains(&text.len());
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && visible).then(|| Self(text.into()))
    }

    /// The name of a built-in upstream.
    #[must_use]
    pub fn built_in(name: &'static str) -> Self {
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An upstream that holds obligations.
pub trait Named {
    /// The name that its obligations record.
    fn name(&self) -> UpstreamName;
}

/// The upstreams of one kind that an installation runs with. A new obligation goes to the present one. The former one is still asked
/// about its own.
#[derive(Debug)]
pub struct Upstreams<T: ?Sized> {
    pub present: Option<Arc<T>>,
    pub former: Option<Arc<T>>,
}

impl<T: ?Sized> Clone for Upstreams<T> {
    fn clone(&self) -> Self {
        Self {
            present: self.present.clone(),
            former: self.former.clone(),
        }
    }
}

impl<T: Named + ?Sized> Upstreams<T> {
    /// Each upstream, the present one first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.present.iter().chain(&self.former)
    }

    /// The upstream that holds obligations under this name; `None` if it is not configured.
    #[must_use]
    pub fn holder(&self, name: &UpstreamName) -> Option<&Arc<T>> {
        self.iter().find(|upstream| upstream.name() == *name)
    }

    /// The names of all.
    #[must_use]
    pub fn names(&self) -> Vec<UpstreamName> {
        self.iter().map(|upstream| upstream.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_visible_ascii_characters() {
        let longest = "x".repeat(LONGEST);
        for good in ["sandbox", "https://engine.example:8443/desk", &longest] {
            assert_eq!(UpstreamName::parse(good).unwrap().to_string(), good);
        }
        let too_long = "x".repeat(LONGEST + 1);
        for bad in ["", "two words", "é", "a\n", &too_long] {
            assert_eq!(UpstreamName::parse(bad), None, "{bad}");
        }
    }
}
