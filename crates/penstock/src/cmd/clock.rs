//! `penstock clock`: shows and accepts a jump of the clock that the services refuse.

use std::process::ExitCode;

use partner_core::clock::ClockJump;
use serde::Serialize;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

/// The commands for the clock.
#[derive(Debug, Clone, Copy, clap::Subcommand)]
pub(crate) enum ClockArgs {
    /// Shows the jump that awaits acceptance, if there is one
    Show,
    /// Accepts the jump for good: from now on the services store instants of the new time
    Accept,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: ClockArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let installation = match command {
        ClockArgs::Show => Installation::open_to_read(&given, terminal).await?,
        ClockArgs::Accept => Installation::open_to_write(&given, terminal).await?,
    };
    let store = &installation.base.store;
    let answer = match command {
        ClockArgs::Show => Answer {
            accepted: false,
            jump: store.clock_noted().await?.map(Jump::from),
        },
        ClockArgs::Accept => {
            let jump = store.clock_accept().await?;
            Answer {
                accepted: jump.is_some(),
                jump: jump.map(Jump::from),
            }
        }
    };
    installation.close().await;
    terminal.answer(&answer, || answer.text())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Answer {
    accepted: bool,
    jump: Option<Jump>,
}

#[derive(Serialize)]
struct Jump {
    expected: String,
    found: String,
    seconds: u64,
}

impl From<ClockJump> for Jump {
    fn from(jump: ClockJump) -> Self {
        Self {
            expected: jump.expected.to_string(),
            found: jump.found.to_string(),
            seconds: jump.span().as_secs(),
        }
    }
}

impl Answer {
    fn text(&self) -> String {
        match &self.jump {
            None => "no jump of the clock awaits acceptance".to_owned(),
            Some(jump) if self.accepted => format!(
                "accepted: the clock jumped {} s ahead, from {} to {}; services write again within a second",
                jump.seconds, jump.expected, jump.found
            ),
            Some(jump) => format!(
                "the clock jumped {} s ahead, from {} to {}; services refuse writes until you correct the clock or run `penstock clock accept`",
                jump.seconds, jump.expected, jump.found
            ),
        }
    }
}
