//! A log or an output that its reader does not read.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use test_support::http::{nowhere, send};
use test_support::program::{full_pipe, signal};

use crate::served::{POOLS, eventually};

/// A key that the database does not have. Each request with it logs a statement.
const UNKNOWN: &str = "sk_test_UnknownUnknownUnknownUnknown1234";
const METRIC: &str = "\npenstock_log_lines_dropped_total ";
/// Requests after which the queue is full in any case.
const ENOUGH: u32 = 20_000;
/// The variable with the number of requests that a service gets at least while its log is not read.
const LOAD: &str = "UNREAD_LOG_REQUESTS";

fn load() -> u32 {
    std::env::var(LOAD).map_or(0, |text| text.parse().unwrap())
}

/// A service whose log is read only on request.
struct Unread {
    process: Child,
    address: String,
    metrics: String,
    log: BufReader<ChildStderr>,
    /// What was read of the log.
    read: String,
}

impl Unread {
    /// Starts a service that logs every statement, and reads its log up to the address of the metrics.
    fn start(folder: &std::path::Path) -> Self {
        let variables = [
            ("POOLS_LISTEN", "127.0.0.1:0"),
            ("METRICS_LISTEN", "127.0.0.1:0"),
            ("RUST_LOG", "debug"),
            ("THROTTLE", "off"),
        ];
        let mut program = POOLS.command(folder, &variables);
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = program.spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut read = String::new();
        let metrics = loop {
            let begin = read.len();
            assert_ne!(log.read_line(&mut read).unwrap(), 0, "{read}");
            if read[begin..].contains("Serving metrics") {
                let line: Value = serde_json::from_str(&read[begin..]).unwrap();
                break line["metrics.address"].as_str().unwrap().to_owned();
            }
        };
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit_once("http://").unwrap().1.to_owned();
        Self {
            process,
            address,
            metrics,
            log,
            read,
        }
    }

    /// Sends requests until lines were dropped, and at least the [`load`]. Each request must get its response.
    fn fill_log(&self) {
        let (load, mut sent) = (load(), 0);
        while sent < load || self.dropped() == 0 {
            assert!(sent < load.max(ENOUGH), "the queue was never full");
            for _ in 0..50 {
                let response = get(&self.address, "/v1/pools");
                assert!(response.starts_with("HTTP/1.1 401"), "{response}");
            }
            sent += 50;
        }
    }

    fn dropped(&self) -> u64 {
        let metrics = get(&self.metrics, "/metrics");
        let (_, rest) = metrics.split_once(METRIC).unwrap();
        rest.lines().next().unwrap().parse().unwrap()
    }

    /// Reads the log on a thread, to its end.
    fn read_on(self) -> (Child, JoinHandle<()>, Arc<Mutex<String>>) {
        let Self {
            process,
            mut log,
            read,
            ..
        } = self;
        let logged = Arc::new(Mutex::new(read));
        let into = Arc::clone(&logged);
        let reading = std::thread::spawn(move || {
            let mut part = [0; 8192];
            while let Ok(length @ 1..) = log.read(&mut part) {
                let part = String::from_utf8_lossy(&part[..length]);
                into.lock().unwrap().push_str(&part);
            }
        });
        (process, reading, logged)
    }
}

/// Fails after a minute. A service that waits for its log never responds.
fn get(address: &str, path: &str) -> String {
    let bearer = format!("Bearer {UNKNOWN}");
    let headers = [("Authorization", bearer.as_str())];
    send(address, &format!("GET {path}"), &headers, "")
}

/// Sends SIGTERM, and returns the exit code. The service must end within its time limit.
fn end(process: &mut Child) -> Option<i32> {
    signal(process.id(), "-TERM");
    exit_code(process)
}

fn exit_code(process: &mut Child) -> Option<i32> {
    eventually(|| process.try_wait().unwrap()).code()
}

// rule: program.log-never-blocks, program.shutdown
#[test]
fn service_responds_and_stops_while_its_log_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Unread::start(folder.path());
    served.fill_log();
    for path in ["/health", "/health/ready"] {
        let response = get(&served.address, path);
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
    assert_eq!(end(&mut served.process), Some(0));
}

/// The number of lines that a line reports as dropped.
fn reported(line: &str) -> u64 {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    line["log.dropped"].as_u64().unwrap_or_default()
}

// rule: program.log-never-blocks, program.logs
#[test]
fn log_reports_dropped_lines_after_its_reader_reads_on() {
    let folder = tempfile::tempdir().unwrap();
    let served = Unread::start(folder.path());
    served.fill_log();
    let metrics = served.metrics.clone();
    let (mut process, reading, logged) = served.read_on();
    let message = "Log lines were dropped";
    eventually(|| logged.lock().unwrap().contains(message).then_some(()));
    let response = get(&metrics, "/metrics");
    let (_, counted) = response.split_once(METRIC).unwrap();
    let counted: u64 = counted.lines().next().unwrap().parse().unwrap();
    assert_eq!(end(&mut process), Some(0));
    reading.join().unwrap();
    let logged = logged.lock().unwrap();
    let total: u64 = logged.lines().map(reported).sum();
    assert!(counted > 0 && total >= counted, "{counted}, {total}");
    assert!(
        logged.contains("\"message\":\"Stopping\""),
        "the last lines are written before the exit"
    );
}

// rule: program.log-never-blocks, program.shutdown
#[test]
fn service_serves_and_stops_although_its_output_is_full_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let address = nowhere().to_string();
    let (_reader, out, err) = full_pipe();
    let mut program = POOLS.command(folder.path(), &[("POOLS_LISTEN", &address)]);
    let mut process = program.stdout(out).stderr(err).spawn().unwrap();
    eventually(|| TcpStream::connect(&address).ok().map(drop));
    let response = get(&address, "/health");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert_eq!(end(&mut process), Some(0));
}

// rule: program.log-never-blocks, program.bad-configuration
#[test]
fn configuration_error_ends_the_service_although_its_output_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let (_reader, out, err) = full_pipe();
    let mut program = POOLS.command(folder.path(), &[("MODE", "prod")]);
    let mut process = program.stdout(out).stderr(err).spawn().unwrap();
    assert_eq!(exit_code(&mut process), Some(2));
}
