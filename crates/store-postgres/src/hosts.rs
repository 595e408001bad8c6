//! The hosts of the database, and the choice among several.

use std::error::Error;
use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kernel::{StoreError, StoreResult};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Row as _};
use tokio::time::timeout;

use crate::conn::Conn;
use crate::errors;
use crate::health::Alarm;

/// Prepared statements that a connection keeps. All statements of the store fit. The driver closes no statement without this cache.
const STATEMENTS: usize = 256;
/// The name of a session if neither the URL nor the environment names it.
const APPLICATION: &str = "penstock";
/// The parameter for the required kind of host, [`Target`].
const TARGET_PARAMETER: &str = "target_session_attrs";
/// Parameters that name a host. They would replace each of several hosts.
const HOST_PARAMETERS: [&str; 3] = ["host", "hostaddr", "port"];

/// Sets up a session, and reads whether the server takes writes, whether it is a standby, and what [`unsuitable`] needs.
///
/// The server probes a client after 10 s of silence and closes the session 20 s later, so that the locks of a lost client do not
/// last. The driver offers no way to set keepalives on the client's sockets, so the client relies on the deadline of each exchange.
const GREETING: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
     SET tcp_keepalives_count = 4; SET tcp_user_timeout = '20s'; \
     SELECT current_setting('transaction_read_only') = 'on' AS read_only, pg_is_in_recovery() AS standby, \
            current_setting('server_encoding') AS encoding, current_setting('server_version_num')::integer AS version";

/// The only encoding that stores every text. In another encoding the server refuses some texts, or stores bytes without a check.
const ENCODING: &str = "UTF8";
/// The oldest version of the server, as its setting `server_version_num` writes it.
const MIN_VERSION: i32 = 150_000;

/// Why a URL cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.expected())]
pub enum UnreadUrl {
    /// The text is not the URL of a database.
    Form,
    /// `target_session_attrs` has an unknown value.
    Target,
    /// `target_session_attrs` occurs twice.
    TargetTwice,
    /// The URL has several hosts and a parameter that names another host.
    HostTwice,
}

impl UnreadUrl {
    /// The expected form.
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Form => "expected postgres://user:password@host:5432/database",
            Self::Target => {
                "expected target_session_attrs to be any, read-write or primary: this program writes, so a standby is of no use"
            }
            Self::TargetTwice => "expected target_session_attrs once",
            Self::HostTwice => {
                "expected several hosts before the database's name, such as postgres://user:password@one:5432,two:5432/database, \
                 and none of the parameters host, hostaddr and port with them"
            }
        }
    }
}

/// Where a database is, without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The host and the port of each server, as the driver reads them.
    pub servers: Vec<(String, u16)>,
    /// The name of the database.
    pub database: String,
}

impl fmt::Display for Location {
    /// As a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.iter();
        let servers = servers.map(|(host, port)| match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        });
        let servers = servers.collect::<Vec<_>>().join(",");
        write!(f, "postgres://{servers}/{}", self.database)
    }
}

/// The kind of server that a host must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Any server.
    Any,
    /// A server whose sessions may write.
    ReadWrite,
    /// A server that is not a standby.
    Primary,
}

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection to each host.
    pub connect: Duration,
    /// For the response to a statement or a commit.
    pub statement: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            statement: Duration::from_secs(5),
        }
    }
}

/// The servers of one database. The host that was used last is tried first, then the others in order, so that an unreachable host
/// delays one connection and not every connection.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    hosts: Vec<PgConnectOptions>,
    target: Target,
    last: Arc<AtomicUsize>,
}

impl Hosts {
    pub(crate) fn parse(url: &str) -> Result<Self, UnreadUrl> {
        let (scheme, rest) = url.split_once("://").ok_or(UnreadUrl::Form)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).ok_or(UnreadUrl::Form)?;
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let (rest, target) = without_target(rest)?;
        let hosts: Vec<&str> = hosts.split(',').collect();
        let several = hosts.len() > 1;
        if several && hosts.iter().any(|host| host.is_empty()) {
            return Err(UnreadUrl::Form);
        }
        if names_host(&rest, several) {
            return Err(UnreadUrl::HostTwice);
        }
        let options = hosts
            .iter()
            .map(|host| options(&format!("{scheme}://{user}{host}{rest}")))
            .collect::<Result<_, _>>()?;
        // One of several hosts may be a standby, which is of no use to a program that writes.
        let default = if several {
            Target::ReadWrite
        } else {
            Target::Any
        };
        Ok(Self {
            hosts: options,
            target: target.unwrap_or(default),
            last: Arc::default(),
        })
    }

    pub(crate) fn location(&self) -> Location {
        let place = |options: &PgConnectOptions| {
            let socket = options.get_socket().map(|path| path.display().to_string());
            let host = socket.unwrap_or_else(|| options.get_host().to_owned());
            (host.trim_matches(['[', ']']).to_owned(), options.get_port())
        };
        let database = self.hosts.first().map(database_of).unwrap_or_default();
        Location {
            servers: self.hosts.iter().map(place).collect(),
            database: database.to_owned(),
        }
    }

    /// Connects to the first suitable host, beginning with the host that was used last.
    pub(crate) async fn connect(
        &self,
        timeouts: Timeouts,
        alarm: &Arc<Alarm>,
    ) -> StoreResult<Conn> {
        let mut refusals = Vec::new();
        let last = self.last.load(Ordering::Acquire);
        let hosts = self.hosts.iter().enumerate();
        let (before, from) = hosts.partition::<Vec<_>, _>(|(index, _)| *index < last);
        for (index, options) in from.into_iter().chain(before) {
            match self.connect_to(options, timeouts, alarm).await {
                Ok(conn) => {
                    self.last.store(index, Ordering::Release);
                    return Ok(conn);
                }
                Err(StoreError::Unavailable(why)) => refusals.push(named(options, &why)),
                // An unexpected error of one host is an error of the URL.
                Err(fault) => return Err(fault),
            }
        }
        Err(StoreError::unavailable(refusals.join("; ")))
    }

    /// Adds the server and the database to an error: those that were used last.
    pub(crate) fn locate(&self, fault: StoreError) -> StoreError {
        let Some(options) = self.hosts.get(self.last.load(Ordering::Acquire)) else {
            return fault;
        };
        let located =
            |why: &(dyn Error + Send + Sync + 'static)| located(options, &kernel::causes(why));
        match fault {
            StoreError::Unexpected(why) => StoreError::unexpected(located(&*why)),
            StoreError::Unavailable(why) => StoreError::unavailable(located(&*why)),
            other => other,
        }
    }

    async fn connect_to(
        &self,
        options: &PgConnectOptions,
        timeouts: Timeouts,
        alarm: &Arc<Alarm>,
    ) -> StoreResult<Conn> {
        let connecting = async {
            let link = options.connect().await?;
            let mut conn = Conn::new(link, timeouts.statement, Arc::clone(alarm));
            // The server cancels a slow statement before the exchange's deadline, so that a slow server does not count as lost.
            let limit = (timeouts.statement.saturating_mul(4) / 5).as_millis();
            let greeting = format!("SET statement_timeout = {limit}; {GREETING}");
            let greeted = conn
                .fetch_one(sqlx::raw_sql(AssertSqlSafe(greeting)))
                .await?;
            let found = (greeted.try_get("read_only")?, greeted.try_get("standby")?);
            let encoding: String = greeted.try_get("encoding")?;
            let unsuitable = unsuitable(&encoding, greeted.try_get("version")?);
            Ok::<_, sqlx::Error>((conn, found, unsuitable))
        };
        let limit = timeouts.connect;
        let (conn, (read_only, standby), unsuitable) = timeout(limit, connecting)
            .await
            .map_err(|_| {
                StoreError::unavailable(format!(
                    "no connection within {} ms: check its address and the network, or raise \
                     PENSTOCK_DATABASE_CONNECT_TIMEOUT",
                    limit.as_millis()
                ))
            })?
            .map_err(|error| errors::connecting(error, options))?;
        let refused = match self.target {
            Target::Any => None,
            Target::ReadWrite => Some("it takes no writes").filter(|_| read_only),
            Target::Primary => Some("it is a standby").filter(|_| standby),
        };
        let fault = match (refused, unsuitable) {
            (None, None) => return Ok(conn),
            (Some(refused), _) => StoreError::unavailable(refused),
            (None, Some(unsuitable)) => StoreError::unexpected(located(options, &unsuitable)),
        };
        conn.close().await;
        Err(fault)
    }
}

/// A database has the name of its role unless the URL names it.
fn database_of(options: &PgConnectOptions) -> &str {
    options
        .get_database()
        .unwrap_or_else(|| options.get_username())
}

fn located(options: &PgConnectOptions, why: &str) -> String {
    let (host, port) = (options.get_host(), options.get_port());
    let database = database_of(options);
    format!("the server at {host}:{port}, database `{database}`: {why}")
}

/// Why the store cannot use a database with this encoding, on a server of this version. `None` if it can.
fn unsuitable(encoding: &str, version: i32) -> Option<String> {
    if version < MIN_VERSION {
        let (found, oldest) = (version / 10_000, MIN_VERSION / 10_000);
        return Some(format!(
            "the server is PostgreSQL {found}: upgrade it to {oldest} or newer"
        ));
    }
    (encoding != ENCODING).then(|| {
        format!(
            "its encoding is {encoding}, which cannot store every text: name a database that was created with \
             `createdb --encoding=UTF8 --template=template0`"
        )
    })
}

fn named(options: &PgConnectOptions, why: &dyn fmt::Display) -> String {
    let (host, port) = (options.get_host(), options.get_port());
    format!("the server at {host}:{port}: {why}")
}

fn options(url: &str) -> Result<PgConnectOptions, UnreadUrl> {
    let options = PgConnectOptions::from_str(url).map_err(|_| UnreadUrl::Form)?;
    // The store reads no floats, and a pooler may reject this parameter.
    let options = options
        .extra_float_digits(None)
        .statement_cache_capacity(STATEMENTS);
    let is_named = options.get_application_name().is_some();
    Ok(if is_named {
        options
    } else {
        options.application_name(APPLICATION)
    })
}

/// Removes `target_session_attrs`, which the driver does not know, from the part after the hosts.
fn without_target(rest: &str) -> Result<(String, Option<Target>), UnreadUrl> {
    let Some((path, query)) = rest.split_once('?') else {
        return Ok((rest.to_owned(), None));
    };
    let mut target = None;
    let mut others = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some((TARGET_PARAMETER, value)) => {
                let value = parse_target(value)?;
                if target.replace(value).is_some() {
                    return Err(UnreadUrl::TargetTwice);
                }
            }
            None if parameter == TARGET_PARAMETER => return Err(UnreadUrl::Target),
            _ => others.push(parameter),
        }
    }
    let separator = if others.is_empty() { "" } else { "?" };
    Ok((format!("{path}{separator}{}", others.join("&")), target))
}

fn parse_target(value: &str) -> Result<Target, UnreadUrl> {
    match value {
        "any" => Ok(Target::Any),
        "read-write" => Ok(Target::ReadWrite),
        "primary" => Ok(Target::Primary),
        _ => Err(UnreadUrl::Target),
    }
}

/// Does a parameter name a host in a URL with several hosts, or name several hosts itself?
fn names_host(rest: &str, several: bool) -> bool {
    let (_, query) = rest.split_once('?').unwrap_or_default();
    query.split('&').any(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        HOST_PARAMETERS.contains(&name)
            && (several || value.contains(',') || value.to_lowercase().contains("%2c"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> (Vec<String>, Target) {
        let hosts = Hosts::parse(url).unwrap();
        let shown = hosts
            .hosts
            .iter()
            .map(|host| format!("{}:{}", host.get_host(), host.get_port()));
        (shown.collect(), hosts.target)
    }

    // rule: config.database-hosts
    #[test]
    fn url_names_one_host_or_several() {
        for (url, hosts, target) in [
            ("postgres://u:p@one:5433/db", vec!["one:5433"], Target::Any),
            (
                "postgres://u:p@one:5433/db?target_session_attrs=primary",
                vec!["one:5433"],
                Target::Primary,
            ),
            (
                "postgres://u:p%2C%40@one:5433,two:5434/db?sslmode=disable",
                vec!["one:5433", "two:5434"],
                Target::ReadWrite,
            ),
            (
                "postgresql://u@one:1,[::1]:2/db?target_session_attrs=any&sslmode=disable",
                vec!["one:1", "[::1]:2"],
                Target::Any,
            ),
        ] {
            let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
            assert_eq!(read(url), (hosts, target), "{url}");
        }
    }

    // rule: config.database-server
    #[test]
    fn session_has_the_name_of_the_url_or_of_the_program() {
        for (url, name) in [
            ("postgres://u:p@one/db", APPLICATION),
            (
                "postgres://u:p@one/db?application_name=replica-1",
                "replica-1",
            ),
        ] {
            let hosts = Hosts::parse(url).unwrap();
            assert_eq!(hosts.hosts[0].get_application_name(), Some(name));
        }
    }

    // rule: base.database-suitable
    #[test]
    fn database_needs_encoding_utf8_and_server_version_15() {
        assert_eq!(unsuitable("UTF8", 150_000), None);
        assert_eq!(unsuitable("UTF8", 180_001), None);
        for encoding in ["LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP"] {
            let why = unsuitable(encoding, 170_002).unwrap();
            let found = format!("its encoding is {encoding}, ");
            assert!(
                why.starts_with(&found) && why.contains("--encoding=UTF8"),
                "{why}"
            );
        }
        let why = unsuitable("UTF8", 140_011).unwrap();
        assert_eq!(
            why,
            "the server is PostgreSQL 14: upgrade it to 15 or newer"
        );
    }

    // rule: config.database-hosts
    #[test]
    fn url_with_bad_host_parameters_is_refused() {
        for (url, why) in [
            (
                "postgres://u@one/db?target_session_attrs=standby",
                UnreadUrl::Target,
            ),
            (
                "postgres://u@one/db?target_session_attrs=",
                UnreadUrl::Target,
            ),
            (
                "postgres://u@one/db?target_session_attrs",
                UnreadUrl::Target,
            ),
            (
                "postgres://u@one/db?target_session_attrs=any&target_session_attrs=any",
                UnreadUrl::TargetTwice,
            ),
            ("postgres://u@one,two/db?host=three", UnreadUrl::HostTwice),
            ("postgres://u@one,two/db?port=5", UnreadUrl::HostTwice),
            ("postgres:///db?host=one,two&user=u", UnreadUrl::HostTwice),
            ("postgres://u@one,,two/db", UnreadUrl::Form),
            ("postgres://u@one,/db", UnreadUrl::Form),
            ("postgres://u@one:x,two/db", UnreadUrl::Form),
        ] {
            assert_eq!(Hosts::parse(url).unwrap_err(), why, "{url}");
        }
    }
}
