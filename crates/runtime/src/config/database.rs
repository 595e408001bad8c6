//! The database setting: a file, or a database on a server.

use std::fmt;
use std::path::{Path, PathBuf};

use kernel::Mode;
use store_postgres::{Location, PostgresStore, UnreadUrl};

use super::path::{check_no_host, check_path, check_visible};
use super::value::{InvalidSetting, without_credentials};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// An SQLite file. A relative path is relative to the working directory.
    Sqlite(PathBuf),
    /// A database on a Postgres server.
    Postgres(ServerUrl),
}

impl fmt::Display for Database {
    /// Where the database is, as a URL without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(f, "sqlite://{}", absolute(file).display()),
            Self::Postgres(url) => write!(f, "{}", url.location),
        }
    }
}

impl Database {
    /// Logs at the start of a service where the database is.
    pub(crate) fn log(&self, mode: Mode) {
        match self {
            Self::Sqlite(file) => tracing::info!(
                %mode,
                database.kind = "sqlite",
                database.name = %absolute(file).display(),
                "Opened the database"
            ),
            Self::Postgres(url) => {
                let servers = url.location.servers.iter();
                let (hosts, ports): (Vec<&str>, Vec<String>) = servers
                    .map(|(host, port)| (host.as_str(), port.to_string()))
                    .unzip();
                tracing::info!(
                    %mode,
                    database.kind = "postgres",
                    database.host = hosts.join(","),
                    database.port = ports.join(","),
                    database.name = url.location.database,
                    "Opened the database"
                );
            }
        }
    }

    /// The same database, with the file that a symbolic link names. The key and the log are beside that file.
    #[must_use]
    pub fn behind_links(self) -> Self {
        match self {
            Self::Sqlite(file) => Self::Sqlite(behind_links(file)),
            Self::Postgres(url) => Self::Postgres(url),
        }
    }
}

/// Links that are followed before a file counts as one that links to itself.
const MAX_LINKS: u32 = 40;

fn behind_links(mut file: PathBuf) -> PathBuf {
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&file) {
            Ok(target) => file = file.with_file_name("").join(target),
            // The file is no link, or does not exist. Opening it reports any other error.
            Err(_) => break,
        }
    }
    file
}

/// The path from the root, so that a reader need not know the working directory.
fn absolute(file: &Path) -> PathBuf {
    // Without a working directory the path is shown as the operator wrote it.
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// The URL of a database on a server, unchanged. It may contain a password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    url: String,
    location: Location,
}

impl ServerUrl {
    /// The complete URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.url
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_credentials(&self.url))
    }
}

/// The schemes of a server's URL.
const SERVERS: [&str; 2] = ["postgres://", "postgresql://"];
/// The allowed query parameters, in addition to `options[...]`. The driver would ignore all others.
const PARAMETERS: [&str; 12] = [
    "application_name",
    "dbname",
    "host",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "user",
];

/// The driver's parameter for the number of prepared statements. With 0 the driver still prepares each statement and never closes it,
/// so a pooler that assigns connections by transaction fails, and a server runs out of memory.
const STATEMENTS_PARAMETER: &str = "statement-cache-capacity";
const NO_STATEMENTS_PARAMETER: &str = "expected no parameter statement-cache-capacity: the store needs prepared statements; remove it, \
     and behind PgBouncer use version 1.21 or newer with max_prepared_statements = 256";

/// The name of a database in memory, which would lose its trades when the program ends.
const IN_MEMORY: &str = ":memory:";

/// Maximum characters of an unknown parameter's name that an error repeats.
const PARAMETER_LENGTH: usize = 32;

pub(crate) fn database(text: &str) -> Result<Database, InvalidSetting> {
    if SERVERS.iter().any(|scheme| text.starts_with(scheme)) {
        return server(text).map(Database::Postgres);
    }
    check_visible(text).map_err(of_file)?;
    if text.starts_with("sqlite:") && text.contains(IN_MEMORY) {
        return Err(of_file(format!(
            "`{IN_MEMORY}` would lose every trade when the program ends; name a file"
        )));
    }
    let path = text.strip_prefix("sqlite://").ok_or(InvalidSetting::Form)?;
    if path.is_empty() || path.ends_with('/') {
        return Err(InvalidSetting::Form);
    }
    check_path(path).map_err(of_file)?;
    check_no_host(path).map_err(of_file)?;
    Ok(Database::Sqlite(PathBuf::from(path)))
}

fn of_file(why: String) -> InvalidSetting {
    InvalidSetting::Because(format!("expected sqlite://<file>: {why}"))
}

/// Checks that a server's URL names its hosts and database, and nothing that the driver would ignore.
fn server(text: &str) -> Result<ServerUrl, InvalidSetting> {
    // The first host represents all hosts, because only the store parses lists.
    let (scheme, rest) = text.split_once("://").ok_or(InvalidSetting::Form)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).ok_or(InvalidSetting::Form)?;
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    let first = hosts.split(',').next().unwrap_or_default();
    let url = url::Url::parse(&format!("{scheme}://{user}{first}{rest}"));
    let url = url.map_err(|_| InvalidSetting::Form)?;
    let mut named: Vec<String> = url.query_pairs().map(|(name, _)| name.into()).collect();
    if named.iter().any(|name| name == STATEMENTS_PARAMETER) {
        return Err(InvalidSetting::Because(NO_STATEMENTS_PARAMETER.to_owned()));
    }
    let known = |name: &String| {
        PARAMETERS.contains(&name.as_str()) || (name.starts_with("options[") && name.ends_with(']'))
    };
    let unknown = named.iter().find(|name| !known(name)).cloned();
    named.extend(
        url.host_str()
            .filter(|host| !host.is_empty())
            .map(|_| "host".to_owned()),
    );
    named.extend((url.path().len() > 1).then(|| "dbname".to_owned()));
    let whole = ["host", "dbname"]
        .iter()
        .all(|part| named.iter().any(|name| name == part));
    if !whole || url.fragment().is_some() {
        return Err(InvalidSetting::Form);
    }
    if let Some(name) = unknown {
        // A name that is not a plain word may be part of a password.
        let is_plain = |letter: char| letter.is_ascii_lowercase() || matches!(letter, '_' | '-');
        let is_named =
            !name.is_empty() && name.len() <= PARAMETER_LENGTH && name.chars().all(is_plain);
        return Err(if is_named {
            InvalidSetting::Because(format!(
                "unknown query parameter `{name}`; remove it or correct its name"
            ))
        } else {
            InvalidSetting::Form
        });
    }
    let location = PostgresStore::locate(text).map_err(|unread| match unread {
        UnreadUrl::Form => InvalidSetting::Form,
        named => InvalidSetting::Because(named.expected().to_owned()),
    })?;
    let url = text.to_owned();
    Ok(ServerUrl { url, location })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_setting_parses_files_and_servers() {
        for (url, path) in [
            (
                "sqlite://penstock-data/penstock.db",
                "penstock-data/penstock.db",
            ),
            ("sqlite:///var/lib/penstock.db", "/var/lib/penstock.db"),
        ] {
            assert_eq!(database(url), Ok(Database::Sqlite(path.into())));
        }
        for bad in ["", "sqlite://", "sqlite://data/", "penstock.db"] {
            assert_eq!(database(bad), Err(InvalidSetting::Form), "{bad}");
        }
    }

    // rule: config.database-path
    #[test]
    fn database_setting_refuses_path_with_remedy() {
        for (bad, shown) in [
            ("sqlite://~/penstock.db", "`~` in the path is not expanded"),
            ("sqlite://$HOME/penstock.db", "`$` in the path"),
            ("sqlite:///srv/my%20data/penstock.db", "`%` in the path"),
            ("sqlite://penstock.db?mode=ro", "`?` in the path"),
            ("sqlite:///srv/a#1/penstock.db", "`#` in the path"),
            ("sqlite:///srv/pen\nstock.db", "contains '\\n'"),
            ("\u{feff}sqlite:///srv/penstock.db", "contains '\\u{feff}'"),
            ("sqlite:// /srv/penstock.db", "white space"),
            ("sqlite://localhost/penstock.db", "a file has no host"),
            ("sqlite://:memory:", "`:memory:` would lose"),
            ("sqlite::memory:", "`:memory:` would lose"),
        ] {
            let Err(InvalidSetting::Because(why)) = database(bad) else {
                panic!("{bad:?}");
            };
            assert!(why.starts_with("expected sqlite://<file>: "), "{why}");
            assert!(why.contains(shown), "{bad:?}: {why}");
        }
    }

    // rule: config.database-pooler
    #[test]
    fn database_url_refuses_parameter_for_statements_with_remedy() {
        for bad in [
            "postgres://u:p@host/db?statement-cache-capacity=0",
            "postgres://u:p@host/db?sslmode=disable&statement-cache-capacity=100",
            "postgres://u:p@host/db?statement%2Dcache-capacity=0",
        ] {
            let Err(InvalidSetting::Because(why)) = database(bad) else {
                panic!("{bad}");
            };
            assert!(why.contains("1.21 or newer"), "{why}");
            assert!(why.contains("max_prepared_statements = 256"), "{why}");
        }
    }

    // rule: config.database-server
    #[test]
    fn database_url_parses_servers() {
        for url in [
            "postgres://u:p@host/db",
            "postgresql://u@host:5433/db?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            "postgres://u:p%40ss@[::1]/db?options[role]=penstock_serve&application_name=replica-1",
            "postgres:///db?host=/run/postgresql&user=u",
        ] {
            let Ok(Database::Postgres(read)) = database(url) else {
                panic!("{url}");
            };
            assert_eq!(read.as_str(), url);
        }
        for bad in [
            "postgres://",
            "postgres://u:p@host",
            "postgres://u:p@host/",
            "postgres:///db",
            "postgres://u:p@host:port/db",
            "postgres://u:p@host/db?sslmode=maybe",
            "postgres://u:p@host/db?Hunter2",
            "postgres://u:p#w@host/db",
            "postgres://u:p@one,/db",
            "postgres://u:p@one,two",
        ] {
            assert_eq!(database(bad), Err(InvalidSetting::Form), "{bad}");
        }
        assert_eq!(
            database("postgres://u:p@host/db?sslmod=require"),
            Err(InvalidSetting::Because(
                "unknown query parameter `sslmod`; remove it or correct its name".to_owned()
            ))
        );
        let shown = format!(
            "{:?}",
            database("postgres://u:hunter2@host/db?password=hunter2")
        );
        assert!(shown.contains("u:***@host/db?***"), "{shown}");
    }

    // rule: config.database-hosts
    #[test]
    fn database_url_takes_several_hosts_and_names_wrong_parameter() {
        for url in [
            "postgres://u:p@one:5432,two:5433/db?target_session_attrs=read-write",
            "postgres://u:p@one,two,three/db",
            "postgres://u:p@one/db?target_session_attrs=primary&sslmode=require",
        ] {
            assert!(matches!(database(url), Ok(Database::Postgres(_))), "{url}");
        }
        for (url, named) in [
            (
                "postgres://u:p@one,two/db?target_session_attrs=standby",
                "target_session_attrs",
            ),
            ("postgres://u:p@one,two/db?host=three", "host"),
        ] {
            let Err(InvalidSetting::Because(message)) = database(url) else {
                panic!("{url}");
            };
            assert!(message.contains(named), "{message}");
        }
    }
}
