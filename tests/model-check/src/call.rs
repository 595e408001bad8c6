//! The calls that a use case makes, and the ways in which each can go wrong.

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    None,
    /// Nothing was done, and the caller knows.
    Away,
    /// It was done, and the answer is lost.
    Unheard,
    /// It was not done, and the caller cannot tell.
    Lost,
    /// The engine refuses.
    Refused,
    /// The engine says that the hold lapsed, whatever is so.
    Lapsed,
    /// The engine repeats what it reported before its last step.
    Earlier,
    /// The engine contradicts the settlement that it reported.
    Contradiction,
}

/// Where a use case waits: the call it is about to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Enter,
    Read,
    /// A transaction, or a batch.
    Write,
    Hold,
    Confirm,
    LetGo,
    Report,
}

impl Call {
    pub(crate) const ALL: [Self; 7] = [
        Self::Enter,
        Self::Read,
        Self::Write,
        Self::Hold,
        Self::Confirm,
        Self::LetGo,
        Self::Report,
    ];

    /// The ways it can go wrong.
    pub(crate) const fn faults(self) -> &'static [Fault] {
        match self {
            Self::Enter | Self::Read => &[],
            Self::Write => &[Fault::Away, Fault::Unheard, Fault::Lost],
            Self::Hold => &[Fault::Refused, Fault::Unheard, Fault::Lost],
            Self::Confirm => &[Fault::Unheard, Fault::Lost, Fault::Lapsed],
            Self::LetGo => &[Fault::Lost],
            Self::Report => &[Fault::Lost, Fault::Earlier, Fault::Contradiction],
        }
    }

    pub(crate) const fn to_the_engine(self) -> bool {
        matches!(
            self,
            Self::Hold | Self::Confirm | Self::LetGo | Self::Report
        )
    }
}
