//! `test-verifier`: a verifier for trials. It implements the contract `verifier-v1`, checks no person, and forgets everything when it
//! ends.
//!
//! See `docs/providers.md`, section "A verifier for trials".
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for trials, whose interface is its output"
)]

#[path = "../test-rail/listener.rs"]
mod listener;

use std::collections::BTreeMap;
use std::io::{BufRead, stdin};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use listener::{Request, Response};
use serde_json::{Value, json};

const USAGE: &str = "\
usage: test-verifier [--listen ADDRESS] [--delay-ms MILLISECONDS] [--hold]

  --listen     where it listens; absent: 127.0.0.1:9200
  --delay-ms   how long a verification is pending; absent: 3000
  --hold       verifications stay pending until a command on stdin ends them

PENSTOCK_VERIFIER_SECRET is the secret that it expects; absent: any. The page of a verification, /pages/ID, needs none.
A command decides: the delay no longer ends a verification that a command has named.
Commands on stdin, one per line: approve ID, reject ID REASON, say ID STATUS, slow MILLISECONDS, silent, talk.";

/// What the program calls its pages.
const PAGES: &str = "/pages/";

/// A verification.
struct Case {
    /// Its report, without its id.
    report: Value,
    /// Whether a command chose the report.
    commanded: bool,
}

/// The verifications and the manners of the verifier.
#[derive(Default)]
struct Desk {
    cases: BTreeMap<String, Case>,
    /// How late each response is.
    lateness: Duration,
    /// Whether connections are closed without a response.
    silent: bool,
}

impl Desk {
    /// Reports what a command says.
    fn say(&mut self, id: &str, report: Value) {
        let case = Case {
            report,
            commanded: true,
        };
        self.cases.insert(id.to_owned(), case);
    }

    fn approve(&mut self, id: &str) {
        self.say(id, json!({ "status": "approved" }));
    }

    fn reject(&mut self, id: &str, reason: &str) {
        self.say(id, json!({ "status": "rejected", "reason": reason }));
    }

    /// Ends a verification after its delay, unless a command has chosen its report.
    fn end(&mut self, id: &str, report: Value) {
        if let Some(case) = self.cases.get_mut(id).filter(|case| !case.commanded) {
            case.report = report;
        }
    }

    /// Does what a command says. Returns whether it is a command.
    fn follow(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["approve", id] => self.approve(id),
            ["reject", id, reason] => self.reject(id, reason),
            ["say", id, status] => self.say(id, json!({ "status": status })),
            ["slow", millis] => match millis.parse() {
                Ok(millis) => self.lateness = Duration::from_millis(millis),
                Err(_) => return false,
            },
            ["silent"] => self.silent = true,
            ["talk"] => self.silent = false,
            _ => return false,
        }
        true
    }
}

/// The verifier, which its listener, its timers and its commands share.
#[derive(Clone)]
struct Verifier {
    desk: Arc<Mutex<Desk>>,
    delay: Option<Duration>,
    address: String,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((listen, delay)) = read(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let bound = TcpListener::bind(&listen);
    let listener = match bound {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("test-verifier: cannot listen on {listen}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let address = listener.local_addr().map_or(listen, |it| it.to_string());
    println!(
        "test-verifier: a verifier for trials. It checks no person, and forgets everything when it ends."
    );
    println!("test-verifier: listening on http://{address}");
    let verifier = Verifier {
        desk: Arc::default(),
        delay,
        address,
    };
    let commanded = verifier.clone();
    thread::spawn(move || commanded.follow_commands());
    let secret = std::env::var("PENSTOCK_VERIFIER_SECRET").ok();
    let public = |path: &str| path.starts_with(PAGES);
    listener::serve(&listener, secret.as_deref(), public, move |request| {
        verifier.respond(request)
    });
    ExitCode::SUCCESS
}

/// Where to listen, and how long a verification is pending.
fn read(arguments: &[String]) -> Option<(String, Option<Duration>)> {
    let (mut listen, mut delay) = ("127.0.0.1:9200".to_owned(), Some(Duration::from_secs(3)));
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--listen" => listen.clone_from(words.next()?),
            "--delay-ms" => delay = Some(Duration::from_millis(words.next()?.parse().ok()?)),
            "--hold" => delay = None,
            _ => return None,
        }
    }
    Some((listen, delay))
}

impl Verifier {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn respond(&self, request: &Request) -> Option<Response> {
        let (response, silent, lateness) = {
            let mut desk = self.desk();
            let response = self.act(&mut desk, request);
            // The lines of requests and commands are in the order in which they took effect.
            println!(
                "test-verifier: {} {} {}",
                request.method, request.path, response.status
            );
            (response, desk.silent, desk.lateness)
        };
        thread::sleep(lateness);
        (!silent).then_some(response)
    }

    fn act(&self, desk: &mut Desk, request: &Request) -> Response {
        if let Some(id) = request.path.strip_prefix(PAGES) {
            return page(desk, &request.method, id);
        }
        let rest = request.path.strip_prefix("/v1/verifications/");
        let Some(rest) = rest else {
            return nothing(404);
        };
        let (id, action) = rest.split_once('/').unwrap_or((rest, ""));
        match (request.method.as_str(), action) {
            ("PUT", "") => {
                if !desk.cases.contains_key(id) {
                    let case = Case {
                        report: json!({ "status": "pending" }),
                        commanded: false,
                    };
                    desk.cases.insert(id.to_owned(), case);
                    self.end_later(id, &request.body);
                }
                let page = format!("http://{}{PAGES}{id}", self.address);
                report(
                    desk,
                    id,
                    json!({ "url": page, "reference": format!("trial-{id}") }),
                )
            }
            ("GET", "") | ("POST", "answers") => report(desk, id, json!({})),
            _ => nothing(404),
        }
    }

    /// Ends a verification after the delay: an amount ending in `.62` is rejected, any other approved.
    fn end_later(&self, id: &str, terms: &Value) {
        let Some(delay) = self.delay else { return };
        let rejected = terms["amount"]
            .as_str()
            .is_some_and(|it| it.ends_with(".62"));
        let end = if rejected {
            json!({ "status": "rejected", "reason": "A trial: rejected." })
        } else {
            json!({ "status": "approved" })
        };
        let (verifier, id) = (self.clone(), id.to_owned());
        thread::spawn(move || {
            thread::sleep(delay);
            verifier.desk().end(&id, end);
        });
    }

    fn follow_commands(&self) {
        for line in stdin().lock().lines().map_while(Result::ok) {
            let mut desk = self.desk();
            let done = desk.follow(&line);
            println!(
                "test-verifier: {}: {line}",
                if done { "done" } else { "refused" }
            );
        }
    }
}

/// The state of a verification, with further fields.
fn report(desk: &Desk, id: &str, fields: Value) -> Response {
    let Some(case) = desk.cases.get(id) else {
        return nothing(404);
    };
    let parts = [case.report.clone(), json!({ "id": id }), fields];
    let body = parts.into_iter().filter_map(|part| match part {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    Response::json(200, &Value::Object(body.flatten().collect()))
}

/// The page of a verification, for the user's browser. Its buttons decide as the commands do.
fn page(desk: &mut Desk, method: &str, path: &str) -> Response {
    let (id, decision) = path.split_once('/').unwrap_or((path, ""));
    if !desk.cases.contains_key(id) {
        return nothing(404);
    }
    match (method, decision) {
        ("GET", "") => {}
        ("POST", "approve") => desk.approve(id),
        ("POST", "reject") => desk.reject(id, "A trial: rejected."),
        _ => return nothing(404),
    }
    let case = desk.cases.get(id);
    let status = case.and_then(|case| case.report.get("status")?.as_str());
    let status = status.unwrap_or_default();
    let (id, shown) = (text(id), text(status));
    let rest = if status == "pending" {
        let button = |action: &str, name: &str| {
            format!(
                "<form method=\"post\" action=\"{PAGES}{id}/{action}\"><button>{name}</button></form>\n"
            )
        };
        button("approve", "Approve") + &button("reject", "Reject")
    } else {
        "<p>You may close this page.</p>\n".to_owned()
    };
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>A trial verification</title>\n\
         <h1>A trial verification</h1>\n<p>No person is checked here. The verification <code>{id}</code> is \
         <strong>{shown}</strong>.</p>\n{rest}</html>\n"
    );
    Response {
        status: 200,
        content_type: "text/html; charset=utf-8",
        body,
    }
}

/// A text that a page shows as it is.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn nothing(status: u16) -> Response {
    Response::json(status, &Value::Null)
}
