//! A private pair of Postgres servers under Patroni, with etcd and HAProxy.
//!
//! One node is the primary, the other its synchronous standby. Everything runs on free ports of the loopback, as an unprivileged
//! user. The caller supplies the port of every route to a node, so a proxy can cut the node off from the other one, from etcd and
//! from clients.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::servers::postgres::client;
use crate::servers::process::{Server, User, find, program};
use crate::servers::{Doing, Error, Result};

const PACKAGES: [(&str, &str); 4] = [
    ("patroni", "patroni"),
    ("etcd", "etcd-server"),
    ("haproxy", "haproxy"),
    ("pg_controldata", "postgresql"),
];
const NAMES: [&str; 2] = ["one", "two"];
/// Seconds without contact after which a leader is replaced.
const LEADER_TTL: u32 = 8;
/// Time limit for a state of the pair, and the interval between queries.
const STATE_TIMEOUT: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Lines of each log that an error shows.
const LOG_LINES: usize = 60;
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a required program that is not installed, with its package.
#[must_use]
pub fn missing_for_patroni() -> Option<&'static str> {
    PACKAGES
        .into_iter()
        .find(|(program, _)| find(program).is_none())
        .map(|(_, package)| package)
}

/// The pair with etcd and HAProxy.
#[derive(Debug)]
pub struct Patroni {
    // Dropped before its dependencies and its folder.
    nodes: [Node; 2],
    _haproxy: Server,
    _etcd: Server,
    haproxy_port: u16,
    password: String,
    user: User,
    folder: TempDir,
}

#[derive(Debug)]
struct Node {
    name: &'static str,
    server: Option<Server>,
    data: PathBuf,
    /// Port for clients, the other node and HAProxy.
    postgres: u16,
    /// Port of Patroni's API without a proxy.
    state: u16,
}

/// The ports of a node, and the ports of the routes to it.
struct Ports {
    postgres: u16,
    postgres_route: u16,
    api: u16,
    api_route: u16,
    etcd_route: u16,
}

/// Opens a route to a port of the node with this number. Returns the port of the route.
pub type Route<'r> = &'r dyn Fn(usize, u16) -> std::io::Result<u16>;

impl Patroni {
    /// Starts everything and waits until the standby is synchronous.
    ///
    /// # Errors
    /// If a program is missing or does not start.
    pub fn start(route: Route<'_>) -> Result<Self> {
        let user = User::unprivileged()?;
        let folder = user.folder()?;
        let [etcd, peer, haproxy_port, p1, a1, p2, a2] = free_ports()?;
        let ports = |node, postgres, api| -> std::io::Result<Ports> {
            Ok(Ports {
                postgres,
                postgres_route: route(node, postgres)?,
                api,
                api_route: route(node, api)?,
                etcd_route: route(node, etcd)?,
            })
        };
        let ports = [
            ports(0, p1, a1).doing("making a way to a node")?,
            ports(1, p2, a2).doing("making a way to a node")?,
        ];
        let password = crate::servers::postgres::password()?;
        let etcd = start_etcd(user, folder.path(), etcd, peer)?;
        let haproxy = start_haproxy(user, folder.path(), haproxy_port, &ports)?;
        let [one, two] = NAMES;
        let node = |name: &'static str, ports: &Ports| -> Result<Node> {
            let data = folder.path().join(name);
            let text = settings(name, ports, &data, &password)?;
            let file = folder.path().join(format!("{name}.yml"));
            fs::write(&file, text).doing("writing Patroni's settings")?;
            user.own(&file)?;
            Ok(Node {
                name,
                server: None,
                data,
                postgres: ports.postgres_route,
                state: ports.api,
            })
        };
        let [first, second] = &ports;
        let mut pair = Self {
            nodes: [node(one, first)?, node(two, second)?],
            _haproxy: haproxy,
            _etcd: etcd,
            haproxy_port,
            password,
            user,
            folder,
        };
        pair.start_node(0)?;
        pair.wait("primary", |pair| pair.is(0, "/primary"))?;
        pair.start_node(1)?;
        pair.wait_for_standby()?;
        Ok(pair)
    }

    /// A URL through HAProxy, which routes to the primary.
    #[must_use]
    pub fn by_haproxy(&self, database: &str) -> String {
        self.url(&format!("127.0.0.1:{}", self.haproxy_port), database)
    }

    /// A URL that names both nodes.
    #[must_use]
    pub fn by_hosts(&self, database: &str) -> String {
        let [one, two] = &self.nodes;
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", one.postgres, two.postgres);
        self.url(&hosts, database)
    }

    fn url(&self, hosts: &str, database: &str) -> String {
        let password = &self.password;
        format!("postgres://postgres:{password}@{hosts}/{database}")
    }

    /// A command of a client program, such as `psql`, on a database of the primary.
    ///
    /// # Errors
    /// If the program is missing.
    pub fn client(&self, name: &'static str, database: &str) -> Result<Command> {
        let program = program(name, "postgresql-client")?;
        let port = self.haproxy_port;
        Ok(client(&program, port, &self.password, database))
    }

    /// Returns the number of the node that reports itself as the primary.
    #[must_use]
    pub fn primary(&self) -> Option<usize> {
        (0..NAMES.len()).find(|node| self.is(*node, "/primary"))
    }

    /// Whether a node, asked directly, reports itself as the primary.
    #[must_use]
    pub fn is_primary(&self, node: usize) -> bool {
        self.is(node, "/primary")
    }

    /// Waits until there is a primary with a synchronous standby.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn wait_for_standby(&self) -> Result<()> {
        self.wait("synchronous standby", |pair| {
            pair.primary()
                .is_some_and(|primary| pair.is(1 - primary, "/sync"))
        })
    }

    /// Kills a node as a power cut would: Patroni and every process of its Postgres.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self, node: usize) -> Result<()> {
        let pids = self.postgres_of(node);
        let node = self.node(node)?;
        if let Some(mut server) = node.server.take() {
            server.end(Signal::KILL)?;
        }
        signal_all(&pids, Signal::KILL);
        Ok(())
    }

    /// Starts a node that was killed.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_node(&mut self, number: usize) -> Result<()> {
        let program = program("patroni", "patroni")?;
        let folder = self.folder.path().to_owned();
        let user = self.user;
        let node = self.node(number)?;
        let mut command = user.command(&program, &folder);
        command.arg(format!("{}.yml", node.name));
        let state = node.state;
        let log = folder.join(format!("{}.log", node.name));
        let answers = || ask(state, "GET", "/liveness", "").is_some();
        let server = Server::start("patroni", command, Signal::KILL, log, answers)?;
        node.server = Some(server);
        Ok(())
    }

    /// Stops every process of a node with SIGSTOP.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn freeze(&mut self, node: usize) -> Result<()> {
        self.signal(node, Signal::STOP)
    }

    /// Continues the processes of a frozen node.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn thaw(&mut self, node: usize) -> Result<()> {
        self.signal(node, Signal::CONT)
    }

    /// Switches over to the standby. Patroni responds when the switchover is done; this call does not wait for it.
    ///
    /// # Errors
    /// If Patroni does not accept the request.
    pub fn switch_over(&self, from: usize) -> Result<()> {
        let [one, two] = NAMES;
        let (leader, candidate) = if from == 0 { (one, two) } else { (two, one) };
        let body = format!("{{\"leader\":\"{leader}\",\"candidate\":\"{candidate}\"}}");
        let state = self.nodes.get(from).map_or(0, |node| node.state);
        send(state, "POST", "/switchover", &body)
            .map(drop)
            .ok_or_else(|| Error::Failed {
                program: "patroni".to_owned(),
                what: "does not take a switchover".to_owned(),
                output: self.logs(),
            })
    }

    fn signal(&mut self, node: usize, signal: Signal) -> Result<()> {
        let pids = self.postgres_of(node);
        let node = self.node(node)?;
        if let Some(server) = &mut node.server {
            server.signal(signal)?;
        }
        signal_all(&pids, signal);
        Ok(())
    }

    /// The processes of a node's Postgres, the postmaster first.
    fn postgres_of(&self, node: usize) -> Vec<Pid> {
        let Some(node) = self.nodes.get(node) else {
            return Vec::new();
        };
        let Some(first) = postmaster(&node.data) else {
            return Vec::new();
        };
        std::iter::once(first).chain(children(first)).collect()
    }

    fn node(&mut self, number: usize) -> Result<&mut Node> {
        self.nodes.get_mut(number).ok_or_else(|| Error::Failed {
            program: "patroni".to_owned(),
            what: format!("has no node {number}"),
            output: String::new(),
        })
    }

    fn is(&self, node: usize, state: &str) -> bool {
        let node = self.nodes.get(node);
        node.is_some_and(|node| ask(node.state, "GET", state, "") == Some(200))
    }

    fn wait(&self, what: &str, is_there: impl Fn(&Self) -> bool) -> Result<()> {
        for _ in 0..STATE_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            if is_there(self) {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(Error::Silent {
            program: format!("patroni: no {what}"),
            output: self.logs(),
        })
    }

    /// The last lines of both nodes' logs.
    #[must_use]
    pub fn logs(&self) -> String {
        let logs = NAMES.map(|name| {
            let log = self.folder.path().join(format!("{name}.log"));
            let said = fs::read_to_string(log).unwrap_or_default();
            let mut lines: Vec<&str> = said.lines().rev().take(LOG_LINES).collect();
            lines.reverse();
            format!("-- {name}\n{}", lines.join("\n"))
        });
        logs.join("\n")
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        // A process that cannot be killed here is lost with its folder.
        for node in 0..NAMES.len() {
            let _ = self.kill(node);
        }
    }
}

/// Finds ports that are free at the same time.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing("looking for a port")?;
        *port = listener.local_addr().doing("looking for a port")?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Writes Patroni's settings with version 2 of etcd's API. With version 3, Patroni 3.0.2 lets a primary that was frozen take the
/// lock back from its successor, which loses what the successor has acknowledged.
fn start_etcd(user: User, folder: &Path, client: u16, peer: u16) -> Result<Server> {
    let mut command = user.command(&program("etcd", "etcd-server")?, folder);
    let (client_url, peer_url) = (
        format!("http://127.0.0.1:{client}"),
        format!("http://127.0.0.1:{peer}"),
    );
    command
        .args(["--name", "etcd", "--data-dir", "etcd", "--enable-v2"])
        .args(["--listen-client-urls", &client_url])
        .args(["--advertise-client-urls", &client_url])
        .args(["--listen-peer-urls", &peer_url])
        .args(["--initial-advertise-peer-urls", &peer_url])
        .args(["--initial-cluster", &format!("etcd={peer_url}")]);
    let answers = || ask(client, "GET", "/health", "") == Some(200);
    let log = folder.join("etcd.log");
    Server::start("etcd", command, Signal::KILL, log, answers)
}

/// Follows Patroni's own example: only the primary is up, and sessions to a server that is down are ended.
fn start_haproxy(user: User, folder: &Path, port: u16, nodes: &[Ports; 2]) -> Result<Server> {
    let mut text = format!(
        "global\n  maxconn 500\ndefaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1h\n  timeout server 1h\n  \
         timeout check 1s\nlisten primary\n  bind 127.0.0.1:{port}\n  option httpchk GET /primary\n  \
         http-check expect status 200\n  \
         default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions\n"
    );
    for (name, ports) in NAMES.iter().zip(nodes) {
        let (postgres, api) = (ports.postgres_route, ports.api_route);
        text += &format!("  server {name} 127.0.0.1:{postgres} check port {api}\n");
    }
    let file = folder.join("haproxy.cfg");
    fs::write(&file, text).doing("writing HAProxy's settings")?;
    user.own(&file)?;
    let mut command = user.command(&program("haproxy", "haproxy")?, folder);
    command.args(["-db", "-f", "haproxy.cfg"]);
    let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    let log = folder.join("haproxy.log");
    Server::start("haproxy", command, Signal::KILL, log, answers)
}

/// A missing leader is replaced after eight seconds, so that a test need not wait long; a production pair takes thirty.
fn settings(name: &str, ports: &Ports, data: &Path, password: &str) -> Result<String> {
    // Patroni needs the folder with all programs, which the links in PATH do not lead to.
    let bin = program("pg_controldata", "postgresql")?;
    let bin = bin.canonicalize().doing("looking for Postgres")?;
    let bin = bin.parent().unwrap_or(Path::new("/")).display();
    let data = data.display();
    let Ports {
        postgres,
        postgres_route,
        api,
        api_route,
        etcd_route,
    } = ports;
    Ok(format!(
        r#"scope: penstock
name: {name}
restapi: {{listen: "127.0.0.1:{api}", connect_address: "127.0.0.1:{api_route}"}}
etcd: {{hosts: "127.0.0.1:{etcd_route}", use_proxies: true}}
bootstrap:
  dcs:
    ttl: {LEADER_TTL}
    loop_wait: 1
    retry_timeout: 3
    primary_start_timeout: 0
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {{wal_log_hints: "on", max_connections: 100, wal_keep_size: 512MB, wal_sender_timeout: 5s, wal_receiver_timeout: 5s}}
  initdb: [{{encoding: UTF8}}, {{locale: C.UTF-8}}]
postgresql:
  listen: "127.0.0.1:{postgres}"
  connect_address: "127.0.0.1:{postgres_route}"
  data_dir: "{data}"
  bin_dir: "{bin}"
  pgpass: "{data}.pgpass"
  authentication:
    superuser: {{username: postgres, password: "{password}"}}
    replication: {{username: replicator, password: "{password}"}}
    rewind: {{username: rewinder, password: "{password}"}}
  parameters: {{unix_socket_directories: ""}}
  pg_hba: ["host all all 127.0.0.1/32 password", "host replication all 127.0.0.1/32 password"]
watchdog: {{mode: "off"}}
"#
    ))
}

/// Sends a request to Patroni or etcd. Returns the status, if there is a response.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = send(port, method, path, body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

fn send(port: u16, method: &str, path: &str, body: &str) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ASK_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(ASK_TIMEOUT)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    Some(stream)
}

/// Returns the first process of a running Postgres.
fn postmaster(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = Pid::from_raw(text.lines().next()?.trim().parse().ok()?)?;
    // The file outlives a killed server, and another program may have its process id now.
    let command = fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let data = data.to_string_lossy();
    command.contains(&*data).then_some(pid)
}

/// Returns the children of a process.
fn children(of: Pid) -> Vec<Pid> {
    let parent = of.as_raw_nonzero().get();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        let found: i32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        (found == parent).then(|| Pid::from_raw(pid))?
    })
    .collect()
}

fn signal_all(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // The process may have ended already.
        let _ = kill_process(*pid, signal);
    }
}
