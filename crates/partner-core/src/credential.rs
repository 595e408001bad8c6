//! Keys and secrets in texts that are shown: whatever was pasted in the wrong place is masked.

/// What a key or a webhook secret begins with. The longest mark comes first: what stands in it is
/// shown, what follows it is not.
const MARKS: [&str; 7] = [
    "sk_test_", "sk_live_", "pk_test_", "pk_live_", "whsec_", "sk_", "pk_",
];

/// The text, with everything that looks like a key or a secret cut down to its mark, such as
/// `sk_test_…`. For whatever repeats what an operator or a partner has written.
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

/// The mark a text begins with, and what follows it. `sk_` and `pk_` alone are no mark within a
/// word, such as `task_force`.
fn marked(text: &str, within_word: bool) -> Option<(&str, &str)> {
    let begins = |mark: &&&str| {
        let start = text.as_bytes().get(..mark.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
    };
    let mark = MARKS.iter().find(begins)?;
    if within_word && mark.len() == "sk_".len() {
        return None;
    }
    text.split_at_checked(mark.len())
}

/// Keys are letters and digits; secrets are base64, perhaps of the kind for URLs.
const fn is_of_a_credential(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '=' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // rule: auth.keys-never-logged
    #[test]
    fn a_credential_is_cut_down_to_its_mark() {
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
    fn everything_else_stays_as_it_is() {
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
        fn a_credential_is_found_wherever_it_stands(
            before in ".{0,20}",
            mark in prop::sample::select(&MARKS[..5]),
            random in "[0-9A-Za-z+/]{8,40}",
            after in ".{0,20}",
        ) {
            let shown = masked(&format!("{before}{mark}{random}{after}"));
            prop_assert!(!shown.contains(&random), "{shown}");
            prop_assert_eq!(masked(&shown), shown);
        }
    }
}
