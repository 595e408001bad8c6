use std::sync::atomic::{AtomicUsize, Ordering};

use kernel::Mode;
use test_support::contract::outages::soon_ready;

use crate::config::Sources;

use super::*;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn config(folder: &Path, pairs: &[(&str, &str)]) -> Config {
    let database = format!("sqlite://{}/data/penstock.db", folder.display());
    let given = [("DATABASE_URL", database.as_str())];
    let variable = |(name, text): (&str, &str)| (format!("PENSTOCK_{name}").into(), text.into());
    let pairs = given.into_iter().chain(pairs.iter().copied());
    let sources = Sources {
        environment: pairs.map(variable).collect(),
        ..Sources::default()
    };
    Config::load(&sources).unwrap().config
}

#[tokio::test]
async fn runtime_opens_twice_and_closes_in_order() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let config = config(folder.path(), &[]);
        let runtime = Runtime::open(config, Ports::of_machine()).await.unwrap();
        soon_ready(&*runtime.base.store).await;
        let pools = runtime.pools_directory.listing(Mode::Test).await.unwrap();
        assert!(pools.is_empty());
        runtime.close().await;
        assert!(runtime.base.store.ready().await.is_err());
    }
    assert!(folder.path().join("data/master.key").exists());
}

/// Panics at the first token of a lease, which is eight bytes long.
struct PanicsOnFirstLease(AtomicUsize);
impl Entropy for PanicsOnFirstLease {
    fn fill(&self, buffer: &mut [u8]) {
        buffer.fill(7);
        let tokens = usize::from(buffer.len() == 8);
        let drawn = self.0.fetch_add(tokens, Ordering::SeqCst);
        assert!(tokens == 0 || drawn > 0, "the first lease token panics");
    }
}

#[tokio::test]
async fn panicked_worker_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let entropy = Arc::new(PanicsOnFirstLease(AtomicUsize::new(0)));
    let ports = Ports {
        entropy: entropy.clone(),
        ..Ports::of_machine()
    };
    let runtime = Runtime::open(config(folder.path(), &[]), ports).await;
    let runtime = runtime.unwrap();
    runtime.deliver(Service::Pools);
    for _ in 0..3_000 {
        if entropy.0.load(Ordering::SeqCst) > 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(entropy.0.load(Ordering::SeqCst) > 1);
    runtime.close().await;
}

#[tokio::test]
async fn another_master_key_is_refused_without_being_shown() {
    let folder = tempfile::tempdir().unwrap();
    let first = config(folder.path(), &[]);
    let first = OpenedBase::open(first, Ports::of_machine()).await.unwrap();
    first.store.close().await;
    let other = config(folder.path(), &[("MASTER_KEY", KEY)]);
    let refused = OpenedBase::open(other, Ports::of_machine()).await;
    let Err(OpenError::Config(faults)) = refused else {
        panic!("{refused:?}");
    };
    let line = faults[0].to_string();
    let told = "PENSTOCK_MASTER_KEY: expected the database's master key, fingerprint ";
    assert!(line.starts_with(told) && !line.contains(KEY), "{line}");
}

fn refusal<T: fmt::Debug>(refused: Result<T, OpenError>) -> String {
    let Err(OpenError::Config(faults)) = refused else {
        panic!("{refused:?}");
    };
    faults[0].to_string()
}

// rule: base.master-key-lost
#[tokio::test]
async fn lost_master_key_is_required_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let again = || OpenedBase::open(config(folder.path(), &[]), Ports::of_machine());
    again().await.unwrap().store.close().await;
    let file = folder.path().join("data/master.key");
    let key = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let line = refusal(again().await);
    assert!(line.contains("master.key is missing: restore"), "{line}");
    let beside: Vec<_> = std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_str().unwrap().starts_with("master"))
        .collect();
    assert!(beside.is_empty(), "{beside:?}");
    std::fs::write(&file, key).unwrap();
    again().await.unwrap();
}

// rule: base.master-key-file, base.database-file
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_programs_open_one_database_with_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let config = config(folder.path(), &[]);
            tokio::spawn(OpenedBase::open(config, Ports::of_machine()))
        })
        .collect();
    for one in opening {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn broken_key_file_is_reported_before_database_is_created() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/master.key"), "hunter2").unwrap();
    let opened = OpenedBase::open(config(folder.path(), &[]), Ports::of_machine()).await;
    let line = refusal(opened);
    assert!(line.contains("contains no key"), "{line}");
    assert!(!folder.path().join("data/penstock.db").exists());
}

#[tokio::test]
async fn open_of_existing_database_creates_none() {
    let folder = tempfile::tempdir().unwrap();
    let existing = || {
        let config = config(folder.path(), &[]);
        OpenedBase::open_existing(config, Ports::of_machine(), Access::Read)
    };
    let line = refusal(existing().await);
    assert!(line.contains("there is no file at"), "{line}");
    assert!(!folder.path().join("data").exists());
    // The folder without a file that a program leaves when it stops at its first step is not a database either.
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/penstock.db"), "").unwrap();
    refusal(existing().await);
    let config = config(folder.path(), &[]);
    store::migrate(&config).await.unwrap();
    existing().await.unwrap();
}

#[tokio::test]
async fn invalid_rate_file_is_reported_before_database_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rates.toml");
    std::fs::write(
        &file,
        "[[rates]]\npair = \"EUR\"\nmid = \"1\"\nspread_bps = 1",
    )
    .unwrap();
    let rates = format!("static:{}", file.display());
    let config = config(folder.path(), &[("RATES", &rates)]);
    let refused = Runtime::open(config, Ports::of_machine()).await;
    let Err(OpenError::Config(faults)) = refused else {
        panic!("{refused:?}");
    };
    let line = faults[0].to_string();
    assert!(
        line.starts_with("PENSTOCK_RATES: ") && line.contains("rates.toml:2: pair"),
        "{line}"
    );
    assert!(!folder.path().join("data").exists());
}

#[tokio::test]
async fn migration_needs_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), &[]);
    store::migrate(&config).await.unwrap();
    assert!(folder.path().join("data/penstock.db").exists());
    assert!(!folder.path().join("data/master.key").exists());
}

// rule: base.installation-mode
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_programs_of_two_modes_begin_one_installation() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let opening = ["test", "live"].map(|mode| {
            let config = config(folder.path(), &[("MODE", mode), ("MASTER_KEY", KEY)]);
            tokio::spawn(OpenedBase::open(config, Ports::of_machine()))
        });
        let mut opened = Vec::new();
        for one in opening {
            opened.push(one.await.unwrap());
        }
        let stored = opened.iter().flatten().next().expect("one of them begins");
        let stored = stored.store.installation_mode().await.unwrap().unwrap();
        for (mode, opened) in [Mode::Test, Mode::Live].into_iter().zip(opened) {
            match opened {
                Ok(base) => assert_eq!(base.config.mode, stored),
                Err(OpenError::Config(faults)) => {
                    assert_ne!(mode, stored);
                    assert_eq!(faults[0].setting, "PENSTOCK_MODE");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}
