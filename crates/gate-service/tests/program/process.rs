//! Upstreams for trials in processes of their own, which end with the test.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;

use test_support::program::{PATIENCE, lines_of};

/// A process that is killed with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An upstream for trials, which takes commands.
pub(crate) struct Trial {
    _process: Killed,
    name: &'static str,
    commands: ChildStdin,
    lines: Receiver<String>,
    /// Lines that appeared before a command was done.
    passed: RefCell<VecDeque<String>>,
    pub(crate) address: String,
}

impl Trial {
    pub(crate) fn rail(secret: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_test-rail"));
        command.env_clear().env("PENSTOCK_RAIL_SECRET", secret);
        command.args(["--listen", "127.0.0.1:0"]).args(arguments);
        Self::start("test-rail", &mut command)
    }

    pub(crate) fn verifier(secret: &str, listen: &str) -> Self {
        Self::verifier_with(secret, &["--listen", listen, "--hold"])
    }

    pub(crate) fn verifier_with(secret: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_test-verifier"));
        command.env_clear().env("PENSTOCK_VERIFIER_SECRET", secret);
        command.args(arguments);
        Self::start("test-verifier", &mut command)
    }

    fn start(name: &'static str, command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (commands, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut trial = Self {
            _process: Killed(child),
            name,
            commands,
            lines: lines_of(out),
            passed: RefCell::default(),
            address: String::new(),
        };
        trial.says("for trials. It ");
        let listening = trial.says("listening on http://");
        listening
            .rsplit("http://")
            .next()
            .unwrap()
            .clone_into(&mut trial.address);
        trial
    }

    /// The next line of the output that contains this text.
    pub(crate) fn says(&self, text: &str) -> String {
        loop {
            let passed = self.passed.borrow_mut().pop_front();
            let line = passed.or_else(|| self.next());
            let line = line.unwrap_or_else(|| panic!("{} does not say {text}", self.name));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Forgets the lines so far.
    pub(crate) fn skip(&self) {
        self.passed.take();
        while self.lines.try_recv().is_ok() {}
    }

    /// Gives a command, and waits until it is done. Keeps the lines before that for [`Self::says`]: the service may react first.
    pub(crate) fn command(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
        let done = format!("{}: done: {command}", self.name);
        loop {
            let line = self.next().expect("the command should be done");
            if line.contains(command) {
                assert_eq!(line, done);
                return;
            }
            self.passed.get_mut().push_back(line);
        }
    }

    fn next(&self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }
}
