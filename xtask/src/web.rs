//! `cargo xtask web`: builds the committed files that browsers load, compares them, or measures the limits of the widget in a browser.
//! `cargo xtask check web`: checks the sources of these files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::conformance::{self, BROWSER, missing_node, remove_folder, web_environment};
use crate::programs::{self, PLAIN};
use crate::workspace::Workspace;
use crate::{Result, finish, process, servers};

/// The widget, the browser SDK and the demo shop.
pub(crate) const WEB: &str = "crates/gate-http/web";
/// The test that builds the files and compares them with the committed ones.
const COMPARISON: &str = "test_committed_assets_match_their_sources";

/// Rewrites the files, compares them, or prints the table of limits, as the argument says.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<ExitCode> {
    match arguments {
        [] => {
            let built = build(workspace)?.join("dist");
            let dist = workspace.path(WEB).join("dist");
            // It does not exist after an interrupted build.
            remove_folder(&dist)?;
            copy(&built, &dist)?;
        }
        [only] if only == "--check" => {
            let chosen = ["-k", COMPARISON].map(str::to_owned);
            return finish(&conformance::run(workspace, &chosen)?);
        }
        [only] if only == "--table" => table(workspace)?,
        _ => return Err(format!("expected nothing, --check or --table, got {arguments:?}").into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks the types, the lints, the imports and the format of the sources.
///
/// A machine without Node.js leaves them out, because a change of Rust code does not need it. `cargo xtask ci` fails there anyway: its
/// conformance suites need Node.js too.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    if let Some(remedy) = missing_node() {
        println!("NOT CHECKED: the sources in {WEB}. {remedy}");
        return Ok(());
    }
    run_script(workspace, &copy_of_sources(workspace)?, "check")
}

/// Builds the files in a copy of the sources, and returns the folder of the copy.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let home = copy_of_sources(workspace)?;
    remove_folder(&home.join("dist"))?;
    run_script(workspace, &home, "build")?;
    Ok(home)
}

fn copy_of_sources(workspace: &Workspace) -> Result<PathBuf> {
    web_environment(workspace, &workspace.target()?.join("conformance"))
}

/// Runs a script of `package.json`, which may read the published documents.
fn run_script(workspace: &Workspace, home: &Path, name: &str) -> Result<()> {
    let mut command = Command::new("npm");
    command.current_dir(home).args(["run", name]);
    process::run(command.env("OPENAPI_DIR", workspace.path("docs/openapi")))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

/// Prints the limits that the widget must keep in a browser, with the measured values.
fn table(workspace: &Workspace) -> Result<()> {
    servers::install(workspace, &[BROWSER])?;
    let home = build(workspace)?;
    let penstock = programs::build(workspace, PLAIN, &["penstock"])?.join("penstock");
    let browser = process::find(BROWSER).ok_or("chromium-headless-shell was not installed")?;
    let mut command = Command::new("node");
    command.current_dir(home).arg("test/e2e/table.mjs");
    command.env("PENSTOCK_BIN", penstock);
    process::run(command.env("CHROMIUM_PATH", browser))
}
