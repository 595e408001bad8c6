//! Where the workspace is, and which files belong to it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{Result, process};

/// The checked-out workspace.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Variables that every call of cargo gets, or loses.
    environment: Vec<(&'static str, Option<OsString>)>,
}

impl Workspace {
    /// Looks upwards from the current directory, so that every task works in any folder of the workspace.
    pub fn find() -> Result<Self> {
        let start = std::env::current_dir()?;
        for folder in start.ancestors() {
            let manifest = folder.join("Cargo.toml");
            if manifest.is_file() && std::fs::read_to_string(&manifest)?.contains("[workspace]") {
                return Ok(Self::at(folder));
            }
        }
        Err(format!("no workspace above {}", start.display()).into())
    }

    /// A workspace rooted at a folder of the caller's choice.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            environment: Vec::new(),
        }
    }

    /// The same workspace, whose calls of cargo get these variables, or lose those without a value.
    pub(crate) fn with_environment(
        mut self,
        environment: Vec<(&'static str, Option<OsString>)>,
    ) -> Self {
        self.environment = environment;
        self
    }

    /// The folder of the root manifest.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path inside the workspace.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A call of the cargo that started this task, from the root.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// What cargo knows of the members, without resolving their dependencies: needs no network and no index.
    pub fn metadata(&self) -> Result<serde_json::Value> {
        let mut command = self.cargo();
        command.args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ]);
        Ok(serde_json::from_str(&process::capture(&mut command)?)?)
    }

    /// The folders of the members. Generated clients have manifests too, but are not members.
    pub(crate) fn members(&self) -> Result<Vec<PathBuf>> {
        let metadata = self.metadata()?;
        let packages = metadata.get("packages").and_then(|value| value.as_array());
        let manifests = packages.into_iter().flatten().map(|package| {
            let manifest = package.get("manifest_path").and_then(|path| path.as_str());
            let folder = manifest.and_then(|path| Path::new(path).parent());
            Ok(folder
                .ok_or("cargo metadata names no manifest")?
                .to_path_buf())
        });
        manifests.collect()
    }

    /// Cargo's target folder, wherever the environment or the configuration puts it.
    pub fn target(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        let target = metadata
            .get("target_directory")
            .and_then(|value| value.as_str());
        Ok(target
            .map(PathBuf::from)
            .ok_or("cargo metadata names no target directory")?)
    }

    /// Every file that is tracked or would be, relative to the root with forward slashes, in order.
    pub fn files(&self) -> Result<Vec<String>> {
        let mut command = self.git();
        command.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = process::capture(&mut command)?;
        let mut files: Vec<String> = listed
            .split('\0')
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// A call of git on this workspace.
    pub fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.root);
        command
    }

    /// The text of a file. Returns `None` if the file is not text.
    pub fn text(&self, relative: &str) -> Result<Option<String>> {
        Ok(String::from_utf8(std::fs::read(self.root.join(relative))?).ok())
    }
}

/// Lower-case hex SHA-256.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Workspace;

    #[test]
    fn members_include_packages_and_leave_out_generated_clients() {
        let workspace = Workspace::find().unwrap();
        let members = workspace.members().unwrap();
        assert!(members.contains(&workspace.path("xtask")));
        assert!(members.contains(&workspace.path("crates/kernel")));
        let client = workspace.path("tests/conformance/clients/rust");
        assert!(client.join("Cargo.toml").is_file());
        assert!(!members.iter().any(|member| member.starts_with(&client)));
    }
}
