//! `penstock verify`: checks every invariant over the whole database.

use std::process::ExitCode;

use kernel::StoreResult;
use partner_core::ports::{AuditReport, AuditStep};
use runtime::OpenedBase;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::progress::Progress;
use crate::terminal::Terminal;

pub(crate) async fn run(given: InstallationArgs, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let installation = Installation::open_to_read(&given, terminal).await?;
    installation.name_on(terminal);
    let base = &installation.base;
    let report = audit(base).await?;
    installation.close().await;
    if report.findings.is_empty() {
        // A store that checks nothing must not look like a store without findings.
        return Err(Failure::Failed("the store checked no invariant".to_owned()));
    }
    terminal.answer(&Answer::of(&report), || text_of(&report))?;
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

#[derive(Serialize)]
struct Answer<'r> {
    ok: bool,
    figures: Map<String, Value>,
    breaches: Vec<Breach<'r>>,
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
