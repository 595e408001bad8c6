//! `penstock webhook rotate-secret`: gives a partner's endpoint a new signing secret.

use std::process::ExitCode;
use std::sync::Arc;

use partner_core::PartnerId;
use partner_core::events::Service;
use partner_core::throttle;
use partner_core::usecases::rotation::{Present, RotateError, RotateSecret, Rotated};
use secrecy::ExposeSecret as _;
use serde::Serialize;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::{Installation, partner_id};
use crate::terminal::Terminal;

/// The commands for webhooks.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum WebhookArgs {
    /// Creates a signing secret and prints it once. Only the new secret signs, unless an overlap is given
    RotateSecret {
        /// Partner that receives the events
        #[arg(long)]
        partner: String,
        /// Service that sends the events
        #[arg(long, value_enum)]
        service: Of,
        /// How long the current secret also signs, such as 24h
        #[arg(long, value_name = "SPAN")]
        overlap: Option<String>,
    },
}

/// The service that sends the events.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Of {
    /// The liquidity pools API.
    Pools,
    /// The hosted ramp session API.
    Gate,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: WebhookArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let WebhookArgs::RotateSecret {
        partner,
        service,
        overlap,
    } = command;
    let partner = partner_id(&partner)?;
    let service = match service {
        Of::Pools => Service::Pools,
        Of::Gate => Service::Gate,
    };
    let present = match overlap {
        None => Present::EndsAtOnce,
        Some(text) => {
            let span = throttle::parse_span(&text).filter(|span| !span.is_zero());
            Present::Overlaps(span.ok_or_else(|| {
                Failure::input("--overlap: expected digits and a unit, such as 24h, 90m or 3600s")
            })?)
        }
    };
    let installation = Installation::open_to_write(&given, terminal).await?;
    installation.tenant(partner.clone()).await?;
    let rotated = rotate(&installation, &partner, service, present).await?;
    installation.close().await;
    let answer = Answer {
        partner: partner.as_str(),
        service: service.as_str(),
        secret: rotated.secret.expose_secret(),
        overlap_until: rotated.overlap_until.map(|at| at.to_string()),
    };
    let remedy = || {
        format!(
            "partner `{partner}` has a new {} secret that could not be printed: run `penstock webhook rotate-secret --partner {partner} --service {}` again without --overlap",
            answer.service, answer.service
        )
    };
    terminal.answer_once(&answer, || text_of(&answer), remedy)?;
    Ok(ExitCode::SUCCESS)
}

async fn rotate(
    installation: &Installation,
    partner: &PartnerId,
    service: Service,
    present: Present,
) -> Result<Rotated, RotateError> {
    let base = &installation.base;
    let rotating = RotateSecret {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
        mode: installation.mode,
    };
    rotating.rotate(partner, service, present).await
}

#[derive(Serialize)]
struct Answer<'a> {
    partner: &'a str,
    service: &'static str,
    secret: &'a str,
    overlap_until: Option<String>,
}

fn text_of(answer: &Answer<'_>) -> String {
    let Answer {
        partner,
        service,
        secret,
        overlap_until,
    } = answer;
    let then = match overlap_until {
        None => {
            "only this secret signs from now on; every service uses it within 5 seconds".to_owned()
        }
        Some(until) => {
            format!("this secret signs from now on; the previous secret also signs until {until}")
        }
    };
    let next = match overlap_until {
        None => "next: give it to the partner now; deliveries fail and are retried until the partner's receiver knows it".to_owned(),
        Some(until) => format!("next: give it to the partner, whose receiver must know it by {until}"),
    };
    format!(
        "{service} webhook secret of {partner}, shown only once: {secret}\n{then}\n{next}\nif a declarative file contains the secret, replace it there or remove it: the next apply sets the secret of the file"
    )
}

impl From<RotateError> for Failure {
    fn from(error: RotateError) -> Self {
        match error {
            RotateError::Overlap => Self::input(format!("--overlap: {error}")),
            RotateError::UnknownPartner(..) => Self::Failed(error.to_string()),
            RotateError::NoEndpoint(..) | RotateError::Overlapping(_) => {
                Self::Failed(error.to_string())
            }
            RotateError::Store(error) => error.into(),
        }
    }
}
