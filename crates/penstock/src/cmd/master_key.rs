//! `penstock master-key`: lists, adds and rotates the key that encrypts everything at rest.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use kernel::StoreResult;
use partner_core::ports::{MasterKeyState, StoredMasterKey};
use partner_core::sealing::Fingerprint;
use partner_core::usecases::master_keys::{
    MissingKey, Pass, RotateKeyError, RotateMasterKey, SETTLES_AFTER,
};
use runtime::master_key;
use serde::Serialize;
use tokio::time::Instant;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Maximum number of passes. If older values still appear after them, a program without key rotation is running.
const MAX_PASSES: u32 = 10;

/// The commands for master keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MasterKeyArgs {
    /// Lists the keys of the database and the new configured keys
    List,
    /// Adds a new key to the key file of an embedded database
    Add,
    /// Encrypts everything with the added key, while services run
    Rotate,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: MasterKeyArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let installation = match command {
        MasterKeyArgs::List => Installation::open_to_read(&given, terminal).await?,
        MasterKeyArgs::Add | MasterKeyArgs::Rotate => {
            Installation::open_to_write(&given, terminal).await?
        }
    };
    let ended = match command {
        MasterKeyArgs::List => list(&installation, terminal).await,
        MasterKeyArgs::Add => add(&installation, terminal).await,
        MasterKeyArgs::Rotate => rotate(&installation, terminal).await,
    };
    installation.close().await;
    ended.map(|()| ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Row {
    fingerprint: String,
    /// `None` if the database does not know the key.
    number: Option<u32>,
    state: &'static str,
    /// The key's position among the configured keys, counted from one.
    configured_as: Option<usize>,
    configured: bool,
}

impl Row {
    fn line(&self) -> String {
        let configured = match self.configured_as {
            Some(place) => format!("configured, key {place}"),
            None => "not configured".to_owned(),
        };
        format!("{}  {:<8} {configured}", self.fingerprint, self.state)
    }
}

async fn list(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let held: Vec<Fingerprint> = installation.base.sealer.held().collect();
    let row = |fingerprint: Fingerprint, number, state| {
        let place = held.iter().position(|held| *held == fingerprint);
        Row {
            fingerprint: fingerprint.to_string(),
            number,
            state,
            configured_as: place.map(|place| place + 1),
            configured: place.is_some(),
        }
    };
    let known = installation.base.store.master_keys().await?;
    let known = known
        .iter()
        .map(|key| row(key.fingerprint, Some(key.number), state(key.state)));
    let new = new_keys(installation).await?;
    let new = new.iter().map(|key| row(*key, None, "new"));
    let rows: Vec<Row> = known.chain(new).collect();
    terminal.answer(&rows, || {
        rows.iter().map(Row::line).collect::<Vec<_>>().join("\n")
    })
}

const fn state(state: MasterKeyState) -> &'static str {
    match state {
        MasterKeyState::Current => "current",
        MasterKeyState::Older => "older",
        MasterKeyState::Retired => "retired",
    }
}

#[derive(Serialize)]
struct Added {
    fingerprint: String,
}

/// Adds a key to the key file. Only the key file of an embedded database is written by Penstock.
async fn add(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let base = &installation.base;
    let Some(file) = &base.key_file else {
        return Err(Failure::input(
            "master-key add: the keys are in PENSTOCK_MASTER_KEY; append a comma and the output of \
             `head -c 32 /dev/urandom | base64`, restart the services, then run `penstock master-key rotate`",
        ));
    };
    if let [new, ..] = new_keys(installation).await?.as_slice() {
        return Err(Failure::Failed(format!(
            "the key {new} was already added; restart the services, then run `penstock master-key rotate`"
        )));
    }
    let held = base.sealer.held().count();
    let made = master_key::append(file, held, &*base.entropy).map_err(|error| vec![error])?;
    let added = Added {
        fingerprint: made.fingerprint().to_string(),
    };
    terminal.answer(&added, || {
        format!(
            "added the key {} to {}\nnext: restart the services so that they use both keys, then run `penstock master-key rotate`",
            added.fingerprint,
            file.display()
        )
    })
}

/// The configured keys that the database does not know yet.
async fn new_keys(installation: &Installation) -> StoreResult<Vec<Fingerprint>> {
    let known = installation.base.store.master_keys().await?;
    let is_new = |key: &Fingerprint| known.iter().all(|known| known.fingerprint != *key);
    let new: BTreeSet<Fingerprint> = installation.base.sealer.held().filter(is_new).collect();
    Ok(new.into_iter().collect())
}

/// The work of `rotate`.
enum Task {
    /// Make this new key the current key.
    Promote {
        current: Fingerprint,
        new: Fingerprint,
    },
    /// Finish an interrupted rotation to the current key.
    Resume {
        current: Fingerprint,
        next: Option<Fingerprint>,
    },
    /// Without a new key, only look for values of older keys.
    Check { current: Fingerprint },
}

#[derive(Serialize)]
struct Rotated {
    fingerprint: String,
    /// `rotated`, `resumed` or `unchanged`.
    outcome: &'static str,
    sealed_again: u64,
    damaged: u64,
}

async fn rotate(installation: &Installation, terminal: &Terminal) -> Result<(), Failure> {
    let base = &installation.base;
    let rotation = RotateMasterKey {
        store: base.store.clone(),
        sealer: Arc::clone(&base.sealer),
        entropy: Arc::clone(&base.entropy),
    };
    let task = task(installation).await?;
    terminal.announce();
    let mut work = Work::of(&rotation);
    let (key, outcome) = match task {
        Task::Promote { current, new } => {
            rotation.promote(current, new, &base.derived).await?;
            work.finish(new).await?;
            (new, "rotated")
        }
        Task::Resume { current, .. } => {
            work.finish(current).await?;
            (current, "resumed")
        }
        Task::Check { current } => {
            work.seal_everything().await?;
            (current, "unchanged")
        }
    };
    let rotated = Rotated {
        fingerprint: key.to_string(),
        outcome,
        sealed_again: work.sealed_again,
        damaged: work.damaged,
    };
    terminal.answer(&rotated, || report(&task, &work))
}

fn report(task: &Task, work: &Work<'_>) -> String {
    let sealed = format!(
        "{} values were encrypted again, and no value uses an older key",
        work.sealed_again
    );
    let next = "next: remove the older key from PENSTOCK_MASTER_KEY or from the key file (`penstock master-key list` says which it is), and \
                restart the services; keep the older key with the backups from before the rotation";
    let mut report = match task {
        Task::Promote { new, .. } => format!("the key {new} is current; {sealed}\n{next}"),
        Task::Resume { current, .. } => {
            format!("finished the interrupted rotation to the key {current}; {sealed}\n{next}")
        }
        Task::Check { current } => {
            format!("no new key is configured, so the key {current} stays current; {sealed}")
        }
    };
    if let Task::Resume {
        next: Some(next), ..
    } = task
    {
        report.push_str(&format!(
            "\nthe key {next} is configured but not used yet: run `penstock master-key rotate` again to rotate to it"
        ));
    }
    if work.damaged > 0 {
        report.push_str(&format!(
            "\n{} values are damaged: they cannot be decrypted with the key that they name; `penstock verify` lists them, restore them from a backup",
            work.damaged
        ));
    }
    report
}

async fn task(installation: &Installation) -> Result<Task, Failure> {
    let known = installation.base.store.master_keys().await?;
    let new = new_keys(installation).await?;
    let is_current = |key: &&StoredMasterKey| key.state == MasterKeyState::Current;
    let Some(current) = known.iter().find(is_current) else {
        return Err(Failure::Failed(MissingKey::NoCurrent.to_string()));
    };
    let current = current.fingerprint;
    if known.iter().any(|key| key.state == MasterKeyState::Older) {
        let next = new.first().copied();
        return Ok(Task::Resume { current, next });
    }
    match new.as_slice() {
        [new] => Ok(Task::Promote { current, new: *new }),
        [] if known.len() > 1 => Ok(Task::Check { current }),
        [] => Err(Failure::input(
            "master-key rotate: expected a new key in addition to the current one; `penstock master-key add` makes one for an \
             embedded database, and PENSTOCK_MASTER_KEY takes several, separated by commas",
        )),
        several => {
            let several: Vec<String> = several.iter().map(Fingerprint::to_string).collect();
            Err(Failure::input(format!(
                "master-key rotate: expected exactly one new key, found {}",
                several.join(", ")
            )))
        }
    }
}

/// The progress of a rotation.
struct Work<'r> {
    rotation: &'r RotateMasterKey,
    sealed_again: u64,
    damaged: u64,
}

impl<'r> Work<'r> {
    const fn of(rotation: &'r RotateMasterKey) -> Self {
        Self {
            rotation,
            sealed_again: 0,
            damaged: 0,
        }
    }

    /// Encrypts everything with the current key. Retires the older keys after every process has stopped storing values under
    /// them.
    async fn finish(&mut self, current: Fingerprint) -> Result<(), Failure> {
        let settled = Instant::now() + SETTLES_AFTER;
        self.seal_everything().await?;
        {
            let _progress = Progress::begin("waiting until every service uses the new key");
            tokio::time::sleep_until(settled).await;
        }
        self.seal_everything().await?;
        self.rotation.retire(current).await?;
        // A commit that waited for a synchronous standby may have become visible just before this one.
        self.seal_everything().await
    }

    /// Repeats passes until a pass finds no older value.
    async fn seal_everything(&mut self) -> Result<(), Failure> {
        let progress = Progress::begin("sealing");
        let report =
            |pass: Pass| progress.say(format!("{} values read, {} older", pass.read, pass.older));
        for _ in 0..MAX_PASSES {
            let pass = self.rotation.pass(&report).await?;
            if let Some(missing) = pass.missing {
                return Err(Failure::Failed(format!(
                    "{} values need a key that is not configured, such as the one with fingerprint {missing}; `penstock verify` names \
                     them. Add it to PENSTOCK_MASTER_KEY or the key file, then run `penstock master-key rotate` again",
                    pass.locked
                )));
            }
            self.sealed_again += pass.older;
            self.damaged = pass.damaged;
            if pass.older == 0 {
                return Ok(());
            }
        }
        Err(Failure::Failed(format!(
            "values under an older key appeared during {MAX_PASSES} passes: a program of a version without key rotation runs. Stop \
             it, then run `penstock master-key rotate` again"
        )))
    }
}

impl From<RotateKeyError> for Failure {
    fn from(error: RotateKeyError) -> Self {
        match error {
            RotateKeyError::Overtaken => Self::Failed(format!(
                "{error}; run `penstock master-key list` and, if a key is `older`, `penstock master-key rotate` again"
            )),
            RotateKeyError::Store(error) => error.into(),
        }
    }
}
