//! Closed lists: enums whose values have one word each.

/// Declares an enum with the word of each value, as it is on the wire, in rows and in settings.
///
/// The enum gets `ALL`, every value in the order of the declaration, `as_str`, the word of a value, and `parse`, the value of a word.
#[macro_export]
macro_rules! closed_list {
    (
        $(#[$about:meta])*
        $visible:vis enum $name:ident {
            $($(#[$value:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        $visible enum $name {
            $($(#[$value])* $variant,)+
        }

        impl $name {
            /// Every value.
            $visible const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word of the value.
            #[must_use]
            $visible const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Parses the text of [`Self::as_str`], case-sensitive.
            #[must_use]
            $visible fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == text)
            }
        }
    };
}
