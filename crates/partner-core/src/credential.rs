//! Masks keys and secrets in texts that are shown, in case a credential was pasted in the wrong place.

/// The prefixes of keys and webhook secrets, the longest first. The prefix is shown, the text after it is masked.
const PREFIXES: [&str; 7] = [
    "sk_test_", "sk_live_", "pk_test_", "pk_live_", "whsec_", "sk_", "pk_",
];

/// Masks everything that looks like a key or a secret down to its prefix, such as `sk_test_…`. Callers use it before
/// they repeat a text of an operator or a partner.
#[must_use]
pub fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let within_word = shown.ends_with(|it: char| it.is_ascii_alphanumeric());
        if let Some((mark, after)) = marked(rest, within_word) {
            let behind = after.trim_start_matches(is_of_a_credential);
            shown.push_str(mark);
            if behind.len() < after.len() {
                shown.push('…');
            }
            rest = behind;
            continue;
        }
        let mut chars = rest.chars();
        let Some(next) = chars.next() else {
            return shown;
        };
        shown.push(next);
        rest = chars.as_str();
    }
}

/// Splits a text into a credential's prefix and the rest. The short prefixes `sk_` and `pk_` do not count within a
/// word, such as `task_force`.
fn marked(text: &str, within_word: bool) -> Option<(&str, &str)> {
    let begins = |mark: &&&str| {
        let start = text.as_bytes().get(..mark.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
    };
    let mark = PREFIXES.iter().find(begins)?;
    if within_word && mark.len() == "sk_".len() {
        return None;
    }
    text.split_at_checked(mark.len())
}

/// Characters of credentials: keys are letters and digits, secrets are base64 or URL-safe base64.
const fn is_of_a_credential(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '=' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // rule: auth.keys-never-logged
    #[test]
    fn credential_is_masked_down_to_prefix() {
        for (text, shown) in [
            ("sk_test_abcDEF123", "sk_test_…"),
            ("`pk_live_0123456789`", "`pk_live_…`"),
            ("whsec_AAEC+w/hsec_AwQ=: unknown", "whsec_…: unknown"),
            (
                "a SK_LIVE_abc and sk_abc, pk_1",
                "a SK_LIVE_… and sk_…, pk_…",
            ),
            ("xsk_test_abc", "xsk_test_…"),
            ("sk_test_sk_live_abc", "sk_test_…"),
            ("ключ=sk_test_abc ключ", "ключ=sk_test_… ключ"),
        ] {
            assert_eq!(masked(text), shown, "{text}");
        }
    }

    #[test]
    fn text_without_credential_is_unchanged() {
        for text in [
            "",
            "expected sk_test_ and 32 letters or digits",
            "expected whsec_ and the base64 of 32 bytes",
            "risk_level, task_force, whsec",
            "é…\n\u{1b}[1m",
        ] {
            assert_eq!(masked(text), text);
        }
    }
    proptest! {
        // rule: auth.keys-never-logged
        #[test]
        fn credential_is_found_at_any_position(
            before in ".{0,20}",
            mark in prop::sample::select(&PREFIXES[..5]),
            random in "[0-9A-Za-z+/]{8,40}",
            after in ".{0,20}",
        ) {
            let shown = masked(&format!("{before}{mark}{random}{after}"));
            prop_assert!(!shown.contains(&random), "{shown}");
            prop_assert_eq!(masked(&shown), shown);
        }
    }
}
