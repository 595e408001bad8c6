//! Errors of one post.

use std::io;

use instruments::failpoint::Fault;
use instruments::webhooks::Outcome;

use crate::bounded::TooLong;

/// Why a post has no status. Partners see the texts: they say what to check in the partner's
/// systems, and reveal no detail of this machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    /// Webhooks may not reach the address.
    #[error("the address is {0}, which webhooks may not reach")]
    Forbidden(&'static str),
    /// The name has no address, or no name server responded.
    #[error("the host name cannot be resolved")]
    Unresolved(#[source] io::Error),
    /// No address accepted a connection.
    #[error("cannot connect: {}", kind(.0))]
    Unconnected(#[source] io::Error),
    /// The certificate does not prove the host, or both sides have no TLS version in common.
    #[error("the TLS handshake failed: {}{}", .0, remedy(.0))]
    Handshake(#[source] io::Error),
    /// The connection broke before a response.
    #[error("the connection broke before an answer: {}", cause(.0))]
    Broken(#[source] hyper::Error),
    /// The request is not valid HTTP.
    #[error("the request cannot be made")]
    InvalidRequest(#[source] hyper::http::Error),
}

impl PostError {
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Forbidden(_) => Outcome::Forbidden,
            Self::InvalidRequest(_) => Outcome::Untried,
            Self::Unresolved(_) | Self::Unconnected(_) | Self::Handshake(_) | Self::Broken(_) => {
                Outcome::Unreachable
            }
        }
    }
}

impl From<Fault> for PostError {
    fn from(fault: Fault) -> Self {
        Self::Unconnected(io::Error::other(fault))
    }
}

/// What to do about a server whose first bytes are no TLS.
fn remedy(error: &io::Error) -> &'static str {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(_)) => {
            "; the server may not speak TLS: use http in mode test, or another port?"
        }
        Some(_) | None => "",
    }
}

/// Only the kind, because the system's text may contain addresses.
fn kind(error: &io::Error) -> String {
    error.kind().to_string()
}

/// Our own error or the kind of an I/O error; otherwise the HTTP client's text.
fn cause(error: &hyper::Error) -> String {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    let own = io
        .and_then(io::Error::get_ref)
        .filter(|it| it.is::<TooLong>());
    match (own, io) {
        (Some(own), _) => own.to_string(),
        (None, Some(io)) => kind(io),
        (None, None) => error.to_string(),
    }
}
