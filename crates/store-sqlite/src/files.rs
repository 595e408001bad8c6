//! The database's file in words for an operator: which file it is, and what to do about it.
//!
//! SQLite reports a code and no file. The stores that are open say which files there are; a process that serves has one.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The files of the databases that are open in this process.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Who this process is to the file system, such as "user penstock".
static USER: LazyLock<String> = LazyLock::new(user);

/// SQLite's primary result codes that are about a file or its disk.
pub(crate) const READ_ONLY: i32 = 8;
pub(crate) const IO: i32 = 10;
pub(crate) const CORRUPT: i32 = 11;
pub(crate) const FULL: i32 = 13;
pub(crate) const CANNOT_OPEN: i32 = 14;
pub(crate) const NOT_A_DATABASE: i32 = 26;

/// Why a file is not opened, and stays as it is: it is no database of Penstock's.
#[derive(Debug, thiserror::Error)]
#[error("{} is {why}; nothing was changed: name another file, or one that is not there yet to have a database made", .file.display())]
pub struct ForeignFile {
    file: PathBuf,
    why: String,
}

impl ForeignFile {
    /// A database with tables of another program, one of which is named.
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
            why: "not a SQLite database: it holds something else, or its first page is damaged"
                .to_owned(),
        }
    }
}

/// A database that is open; dropped when it is closed.
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
        if let Some(place) = open.iter().position(|file| *file == self.0) {
            open.swap_remove(place);
        }
    }
}

/// The one database that is open, whoever has opened it.
fn only() -> Option<PathBuf> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, rest) = open.split_first()?;
    rest.iter().all(|file| file == first).then(|| first.clone())
}

/// What one of SQLite's codes means for the database's file, and what to do; `None` if the code is about something else.
/// `file` is known while a database is being opened.
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
            "{file} is damaged: stop the programs that use it and restore a backup, as docs/operating.md says"
        ),
        CANNOT_OPEN => format!(
            "{file} cannot be opened: check that it is a file, that its folder exists, and that {user} may write to both"
        ),
        READ_ONLY => format!(
            "{file} cannot be written: check that {user} may write to it and to its folder, and that the file system is not read-only"
        ),
        FULL => {
            format!("the disk of {file} is full: free space on it, and writes go on by themselves")
        }
        IO => format!(
            "the disk of {file} fails to read or write: check the disk, its quota and the system's log"
        ),
        _ => return None,
    })
}

/// `/proc` says it without a system call of our own.
fn user() -> String {
    let Ok(about) = std::fs::metadata("/proc/self") else {
        return "this user".to_owned();
    };
    let id = about.uid().to_string();
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    format!("user {}", named.unwrap_or(id))
}
