//! What a step answers when it is made to fail.

use std::io;

use kernel::StoreError;

/// What a step is made to fail with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It could not be done.
    #[error("made to fail by a test")]
    Failed,
    /// A disk without room.
    #[error("made to find the disk full by a test")]
    DiskFull,
    /// A commit whose outcome is not known.
    #[error("made to lose the answer to a commit by a test")]
    InDoubt,
}

/// An answer that a fault can take the place of.
pub trait FromInjectedFault {
    /// The answer of a step that has failed so.
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

/// Silence.
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

/// An answer that does not go out whole.
#[derive(Debug, Clone, Copy)]
pub struct TruncatedResponse {
    /// So many of its bytes go out.
    pub bytes: usize,
    /// Then the process ends here, or the connection with this fault.
    pub end: fn() -> io::Error,
}
