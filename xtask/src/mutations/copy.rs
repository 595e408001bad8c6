//! A copy of the workspace under the target folder, so that a mutation never changes the files that a person edits.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::edit::{self, Edit};
use crate::Result;
use crate::ci::LINTING;
use crate::workspace::Workspace;

pub(super) struct Tree {
    pub(super) workspace: Workspace,
    original: PathBuf,
}

impl Tree {
    /// Updates the copy. Unchanged files keep their modification times, so cargo compiles only what has changed.
    ///
    /// The copy has its own target folder. In a shared folder, cargo would give the packages of both workspaces the same names and compare
    /// only modification times, so the workspace could get a mutated crate.
    pub(super) fn copy(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.target()?.join("mutations");
        let root = folder.join("tree");
        let files: BTreeSet<PathBuf> = workspace.files()?.into_iter().map(PathBuf::from).collect();
        fs::create_dir_all(&root)?;
        remove_others(&root, Path::new(""), &files)?;
        for file in &files {
            update(&workspace.root().join(file), &root.join(file))?;
        }
        let mut environment: Vec<(&str, Option<OsString>)> = vec![
            ("CARGO_TARGET_DIR", Some(folder.join("target").into())),
            ("CARGO_BUILD_BUILD_DIR", Some(folder.join("target").into())),
        ];
        // A mutation may leave code unused. That must not fail the build.
        environment.extend(LINTING.map(|(name, _)| (name, None)));
        Ok(Self {
            workspace: Workspace::at(&root).with_environment(environment),
            original: workspace.root().to_path_buf(),
        })
    }

    pub(super) fn mutate(&self, edits: &[Edit]) -> Result<()> {
        for (file, text) in edit::mutated(&self.workspace, edits)? {
            fs::write(self.workspace.path(&file), text)?;
        }
        Ok(())
    }

    pub(super) fn restore(&self, edits: &[Edit]) -> Result<()> {
        for Edit { file, .. } in edits {
            update(&self.original.join(file), &self.workspace.path(file))?;
        }
        Ok(())
    }
}

/// Removes files that are no longer in the workspace, such as a moved test.
fn remove_others(root: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(root, &path, files)?;
        } else if !files.contains(&path) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn update(from: &Path, to: &Path) -> Result<()> {
    let wanted = fs::read(from)?;
    if fs::read(to).is_ok_and(|present| present == wanted) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // `fs::copy` also keeps the permissions.
    fs::copy(from, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{remove_others, update};

    #[test]
    fn equal_files_keep_their_times_and_others_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, root) = (folder.path().join("a"), folder.path().join("copy"));
        let to = root.join("b/a");
        fs::write(&from, "one").unwrap();
        update(&from, &to).unwrap();
        let time = || fs::metadata(&to).unwrap().modified().unwrap();
        let first = time();
        update(&from, &to).unwrap();
        assert_eq!(time(), first);
        fs::write(&from, "two").unwrap();
        update(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");

        fs::write(root.join("b/gone"), "").unwrap();
        let files = BTreeSet::from([PathBuf::from("b/a")]);
        remove_others(&root, Path::new(""), &files).unwrap();
        assert!(to.exists() && !root.join("b/gone").exists());
    }
}
