//! Two forms of `Debug` that many types have.

/// Implements `Debug` with the text of `Display`.
#[macro_export]
macro_rules! debug_as_display {
    ($type:ty) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// Implements `Debug` with a fixed text, which shows no field: for secrets, for personal data, and for ports.
#[macro_export]
macro_rules! debug_as_text {
    ($type:ty, $text:literal) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($text)
            }
        }
    };
}
