//! The master key: configured by the operator, or created on first start and stored next to an embedded database.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::Entropy;
use partner_core::sealing::MasterKey;
use zeroize::Zeroizing;

use crate::config::{ConfigError, master_keys};

/// The name of the key file next to the database.
const FILE: &str = "master.key";
/// The mode of the key file: only its owner reads or writes it.
const OWNER_ONLY: u32 = 0o600;

/// The path of the key file of an embedded database.
#[must_use]
pub fn file_beside(database: &Path) -> PathBuf {
    database.with_file_name(FILE)
}

/// The keys in a file, one per line; `None` if there is no file.
///
/// # Errors
/// An error that names the file, if the file cannot be read or has no key.
pub fn read(file: &Path) -> Result<Option<Vec<MasterKey>>, ConfigError> {
    let text = match std::fs::read_to_string(file) {
        Err(absent) if absent.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(error(file, &format!("cannot be read ({cause})"))),
        Ok(text) => Zeroizing::new(text),
    };
    warn_if_shared(file);
    match master_keys(&text) {
        Ok(keys) => Ok(Some(keys)),
        Err(_) => Err(error(file, "contains no key: expected 32 bytes in base64")),
    }
}

/// Appends a new key to the `held` keys of a file, and keeps the file's owner and permissions.
///
/// # Errors
/// An error that names the file, if the file cannot be read or written, or if another program changes it.
pub fn append(file: &Path, held: usize, entropy: &dyn Entropy) -> Result<MasterKey, ConfigError> {
    let broken = |cause: io::Error| error(file, &format!("cannot be written ({cause})"));
    // A symbolic link stays a symbolic link.
    let file = &std::fs::canonicalize(file).map_err(broken)?;
    let draft = file.with_file_name(format!("{FILE}.draft"));
    // The draft is created before the file is read, so that only one of two concurrent programs succeeds.
    let made = write_new(&draft, b"").map_err(|cause| match cause.kind() {
        ErrorKind::AlreadyExists => error(
            &draft,
            "exists: another program is adding a key; if none is, remove this file, which an interrupted program has left",
        ),
        _ => broken(cause),
    });
    made?;
    let appended = append_by(&draft, file, held, entropy);
    if appended.is_err() {
        // The first error matters more. The next attempt reports a draft that was left.
        drop(std::fs::remove_file(&draft));
    }
    appended
}

fn append_by(
    draft: &Path,
    file: &Path,
    held: usize,
    entropy: &dyn Entropy,
) -> Result<MasterKey, ConfigError> {
    if read(file)?.map_or(0, |keys| keys.len()) != held {
        return Err(error(file, "was changed by another program meanwhile"));
    }
    let written = || -> io::Result<MasterKey> {
        let mut text = Zeroizing::new(std::fs::read_to_string(file)?);
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(bytes.as_mut_slice());
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&STANDARD.encode(bytes.as_slice()));
        text.push('\n');
        let about = std::fs::metadata(file)?;
        let mut new = OpenOptions::new().write(true).open(draft)?;
        fchown(&new, Some(about.uid()), Some(about.gid()))?;
        new.set_permissions(about.permissions())?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        std::fs::rename(draft, file)?;
        File::open(folder_of(file))?.sync_all()?;
        Ok(MasterKey::new(*bytes))
    };
    written().map_err(|cause| error(file, &format!("cannot be written ({cause})")))
}

/// Creates a key in a file, and returns the keys of the file, which another program may have created first.
///
/// # Errors
/// An error that names the file, if the file cannot be created or read.
pub fn make(file: &Path, entropy: &dyn Entropy) -> Result<Vec<MasterKey>, ConfigError> {
    write(file, entropy).map_err(|cause| error(file, &format!("cannot be created ({cause})")))?;
    read(file)?.ok_or_else(|| error(file, "was removed immediately after its creation"))
}

fn error(file: &Path, what: &str) -> ConfigError {
    ConfigError::new("PENSTOCK_MASTER_KEY", format!("{} {what}", file.display()))
}

/// Writes a new key completely under another name, then renames the file: two programs may start at the same time, and
/// neither may read half a key or replace the other program's key.
fn write(file: &Path, entropy: &dyn Entropy) -> io::Result<()> {
    let folder = folder_of(file);
    std::fs::create_dir_all(folder)?;
    let mut random = Zeroizing::new([0; 40]);
    entropy.fill(random.as_mut_slice());
    let (key, tag) = random.split_at(32);
    let draft = file.with_file_name(format!("{FILE}.{}", hex::encode(tag)));
    let text = Zeroizing::new(STANDARD.encode(key) + "\n");
    let linked = write_new(&draft, text.as_bytes()).and_then(|()| std::fs::hard_link(&draft, file));
    let removed = std::fs::remove_file(&draft);
    match linked {
        Err(taken) if taken.kind() == ErrorKind::AlreadyExists => return Ok(()),
        linked => linked.and(removed)?,
    }
    File::open(folder)?.sync_all()
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(file)?;
    new.write_all(bytes)?;
    new.sync_all()
}

fn warn_if_shared(file: &Path) {
    let mode = std::fs::metadata(file).map(|about| about.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        tracing::warn!(file.path = %file.display(), "The master key file is readable by other users. Set its mode to 0600.");
    }
}

#[cfg(test)]
mod tests {
    use crate::process::OsEntropy;

    use super::*;

    // rule: base.master-key-file
    #[test]
    fn key_file_is_created_once_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = file_beside(&folder.path().join("data").join("penstock.db"));
        assert!(read(&file).unwrap().is_none());
        let made = make(&file, &OsEntropy).unwrap();
        let again = make(&file, &OsEntropy).unwrap();
        assert_eq!(made[0].fingerprint(), again[0].fingerprint());
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let beside: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "no draft remains");
    }

    // rule: base.master-key-file
    #[test]
    fn concurrent_programs_create_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let start = std::sync::Barrier::new(8);
        let fingerprints: Vec<_> = std::thread::scope(|scope| {
            let program = || {
                start.wait();
                make(&file, &OsEntropy).unwrap()[0].fingerprint()
            };
            let programs: Vec<_> = (0..8).map(|_| scope.spawn(program)).collect();
            programs
                .into_iter()
                .map(|one| one.join().unwrap())
                .collect()
        });
        assert!(fingerprints.iter().all(|one| *one == fingerprints[0]));
    }

    #[test]
    fn file_without_key_is_named_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, "hunter2").unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(
            error.ends_with("master.key contains no key: expected 32 bytes in base64"),
            "{error}"
        );
    }
}
