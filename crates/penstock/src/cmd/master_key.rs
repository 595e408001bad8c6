//! `penstock master-key`: lists, adds and rotates the key that encrypts everything at rest.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kernel::StoreError;
use partner_core::ports::{MasterKeyState, StoredMasterKey};
use partner_core::sealing::Fingerprint;
use partner_core::usecases::master_keys::{Pass, RotateKeyError, RotateMasterKey};
use runtime::config::Database;
use runtime::master_key;
use serde::Serialize;

use crate::arguments::Given;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Running services seal with the new key within this time.
const SERVICES_FOLLOW: Duration = Duration::from_secs(6);
/// A value that keeps changing under an old key means that a service does not follow.
const MOST_PASSES: u32 = 10;

/// What is done with master keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists the keys that the database knows
    List,
    /// Adds a fresh key to the key file of an embedded database
    Add,
    /// Seals everything with the key that was added, while services run
    Rotate,
}

pub(crate) async fn run(
    given: Given,
    command: Command,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let installation = Installation::open(&given, terminal).await?;
    let ended = match command {
        Command::List => list(&installation, terminal).await,
        Command::Add => add(&installation, terminal).await,
        Command::Rotate => rotate(&installation, terminal).await,
    };
    installation.close().await;
    ended.map(|()| ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Row {
    fingerprint: String,
    number: u32,
    state: &'static str,
    configured: bool,
}

async fn list(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let base = &installation.base;
    let row = |key: StoredMasterKey| Row {
        fingerprint: key.fingerprint.to_string(),
        number: key.number,
        state: match key.state {
            MasterKeyState::Current => "current",
            MasterKeyState::Older => "older",
            MasterKeyState::Retired => "retired",
        },
        configured: base.sealer.holds(key.fingerprint),
    };
    let rows: Vec<Row> = base
        .store
        .master_keys()
        .await?
        .into_iter()
        .map(row)
        .collect();
    terminal.answer(&rows, || {
        let line = |row: &Row| {
            let configured = if row.configured {
                "configured"
            } else {
                "not configured"
            };
            format!("{}  {:<8} {configured}", row.fingerprint, row.state)
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

#[derive(Serialize)]
struct Added {
    fingerprint: String,
}

/// Only the file beside an embedded database is ours to write.
async fn add(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let base = &installation.base;
    let file = match &base.config.database {
        Database::Sqlite(database) => master_key::file_beside(database),
        Database::Postgres(_) => {
            return Err(Failure::input(
                "master-key add: keys of a database server are in PENSTOCK_MASTER_KEY; append a comma and the output of \
             `head -c 32 /dev/urandom | base64`, restart the services, then run `penstock master-key rotate`",
            ));
        }
    };
    if let [new] = new_keys(installation).await?.as_slice() {
        return Err(Failure::Failed(format!(
            "the key {new} was added before; restart the services, then run `penstock master-key rotate`"
        )));
    }
    let made = master_key::append(&file, &*base.entropy).map_err(|fault| vec![fault])?;
    let added = Added {
        fingerprint: made.fingerprint().to_string(),
    };
    terminal.answer(&added, || {
        format!(
            "added the key {} to {}\nnext: restart the services, so that they hold both keys, then run `penstock master-key rotate`",
            added.fingerprint,
            file.display()
        )
    })
}

/// Keys that are configured and that the database does not know yet.
async fn new_keys(installation: &Installation) -> Result<Vec<Fingerprint>, StoreError> {
    let known = installation.base.store.master_keys().await?;
    let is_new = |key: &Fingerprint| known.iter().all(|known| known.fingerprint != *key);
    Ok(installation.base.sealer.held().filter(is_new).collect())
}

#[derive(Serialize)]
struct Rotated {
    fingerprint: String,
    sealed_again: u64,
}

async fn rotate(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let base = &installation.base;
    let rotation = RotateMasterKey {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
    };
    let new = target(installation).await?;
    rotation.promote(new, &base.derived).await?;
    let sealed_again = seal_everything(&rotation).await?;
    rotation.retire().await?;
    let rotated = Rotated {
        fingerprint: new.to_string(),
        sealed_again,
    };
    terminal.answer(&rotated, || {
        format!(
            "the key {} is current; {sealed_again} values were sealed again, and no value uses an older key\n\
             next: remove the older key from PENSTOCK_MASTER_KEY or from the key file, and restart the services; \
             keep it with backups that were taken before",
            rotated.fingerprint
        )
    })
}

/// The key to rotate to: the one that was added, or the current one of a rotation that was interrupted.
async fn target(installation: &Installation) -> Result<Fingerprint, Failure> {
    let known = installation.base.store.master_keys().await?;
    let is_interrupted = known.iter().any(|key| key.state == MasterKeyState::Older);
    let current = known
        .iter()
        .find(|key| key.state == MasterKeyState::Current);
    match (new_keys(installation).await?.as_slice(), current) {
        ([new], _) if !is_interrupted => Ok(*new),
        (_, Some(current)) if is_interrupted => Ok(current.fingerprint),
        ([], _) => Err(Failure::input(
            "master-key rotate: expected a new key beside the current one; `penstock master-key add` makes one for an \
             embedded database, and PENSTOCK_MASTER_KEY takes several, separated by commas",
        )),
        _ => Err(Failure::input(
            "master-key rotate: expected one new key, and several are configured",
        )),
    }
}

/// Passes until one finds no older value, once every service has had the time to follow.
async fn seal_everything(rotation: &RotateMasterKey) -> Result<u64, Failure> {
    let progress = Progress::begin("sealing");
    let told =
        |pass: Pass| progress.say(format!("{} values read, {} older", pass.read, pass.older));
    let first = rotation.pass(&told).await?;
    let mut sealed_again = first.older.saturating_sub(first.broken);
    tokio::time::sleep(SERVICES_FOLLOW).await;
    for _ in 0..MOST_PASSES {
        let pass = rotation.pass(&told).await?;
        if pass.broken > 0 {
            return Err(Failure::Failed(format!(
                "{} values do not open with any configured key; `penstock verify` names them, and the older key stays needed",
                pass.broken
            )));
        }
        if pass.older == 0 {
            return Ok(sealed_again);
        }
        sealed_again += pass.older;
    }
    Err(Failure::Failed(
        "values are still sealed with an older key: a service runs that does not hold the new one; restart it with both \
         keys, then run `penstock master-key rotate` again"
            .to_owned(),
    ))
}

impl From<RotateKeyError> for Failure {
    fn from(error: RotateKeyError) -> Self {
        match error {
            RotateKeyError::Sealed(_) => Self::Failed(kernel::causes(&error)),
            RotateKeyError::Store(fault) => fault.into(),
        }
    }
}
