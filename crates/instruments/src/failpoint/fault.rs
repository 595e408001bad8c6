//! The results of a step with an injected fault.

use std::io;

use kernel::StoreError;

/// An injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The step fails.
    #[error("a test injected a failure")]
    Failed,
    #[error("a test injected a full disk")]
    DiskFull,
    /// The outcome of a commit is unknown.
    #[error("a test injected the loss of a commit's outcome")]
    InDoubt,
}

/// A result that an injected fault can replace.
pub trait FromInjectedFault {
    /// The result of a step that failed with this fault.
    fn broken(fault: Fault) -> Self;
}

impl<T, E> FromInjectedFault for Result<T, E>
where
    E: From<Fault>,
{
    fn broken(fault: Fault) -> Self {
        Err(fault.into())
    }
}

/// A step without a result, such as a call without a response.
impl<T> FromInjectedFault for Option<T> {
    fn broken(_: Fault) -> Self {
        None
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Failed | Fault::DiskFull => Self::unavailable(fault),
            Fault::InDoubt => Self::CommitUnknown(fault.into()),
        }
    }
}

/// A response that is cut off.
#[derive(Debug, Clone, Copy)]
pub struct TruncatedResponse {
    /// The number of bytes that are sent.
    pub bytes: usize,
    /// What happens after these bytes: ends the process, or returns the error that ends the connection.
    pub end: fn() -> io::Error,
}
