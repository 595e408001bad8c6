//! A draft is a new migration as one text for both databases: `migrations/NNNN_name.sql`.

use std::fs::{read_dir, read_to_string, remove_file, write};

use super::{FOLDER, version};
use crate::Result;
use crate::workspace::Workspace;

/// What SQLite and PostgreSQL write for a word of a draft.
const WORDS: [(&str, &str, &str); 6] = [
    ("{id}", "TEXT", "uuid"),
    ("{word}", "TEXT", "text COLLATE \"C\""),
    ("{text}", "TEXT", "text"),
    ("{number}", "INTEGER", "bigint"),
    ("{bytes}", "BLOB", "bytea"),
    ("{strict}", " STRICT", ""),
];

/// Replaces each draft by a file for each database. A draft that is not to be recorded is an error.
pub(super) fn split(workspace: &Workspace, record: bool) -> Result<()> {
    let folder = workspace.path(FOLDER);
    for entry in read_dir(&folder)? {
        let draft = entry?.file_name();
        let name = draft.to_string_lossy();
        if version(&name).is_none() {
            if name.ends_with(".sql") {
                return Err(
                    format!("{FOLDER}/{name}: expected NNNN_name.sql in lower case").into(),
                );
            }
            continue;
        }
        let databases = ["sqlite", "postgres"].map(|database| folder.join(database).join(&draft));
        if databases.iter().any(|file| file.exists()) {
            return Err(format!("{FOLDER}/{name}: there is a migration of this name").into());
        }
        let text = read_to_string(folder.join(&draft))?;
        let words = WORDS.iter();
        let sqlite = words.fold(text.clone(), |text, (word, by, _)| text.replace(word, by));
        let words = WORDS.iter();
        let postgres = words.fold(text, |text, (word, _, by)| text.replace(word, by));
        if !record || sqlite.contains('{') {
            let remedy =
                "replace unknown words in braces and run `cargo xtask migrations --record`";
            return Err(format!("{FOLDER}/{name} is a draft: {remedy}").into());
        }
        for (file, text) in databases.iter().zip([sqlite, postgres]) {
            write(file, text)?;
        }
        remove_file(folder.join(&draft))?;
    }
    Ok(())
}

#[test]
fn draft_becomes_a_file_for_each_database() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(FOLDER).join(name);
    std::fs::create_dir_all(path("sqlite")).unwrap();
    std::fs::create_dir_all(path("postgres")).unwrap();
    write(path("0001_a.sql"), "CREATE TABLE a (b {bytes}){strict};").unwrap();
    let workspace = Workspace::at(root.path());
    split(&workspace, false).unwrap_err();
    split(&workspace, true).unwrap();
    let read = |database| read_to_string(path(database).join("0001_a.sql")).unwrap();
    assert_eq!(read("sqlite"), "CREATE TABLE a (b BLOB) STRICT;");
    assert_eq!(read("postgres"), "CREATE TABLE a (b bytea);");
    assert!(!path("0001_a.sql").exists());
}
