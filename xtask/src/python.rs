//! Makes virtual environments for tools and suites from the registry of Python packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, process};

/// Returns the output of `python3 --version`.
pub(crate) fn version() -> Result<String> {
    if !process::installed("python3") {
        return Err(
            "python3 is not installed: install Python 3.11 or newer with its venv module \
             (Debian and Ubuntu: `apt install python3 python3-venv`)"
                .into(),
        );
    }
    process::capture(Command::new("python3").arg("--version"))
}

/// Makes an environment and returns its interpreter.
pub(crate) fn make_environment(home: &Path) -> Result<PathBuf> {
    version()?;
    process::run(Command::new("python3").args(["-m", "venv"]).arg(home)).map_err(|error| {
        format!("{error}; the venv module may be missing (Debian and Ubuntu: `apt install python3-venv`)")
    })?;
    Ok(home.join("bin/python"))
}

/// Returns a call of `pip install` in an environment.
pub(crate) fn install(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip
}
