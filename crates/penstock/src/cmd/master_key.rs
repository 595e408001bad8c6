//! `penstock master-key`: lists, adds and rotates the key that encrypts everything at rest.

use std::process::ExitCode;
use std::sync::Arc;

use kernel::StoreError;
use partner_core::ports::{MasterKeyState, StoredMasterKey};
use partner_core::sealing::Fingerprint;
use partner_core::usecases::master_keys::{Pass, RotateKeyError, RotateMasterKey, SETTLES_AFTER};
use runtime::config::Database;
use runtime::master_key;
use serde::Serialize;
use tokio::time::Instant;

use crate::arguments::Given;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Passes until older values that go on appearing mean that a program does not follow.
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

/// What `rotate` has to do.
enum Task {
    /// Make this new key the current one.
    Promote(Fingerprint),
    /// Finish a rotation to the current key that was interrupted.
    Resume(Fingerprint),
    /// There is no new key: look for values of older keys all the same.
    Check(Fingerprint),
}

impl Task {
    const fn key(&self) -> Fingerprint {
        match self {
            Self::Promote(key) | Self::Resume(key) | Self::Check(key) => *key,
        }
    }
}

#[derive(Serialize)]
struct Rotated {
    fingerprint: String,
    /// `rotated`, `resumed` or `unchanged`.
    outcome: &'static str,
    sealed_again: u64,
}

async fn rotate(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let base = &installation.base;
    let rotation = RotateMasterKey {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
    };
    let task = task(installation).await?;
    let key = task.key();
    let sealed_again = match task {
        Task::Check(_) => seal_everything(&rotation).await?,
        Task::Promote(_) | Task::Resume(_) => {
            rotation.promote(key, &base.derived).await?;
            let sealed_again = seal_while_services_follow(&rotation).await?;
            rotation.retire(key).await?;
            sealed_again
        }
    };
    let rotated = Rotated {
        fingerprint: key.to_string(),
        outcome: match task {
            Task::Promote(_) => "rotated",
            Task::Resume(_) => "resumed",
            Task::Check(_) => "unchanged",
        },
        sealed_again,
    };
    terminal.answer(&rotated, || told(&task, sealed_again))
}

fn told(task: &Task, sealed_again: u64) -> String {
    let sealed = format!("{sealed_again} values were sealed again, and no value uses an older key");
    let next = "next: remove the older key from PENSTOCK_MASTER_KEY or from the key file, and restart the services; keep it with \
                backups that were taken before";
    match task {
        Task::Promote(key) => format!("the key {key} is current; {sealed}\n{next}"),
        Task::Resume(key) => format!(
            "finished the interrupted rotation to the key {key}; {sealed}\n{next}; a key that was added since is not used yet: \
             run `penstock master-key rotate` again to rotate to it"
        ),
        Task::Check(key) => {
            format!("no new key is configured, so the key {key} stays current; {sealed}")
        }
    }
}

async fn task(installation: &Installation) -> Result<Task, Failure> {
    let known = installation.base.store.master_keys().await?;
    let new = new_keys(installation).await?;
    let is_current = |key: &&StoredMasterKey| key.state == MasterKeyState::Current;
    let current = known
        .iter()
        .find(is_current)
        .map(|current| current.fingerprint);
    let is_interrupted = known.iter().any(|key| key.state == MasterKeyState::Older);
    match (new.as_slice(), current) {
        (_, Some(current)) if is_interrupted => Ok(Task::Resume(current)),
        ([new], _) => Ok(Task::Promote(*new)),
        ([], Some(current)) if known.len() > 1 => Ok(Task::Check(current)),
        ([], _) => Err(Failure::input(
            "master-key rotate: expected a new key beside the current one; `penstock master-key add` makes one for an \
             embedded database, and PENSTOCK_MASTER_KEY takes several, separated by commas",
        )),
        _ => Err(Failure::input(
            "master-key rotate: expected one new key, and several are configured",
        )),
    }
}

/// Passes, the last of which begins when no process stores a value under an older key any more.
async fn seal_while_services_follow(rotation: &RotateMasterKey) -> Result<u64, Failure> {
    let settled = Instant::now() + SETTLES_AFTER;
    let sealed_before = seal_everything(rotation).await?;
    {
        let _progress = Progress::begin("waiting until every service has heard of the new key");
        tokio::time::sleep_until(settled).await;
    }
    Ok(sealed_before + seal_everything(rotation).await?)
}

/// Passes until one finds no older value; returns how many values were sealed again.
async fn seal_everything(rotation: &RotateMasterKey) -> Result<u64, Failure> {
    let progress = Progress::begin("sealing");
    let told =
        |pass: Pass| progress.say(format!("{} values read, {} older", pass.read, pass.older));
    let mut sealed_again = 0;
    for _ in 0..MOST_PASSES {
        let pass = rotation.pass(&told).await?;
        if pass.broken > 0 {
            return Err(Failure::Failed(format!(
                "{} values do not open with any configured key; `penstock verify` names them. Add the older key that sealed them \
                 to PENSTOCK_MASTER_KEY or the key file, then run `penstock master-key rotate` again",
                pass.broken
            )));
        }
        if pass.older == 0 {
            return Ok(sealed_again);
        }
        sealed_again += pass.older;
    }
    Err(Failure::Failed(format!(
        "values under an older key appeared during {MOST_PASSES} passes: a program of a version without key rotation runs. Stop it, \
         then run `penstock master-key rotate` again"
    )))
}

impl From<RotateKeyError> for Failure {
    fn from(error: RotateKeyError) -> Self {
        match error {
            RotateKeyError::Overtaken => Self::Failed(format!(
                "{error}; run `penstock master-key list` and, if a key is `older`, `penstock master-key rotate` again"
            )),
            RotateKeyError::Store(fault) => fault.into(),
        }
    }
}
