//! The calls of a use case, and how each can fail.

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    None,
    /// The call had no effect, and the caller knows.
    Away,
    /// The call had its effect, and the response is lost.
    Unheard,
    /// The call had no effect, and the caller cannot know.
    Lost,
    /// The engine refuses.
    Refused,
    /// The engine reports that the hold lapsed, even if it did not.
    Lapsed,
    /// The engine repeats its report from before its last step.
    Earlier,
    /// The engine contradicts the settlement that it reported.
    Contradiction,
}

/// The call that a use case is about to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Enter,
    Read,
    /// A transaction, or one of the batch queue.
    Write,
    Hold,
    Confirm,
    Release,
    Report,
}

impl Call {
    pub(crate) const ALL: [Self; 7] = [
        Self::Enter,
        Self::Read,
        Self::Write,
        Self::Hold,
        Self::Confirm,
        Self::Release,
        Self::Report,
    ];

    /// The ways in which the call can fail.
    pub(crate) const fn faults(self) -> &'static [Fault] {
        match self {
            Self::Enter | Self::Read => &[],
            Self::Write => &[Fault::Away, Fault::Unheard, Fault::Lost],
            Self::Hold => &[Fault::Refused, Fault::Unheard, Fault::Lost],
            Self::Confirm => &[Fault::Unheard, Fault::Lost, Fault::Lapsed],
            Self::Release => &[Fault::Lost],
            Self::Report => &[Fault::Lost, Fault::Earlier, Fault::Contradiction],
        }
    }

    pub(crate) const fn is_engine_call(self) -> bool {
        matches!(
            self,
            Self::Hold | Self::Confirm | Self::Release | Self::Report
        )
    }
}
