//! A description of the machine, for the page of results.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One line: processor, cores, memory, system, compiler.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = first_line("/proc/meminfo", "MemTotal:")
        .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(
            || "unknown memory".to_owned(),
            |kib| format!("{} GiB of memory", kib / 1024 / 1024),
        );
    let processor = first_line("/proc/cpuinfo", "model name")
        .map(|line| line.trim_start_matches([':', ' ', '\t']).to_owned())
        .unwrap_or_else(|| "unknown processor".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let compiler = Command::new("rustc")
        .arg("--version")
        .output()
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        .unwrap_or_default();
    format!(
        "{cores} cores ({processor}), {memory}, Linux {}, {compiler}",
        kernel.trim()
    )
}

/// The file system of a folder: a flush to one in memory costs nothing.
pub(crate) fn file_system(folder: &str) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        Path::new(folder)
            .starts_with(place)
            .then(|| (place.len(), kind.to_owned()))
    });
    found
        .max_by_key(|(length, _)| *length)
        .map_or_else(|| "unknown".to_owned(), |(_, kind)| kind)
}

fn first_line(path: &str, prefix: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(prefix))?;
    Some(line.trim().to_owned())
}
