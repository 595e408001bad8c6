//! The operator's rail over HTTP under a test's control: it accepts every payment, and reports what the test decides.

use std::sync::Arc;
use std::time::Duration;

use gate_core::ports::Rail;
use parking_lot::Mutex;
use providers::{HttpRail, UpstreamUrl};
use serde_json::{Value, json};
use test_support::http::{Reply, Request, Upstream};

/// Generous timeout for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a test has decided.
#[derive(Debug)]
struct Script {
    instructions: Value,
    /// The report without its id.
    report: Value,
    /// The whole response to a request for a report, instead of the report.
    reply: Option<Reply>,
    cancellation: &'static str,
}

/// A rail that listens on this machine.
#[derive(Debug)]
pub struct FarRail {
    played: Upstream,
    script: Arc<Mutex<Script>>,
}

impl FarRail {
    /// Starts a rail at which every payment is processing and can no longer be cancelled.
    #[must_use]
    pub fn start() -> Self {
        let script = Arc::new(Mutex::new(Script {
            instructions: json!({ "reference": "r-1" }),
            report: json!({ "status": "processing" }),
            reply: None,
            cancellation: "not_cancellable",
        }));
        let decided = Arc::clone(&script);
        let played = Upstream::start(move |request| decided.lock().respond(request));
        Self { played, script }
    }

    /// An adapter to the rail, named after its place.
    #[must_use]
    pub fn adapter(&self) -> Arc<dyn Rail> {
        let url = UpstreamUrl::parse(&self.played.url()).expect("a URL");
        Arc::new(HttpRail::new(url, None, TIMEOUT).expect("a rail"))
    }

    /// Gives every payer these instructions.
    pub fn instructs(&self, instructions: Value) {
        self.script.lock().instructions = instructions;
    }

    /// Reports this of every payment.
    pub fn reports(&self, report: Value) {
        let mut script = self.script.lock();
        script.report = report;
        script.reply = None;
    }

    /// Responds in this way to every request for a report.
    pub fn replies(&self, reply: Reply) {
        self.script.lock().reply = Some(reply);
    }

    /// Knows no payment.
    pub fn forgets(&self) {
        self.replies(Reply::json(404, "{}"));
    }

    /// Responds with this status to every cancellation.
    pub fn cancels(&self, cancellation: &'static str) {
        self.script.lock().cancellation = cancellation;
    }

    /// Every request since the last call of this method or of [`FarRail::calls`].
    pub fn requests(&self) -> Vec<Request> {
        self.played.take()
    }

    /// The operations of these requests: `instructions`, `begin`, `report` or `cancel`.
    pub fn calls(&self) -> Vec<&'static str> {
        self.requests().iter().map(operation).collect()
    }
}

impl Script {
    fn respond(&self, request: &Request) -> Reply {
        let id = request.path().split('/').nth(3).expect("an id");
        let mut answer = match operation(request) {
            "instructions" => json!({ "instructions": self.instructions }),
            "begin" => json!({ "status": "accepted" }),
            "cancel" => json!({ "status": self.cancellation }),
            _ => match &self.reply {
                Some(reply) => return reply.clone(),
                None => self.report.clone(),
            },
        };
        answer["id"] = id.into();
        Reply::json(200, &answer.to_string())
    }
}

fn operation(request: &Request) -> &'static str {
    let path = request.path();
    match request.method() {
        "PUT" => "begin",
        "POST" if path.ends_with("/cancel") => "cancel",
        "POST" => "instructions",
        _ => "report",
    }
}
