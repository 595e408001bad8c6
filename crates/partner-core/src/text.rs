//! Texts that people type and that must be unique: which characters they may have, and how two of them are compared.
//!
//! Unicode has characters that no reader sees, and several spellings of one letter. [`check`] refuses the former, because a text with
//! such a character looks like another text. [`comparable`] and [`comparable_in_any_case`] give all spellings one form. Texts are
//! stored unchanged.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicase::UniCase;

/// A character that a text which must be unique may not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedCharacter {
    character: char,
    /// The class of the character, for people.
    class: &'static str,
}

impl fmt::Display for RefusedCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U+{:04X}, {}", u32::from(self.character), self.class)
    }
}

impl Error for RefusedCharacter {}

/// Checks that every character of a text can be seen and has a meaning in Unicode.
///
/// # Errors
/// [`RefusedCharacter`]: the first character that is default-ignorable, a control, a format character, a line or paragraph
/// separator, private or unassigned.
pub fn check(text: &str) -> Result<(), RefusedCharacter> {
    let refused = text.chars().find_map(|character| {
        let class = refused_class(character)?;
        Some(RefusedCharacter { character, class })
    });
    refused.map_or(Ok(()), Err)
}

/// The class of a character that [`check`] refuses; `None` for any other character.
fn refused_class(character: char) -> Option<&'static str> {
    // Most texts are ASCII, for which no table is needed.
    if matches!(character, ' '..='~') {
        return None;
    }
    match CodePointMapData::<GeneralCategory>::new().get(character) {
        GeneralCategory::Control => Some("a control character"),
        GeneralCategory::Format => Some("an invisible format character"),
        GeneralCategory::LineSeparator => Some("a line separator"),
        GeneralCategory::ParagraphSeparator => Some("a paragraph separator"),
        GeneralCategory::PrivateUse => Some("a private-use character"),
        GeneralCategory::Unassigned => Some("an unassigned character"),
        _ => CodePointSetData::new::<DefaultIgnorableCodePoint>()
            .contains(character)
            .then_some("an invisible character"),
    }
}

/// Whether every character of a text has a meaning in Unicode. A later version of Unicode gives other characters a meaning, and then a
/// text that has one of them gets another form of comparison.
#[must_use]
pub fn is_assigned(text: &str) -> bool {
    let classes = CodePointMapData::<GeneralCategory>::new();
    text.is_ascii()
        || text
            .chars()
            .all(|character| classes.get(character) != GeneralCategory::Unassigned)
}

/// The form in which two texts are compared: NFC, with a plain space for every kind of space. Case counts.
///
/// Texts of earlier versions may have refused characters. The form omits them.
#[must_use]
pub fn comparable(text: &str) -> String {
    composed(&seen(text)).into_owned()
}

/// The form in which two texts are compared without regard to case: as [`comparable`], with case folding.
#[must_use]
pub fn comparable_in_any_case(text: &str) -> String {
    let seen = seen(text);
    let folded = UniCase::unicode(decomposed(&seen)).to_folded_case();
    composed(&folded).into_owned()
}

/// The text in NFC.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// The text in NFD.
#[must_use]
pub fn decomposed(text: &str) -> Cow<'_, str> {
    DecomposingNormalizerBorrowed::new_nfd().normalize(text)
}

/// The text without refused characters, with plain spaces.
fn seen(text: &str) -> String {
    let spaced = text.chars().map(|character| {
        if character.is_whitespace() {
            ' '
        } else {
            character
        }
    });
    let kept = spaced.filter(|character| refused_class(*character).is_none());
    kept.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // rule: text.refused-characters
    #[test]
    fn text_is_refused_with_the_first_character_that_readers_do_not_see() {
        for (character, class) in [
            ('\0', "a control character"),
            ('\t', "a control character"),
            ('\u{7f}', "a control character"),
            ('\u{85}', "a control character"),
            ('\u{ad}', "an invisible format character"),
            ('\u{200b}', "an invisible format character"),
            ('\u{200e}', "an invisible format character"),
            ('\u{202a}', "an invisible format character"),
            ('\u{2069}', "an invisible format character"),
            ('\u{feff}', "an invisible format character"),
            ('\u{e0041}', "an invisible format character"),
            ('\u{34f}', "an invisible character"),
            ('\u{115f}', "an invisible character"),
            ('\u{3164}', "an invisible character"),
            ('\u{fe0f}', "an invisible character"),
            ('\u{e0100}', "an invisible character"),
            ('\u{2028}', "a line separator"),
            ('\u{2029}', "a paragraph separator"),
            ('\u{e000}', "a private-use character"),
            ('\u{10fffd}', "a private-use character"),
            ('\u{378}', "an unassigned character"),
            ('\u{fdd0}', "an unassigned character"),
            ('\u{10ffff}', "an unassigned character"),
        ] {
            let refused = RefusedCharacter { character, class };
            for text in [
                format!("wire{character}-77\u{200b}"),
                format!("{character}ü"),
                format!("ü{character}"),
            ] {
                assert_eq!(check(&text), Err(refused), "{text:?}");
            }
        }
        let shown = check("\u{202a}wire-77").unwrap_err().to_string();
        assert_eq!(shown, "U+202A, an invisible format character");
    }

    // rule: text.refused-characters
    #[test]
    fn letters_signs_and_spaces_of_every_script_are_accepted() {
        for text in [
            "",
            "wire-77 / (A) + B",
            "Überweisung 7",
            "U\u{308}berweisung 7",
            "Оплата 77",
            "支払い　７７",
            "دفعة ٧",
            "10 000 €",
            "💶",
            "cat@shop.example",
        ] {
            assert_eq!(check(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn text_is_assigned_without_characters_that_have_no_meaning() {
        for text in [
            "",
            "wire-77",
            "Überweisung 7",
            "ca\u{200b}t",
            "\u{e000}",
            "\0",
        ] {
            assert!(is_assigned(text), "{text:?}");
        }
        for text in ["\u{378}", "a\u{378}", "\u{10ffff}b"] {
            assert!(!is_assigned(text), "{text:?}");
        }
    }

    // rule: text.compared
    #[test]
    fn spellings_of_one_text_are_equal() {
        for (one, other) in [
            ("Überweisung", "U\u{308}berweisung"),
            ("\u{212b}", "\u{c5}"),
            ("a\u{323}\u{301}", "a\u{301}\u{323}"),
            ("wire 77", "wire\u{a0}77"),
            ("wire 77", "wire\u{202f}77"),
            // Texts of earlier versions.
            ("wire-77", "\u{202a}wire-77"),
            ("PEN-1", "PEN\u{34f}-1"),
        ] {
            assert_eq!(comparable(one), comparable(other), "{one:?} {other:?}");
            let (one, other) = (comparable_in_any_case(one), comparable_in_any_case(other));
            assert_eq!(one, other);
        }
        for (one, other) in [
            ("wire-77", "WIRE-77"),
            ("É", "E"),
            ("\u{410}", "A"),
            ("a", "b"),
        ] {
            assert_ne!(comparable(one), comparable(other), "{one:?} {other:?}");
        }
        for (one, other) in [
            ("ann@example.com", "aNN@eXAMPLE.COM"),
            ("É", "e\u{301}"),
            ("straße", "STRASSE"),
            ("ΣΑΣ", "σας"),
            ("\u{212a}", "k"),
            ("Ǆ", "ǆ"),
        ] {
            let folded = [one, other].map(comparable_in_any_case);
            assert_eq!(folded[0], folded[1], "{one:?} {other:?}");
        }
        assert_ne!(comparable_in_any_case("é"), comparable_in_any_case("e"));
        assert_eq!(comparable("Überweisung 7"), "Überweisung 7");
        assert_eq!(comparable_in_any_case("Ann@Example.com"), "ann@example.com");
    }

    proptest! {
        // rule: text.compared
        #[test]
        fn form_of_comparison_is_acceptable_and_final(text in any::<String>()) {
            let form = comparable(&text);
            prop_assert_eq!(check(&form), Ok(()));
            prop_assert_eq!(comparable(&form), form.clone());
            prop_assert_eq!(comparable(&decomposed(&form)), form.clone());
            prop_assert_eq!(comparable_in_any_case(&form), comparable_in_any_case(&text));
        }
    }
}
