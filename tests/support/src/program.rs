//! The programs of this workspace, each in a process of its own: how a test starts, reads and ends them.

use std::io::{BufRead as _, BufReader, PipeReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a test waits for a line of a program, and for a program that must end by itself.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A program that serves, and the variables of its listeners.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The name that the program prints.
    pub name: &'static str,
    /// The path of the built program.
    pub path: &'static str,
    /// The names of the variables without their prefix.
    pub listeners: &'static [&'static str],
}

impl Program {
    /// The program in a folder of its own, with these variables as its whole environment. They are named without their prefix.
    #[must_use]
    pub fn command(&self, folder: &Path, variables: &[(&str, &str)]) -> Command {
        in_environment(Command::new(self.path), folder, variables)
    }

    /// Runs the program to its end. A program that does not end by itself is killed, and has no exit code.
    #[must_use]
    pub fn output(&self, folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(folder, variables);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        output_of(command.spawn().unwrap())
    }

    /// Starts the program on free ports.
    #[must_use]
    pub fn start(&self, folder: &Path, variables: &[(&str, &str)]) -> Served {
        Served::start(self.command(folder, variables), self)
    }

    /// Starts the program after a command of the shell, which changes what the program may use.
    #[must_use]
    pub fn start_after(&self, folder: &Path, shell: &str, variables: &[(&str, &str)]) -> Served {
        let script = format!("{shell}; exec \"$0\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, self.path]);
        let command = in_environment(command, folder, variables);
        Served::start(command, self)
    }
}

fn in_environment(mut command: Command, folder: &Path, variables: &[(&str, &str)]) -> Command {
    command.current_dir(folder).env_clear();
    for (name, text) in variables {
        command.env(variable(name), text);
    }
    command
}

fn output_of(process: Child) -> Output {
    let id = process.id();
    let (ended, ending) = channel::<()>();
    let watching = std::thread::spawn(move || {
        if ending.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            signal(id, "-KILL");
        }
    });
    let output = process.wait_with_output().unwrap();
    drop(ended);
    watching.join().unwrap();
    output
}

/// The name of a variable with its prefix.
#[must_use]
pub fn variable(name: &str) -> String {
    if name == "RUST_LOG" {
        return name.to_owned();
    }
    format!("PENSTOCK_{name}")
}

/// A running program and its address. It is killed with the test.
#[derive(Debug)]
pub struct Served {
    process: Child,
    name: &'static str,
    /// The address of the first listener.
    pub address: String,
    lines: Receiver<String>,
    /// The log so far. It is read continuously, so that the program never blocks on a full pipe.
    logged: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Served {
    fn start(mut command: Command, program: &Program) -> Self {
        let given: Vec<_> = command
            .get_envs()
            .map(|(name, _)| name.to_owned())
            .collect();
        let free = program.listeners.iter().map(|name| variable(name));
        for name in free.filter(|name| !given.iter().any(|given| given == name.as_str())) {
            command.env(name, "127.0.0.1:0");
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let logged = Arc::new(Mutex::new(String::new()));
        let reading = read(process.stderr.take().unwrap(), Arc::clone(&logged));
        let lines = lines_of(process.stdout.take().unwrap());
        let mut started = Self {
            process,
            name: program.name,
            address: String::new(),
            lines,
            logged,
            reading: Some(reading),
        };
        started.address = started.next_address("listening");
        started
    }

    /// The address in the next line of the output, which says what the program does there.
    #[must_use]
    pub fn next_address(&self, what: &str) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        let begin = format!("{} {what} on http://", self.name);
        let address = line.as_deref().ok();
        let address = address.and_then(|line| line.strip_prefix(&begin));
        let address = address.unwrap_or_else(|| panic!("{line:?}: {}", self.logged()));
        address.to_owned()
    }

    /// The id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Changes a soft limit of the process, as the program `prlimit` writes it.
    pub fn limit(&self, limit: &str) {
        let process = self.id().to_string();
        let limiting = Command::new("prlimit")
            .args(["--pid", &process, limit])
            .status();
        assert!(limiting.unwrap().success());
    }

    #[must_use]
    pub fn logged(&self) -> String {
        self.logged.lock().unwrap().clone()
    }

    pub fn get(&self, path: &str) -> String {
        crate::http::get(&self.address, path)
    }

    /// Sends a request with these headers and this body.
    pub fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        crate::http::send(&self.address, line, headers, body)
    }

    /// The address of the metrics, taken from the log.
    #[must_use]
    pub fn metrics_address(&self) -> String {
        eventually(|| {
            let logged = self.logged();
            let line = logged
                .lines()
                .find(|line| line.contains("Serving metrics"))?;
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            Some(line["metrics.address"].as_str().unwrap().to_owned())
        })
    }

    /// Sends a signal, after which the program must end. Returns the exit code and the log.
    pub fn end(mut self, sign: &str) -> (Option<i32>, String) {
        signal(self.id(), sign);
        let code = eventually(|| self.process.try_wait().unwrap()).code();
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        (code, self.logged())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A process that has ended cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The lines of an output. They are read continuously, so that the program never blocks on a full pipe.
pub fn lines_of(out: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn read(mut from: ChildStderr, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut part = [0; 8192];
        while let Ok(length @ 1..) = from.read(&mut part) {
            let part = String::from_utf8_lossy(&part[..length]);
            into.lock().unwrap().push_str(&part);
        }
    })
}

/// Sends a signal such as `-TERM` to a process.
pub fn signal(process: u32, sign: &str) {
    let process = process.to_string();
    let sent = Command::new("kill").args([sign, &process]).status();
    assert!(sent.unwrap().success());
}

/// The text of an output.
#[must_use]
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A pipe that is full, as after a program whose reader has stalled. The reader is kept, so that the pipe stays open.
#[must_use]
pub fn full_pipe() -> (PipeReader, Stdio, Stdio) {
    const CAPACITY: usize = 64 * 1024;
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'x'; CAPACITY]).unwrap();
    let other = writer.try_clone().unwrap();
    (reader, writer.into(), other.into())
}

/// Repeats `ask` for at least a minute until it returns a value. A debug build on a busy machine is slow.
pub fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = ask() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no value after a minute");
}
