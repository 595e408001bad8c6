//! What the figures were measured on, for the page that shows them.

use std::fs;
use std::process::Command;

/// One line: processor, cores, memory, system, compiler, database.
pub(crate) fn describe(sqlite: &str) -> String {
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
        "{cores} cores ({processor}), {memory}, Linux {}, {compiler}, SQLite {sqlite}",
        kernel.trim()
    )
}

fn first_line(path: &str, prefix: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(prefix))?;
    Some(line.trim().to_owned())
}
