use std::collections::BTreeSet;

use super::*;

#[test]
fn every_default_has_its_expected_form() {
    for setting in ALL {
        let texts = match setting.about().default {
            Default::Unset => vec![],
            Default::Is(text) => vec![text],
            Default::ByMode(test, live) => vec![test, live],
            Default::SameAs(other) => {
                assert!(find(other).is_some(), "{other}");
                vec![]
            }
        };
        for text in texts {
            assert_eq!(
                setting.check(text),
                Ok(()),
                "{} = {text}",
                setting.about().name
            );
        }
    }
}

#[test]
fn setting_names_are_unique() {
    let names: BTreeSet<&str> = ALL.iter().map(|setting| setting.about().name).collect();
    assert_eq!(names.len(), ALL.len());
}
