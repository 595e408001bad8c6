//! `penstock verify`: checks every invariant over the whole database.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kernel::{Mode, StoreResult, Timestamp};
use partner_core::ports::{AuditReport, AuditStep};
use runtime::OpenedBase;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Where the result also goes.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// File that gets the result as metrics, for the textfile collector of node_exporter; replaced as a whole
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: VerifyArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let installation = Installation::open_to_read(&given, terminal).await?;
    terminal.remark(&installation.place());
    let base = &installation.base;
    let report = audit(base).await?;
    let (mode, completed) = (installation.mode, base.clock.now());
    installation.close().await;
    if report.findings.is_empty() {
        // A store that checks nothing must not look like a store without findings.
        return Err(Failure::Failed("the store checked no invariant".to_owned()));
    }
    terminal.answer(&Answer::of(&report), || text_of(&report))?;
    if let Some(file) = &command.metrics {
        let metrics = metrics_of(&report, mode, completed);
        let written = replace(file, &metrics);
        written.map_err(|error| {
            let file = file.display();
            Failure::Failed(format!("--metrics: {file} cannot be written ({error})"))
        })?;
    }
    Ok(if report.clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn audit(base: &OpenedBase) -> StoreResult<AuditReport> {
    let progress = Progress::begin("checking");
    let told = |step: AuditStep| {
        let AuditStep {
            invariant,
            number,
            of,
            rows,
        } = step;
        progress.say(format!(
            "checking {number} of {of}: {invariant}, {rows} rows"
        ));
    };
    let audit = base
        .store
        .audit(&base.sealer, http_kit::is_well_formed, &told);
    audit.await
}

/// The result in Prometheus' text format.
fn metrics_of(report: &AuditReport, mode: Mode, completed: Timestamp) -> String {
    let breaches: u64 = report.findings.iter().map(|finding| finding.count).sum();
    let rows = [
        (
            "penstock_verify_completed_timestamp_seconds",
            "End of the last `penstock verify`, in seconds since 1970",
            completed.seconds().to_string(),
        ),
        (
            "penstock_verify_ok",
            "1 if the last `penstock verify` found every invariant intact, else 0",
            u8::from(report.clean()).to_string(),
        ),
        (
            "penstock_verify_breaches",
            "Rows that broke an invariant in the last `penstock verify`",
            breaches.to_string(),
        ),
    ];
    let text = |(name, help, value)| {
        format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name}{{mode=\"{mode}\"}} {value}\n")
    };
    rows.map(text).concat()
}

/// Replaces a file, so that its reader never finds half of it. The reader is another user.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    if file.exists() && !file.symlink_metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(text.as_bytes())?;
    let readable = Permissions::from_mode(0o644);
    draft.as_file().set_permissions(readable)?;
    draft.persist(file)?;
    Ok(())
}

#[derive(Serialize)]
struct Answer<'r> {
    ok: bool,
    figures: Map<String, Value>,
    breaches: Vec<Breach<'r>>,
    /// What an operator must look at although the books are whole.
    open_items: &'r [String],
}

#[derive(Serialize)]
struct Breach<'r> {
    invariant: &'static str,
    count: u64,
    rows: &'r [String],
}

impl<'r> Answer<'r> {
    fn of(report: &'r AuditReport) -> Self {
        let figure = |(name, value): &(&'static str, String)| {
            ((*name).to_owned(), Value::from(value.as_str()))
        };
        let broken = report.findings.iter().filter(|finding| finding.count > 0);
        Self {
            ok: report.clean(),
            figures: report.figures.iter().map(figure).collect(),
            open_items: &report.open_items,
            breaches: broken
                .map(|finding| Breach {
                    invariant: finding.invariant,
                    count: finding.count,
                    rows: &finding.breaches,
                })
                .collect(),
        }
    }
}

fn text_of(report: &AuditReport) -> String {
    let mut lines = Vec::new();
    for (name, value) in &report.figures {
        lines.push(format!("{name}: {value}"));
    }
    for item in &report.open_items {
        lines.push(format!("! open: {item}"));
    }
    let mut broken = 0_usize;
    for finding in report.findings.iter().filter(|it| it.count > 0) {
        broken = broken.saturating_add(1);
        lines.push(format!("✗ {}: {} broken", finding.invariant, finding.count));
        lines.extend(finding.breaches.iter().map(|row| format!("    {row}")));
    }
    let checked = report.findings.len();
    lines.push(if broken == 0 {
        format!("✓ {checked} invariants hold")
    } else {
        format!(
            "{broken} of {checked} invariants are broken; change nothing before you know the cause"
        )
    });
    lines.join("\n")
}
