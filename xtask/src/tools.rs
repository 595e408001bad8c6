//! Tools of CI that cargo installs: the machine's own if it has the pinned version, else one under the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::ci::LINTING;
use crate::workspace::Workspace;
use crate::{Result, process};

/// A tool, and the version that CI runs.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

/// Checks licences, sources, bans and advisories.
pub(crate) const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};
/// Finds unused dependencies.
pub(crate) const MACHETE: Tool = Tool {
    name: "cargo-machete",
    version: "0.9.2",
};

/// The tool's path. Installing it for the first time takes minutes and needs the registry of crates.
pub(crate) fn find_or_install(workspace: &Workspace, tool: &Tool) -> Result<PathBuf> {
    let folder = workspace.target()?.join("tools");
    let installed = folder.join("bin").join(tool.name);
    for path in [PathBuf::from(tool.name), installed.clone()] {
        if is_version(&path, tool) {
            return Ok(path);
        }
    }
    let mut install = workspace.cargo();
    install.args(["install", "--locked", "--debug", "--root"]);
    install.arg(&folder);
    install.arg(format!("{}@{}", tool.name, tool.version));
    // The tools are not linted as ours.
    for (name, _) in LINTING {
        install.env_remove(name);
    }
    process::run(&mut install)?;
    Ok(installed)
}

fn is_version(program: &PathBuf, tool: &Tool) -> bool {
    let run = Command::new(program).arg("--version").output();
    run.is_ok_and(|run| {
        run.status.success() && String::from_utf8_lossy(&run.stdout).contains(tool.version)
    })
}
