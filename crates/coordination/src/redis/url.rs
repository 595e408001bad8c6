//! The address of the shared Redis.

use std::fmt;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, IntoConnectionInfo};

/// Idle time before the first keepalive probe; the next constant is the interval between probes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// The connection is closed after bytes have been unacknowledged for this long.
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// The address of the shared Redis and its password: `redis://` or, over TLS, `rediss://`.
#[derive(Clone)]
pub struct RedisUrl(Client);

/// The text is not a Redis address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected redis:// or rediss://, a host, and optionally a port and a database number")]
pub struct UnreadUrl;

impl RedisUrl {
    /// Reads a URL such as `redis://user:password@host:6379/0`.
    ///
    /// # Errors
    /// [`UnreadUrl`], which does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, UnreadUrl> {
        let schemes = ["redis://", "rediss://"];
        let known = schemes.iter().any(|scheme| text.starts_with(scheme));
        // A fragment could disable the check of certificates.
        if !known || text.contains('#') {
            return Err(UnreadUrl);
        }
        let connection = text.into_connection_info().map_err(|_| UnreadUrl)?;
        if connection.redis_settings().db() < 0 {
            return Err(UnreadUrl);
        }
        // A call is one small write that must not wait for the acknowledgement of the previous write.
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_INTERVAL);
        let settings = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive);
        #[cfg(target_os = "linux")]
        let settings = settings.set_user_timeout(USER_TIMEOUT);
        let client = Client::open(connection.set_tcp_settings(settings));
        client.map(Self).map_err(|_| UnreadUrl)
    }

    pub(super) fn client(&self) -> Client {
        self.0.clone()
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({})", self.0.get_connection_info().addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_parses_with_and_without_optional_parts() {
        for (text, address) in [
            ("redis://cache.internal", "cache.internal:6379"),
            (
                "redis://user:hunter2@cache.internal:7000/3",
                "cache.internal:7000",
            ),
            ("rediss://:hunter2@10.0.0.7/", "10.0.0.7:6379"),
            ("redis://[::1]:6380", "::1:6380"),
        ] {
            let url = RedisUrl::parse(text).unwrap();
            assert_eq!(format!("{url:?}"), format!("RedisUrl({address})"));
        }
    }

    // rule: base.database-deadline
    #[test]
    fn redis_socket_has_keepalive_and_user_timeout() {
        let url = RedisUrl::parse("redis://cache.internal").unwrap();
        let settings = url.0.get_connection_info().tcp_settings().clone();
        assert!(settings.nodelay());
        assert!(settings.keepalive().is_some());
        #[cfg(target_os = "linux")]
        assert_eq!(settings.user_timeout(), Some(USER_TIMEOUT));
    }

    #[test]
    fn url_rejects_other_forms_without_repeating_password() {
        for text in [
            "",
            "redis",
            "redis://",
            "redis://:hunter2@",
            "http://hunter2@cache",
            "redis+unix:///run/redis.sock",
            "redis://:hunter2@cache:port",
            "redis://:hunter2@cache/first",
            "redis://:hunter2@cache/-1",
            "rediss://:hunter2@cache/#insecure",
        ] {
            let refused = RedisUrl::parse(text).unwrap_err();
            assert!(!format!("{refused} {refused:?}").contains("hunter2"));
        }
    }
}
