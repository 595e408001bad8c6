//! `cargo xtask migrations`: checks that migrations are only added, that every database has the same versions, and that the stores
//! compile in every file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::workspace::{Workspace, sha256};
use crate::{Result, process};

mod drafts;

const FOLDER: &str = "migrations";
const RECORD: &str = "migrations/checksums.txt";
/// Has the list of the migrations that the stores compile in, between these two lines.
const LIST: &str = "crates/store-sql/src/schema.rs";
const LIST_START: &str = "            $what:\n";
const LIST_END: &str = "        )\n";

/// Checksums by `<database>/<file>`.
type Checksums = BTreeMap<String, String>;

pub(crate) fn run(workspace: &Workspace, record: bool) -> Result<()> {
    drafts::split(workspace, record)?;
    let present = present(workspace)?;
    let path = workspace.path(RECORD);
    let recorded = parse_record(&if path.is_file() {
        fs::read_to_string(&path)?
    } else {
        String::new()
    })?;
    let mut faults = naming_faults(present.keys());
    faults.extend(version_faults(present.keys()));
    faults.extend(edited(
        &recorded,
        &present,
        "recorded in migrations/checksums.txt",
    ));
    faults.extend(additive_faults(workspace, present.keys())?);
    for tag in released_tags(workspace)? {
        faults.extend(edited(
            &at_tag(workspace, &tag)?,
            &present,
            &format!("released in {tag}"),
        ));
    }
    let list = fs::read_to_string(workspace.path(LIST))?;
    let whole_list = with_list(&list, &present)?;
    if !record {
        faults.extend(unrecorded(&recorded, &present));
        if list != whole_list {
            faults.push(format!(
                "{LIST} does not list the files of {FOLDER}/: run `cargo xtask migrations --record` and commit {LIST}"
            ));
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("\n").into());
    }
    if recorded != present {
        fs::write(path, render_record(&present))?;
    }
    if list != whole_list {
        fs::write(workspace.path(LIST), whole_list)?;
    }
    println!("{} migrations match their record", present.len());
    Ok(())
}

/// Checks only the names, for `tidy`.
pub(crate) fn check_names(workspace: &Workspace) -> Vec<String> {
    match present(workspace) {
        Ok(present) => naming_faults(present.keys()),
        Err(error) => vec![error.to_string()],
    }
}

fn present(workspace: &Workspace) -> Result<Checksums> {
    let mut found = Checksums::new();
    let folder = workspace.path(FOLDER);
    for database in fs::read_dir(&folder).map_err(|error| format!("{FOLDER}/: {error}"))? {
        let database = database?;
        if !database.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(database.path())? {
            let file = file?;
            let name = format!(
                "{}/{}",
                database.file_name().display(),
                file.file_name().display()
            );
            found.insert(name, sha256(&fs::read(file.path())?));
        }
    }
    if found.is_empty() {
        return Err(format!("no migration in {FOLDER}/").into());
    }
    Ok(found)
}

/// `0001_accounts.sql` is version 1.
fn version(name: &str) -> Option<u32> {
    let (number, rest) = name.split_at_checked(4)?;
    let word = rest.strip_prefix('_')?.strip_suffix(".sql")?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let named =
        !word.is_empty() && word.chars().all(plain) && number.chars().all(|c| c.is_ascii_digit());
    if named { number.parse().ok() } else { None }
}

fn naming_faults<'a>(files: impl Iterator<Item = &'a String>) -> Vec<String> {
    let misnamed = files.filter(|file| {
        file.split_once('/')
            .and_then(|(_, name)| version(name))
            .is_none()
    });
    misnamed
        .map(|file| format!("{FOLDER}/{file}: expected NNNN_name.sql in lower case"))
        .collect()
}

fn version_faults<'a>(files: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut by_database: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (database, name) in files.filter_map(|file| file.split_once('/')) {
        by_database
            .entry(database)
            .or_default()
            .extend(version(name));
    }
    let mut faults = Vec::new();
    for (database, versions) in &by_database {
        if !versions.iter().copied().eq((1..).take(versions.len())) {
            faults.push(format!(
                "{FOLDER}/{database}: versions must be 0001, 0002, ... once each, got {versions:?}"
            ));
        }
    }
    let distinct: BTreeSet<usize> = by_database.values().map(Vec::len).collect();
    if distinct.len() > 1 {
        let counts: Vec<String> = by_database
            .iter()
            .map(|(db, v)| format!("{db} {}", v.len()))
            .collect();
        faults.push(format!(
            "the databases differ in their versions: {}",
            counts.join(", ")
        ));
    }
    faults
}

/// Returns the statements that make an `_additive` migration unsafe for the programs of the previous release. An additive migration creates
/// tables and indexes, and adds optional columns.
fn additive_faults<'a>(
    workspace: &Workspace,
    files: impl Iterator<Item = &'a String>,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in files.filter(|file| file.ends_with("_additive.sql")) {
        let text = fs::read_to_string(workspace.path(FOLDER).join(file))?;
        faults.extend(changing(&text).map(|statement| {
            format!(
                "{FOLDER}/{file} is named additive, but an older program may fail after `{statement}`"
            )
        }));
    }
    Ok(faults)
}

/// The statements of a migration that are not additive.
fn changing(text: &str) -> impl Iterator<Item = String> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"));
    let code = code.collect::<Vec<_>>().join(" ");
    let statements = code
        .split(';')
        .map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    let statements: Vec<String> = statements.filter(|one| !one.is_empty()).collect();
    let made: BTreeSet<String> = statements
        .iter()
        .filter_map(|one| one.strip_prefix("CREATE TABLE "))
        .filter_map(|rest| rest.split_once(' ').map(|(table, _)| table.to_owned()))
        .collect();
    statements.into_iter().filter(move |one| {
        let fills = one.strip_prefix("INSERT INTO ");
        let is_own = fills.is_some_and(|rest| {
            made.iter()
                .any(|table| rest.starts_with(&format!("{table} ")))
        });
        let adds_column = one.starts_with("ALTER TABLE ") && one.contains(" ADD COLUMN ");
        let is_optional = !one.contains(" NOT NULL") || one.contains(" DEFAULT ");
        let adds = one.starts_with("CREATE TABLE ") || one.starts_with("CREATE INDEX ");
        !(adds || is_own || (adds_column && is_optional))
    })
}

fn edited(kept: &Checksums, present: &Checksums, since: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, checksum) in kept {
        match present.get(file) {
            Some(now) if now == checksum => {}
            Some(_) => faults.push(format!(
                "{FOLDER}/{file} was edited after it was {since}: add a new migration"
            )),
            None => faults.push(format!("{FOLDER}/{file} was removed after it was {since}")),
        }
    }
    faults
}

/// Returns a fault for each migration without a record, because an edit of it would not be noticed.
fn unrecorded(recorded: &Checksums, present: &Checksums) -> Vec<String> {
    let new = present.keys().filter(|file| !recorded.contains_key(*file));
    new.map(|file| {
        format!("{FOLDER}/{file} is not recorded: run `cargo xtask migrations --record` and commit {RECORD}")
    })
    .collect()
}

fn parse_record(text: &str) -> Result<Checksums> {
    let mut recorded = Checksums::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (checksum, file) = line
            .split_once("  ")
            .ok_or_else(|| format!("{RECORD}: cannot read `{line}`"))?;
        recorded.insert(file.to_owned(), checksum.to_owned());
    }
    Ok(recorded)
}

/// Renders the format of `sha256sum`, so that other programs can check the record.
fn render_record(present: &Checksums) -> String {
    present
        .iter()
        .map(|(file, checksum)| format!("{checksum}  {file}\n"))
        .collect()
}

/// Returns the text of [`LIST`] with a line for each migration: version, description and file.
fn with_list(text: &str, present: &Checksums) -> Result<String> {
    let missing = || format!("{LIST} has no list of migrations");
    let (before, rest) = text.split_once(LIST_START).ok_or_else(missing)?;
    let (_, after) = rest.split_once(LIST_END).ok_or_else(missing)?;
    let names = present.keys().filter_map(|file| file.split_once('/'));
    let names: BTreeSet<&str> = names.map(|(_, name)| name).collect();
    let line = |name: &str| {
        let (_, words) = name.strip_suffix(".sql")?.split_once('_')?;
        let (version, words) = (version(name)?, words.replace('_', " "));
        Some(format!("            {version} \"{words}\" \"{name}\",\n"))
    };
    let lines: String = names.into_iter().filter_map(line).collect();
    Ok([before, LIST_START, &lines, LIST_END, after].concat())
}

/// Returns the release tags in the history of this branch. Another branch may have released other migrations.
fn released_tags(workspace: &Workspace) -> Result<Vec<String>> {
    let mut history = workspace.git();
    history
        .args(["rev-parse", "--quiet", "--verify", "HEAD"])
        .stdout(std::process::Stdio::null());
    if !history.status()?.success() {
        return Ok(Vec::new());
    }
    let listed = process::capture(
        workspace
            .git()
            .args(["tag", "--list", "v*", "--merged", "HEAD"]),
    )?;
    Ok(listed.lines().map(str::to_owned).collect())
}

fn at_tag(workspace: &Workspace, tag: &str) -> Result<Checksums> {
    let mut list = workspace.git();
    list.args(["ls-tree", "-r", "--name-only", tag, "--", FOLDER]);
    let mut released = Checksums::new();
    for path in process::capture(&mut list)?
        .lines()
        .filter(|path| path.ends_with(".sql"))
    {
        let content = process::capture(workspace.git().args(["show", &format!("{tag}:{path}")]))?;
        if let Some(file) = path.strip_prefix("migrations/") {
            released.insert(file.to_owned(), sha256(content.as_bytes()));
        }
    }
    Ok(released)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additive_migration_only_adds() {
        let fine = "-- A comment; with a semicolon.\nCREATE TABLE a (id bigint);\nINSERT INTO a (id) VALUES (1);
            CREATE INDEX a_id ON a (id);\nALTER TABLE b ADD COLUMN c text;
            ALTER TABLE b ADD COLUMN d bigint NOT NULL DEFAULT 0;";
        assert_eq!(changing(fine).collect::<Vec<_>>(), [""; 0]);
        for bad in [
            "UPDATE b SET c = 1",
            "ALTER TABLE b DROP COLUMN c",
            "ALTER TABLE b ADD COLUMN c bigint NOT NULL",
            "INSERT INTO b (id) VALUES (1)",
            "CREATE UNIQUE INDEX b_c ON b (c)",
        ] {
            assert_eq!(changing(bad).collect::<Vec<_>>(), [bad]);
        }
    }

    fn names(files: &[&str]) -> Vec<String> {
        files.iter().map(|file| (*file).to_owned()).collect()
    }

    fn sums(pairs: &[(&str, &str)]) -> Checksums {
        pairs
            .iter()
            .map(|(file, sum)| ((*file).to_owned(), (*sum).to_owned()))
            .collect()
    }

    #[test]
    fn names_carry_their_version() {
        assert_eq!(version("0001_initial.sql"), Some(1));
        assert_eq!(version("0120_add_2_columns.sql"), Some(120));
        for wrong in [
            "1_a.sql",
            "0001-a.sql",
            "0001_A.sql",
            "0001_.sql",
            "0001_a.sql.bak",
            "00é_a.sql",
            "",
        ] {
            assert_eq!(version(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn misnamed_files_are_faults() {
        let files = names(&["sqlite/0001_a.sql", "sqlite/README.md"]);
        assert_eq!(naming_faults(files.iter()).len(), 1);
    }

    #[test]
    fn versions_have_no_gap_and_no_double() {
        let faults = |files: &[&str]| version_faults(names(files).iter()).len();
        assert_eq!(faults(&["s/0001_a.sql", "s/0002_b.sql"]), 0);
        assert_eq!(faults(&["s/0001_a.sql", "s/0003_b.sql"]), 1);
        assert_eq!(faults(&["s/0001_a.sql", "s/0001_b.sql"]), 1);
        assert_eq!(faults(&["s/0002_a.sql"]), 1);
    }

    // rule: base.append-only-migrations
    #[test]
    fn every_database_has_the_same_versions() {
        let files = names(&["p/0001_a.sql", "s/0001_a.sql", "s/0002_b.sql"]);
        assert_eq!(
            version_faults(files.iter()),
            ["the databases differ in their versions: p 1, s 2"]
        );
    }

    // rule: base.append-only-migrations
    #[test]
    fn committed_migrations_match_the_record() {
        run(&Workspace::find().unwrap(), false).unwrap();
    }

    // rule: base.append-only-migrations
    #[test]
    fn edited_or_removed_migration_is_a_fault_and_new_one_is_not() {
        let kept = sums(&[("s/0001_a.sql", "11"), ("s/0002_b.sql", "22")]);
        let same = sums(&[
            ("s/0001_a.sql", "11"),
            ("s/0002_b.sql", "22"),
            ("s/0003_c.sql", "33"),
        ]);
        assert!(edited(&kept, &same, "recorded").is_empty());
        let changed = sums(&[("s/0001_a.sql", "xx")]);
        assert_eq!(edited(&kept, &changed, "recorded").len(), 2);
    }

    #[test]
    fn record_reads_back() {
        let sums = sums(&[("s/0001_a.sql", "11"), ("s/0002_b.sql", "22")]);
        assert_eq!(parse_record(&render_record(&sums)).unwrap(), sums);
        assert!(parse_record("nonsense").is_err());
    }

    // rule: base.append-only-migrations
    #[test]
    fn migration_is_recorded_once_and_for_all() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(root.path());
        process::run(workspace.git().args(["init", "--quiet"])).unwrap();
        fs::create_dir_all(root.path().join("migrations/sqlite")).unwrap();
        let file = root.path().join("migrations/sqlite/0001_a.sql");
        fs::write(&file, "CREATE TABLE a (x);").unwrap();
        let list = root.path().join(LIST);
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(&list, format!("{LIST_START}{LIST_END}// The rest.")).unwrap();
        let error = run(&workspace, false).unwrap_err().to_string();
        assert!(error.contains("is not recorded"), "{error}");
        assert!(error.contains("does not list the files"), "{error}");
        run(&workspace, true).unwrap();
        assert_eq!(
            fs::read_to_string(&list).unwrap(),
            format!("{LIST_START}            1 \"a\" \"0001_a.sql\",\n{LIST_END}// The rest.")
        );
        run(&workspace, false).unwrap();
        fs::write(&file, "CREATE TABLE a (y);").unwrap();
        let error = run(&workspace, true).unwrap_err().to_string();
        assert!(
            error.contains("was edited after it was recorded"),
            "{error}"
        );
    }
}
