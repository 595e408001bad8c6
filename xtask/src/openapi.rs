//! `cargo xtask openapi`: writes the contracts that the services print, the pages about errors and metrics, and the reference pages, or
//! compares them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::programs::{self, PLAIN};
use crate::workspace::Workspace;
use crate::{Result, process};

/// Each program and the published documents that it prints.
const DOCUMENTS: [(&str, &[&str]); 2] = [
    ("pools-service", &["pools-v1", "engine-v1"]),
    (
        "gate-service",
        &[
            "gate-v1",
            "gate-test-helpers-v1",
            "gate-embed-v1",
            "rail-v1",
            "verifier-v1",
        ],
    ),
];

/// The number of lines of a difference that a failed comparison prints.
const SHOWN_LINES: usize = 24;

pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let programs = programs::build(workspace, PLAIN, &DOCUMENTS.map(|(program, _)| program))?;
    for (program, names) in DOCUMENTS {
        for name in names {
            let generated = generate(workspace, &programs.join(program), name)?;
            publish(workspace, name, &generated, check)?;
        }
    }
    pages(workspace, check)
}

/// Runs the tests that compare or rewrite the pages.
fn pages(workspace: &Workspace, check: bool) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["test", "--locked", "--workspace", "--quiet"]);
    command.args(["--test", "errors_doc", "--test", "metrics_doc"]);
    command.args(["--test", "reference_pages"]);
    if !check {
        command.env("UPDATE_DOCS", "1");
    }
    process::run(&mut command)
}

fn publish(workspace: &Workspace, name: &str, generated: &str, check: bool) -> Result<()> {
    let published = format!("docs/openapi/{name}.yaml");
    let path = workspace.path(&published);
    let committed = if path.is_file() {
        fs::read_to_string(&path)?
    } else {
        String::new()
    };
    if committed == generated {
        println!("{published} is up to date");
        return Ok(());
    }
    if check {
        return Err(format!(
            "{published} differs from what the service prints; run `cargo xtask openapi` and commit the result\n{}",
            difference(workspace, &published, generated)?
        )
        .into());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, generated)?;
    println!("{published} rewritten");
    Ok(())
}

fn generate(workspace: &Workspace, program: &Path, name: &str) -> Result<String> {
    let mut command = Command::new(program);
    command
        .current_dir(workspace.root())
        .args(["openapi", name]);
    let text = process::capture(&mut command)?;
    if text.trim().is_empty() {
        return Err(format!("`{} openapi {name}` printed nothing", program.display()).into());
    }
    Ok(text)
}

/// Returns the first lines in which a generated text differs from the published file.
fn difference(workspace: &Workspace, published: &str, generated: &str) -> Result<String> {
    let file = workspace.target()?.join("openapi.yaml");
    fs::write(&file, generated)?;
    let mut diff = workspace.git();
    diff.args(["diff", "--no-index", "--unified=0", "--", published]);
    // Git exits with 1 if the files differ.
    let lines = String::from_utf8(diff.arg(file).output()?.stdout)?;
    let shown: Vec<&str> = lines.lines().take(SHOWN_LINES).collect();
    Ok(shown.join("\n"))
}
