//! Finds the tools of CI. If the machine does not have the pinned version, the tool is installed under the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::LINTING;
use crate::workspace::Workspace;
use crate::{Result, process, python};

/// A tool and the version that CI runs.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    registry: Registry,
}

/// The registry from which a tool is installed.
#[derive(Clone, Copy)]
enum Registry {
    /// Has sources. A build takes minutes.
    Crates,
    /// Has built programs. An installation takes seconds.
    PythonPackages,
}

/// Checks licences, sources, bans and advisories.
pub(crate) const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    registry: Registry::Crates,
};
/// Finds unused dependencies.
pub(crate) const MACHETE: Tool = Tool {
    name: "cargo-machete",
    version: "0.9.2",
    registry: Registry::Crates,
};
/// Checks the spelling.
pub(crate) const TYPOS: Tool = Tool {
    name: "typos",
    version: "1.52.0",
    registry: Registry::PythonPackages,
};

/// Returns the path of a tool. The first installation needs the registry.
pub(crate) fn find_or_install(workspace: &Workspace, tool: &Tool) -> Result<PathBuf> {
    let folder = workspace.target()?.join("tools");
    let folder = match tool.registry {
        Registry::Crates => folder,
        Registry::PythonPackages => folder.join(tool.name),
    };
    let installed = folder.join("bin").join(tool.name);
    for path in [PathBuf::from(tool.name), installed.clone()] {
        if is_version(&path, tool) {
            return Ok(path);
        }
    }
    match tool.registry {
        Registry::Crates => build(workspace, tool, &folder)?,
        Registry::PythonPackages => unpack(tool, &folder)?,
    }
    Ok(installed)
}

fn build(workspace: &Workspace, tool: &Tool, folder: &Path) -> Result<()> {
    let mut install = workspace.cargo();
    install.args(["install", "--locked", "--debug", "--root"]);
    install.arg(folder);
    install.arg(format!("{}@{}", tool.name, tool.version));
    // The lints of this workspace do not apply to tools.
    for (name, _) in LINTING {
        install.env_remove(name);
    }
    process::run(&mut install)
}

fn unpack(tool: &Tool, folder: &Path) -> Result<()> {
    let Tool { name, version, .. } = tool;
    let python = python::make_environment(folder)?;
    let mut install = python::install(&python);
    install
        .arg("--only-binary=:all:")
        .arg(format!("{name}=={version}"));
    process::run(&mut install).map_err(|error| {
        format!(
            "{error}; if the registry has no package for this machine, put {name} {version} on the PATH"
        )
        .into()
    })
}

fn is_version(program: &Path, tool: &Tool) -> bool {
    let run = Command::new(program).arg("--version").output();
    run.is_ok_and(|run| {
        run.status.success() && String::from_utf8_lossy(&run.stdout).contains(tool.version)
    })
}
