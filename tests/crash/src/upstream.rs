//! The server of an upstream that the driver plays.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::Result;
use crate::receiver::parse;

/// Serves calls on a free port until the driver ends. `answer` gets the path and the JSON body of a call, null without one, and
/// returns status and body. Without them the connection is closed: the response is lost.
pub(crate) fn play(
    answer: impl Fn(&str, &Value) -> Option<(u16, Value)> + Clone + Send + 'static,
) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || serve(stream, answer));
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream, answer: impl Fn(&str, &Value) -> Option<(u16, Value)>) {
    // A killed service leaves its connections open.
    let _ = stream.set_read_timeout(Some(Duration::from_secs(90)));
    let (mut buffer, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    loop {
        if let Some((path, _, start, end)) = parse(&buffer) {
            let body = buffer.get(start..end).unwrap_or_default();
            let body = serde_json::from_slice(body).unwrap_or(Value::Null);
            let Some((status, said)) = answer(&path, &body) else {
                return;
            };
            let said = said.to_string();
            let length = said.len();
            let head = format!("HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n");
            let whole = format!("{head}Content-Length: {length}\r\n\r\n{said}");
            if stream.write_all(whole.as_bytes()).is_err() {
                return;
            }
            buffer.drain(..end);
            continue;
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(read) => buffer.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
    }
}
