//! Finds the workspace and lists its files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{Result, process};

/// The checked-out workspace.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Variables that are set for every call of cargo, or removed if they have no value.
    environment: Vec<(&'static str, Option<OsString>)>,
}

impl Workspace {
    /// Searches the current directory and its parents, so that every task works in any folder of the workspace.
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

    /// Makes a workspace with the given root.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            environment: Vec::new(),
        }
    }

    /// Sets these variables for calls of cargo, and removes those without a value.
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

    /// Returns a call, from the root, of the cargo that started this task.
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

    /// Returns the metadata of the members without their dependencies, which needs no network and no index.
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

    /// Returns the folders of the members. Generated clients have manifests too, but are not members.
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

    /// Returns the target folder of cargo, which the environment or the configuration may set.
    pub fn target(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        let target = metadata
            .get("target_directory")
            .and_then(|value| value.as_str());
        Ok(target
            .map(PathBuf::from)
            .ok_or("cargo metadata names no target directory")?)
    }

    /// Returns every file that git tracks or would add, sorted, relative to the root and with forward slashes.
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

    /// Returns a call of git in this workspace.
    pub fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.root);
        command
    }

    /// Returns the text of a file, or `None` if the file is not text.
    pub fn text(&self, relative: &str) -> Result<Option<String>> {
        Ok(String::from_utf8(std::fs::read(self.root.join(relative))?).ok())
    }
}

/// Returns the SHA-256 in lower-case hex.
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
