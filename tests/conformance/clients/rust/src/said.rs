//! Helpers of both programs for the generated crates.

use std::env::{VarError, var};
use std::fmt::Debug;
use std::time::Duration;

pub fn setting(name: &str) -> Result<String, VarError> {
    var(name)
}

/// A value that no earlier run has used.
pub fn key() -> String {
    let now = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    format!("smoke-{}", now.as_nanos())
}

/// Polls until the response is final.
pub async fn until<T, E: Debug>(
    ask: impl AsyncFn() -> Result<T, E>,
    last: impl Fn(&T) -> bool,
) -> Result<T, E> {
    for _ in 0..100 {
        let answer = ask().await?;
        if last(&answer) {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it never came to an end");
}
