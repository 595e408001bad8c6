//! A request that is built, mutated, sent and printed.

use std::fmt::Write;

use acceptance::Call;
use axum::http::{HeaderName, HeaderValue, Uri};
use partner_core::events::Service;

/// A request whose parts have their wire form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The segments of the path.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn target(&self) -> String {
        let mut target = format!("/{}", self.path.join("/"));
        for (at, (name, value)) in self.query.iter().enumerate() {
            let join = if at == 0 { '?' } else { '&' };
            let _ = write!(target, "{join}{name}={value}");
        }
        target
    }

    /// The value of a header, if present.
    pub(crate) fn header(&mut self, name: &str) -> Option<&mut String> {
        let mut headers = self.headers.iter_mut();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    pub(crate) fn add(&mut self, name: &str, value: impl Into<String>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.headers.retain(|(known, _)| known != name);
    }

    /// The call to send; `None` if HTTP cannot express the request.
    pub(crate) fn call(&self) -> Option<Call> {
        let target = self.target();
        Uri::try_from(&target).ok()?;
        let mut call = Call::new(&self.method, &target);
        for (name, value) in &self.headers {
            HeaderName::from_bytes(name.as_bytes()).ok()?;
            HeaderValue::from_bytes(value.as_bytes()).ok()?;
            call = call.header(name, value);
        }
        Some(match &self.body {
            Some(body) => call.body(body.clone()),
            None => call,
        })
    }

    /// The request as a shell command.
    pub(crate) fn curl(&self, service: Service) -> String {
        let mut line = format!("curl -i -X {}", self.method);
        for (name, value) in &self.headers {
            // A semicolon makes curl send an empty header.
            let header = if value.is_empty() {
                format!("{name};")
            } else {
                format!("{name}: {value}")
            };
            let _ = write!(line, " -H {}", quoted(header.as_bytes()));
        }
        if let Some(body) = &self.body {
            let _ = write!(line, " --data-binary {}", quoted(body));
            if !self.headers.iter().any(|(name, _)| name == "content-type") {
                line += " -H 'content-type:'";
            }
        }
        let port = match service {
            Service::Pools => 4010,
            Service::Gate => 4020,
        };
        let target = format!("http://127.0.0.1:{port}{}", self.target());
        let _ = write!(line, " --path-as-is {}", quoted(target.as_bytes()));
        line
    }
}

/// Bytes as one word of bash. Bash cannot express NUL, so it is shown as an escape.
fn quoted(bytes: &[u8]) -> String {
    let plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'\'';
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(plain) => format!("'{text}'"),
        _ => format!("$'{}'", bytes.escape_ascii()),
    }
}
