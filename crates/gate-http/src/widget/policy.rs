//! Content security policies. An origin enters a policy only if the policy can name it, so that no origin adds a directive.

use std::collections::BTreeSet;

use partner_core::origin::{AllowedDomain, Origin};

/// The policy of the widget's page, up to the pages that may frame it.
pub(super) fn page_policy(gate: &Origin) -> String {
    let gate = source(gate);
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; connect-src {gate}; \
         font-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'; frame-ancestors"
    )
}

/// The origins of the pages that may frame the widget: those that a policy can name.
#[derive(Debug, Default)]
pub(super) struct Ancestors(Vec<String>);

impl Ancestors {
    pub(super) fn of(allowed: &BTreeSet<AllowedDomain>) -> Self {
        let named = allowed.iter().filter(|it| it.is_policy_source());
        Self(named.map(ToString::to_string).collect())
    }

    /// The origins, separated by spaces. The port `*` means every port, in a policy as in the page.
    pub(super) fn origins(&self) -> String {
        self.0.join(" ")
    }

    /// The sources of `frame-ancestors`: the origins, and `'none'` without any.
    pub(super) fn sources(&self) -> String {
        if self.0.is_empty() {
            " 'none'".to_owned()
        } else {
            format!(" {}", self.origins())
        }
    }
}

/// The policy of the demo shop's page.
#[must_use]
pub fn demo_policy(gate: &Origin, widget: &Origin) -> String {
    let (gate, widget) = (source(gate), source(widget));
    format!(
        "default-src 'none'; script-src 'self' {widget}; style-src 'self'; frame-src {widget}; \
         connect-src 'self' {gate}; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}

fn source(origin: &Origin) -> &str {
    if origin.is_policy_source() {
        origin.as_str()
    } else {
        "'none'"
    }
}

#[cfg(test)]
mod tests {
    use kernel::Mode;

    use super::*;

    fn domain(text: &str) -> AllowedDomain {
        AllowedDomain::parse(text, Mode::Test).unwrap()
    }

    #[test]
    fn origin_cannot_add_directive_to_policy() {
        let hostile = [
            "https://a.example;script-src",
            "https://a.example,b",
            "http://[::1]:3000",
            "http://[::1]:*",
        ];
        let hostile: BTreeSet<AllowedDomain> = hostile
            .into_iter()
            .filter_map(AllowedDomain::stored)
            .collect();
        assert_eq!(hostile.len(), 4);
        assert_eq!(Ancestors::of(&hostile).sources(), " 'none'");
        assert_eq!(Ancestors::of(&hostile).origins(), "");
        let mut mixed = hostile;
        mixed.insert(domain("https://shop.example"));
        mixed.insert(domain("http://localhost:3000"));
        mixed.insert(domain("http://127.0.0.1:*"));
        assert_eq!(
            Ancestors::of(&mixed).sources(),
            " http://127.0.0.1:* http://localhost:3000 https://shop.example"
        );
    }

    #[test]
    fn frame_ancestors_without_domains_is_none() {
        assert_eq!(Ancestors::default().sources(), " 'none'");
    }
}
