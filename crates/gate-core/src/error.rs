//! What a use case reports if it could not finish.

use kernel::StoreError;
use partner_core::races::LostRace;
use partner_core::stored_response::ResponseStoreError;

use crate::events::EventError;
use crate::signed_quote::Unsigned;

/// A failure of a use case that no rule of the request explains.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The response could not be rendered or stored, the stored one could not be read, or a request with its key is in progress.
    #[error(transparent)]
    Response(#[from] ResponseStoreError),
    /// An event could not be made.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A quote could not be signed.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LostRace for GateError {
    fn lost_race(&self) -> bool {
        match self {
            Self::Response(ResponseStoreError::Store(error)) | Self::Store(error) => {
                error.lost_race()
            }
            Self::Response(_) | Self::Event(_) | Self::Unsigned(_) => false,
        }
    }
}
