//! Reads gauges periodically: trades, connections, the clock and the disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use instruments::store::Disk;
use instruments::{faults, store as of_store, trading};
use kernel::{Mode, StoreResult, causes};
use tokio_util::sync::CancellationToken;

use crate::store::Store;
use crate::supervise::every;

const GAUGE_INTERVAL: Duration = Duration::from_secs(15);

/// Refreshes the gauges of the store until `stop`. If the database is a `file`, also the gauges of its disk.
pub(crate) async fn sample(
    store: Arc<dyn Store>,
    mode: Mode,
    file: Option<PathBuf>,
    stop: CancellationToken,
) {
    let turn = |was_failing| refresh(&*store, mode, file.clone(), was_failing);
    every(GAUGE_INTERVAL, &stop, false, turn).await;
}

/// Refreshes the gauges. Returns whether the store failed.
async fn refresh(store: &dyn Store, mode: Mode, file: Option<PathBuf>, was_failing: bool) -> bool {
    for (pool, in_use, idle) in store.connections() {
        of_store::connections(pool, in_use, idle);
    }
    of_store::clock_ahead(store.clock_ahead());
    of_store::clock_jump(store.clock_jump());
    if let Some(file) = file {
        measure(file).await;
    }
    let sampled = trades(store, mode).await;
    if let Err(error) = &sampled {
        faults::of_store(error);
        if !was_failing {
            tracing::warn!(
                error.chain = causes(error),
                "Failed to count trades and payments for the metrics"
            );
        }
    }
    sampled.is_err()
}

/// Reads the disk on a blocking thread, because a disk may be slow.
async fn measure(file: PathBuf) {
    let disk = tokio::task::spawn_blocking(move || disk(&file)).await;
    match disk {
        Ok(Ok(disk)) => of_store::disk(disk),
        Ok(Err(error)) => tracing::warn!(error.chain = %error, "Failed to measure the disk"),
        // The read is skipped only if the tokio runtime shuts down.
        Err(_) => {}
    }
}

fn disk(file: &Path) -> io::Result<Disk> {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let system = rustix::fs::statvfs(file)?;
    Ok(Disk {
        database: size(file)?,
        log: size(Path::new(&log))?,
        free: system.f_bavail.saturating_mul(system.f_frsize),
    })
}

/// The write-ahead log does not exist after the last program has closed the database.
fn size(file: &Path) -> io::Result<u64> {
    match fs::metadata(file) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

async fn trades(store: &dyn Store, mode: Mode) -> StoreResult<()> {
    let standing = store.trade_stats(mode).await?;
    for (status, count) in standing.by_status {
        trading::trades(status.as_str(), count);
    }
    trading::oldest_reserved(standing.oldest_reserved);
    trading::oldest_payment(store.rail_oldest(mode).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_space_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.db");
        assert!(disk(&file).is_err(), "the file does not exist yet");
        fs::write(&file, [0; 700]).unwrap();
        let measured = disk(&file).unwrap();
        assert_eq!((measured.database, measured.log), (700, 0));
        assert!(measured.free > 4096);
        fs::write(folder.path().join("some.db-wal"), [0; 300]).unwrap();
        assert_eq!(disk(&file).unwrap().log, 300);
    }
}
