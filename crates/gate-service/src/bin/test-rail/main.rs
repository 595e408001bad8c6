//! `test-rail`: a rail for trials. It implements the contract `rail-v1`, moves no money, and forgets everything when it ends.
//!
//! See `docs/providers.md`, section "A rail for trials".
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for trials, whose interface is its output"
)]

mod listener;
mod notifier;
mod payments;

use std::io::{BufRead, stdin};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use gate_core::rail::FailureReason;
use kernel::Clock;
use notifier::Notifier;
use payments::{Ended, Payments};
use runtime::process::SystemClock;

const USAGE: &str = "\
usage: test-rail [--listen ADDRESS] [--notify GATE_URL] [--delay-ms MILLISECONDS] [--hold]

  --listen     where it listens; absent: 127.0.0.1:9100
  --notify     the gate that it notifies, such as http://127.0.0.1:4020; absent: none
  --delay-ms   how long a payment is processing; absent: 3000
  --hold       payments stay processing until a command on stdin ends them

PENSTOCK_RAIL_SECRET is the secret that it expects and signs with; absent: any, and no notifications.
Commands on stdin, one per line:
  settle ID REFERENCE, fail ID CODE [REASON], cancel ID   end a payment that is processing
  receive ID AMOUNT   so much of a payment that is processing has arrived
  return ID           the money of a settled payment comes back
  late ID             a payment that had failed or was cancelled is settled
  forget ID           the payment is unknown from then on
  notify ID, gate GATE_URL";

/// What the arguments say.
struct Given {
    listen: String,
    gate: Option<String>,
    delay: Option<Duration>,
}

/// The rail, which its listener, its timers and its commands share.
#[derive(Clone)]
struct Rail {
    payments: Arc<Mutex<Payments>>,
    notifier: Arc<Notifier>,
    delay: Option<Duration>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(given) = read(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let secret = std::env::var("PENSTOCK_RAIL_SECRET").ok();
    let listener = match TcpListener::bind(&given.listen) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("test-rail: cannot listen on {}: {error}", given.listen);
            return ExitCode::FAILURE;
        }
    };
    let address = listener
        .local_addr()
        .map_or(given.listen.clone(), |it| it.to_string());
    println!(
        "test-rail: a rail for trials. It moves no money, and forgets its payments when it ends."
    );
    println!("test-rail: listening on http://{address}");
    let rail = Rail {
        payments: Arc::default(),
        notifier: Arc::new(Notifier::new(secret.clone(), given.gate)),
        delay: given.delay,
    };
    let commanded = rail.clone();
    thread::spawn(move || commanded.follow_commands());
    let public = |_: &str| false;
    listener::serve(&listener, secret.as_deref(), public, move |request| {
        Some(rail.respond(request))
    });
    ExitCode::SUCCESS
}

fn read(arguments: &[String]) -> Option<Given> {
    let mut given = Given {
        listen: "127.0.0.1:9100".to_owned(),
        gate: None,
        delay: Some(Duration::from_millis(3000)),
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--listen" => given.listen.clone_from(words.next()?),
            "--notify" => given.gate = Some(words.next()?.clone()),
            "--delay-ms" => given.delay = Some(Duration::from_millis(words.next()?.parse().ok()?)),
            "--hold" => given.delay = None,
            _ => return None,
        }
    }
    Some(given)
}

impl Rail {
    fn respond(&self, request: &listener::Request) -> listener::Response {
        let mut payments = self.payments();
        let (response, begun) = payments.respond(request, SystemClock.now());
        // The lines of requests are in the order in which they took effect.
        println!(
            "test-rail: {} {} {}",
            request.method, request.path, response.status
        );
        drop(payments);
        if let (Some((id, end)), Some(delay)) = (begun, self.delay) {
            let rail = self.clone();
            thread::spawn(move || {
                thread::sleep(delay);
                rail.change(&id, |payments| payments.end_by_itself(&id, end));
            });
        }
        response
    }

    fn payments(&self) -> MutexGuard<'_, Payments> {
        self.payments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a payment, and notifies the gate if it has changed.
    fn change(&self, id: &str, change: impl FnOnce(&mut Payments) -> bool) -> bool {
        let has_changed = change(&mut self.payments());
        if has_changed {
            self.notifier.notify(id);
        }
        has_changed
    }

    fn end(&self, id: &str, end: Ended) -> bool {
        self.change(id, |payments| payments.end(id, end))
    }

    /// Does what a command says. Returns whether it was done.
    fn follow(&self, words: &[&str]) -> bool {
        match *words {
            ["settle", id, reference] => self.end(id, Ended::Settled(reference.to_owned())),
            ["fail", id, code] => self.end(id, Ended::Failed(code.to_owned(), None)),
            ["fail", id, code, reason] => FailureReason::parse(reason)
                .is_some_and(|reason| self.end(id, Ended::Failed(code.to_owned(), Some(reason)))),
            ["cancel", id] => self.end(id, Ended::Cancelled),
            ["receive", id, amount] => {
                let now = SystemClock.now();
                self.change(id, |payments| payments.receive(id, amount, now))
            }
            ["return", id] => self.change(id, |payments| payments.come_back(id)),
            ["late", id] => self.change(id, |payments| payments.settle_late(id)),
            ["forget", id] => self.payments().forget(id),
            ["notify", id] => self.notifier.notify(id),
            ["gate", url] => self.notifier.use_gate(url),
            _ => false,
        }
    }

    fn follow_commands(&self) {
        for line in stdin().lock().lines().map_while(Result::ok) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let done = self.follow(&words);
            println!(
                "test-rail: {}: {line}",
                if done { "done" } else { "refused" }
            );
        }
    }
}
