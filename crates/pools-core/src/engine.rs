//! The identity of a liquidity engine.

use std::fmt;
use std::sync::Arc;

/// The name of a liquidity engine, which each trade records: 1 to 2,048 visible ASCII characters.
///
/// Engines with the same name share their trades: each may be asked about a trade that another one holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineName(Arc<str>);

/// Maximum characters of a name.
const LONGEST: usize = 2_048;

impl EngineName {
    /// Parses a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=LONGEST).contains(&text.len());
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && visible).then(|| Self(text.into()))
    }

    /// The name of a built-in engine.
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

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_visible_ascii_characters() {
        let longest = "x".repeat(LONGEST);
        for good in ["sandbox", "https://engine.example:8443/desk", &longest] {
            assert_eq!(EngineName::parse(good).unwrap().to_string(), good);
        }
        let too_long = "x".repeat(LONGEST + 1);
        for bad in ["", "two words", "é", "a\n", &too_long] {
            assert_eq!(EngineName::parse(bad), None, "{bad}");
        }
    }
}
