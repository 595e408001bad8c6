//! Error codes: what responses and the documentation say about them.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::http::StatusCode;

kernel::closed_list! {
    /// The `type` of the envelope: what a client branches on first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind {
        /// The request must change.
        InvalidRequest = "invalid_request",
        /// The credential is missing or unknown.
        Unauthorized = "unauthorized",
        /// The credential is known but not allowed to do this.
        Forbidden = "forbidden",
        /// The partner has no such object.
        NotFound = "not_found",
        /// The object's state does not allow it.
        Conflict = "conflict",
        /// Too many requests, or too much money in the window.
        RateLimited = "rate_limited",
        /// Not the client's fault.
        ServerError = "server_error",
    }
}

impl Kind {
    /// The kind of a status.
    #[must_use]
    pub const fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::RateLimited,
            500.. => Self::ServerError,
            _ => Self::InvalidRequest,
        }
    }
}

/// An error code. A response, the published documents and the page of errors are all made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// The `code` of the envelope; also the anchor on the documentation page and the metric label.
    pub text: &'static str,
    pub status: StatusCode,
    /// The `type` of the envelope.
    pub kind: Kind,
    /// Why the request failed.
    pub meaning: &'static str,
    /// What the caller should do.
    pub advice: &'static str,
}

impl ErrorCode {
    /// A code whose kind follows from its status.
    #[must_use]
    pub const fn new(
        text: &'static str,
        status: StatusCode,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        Self {
            text,
            status,
            kind: Kind::of(status),
            meaning,
            advice,
        }
    }

    /// The same code, which some operation returns with another status.
    #[must_use]
    pub const fn with_status(self, status: StatusCode) -> Self {
        Self::new(self.text, status, self.meaning, self.advice)
    }
}

/// Declares error codes as constants of type `&ErrorCode`, and the list of them.
///
/// A row is `NAME = STATUS "text", "meaning", "advice";`, where `STATUS` is a constant of [`StatusCode`].
#[macro_export]
macro_rules! error_codes {
    (
        $(#[$about:meta])*
        $visibility:vis $all:ident;
        $($name:ident = $status:ident $text:literal, $meaning:literal, $advice:expr;)*
    ) => {
        $(
            #[doc = $meaning]
            $visibility const $name: &$crate::ErrorCode = &$crate::ErrorCode::new(
                $text,
                $crate::StatusCode::$status,
                $meaning,
                $advice,
            );
        )*
        $(#[$about])*
        $visibility const $all: &[&$crate::ErrorCode] = &[$($name),*];
    };
}

/// A Markdown page of the codes, by status. Each heading is only the code, so that its anchor is
/// the code.
#[must_use]
pub fn errors_page<'c>(
    introduction: &str,
    codes: impl IntoIterator<Item = &'c ErrorCode>,
) -> String {
    let mut by_status: BTreeMap<StatusCode, Vec<&ErrorCode>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status).or_default().push(code);
    }
    let mut page = introduction.to_owned();
    page.push_str("\n| status | codes |\n| --- | --- |\n");
    for (status, codes) in &by_status {
        let links = codes.iter().map(|code| format!("[`{0}`](#{0})", code.text));
        let links: Vec<String> = links.collect();
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(page, "| {} | {} |", status.as_u16(), links.join(", "));
    }
    for (status, codes) in &by_status {
        let _ = write!(page, "\n## {}\n", status.as_u16());
        for code in codes {
            let (text, kind) = (code.text, code.kind.as_str());
            let (meaning, advice) = (code.meaning, code.advice);
            let _ = write!(
                page,
                "\n### {text}\n\nType `{kind}`. {meaning}\n\nWhat to do: {advice}\n"
            );
        }
    }
    page
}
