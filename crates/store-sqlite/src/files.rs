//! Explains errors of the database file to an operator: the file's path and the remedy.
//!
//! SQLite reports a code without a path. The path is known if the process has one database open, as a service has.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The database files that this process has open.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The user of this process, such as "user penstock".
static USER: LazyLock<String> = LazyLock::new(user);

/// SQLite's primary result codes about a file or its disk.
pub(crate) const READ_ONLY: i32 = 8;
pub(crate) const IO: i32 = 10;
pub(crate) const CORRUPT: i32 = 11;
pub(crate) const FULL: i32 = 13;
pub(crate) const CANNOT_OPEN: i32 = 14;
pub(crate) const NOT_A_DATABASE: i32 = 26;

/// The file is not a Penstock database, so it was neither opened nor changed.
#[derive(Debug, thiserror::Error)]
#[error("{} is {why}; nothing was changed: name another file, or a path without a file to create a database", .file.display())]
pub struct ForeignFile {
    file: PathBuf,
    why: String,
}

impl ForeignFile {
    /// A database of another program that has this table.
    pub(crate) fn with_table(file: &Path, table: &str) -> Self {
        Self {
            file: file.to_owned(),
            why: format!("no Penstock database: it has the table `{table}` of another program"),
        }
    }

    /// A file that SQLite cannot read.
    pub(crate) fn of_another_kind(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            why: "not a SQLite database: it has other content, or its first page is damaged"
                .to_owned(),
        }
    }
}

/// An open database file, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFile(PathBuf);

impl OpenFile {
    pub(crate) fn at(file: &Path) -> Self {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(file.to_owned());
        Self(file.to_owned())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = open.iter().position(|file| *file == self.0) {
            open.swap_remove(index);
        }
    }
}

/// The one database file that this process has open; `None` if it has several.
fn only() -> Option<PathBuf> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, rest) = open.split_first()?;
    rest.iter().all(|file| file == first).then(|| first.clone())
}

/// Explains one of SQLite's codes and the remedy; `None` if the code is not about a file.
///
/// The caller passes `file` while it opens a database.
pub(crate) fn explain(primary: i32, file: Option<&Path>) -> Option<String> {
    let only = only();
    let file = file.or(only.as_deref());
    let file: &dyn fmt::Display = match &file {
        Some(file) => &file.display(),
        None => &"the database's file",
    };
    let user = &*USER;
    Some(match primary {
        NOT_A_DATABASE => format!(
            "{file} is not a SQLite database: name another file in PENSTOCK_DATABASE_URL, or restore a backup"
        ),
        CORRUPT => format!(
            "{file} is damaged: stop the programs that use it and restore a backup as described in docs/operating.md"
        ),
        CANNOT_OPEN => format!(
            "{file} cannot be opened: check that it is a file, that its folder exists, and that {user} may write to both"
        ),
        READ_ONLY => format!(
            "{file} cannot be written: check that {user} may write to it and to its folder, and that the file system is not read-only"
        ),
        FULL => {
            format!("the disk of {file} is full: free space on it, then writes resume")
        }
        IO => format!(
            "the disk of {file} fails to read or write: check the disk, its quota and the system's log"
        ),
        _ => return None,
    })
}

/// Reads `/proc` and `/etc/passwd`, because the standard library has no call for the user.
fn user() -> String {
    let Ok(about) = std::fs::metadata("/proc/self") else {
        return "this user".to_owned();
    };
    let id = about.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    format!("user {}", named.unwrap_or(id))
}
