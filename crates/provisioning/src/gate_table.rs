//! The `[partners.gate]` table of the declarative file.

use gate_core::merchant::{Merchant, legal_name, page_url};
use gate_core::profile::{GateProfile, create_session_limit};
use kernel::Mode;
use partner_core::origin::AllowedDomain;
use partner_core::tables::{Section, Sink};

/// Maximum quota of live sessions. A larger number is taken for an error.
const QUOTA_LIMIT: u64 = 1_000_000_000;

const LEGAL_NAME: &str = "2 to 120 visible characters, such as \"Acme Payments GmbH\"";
const PAGE_URL: &str = "expected an https URL such as \"https://shop.example/terms\", at most 2048 characters, without user information";

const CREATE_SESSION_LIMIT: &str = "one limit such as \"100/60s\"";

/// Reads the table. Absent keys have defaults.
pub(crate) fn profile(sink: &mut Sink<'_>, table: &Section<'_, '_>, mode: Mode) -> GateProfile {
    let domains = table.field("allowed_domains").map(|field| {
        let parse = |text: &str| AllowedDomain::parse(text, mode);
        let found = field.list(sink, domain_form(mode), parse);
        found.into_iter().map(|(_, domain)| domain).collect()
    });
    let quota = table.field("live_session_quota");
    let creates = table.field("create_session_limit");
    GateProfile {
        enabled: table.flag(sink, "enabled"),
        allowed_domains: domains.unwrap_or_default(),
        flow_sessions: table.flag(sink, "flow_sessions"),
        kyc_trusted: table.flag(sink, "kyc_trusted"),
        rails: table.flag(sink, "rails"),
        preview_locks: table.flag(sink, "preview_locks"),
        live_session_quota: quota.and_then(|field| field.whole(sink, QUOTA_LIMIT)),
        create_session_limit: creates
            .and_then(|field| field.read(sink, CREATE_SESSION_LIMIT, create_session_limit)),
        merchant: merchant(sink, table),
    }
}

/// Who takes the money. Every key is optional.
fn merchant(sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Merchant {
    let name = table.field("legal_name");
    let mut page = |key| {
        let field = table.field(key)?;
        let url = field.text().and_then(page_url);
        if url.is_none() {
            // A URL may contain credentials.
            field.refuse_unseen(sink, PAGE_URL);
        }
        url
    };
    Merchant {
        support_url: page("support_url"),
        terms_url: page("terms_url"),
        privacy_url: page("privacy_url"),
        legal_name: name.and_then(|field| field.read(sink, LEGAL_NAME, legal_name)),
    }
}

/// The form of an allowed domain in error messages. Only mode test allows `http://` and every port of a loopback host.
const fn domain_form(mode: Mode) -> &'static str {
    match mode {
        Mode::Test => {
            "an exact origin without a path or a wildcard, such as https://shop.example, or every port of a loopback host, such as http://localhost:*"
        }
        Mode::Live => {
            "an exact origin with https://, which mode live needs, without a path or a wildcard, such as https://shop.example"
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::document::tests::faults_in;

    // rule: apply.merchant
    #[test]
    fn invalid_names_and_pages_of_merchants_are_named() {
        let found = |lines: &str| faults_in(&format!("[partners.gate]\n{lines}\n"));
        let expected = "partners.gate.legal_name: expected 2 to 120 visible characters, such as \"Acme Payments GmbH\", found";
        for (name, shown) in [
            ("\" A \"", "\" A \""),
            ("\"\"", "\"\""),
            ("17", "\"17\""),
            ("\"Acme\\u202EGmbH\"", "\"Acme\\u{202e}GmbH\""),
        ] {
            let refused = found(&format!("legal_name = {name}"));
            assert_eq!(refused, [format!("{expected} {shown}")]);
        }
        assert!(found(&format!("legal_name = \"{}\"", "a".repeat(121)))[0].starts_with(expected));
        for key in ["support_url", "terms_url", "privacy_url"] {
            let expected = format!(
                "partners.gate.{key}: expected an https URL such as \"https://shop.example/terms\", at most 2048 characters, without user information"
            );
            let too_long = format!("https://shop.example/{}", "a".repeat(2048 - 20));
            let insecure = "http://shop.example/terms";
            let with_user = "https://user:word@shop.example/terms";
            for bad in [
                "",
                "/terms",
                insecure,
                "javascript:alert(1)",
                with_user,
                &too_long,
            ] {
                let refused = found(&format!("{key} = \"{bad}\""));
                assert_eq!(refused, [expected.as_str()], "{bad}");
            }
        }
    }
}
