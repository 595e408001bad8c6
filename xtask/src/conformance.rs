//! `cargo xtask conformance`: runs the suites in other languages against the built programs.
//!
//! The task installs what the suites need under cargo's target folder, from pinned lists. It installs again only after a list has changed.

mod prometheus;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::LINTING;
use crate::programs::{self, ARMED, PLAIN, RECEIVER, SHIPPED};
use crate::suites::Outcome;
use crate::summary::Counts;
use crate::web::WEB;
use crate::workspace::{Workspace, sha256};
use crate::{Result, process, python, servers};

/// Debian's Chromium without its windows and menus, which take half of the processor time of the browser tests.
pub(crate) const BROWSER: &str = "chromium-headless-shell";
/// The whole one, for the tests of pages that come back from the browser's cache, and of tabs that sleep.
const WITH_WINDOWS: &str = "chromium";
/// The programs that play a rail and a verifier.
const TRIALS: [&str; 2] = ["test-rail", "test-verifier"];
const WEB_SOURCES: [&str; 4] = ["dev", "dist", "src", "test"];
/// Programs that the suites run in addition to the built ones: the default shell of macOS, an HTTP client, the browsers, servers, the
/// proxy of the deployment, and the programs of an operator.
const PROGRAMS: [&str; 9] = [
    "zsh",
    "curl",
    BROWSER,
    WITH_WINDOWS,
    "initdb",
    "redis-server",
    "nginx",
    "logrotate",
    "sqlite3",
];
/// The seconds for which the alarms must stay quiet without load, and again under load.
const ALARMS: (&str, &str) = ("CONFORMANCE_ALARMS", "600");
/// Firefox and WebKit, with the virtual display that WebKit needs.
const OTHER_BROWSERS: [&str; 3] = ["firefox-esr", "WebKitWebDriver", "Xvfb"];

/// The suites run in this many processes, because most tests wait: for leases, for timers and for programs that start.
const WORKERS: &str = "--numprocesses=4";

/// Runs the suites. `conftest.py` deselects the tests of Firefox and WebKit unless an argument `-m` names their marker.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Outcome> {
    run_with(workspace, arguments, &[])
}

/// Runs the suites with more variables.
fn run_with(
    workspace: &Workspace,
    arguments: &[String],
    variables: &[(&str, &str)],
) -> Result<Outcome> {
    let requirements = workspace.path("tests/conformance/requirements.txt");
    if !requirements.is_file() {
        return Err(
            "tests/conformance/requirements.txt is missing: the suites need their pinned Python packages"
                .into(),
        );
    }
    let area = workspace.target()?.join("conformance");
    fs::create_dir_all(&area)?;
    let python = python_environment(&requirements, &area)?;
    let node = node_environment(&workspace.path("tests/conformance"), &area.join("node"))?;
    let web = web_environment(workspace, &area)?;
    let prometheus = prometheus::find_or_unpack(&area)?;
    servers::install(workspace, &PROGRAMS)?;
    let browser = process::find(BROWSER).ok_or("chromium-headless-shell was not installed")?;
    let with_windows = process::find(WITH_WINDOWS).ok_or("chromium was not installed")?;
    // The plain programs are built last, so that the target folder contains them afterwards.
    let armed = programs::build(workspace, ARMED, &SHIPPED)?;
    let plain = programs::build(workspace, PLAIN, &[&SHIPPED[..], &TRIALS].concat())?;

    let mut command = Command::new(python);
    command
        .current_dir(workspace.root())
        .args(["-m", "pytest", "tests/conformance", "-q", "-o"])
        .arg(format!("cache_dir={}/pytest-cache", area.display()))
        .args((!choose_tests(arguments)).then_some(WORKERS))
        .args(arguments)
        .env("ARMED_POOLS_SERVICE_BIN", armed.join("pools-service"))
        .env("CHROMIUM_BIN", browser)
        .env("CHROMIUM_WITH_WINDOWS_BIN", with_windows)
        .env("DEPLOY_DIR", workspace.path("deploy"))
        .env("DOCS_DIR", workspace.path("docs"))
        .env("GATE_SERVICE_BIN", plain.join("gate-service"))
        .env("NODE_MODULES_DIR", &node)
        .env("NODE_PATH", node)
        .env("OPENAPI_DIR", workspace.path("docs/openapi"))
        .env("PROMETHEUS_BIN", &prometheus.server)
        .env("PROMTOOL_BIN", &prometheus.tool)
        .env("PENSTOCK_BIN", plain.join("penstock"))
        .env("POOLS_SERVICE_BIN", plain.join("pools-service"))
        .env("TEST_RAIL_BIN", plain.join(TRIALS[0]))
        .env("TEST_VERIFIER_BIN", plain.join(TRIALS[1]))
        .env("VERIFY_DELIVERY_BIN", plain.join(RECEIVER))
        .env("WEB_DIR", web)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().copied());
    // The lints of this workspace do not apply to the generated clients.
    for (name, _) in LINTING {
        command.env_remove(name);
    }
    Outcome::of_program(&mut command, Counts::of_pytest)
}

/// Returns whether arguments of pytest choose some tests by name or by marker.
fn choose_tests(arguments: &[String]) -> bool {
    arguments
        .iter()
        .any(|argument| argument.starts_with("-k") || argument.starts_with("-m"))
}

/// Runs the tests of Firefox and WebKit. They are separate because the drivers of these browsers stall on a busy machine.
pub(crate) fn browsers(workspace: &Workspace) -> Result<Outcome> {
    servers::install(workspace, &OTHER_BROWSERS)?;
    run(workspace, &["-m".to_owned(), "browsers".to_owned()])
}

/// Runs the tests of the alarms, with ten minutes of quiet and ten of load.
pub(crate) fn alarms(workspace: &Workspace) -> Result<Outcome> {
    let tests = ["-k", "test_alarms"].map(str::to_owned);
    run_with(workspace, &tests, &[ALARMS])
}

/// Installs the pinned packages in a virtual environment, and returns its interpreter.
fn python_environment(requirements: &Path, area: &Path) -> Result<PathBuf> {
    let home = area.join("venv");
    let wanted = sha256(&[fs::read(requirements)?, python::version()?.into_bytes()].concat());
    if installed_already(&home, &wanted) {
        return Ok(home.join("bin/python"));
    }
    remove_folder(&home)?;
    let python = python::make_environment(&home)?;
    process::run(
        python::install(&python)
            .arg("--requirement")
            .arg(requirements),
    )?;
    mark_installed(&home, &wanted)?;
    Ok(python)
}

/// Names the program of Node.js that is not installed, and says how to install it.
pub(crate) fn missing_node() -> Option<String> {
    let mut programs = ["node", "npm"].into_iter();
    let missing = programs.find(|program| !process::installed(program))?;
    Some(format!(
        "{missing} is not installed: install Node.js 20.19 or newer with npm (https://nodejs.org)"
    ))
}

/// Installs the locked npm packages of a folder in `home`, and returns their `node_modules`.
fn node_environment(source: &Path, home: &Path) -> Result<PathBuf> {
    let manifest = source.join("package.json");
    let lock = source.join("package-lock.json");
    if !lock.is_file() {
        return Err(format!(
            "{} is missing: run `npm install --package-lock-only` in its folder and commit it",
            lock.display()
        )
        .into());
    }
    if let Some(remedy) = missing_node() {
        return Err(remedy.into());
    }
    let modules = home.join("node_modules");
    let wanted = sha256(&[fs::read(&manifest)?, fs::read(&lock)?].concat());
    if installed_already(home, &wanted) {
        return Ok(modules);
    }
    remove_folder(home)?;
    fs::create_dir_all(home)?;
    fs::copy(&manifest, home.join("package.json"))?;
    fs::copy(&lock, home.join("package-lock.json"))?;
    process::run(Command::new("npm").current_dir(home).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]))?;
    mark_installed(home, &wanted)?;
    Ok(modules)
}

/// Copies the web sources, with their packages, to a folder that a build may change. Returns the folder.
pub(crate) fn web_environment(workspace: &Workspace, area: &Path) -> Result<PathBuf> {
    let source = workspace.path(WEB);
    let home = area.join("web");
    node_environment(&source, &home)?;
    for name in WEB_SOURCES {
        remove_folder(&home.join(name))?;
    }
    for file in workspace.files()? {
        let from = workspace.path(&file);
        let Ok(inside) = from.strip_prefix(&source) else {
            continue;
        };
        let to = home.join(inside);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, to)?;
    }
    Ok(home)
}

/// The file that marks a finished installation. It is written last, so an interrupted installation is repeated.
const MARK: &str = ".installed-from";

fn installed_already(home: &Path, wanted: &str) -> bool {
    fs::read_to_string(home.join(MARK)).is_ok_and(|found| found == wanted)
}

fn mark_installed(home: &Path, wanted: &str) -> Result<()> {
    Ok(fs::write(home.join(MARK), wanted)?)
}

pub(crate) fn remove_folder(home: &Path) -> Result<()> {
    if home.exists() {
        fs::remove_dir_all(home)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{choose_tests, installed_already, mark_installed, node_environment, run};
    use crate::workspace::Workspace;

    #[test]
    fn workers_are_for_runs_of_all_tests() {
        for (text, chosen) in [
            ("-k metrics", true),
            ("-kmetrics", true),
            ("-x -m browsers", true),
            ("--maxfail=1 --durations=20", false),
        ] {
            let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(choose_tests(&words), chosen, "{text}");
        }
        assert!(!choose_tests(&[]));
    }

    #[test]
    fn installation_is_kept_for_its_own_list_only() {
        let home = tempfile::tempdir().unwrap();
        assert!(!installed_already(home.path(), "a"));
        mark_installed(home.path(), "a").unwrap();
        assert!(installed_already(home.path(), "a"));
        assert!(!installed_already(home.path(), "b"));
    }

    #[test]
    fn missing_suites_are_an_error_and_not_a_skip() {
        let empty = tempfile::tempdir().unwrap();
        let error = run(&Workspace::at(empty.path()), &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("tests/conformance/requirements.txt is missing")
        );
    }

    #[test]
    fn npm_packages_are_installed_from_a_lock_only() {
        let root = tempfile::tempdir().unwrap();
        let (source, home) = (root.path(), root.path().join("home"));
        std::fs::write(source.join("package.json"), "{}").unwrap();
        let error = node_environment(source, &home).unwrap_err();
        assert!(error.to_string().contains("package-lock.json is missing"));
    }
}
