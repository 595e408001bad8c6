//! What comes of one post.

use std::io;

use instruments::failpoint::Fault;
use instruments::webhooks::Outcome;

use crate::bounded::TooLong;

/// Why a post has no status. The texts are shown to the partner: they tell what to look for at
/// their end, and nothing of this machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    /// The address is one that webhooks may not reach.
    #[error("the address is {0}, which webhooks may not reach")]
    Forbidden(&'static str),
    /// The name has no address, or nobody could say.
    #[error("the host name cannot be resolved")]
    Unresolved(#[source] io::Error),
    /// Nothing accepts connections there.
    #[error("cannot connect: {}", short(.0))]
    Unconnected(#[source] io::Error),
    /// The other side is not who it should be, or speaks no TLS we take.
    #[error("the TLS handshake failed: {0}")]
    Handshake(#[source] io::Error),
    /// It broke before an answer.
    #[error("the connection broke before an answer: {}", cause(.0))]
    Broken(#[source] hyper::Error),
    /// The request cannot be written down.
    #[error("the request cannot be made")]
    Unmade(#[source] hyper::http::Error),
}

impl PostError {
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Forbidden(_) => Outcome::Forbidden,
            Self::Unmade(_) => Outcome::Untried,
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

/// The kind alone: the system's own words may name addresses.
fn short(fault: &io::Error) -> String {
    fault.kind().to_string()
}

/// What is known by its kind, or is of our own making; else what the client says of it.
fn cause(fault: &hyper::Error) -> String {
    let io = std::error::Error::source(fault).and_then(|source| source.downcast_ref::<io::Error>());
    let own = io
        .and_then(io::Error::get_ref)
        .filter(|it| it.is::<TooLong>());
    match (own, io) {
        (Some(own), _) => own.to_string(),
        (None, Some(io)) => short(io),
        (None, None) => fault.to_string(),
    }
}
