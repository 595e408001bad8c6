//! A rate source behind HTTP whose responses are set by tests.

use std::sync::Arc;

use parking_lot::Mutex;
use test_support::http::{Reply, Request, Upstream};

/// A source on this machine.
#[derive(Debug)]
pub struct FarRates {
    url: String,
    played: Upstream,
    reply: Arc<Mutex<Reply>>,
}

impl FarRates {
    /// Starts a source that sends this response.
    #[must_use]
    pub fn start(body: &str) -> Self {
        let reply = Arc::new(Mutex::new(response(200, body)));
        let given = Arc::clone(&reply);
        let played = Upstream::start(move |_| given.lock().clone());
        Self {
            url: played.url(),
            played,
            reply,
        }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the response.
    pub fn says(&self, status: u16, body: &str) {
        *self.reply.lock() = response(status, body);
    }

    /// Accepts requests from now on, but never responds.
    pub fn is_mute(&self) {
        *self.reply.lock() = Reply::Waits;
    }

    /// Every request since the last call of this method.
    pub fn asked(&self) -> Vec<Request> {
        self.played.take()
    }
}

fn response(status: u16, body: &str) -> Reply {
    Reply::with(status, &[("Location", "/elsewhere")], body)
}
