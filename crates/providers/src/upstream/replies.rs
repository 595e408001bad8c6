//! Replies that the tests of several upstreams use.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::http::{Reply, Upstream};

use crate::address::{UpstreamSecret, UpstreamUrl};

/// Generous timeout for a busy machine.
pub(crate) const PATIENT: Duration = Duration::from_secs(60);
const SECRET: &str = "a-secret-of-the-upstream";

/// An upstream that gives these replies, its URL, and the secret of the calls.
pub(crate) fn giving(replies: &[Reply]) -> (Upstream, UpstreamUrl, Option<UpstreamSecret>) {
    let far = Upstream::giving(replies);
    let url = UpstreamUrl::parse(&format!("{}/desk", far.url())).unwrap();
    (far, url, UpstreamSecret::parse(SECRET))
}

/// Checks that every request carries the secret, and says that it is JSON if it has a body.
pub(crate) fn check_heads(far: &Upstream) {
    let bearer = format!("Bearer {SECRET}");
    for one in far.received() {
        assert_eq!(one.header("authorization"), bearer, "{}", one.head);
        let is_json = one.header("content-type") == "application/json";
        assert_eq!(is_json, !one.body.is_empty(), "{}", one.head);
    }
}

pub(crate) fn says(body: &Value) -> Reply {
    Reply::json(200, &body.to_string())
}

/// A response that also names another location, which the client must not follow.
pub(crate) fn typed(status: u16, content_type: &str, body: &str) -> Reply {
    let location = ("Location", "/desk/v1/elsewhere");
    Reply::with(status, &[("Content-Type", content_type), location], body)
}

/// Responses that are valid for no call. But for its fault, each would be this one. `longest` is the limit of the response.
pub(crate) fn faults(good: &Value, longest: usize) -> Vec<Reply> {
    let (id, status, text) = (&good["id"], &good["status"], good.to_string());
    let (name, word) = (id.as_str().unwrap(), status.as_str().unwrap());
    let twice = format!(r#"{{"id":{id},"status":{status},"status":"failed","code":"x"}}"#);
    let mut faults = vec![
        Reply::broken(),
        typed(200, "text/plain", &text),
        typed(200, "application/problem+json", &text),
        typed(200, "", &text),
        Reply::json(200, ""),
        Reply::json(200, "<html>settled</html>"),
        Reply::json(200, &twice),
        says(&json!([id, status])),
        says(&json!({ "id": id, "status": "finished" })),
        says(&json!({ "id": id, "status": { word: null } })),
    ];
    for (field, value) in [
        ("id", name.replace("8JK", "8JM")),
        ("id", name.to_lowercase()),
        ("pad", "x".repeat(longest)),
    ] {
        let mut bad = good.clone();
        bad[field] = value.into();
        faults.push(says(&bad));
    }
    let statuses = [201, 204, 301, 302, 307, 308, 400, 401, 409, 410, 500, 503];
    faults.extend(statuses.map(|status| typed(status, "application/json", &text)));
    faults
}
