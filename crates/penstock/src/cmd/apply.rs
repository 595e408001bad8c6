//! `penstock apply`: applies a declarative file to the database.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use kernel::Mode;
use provisioning::apply::{ApplyDocument, ApplyError, ApplyMode, Loosening, Report};
use provisioning::{Document, Setting, parse_document};
use runtime::config::Database;
use runtime::{Access, Config};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use tempfile::TempDir;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::terminal::Terminal;

/// The file to apply, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Declarative file; `-` reads it from standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Prints the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Allows the file to loosen a protection: the balance gate, the velocity cap, the maximum order, KYC, the off-ramp, a
    /// suspension or the quota of live sessions. Without this flag such a file changes nothing
    #[arg(long)]
    allow_loosening: bool,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: ApplyArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let name = match command.file.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => command.file.display().to_string(),
    };
    let text = read(&command.file)?;
    let mut config = given.load(terminal).await?;
    let setting = Setting {
        mode: config.mode,
        allow_private: config.webhook_allow_private,
    };
    // The file is validated before a database is opened or created.
    let document = parse_document(&text, setting).map_err(|faults| refused(&name, &faults))?;
    if document.pools.is_empty() && document.partners.is_empty() {
        return Err(Failure::input(format!(
            "{name}: expected at least one [[pools]] or [[partners]] table, but the file is empty"
        )));
    }
    let (run, access) = if command.dry_run {
        (ApplyMode::DryRun, Access::Read)
    } else {
        (ApplyMode::Commit, Access::Write)
    };
    let loosening = if command.allow_loosening {
        Loosening::Allow
    } else {
        Loosening::Refuse
    };
    let is_new = !runtime::store::is_there(&config.database);
    if is_new && config.mode == Mode::Live {
        return Err(Failure::input(format!(
            "there is no database at {}, and in mode live only `penstock migrate` creates one; correct the path, or run it first",
            config.database
        )));
    }
    let database = config.database.clone();
    let mut temporary = None;
    if is_new && run == ApplyMode::DryRun {
        temporary = Some(temporary_database(&mut config)?);
    }
    let installation = Installation::open_or_make(config, access).await?;
    terminal.name_installation(installation.mode, &database);
    if is_new && run == ApplyMode::Commit {
        terminal.announce();
        terminal.remark(&format!("created the database {database}"));
    }
    let mut applied = apply(&installation, &document, ApplyMode::DryRun, loosening).await;
    warn(&applied, terminal);
    if run == ApplyMode::Commit && applied.is_ok() {
        applied = apply(&installation, &document, run, loosening).await;
    }
    installation.close().await;
    drop(temporary);
    let report = match applied {
        // Prints the changes as a dry run does. The refusal follows.
        Err(ApplyError::Loosens(report)) => {
            terminal.answer(&Answer::of(&report), || listed(&report).join("\n"))?;
            return Err(failed(&name, ApplyError::Loosens(report)));
        }
        applied => applied.map_err(|error| failed(&name, error))?,
    };
    let answer = Answer::of(&report);
    if answer.created_keys.is_empty() && answer.created_secrets.is_empty() {
        terminal.answer(&answer, || text_of(&report, run))?;
    } else {
        terminal.answer_once(&answer, || text_of(&report, run), || answer.lost())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the installation, and the warnings about what a file would change, before it changes anything.
fn warn(applied: &Result<Report, ApplyError>, terminal: &Terminal) {
    let warnings = match applied {
        Ok(report) => report.warnings.as_slice(),
        Err(ApplyError::Loosens(report)) => report.warnings.as_slice(),
        Err(_) => return,
    };
    terminal.announce();
    for line in warnings {
        terminal.remark(&format!("warning: {line}"));
    }
}

/// Replaces a missing database by an empty one in a temporary folder, because a dry run creates no database.
fn temporary_database(config: &mut Config) -> Result<TempDir, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::Failed(error.to_string()))?;
    config.database = Database::Sqlite(folder.path().join("penstock.db"));
    Ok(folder)
}

pub(crate) async fn apply(
    installation: &Installation,
    document: &Document,
    run: ApplyMode,
    loosening: Loosening,
) -> Result<Report, ApplyError> {
    let provisioning = ApplyDocument {
        store: installation.base.store.clone(),
        sealer: Arc::clone(&installation.base.sealer),
        entropy: Arc::clone(&installation.base.entropy),
        mode: installation.mode,
    };
    provisioning.apply(document, run, loosening).await
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| {
        let name = file.display();
        Failure::input(format!(
            "{name}: expected a readable file in UTF-8 ({error})"
        ))
    })
}

fn refused(name: &str, faults: &partner_core::tables::Faults) -> Failure {
    let lines = faults.0.iter().map(|error| format!("{name}: {error}"));
    Failure::Input(lines.collect())
}

/// The failure of an `apply` that was refused or failed.
pub(crate) fn failed(name: &str, error: ApplyError) -> Failure {
    match error {
        ApplyError::Faults(faults) => refused(name, &faults),
        ApplyError::Store(error) => error.into(),
        ApplyError::Loosens(_) => Failure::Failed(format!(
            "{name}: {error}; nothing was changed; use --allow-loosening to allow it"
        )),
        ApplyError::Sealed(..) => Failure::Failed(kernel::causes(&error)),
    }
}

#[derive(Serialize)]
struct Answer<'r> {
    changed: &'r [String],
    created_keys: Vec<Key<'r>>,
    created_secrets: Vec<Secret<'r>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    loosened: &'r [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'r [String],
}

#[derive(Serialize)]
struct Key<'r> {
    partner: &'r str,
    kind: &'static str,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'r str>,
    key: &'r str,
}

#[derive(Serialize)]
struct Secret<'r> {
    partner: &'r str,
    service: &'static str,
    secret: &'r str,
}

impl<'r> Answer<'r> {
    fn of(report: &'r Report) -> Self {
        let keys = report.created_keys.iter().map(|created| Key {
            partner: created.partner.as_str(),
            kind: created.kind.as_str(),
            id: created.id.to_string(),
            label: created.label.as_deref(),
            key: created.key.expose_secret(),
        });
        let secrets = report.created_secrets.iter().map(|created| Secret {
            partner: created.partner.as_str(),
            service: created.service.as_str(),
            secret: created.secret.expose_secret(),
        });
        Self {
            changed: &report.changed,
            created_keys: keys.collect(),
            created_secrets: secrets.collect(),
            loosened: &report.loosened,
            warnings: &report.warnings,
        }
    }
}

impl Answer<'_> {
    /// How to replace the generated keys and secrets after they could not be printed.
    fn lost(&self) -> String {
        let keys = self.created_keys.iter().map(|key| {
            let Key { id, partner, .. } = key;
            format!("key {id} of {partner}: `penstock key revoke --key-id {id}`, then create another key")
        });
        let secrets = self.created_secrets.iter().map(|secret| {
            let Secret {
                partner, service, ..
            } = secret;
            format!(
                "{service} webhook secret of {partner}: `penstock webhook rotate-secret --partner {partner} --service {service}`"
            )
        });
        let lines: Vec<String> = keys.chain(secrets).collect();
        format!(
            "the file is applied, but the generated keys and secrets are lost: {}",
            lines.join("; ")
        )
    }
}

fn text_of(report: &Report, run: ApplyMode) -> String {
    if report.changed.is_empty() {
        return "nothing to change: the database already matches the file".to_owned();
    }
    let mut lines = listed(report);
    let answer = Answer::of(report);
    for key in &answer.created_keys {
        let label = key.label.map(|label| format!(" {label:?}"));
        lines.push(format!(
            "{} key{} of {}, shown only once: {} ({})",
            key.kind,
            label.unwrap_or_default(),
            key.partner,
            key.key,
            key.id
        ));
    }
    for secret in &answer.created_secrets {
        lines.push(format!(
            "{} webhook secret of {}, shown only once: {}",
            secret.service, secret.partner, secret.secret
        ));
    }
    lines.push(match run {
        ApplyMode::DryRun => {
            "nothing was changed; next: run the command without --dry-run".to_owned()
        }
        ApplyMode::Commit => next(report),
    });
    lines.join("\n")
}

/// One line per change; loosenings come first and are marked.
fn listed(report: &Report) -> Vec<String> {
    let (loosened, other) = report.changed.split_at(report.loosened.len());
    let marked = loosened.iter().map(|line| format!("loosens: {line}"));
    marked.chain(other.iter().cloned()).collect()
}

/// The next step. A new partner has no balance, and perhaps no service runs yet.
fn next(report: &Report) -> String {
    let created = report.changed.iter().find_map(|line| {
        let partner = line.strip_prefix("partner ")?;
        partner.strip_suffix(": created")
    });
    match created {
        Some(partner) => format!(
            "next: penstock balance credit --partner {partner} --currency EUR --amount 1000.00 --ref first-deposit\nthen, if no service runs yet: pools-service"
        ),
        None => "running services apply the change within 5 seconds".to_owned(),
    }
}
