//! Metrics of the program and its process: version, memory, file descriptors, time.
//!
//! They are read from `/proc` for each response, so there is no cost in between. On systems other than Linux only the version
//! and the start are known.

use std::fmt;
use std::fs;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::Program;
use crate::registry::{Kind, MetricDoc, MetricRegistry};

/// Linux reports process times in hundredths of a second, independent of the kernel's clock.
const TICK: Duration = Duration::from_millis(10);

const CPU: (&str, &str) = ("process_cpu_seconds_total", "Processor time of the process");
type Read = fn(&Status) -> Option<u64>;

const GAUGES: [(&str, &str, Read); 5] = [
    (
        "process_resident_memory_bytes",
        "Resident memory of the process",
        |status| status.kibibytes("VmRSS:"),
    ),
    (
        "process_virtual_memory_bytes",
        "Address space of the process",
        |status| status.kibibytes("VmSize:"),
    ),
    ("process_threads", "Threads of the process", |status| {
        status.number("Threads:")
    }),
    ("process_open_fds", "Open file descriptors", |_| {
        open_files()
    }),
    (
        "process_max_fds",
        "Maximum number of open file descriptors",
        |_| most_files(),
    ),
];

pub(crate) fn register(mut book: MetricRegistry, program: &Program) -> MetricRegistry {
    let build = book.gauges(
        "penstock_build_info",
        "Always 1; the labels name the version and the mode",
        ["version", "mode"],
    );
    build.set([program.version, program.mode], 1);
    let started = book.gauge(
        "process_start_time_seconds",
        "Start of the program, in seconds since 1970",
    );
    started.set(program.started);
    let gauges = GAUGES
        .iter()
        .map(|(name, help, _)| (Kind::Gauge, *name, *help));
    let entries: Vec<MetricDoc> = std::iter::once((Kind::Counter, CPU.0, CPU.1))
        .chain(gauges)
        .map(|(kind, name, help)| MetricDoc {
            name,
            kind,
            help,
            labels: Vec::new(),
            bounds: &[],
        })
        .collect();
    book.collect(Process, &entries);
    book
}

/// Reads the values for each response of `/metrics`. Unreadable values are left out.
#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(spent) = processor_time() {
            let base = CPU.0.strip_suffix("_total").unwrap_or(CPU.0);
            let help = format!("{}.", CPU.1);
            let written = encoder.encode_descriptor(base, &help, None, MetricType::Counter)?;
            ConstCounter::new(spent.as_secs_f64()).encode(written)?;
        }
        let Some(status) = Status::read() else {
            return Ok(());
        };
        for (name, help, read) in GAUGES {
            let Some(value) = read(&status) else {
                continue;
            };
            let help = format!("{help}.");
            let written = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
            ConstGauge::new(crate::registry::saturated(value)).encode(written)?;
        }
        Ok(())
    }
}

/// `/proc/self/status`, with a name and a value on each line.
struct Status(String);

impl Status {
    fn read() -> Option<Self> {
        fs::read_to_string("/proc/self/status").ok().map(Self)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse().ok()
    }

    fn kibibytes(&self, name: &str) -> Option<u64> {
        self.number(name)?.checked_mul(1024)
    }
}

/// User and system time: the 14th and 15th field of `/proc/self/stat`. The second field is the program's name in brackets,
/// which may contain any character, so counting starts after it.
fn processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    TICK.checked_mul(user.checked_add(system)?)
}

fn open_files() -> Option<u64> {
    // Reading the folder opens one more file.
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(listed.saturating_sub(1)).ok()
}

fn most_files() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_on_linux() {
        let book = register(
            MetricRegistry::default(),
            &Program {
                version: "1.2.3",
                mode: "test",
                started: 7,
            },
        );
        let text = book.render();
        for entry in book.into_entries() {
            let line = format!("\n{}", entry.name);
            assert!(text.contains(&line), "{}: {text}", entry.name);
        }
        assert!(text.contains("penstock_build_info{version=\"1.2.3\",mode=\"test\"} 1\n"));
        assert!(text.contains("# TYPE process_cpu_seconds_total counter\n"));
        let status = Status::read().unwrap();
        assert!(status.kibibytes("VmRSS:").unwrap() > 100_000);
        assert!(open_files().unwrap() >= 3);
        assert!(processor_time().is_some());
    }
}
