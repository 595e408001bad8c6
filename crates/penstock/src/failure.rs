//! The failure of a command.

use kernel::StoreError;
use runtime::{ConfigError, OpenError};

/// Why a command failed, in lines for the operator.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad input: exit code 2. One line per error.
    Input(Vec<String>),
    /// The command was refused, or failed: exit code 1.
    Failed(String),
}

impl Failure {
    /// Bad input with one error.
    pub(crate) fn input(line: impl Into<String>) -> Self {
        Self::Input(vec![line.into()])
    }

    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Failed(_) => 1,
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Input(lines) => lines.clone(),
            Self::Failed(line) => vec![line.clone()],
        }
    }
}

impl From<Vec<ConfigError>> for Failure {
    fn from(faults: Vec<ConfigError>) -> Self {
        Self::Input(faults.iter().map(ToString::to_string).collect())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(faults) => faults.into(),
            OpenError::Store(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Failed(kernel::causes(&error))
    }
}
