//! Resolves host names.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Resolver, TokioResolver};

/// How long to wait for a name server before asking again. A server that drops some queries must
/// not cost the whole attempt.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Resolves host names, once per connection. The caller checks every address before it connects.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Returns the addresses of a name, in the order in which to try them.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's hosts file and name servers. They change while a service runs, so they are read
/// for each name, and nothing is cached.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let resolver = tokio::task::spawn_blocking(system_resolver).await??;
        look_up(&resolver, name).await
    }
}

/// One name server, instead of the machine's configuration.
#[derive(Debug, Clone, Copy)]
pub struct NameServer(pub SocketAddr);

#[async_trait]
impl Resolve for NameServer {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let options = ResolverOpts::default();
        look_up(&resolver(only(self.0), options)?, name).await
    }
}

fn system_resolver() -> io::Result<TokioResolver> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
    // Without the file, resolv.conf(5) specifies the name server on the local machine.
    let (config, options) = read_system_conf().unwrap_or_else(|error| {
        tracing::debug!(%error, "Failed to read the machine's name servers; asking 127.0.0.1");
        (only(local), ResolverOpts::default())
    });
    resolver(config, options)
}

fn only(server: SocketAddr) -> ResolverConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    let server = NameServerConfig::new(server.ip(), true, connections.to_vec());
    ResolverConfig::from_name_servers(vec![server])
}

fn resolver(config: ResolverConfig, mut options: ResolverOpts) -> io::Result<TokioResolver> {
    options.cache_size = 0;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.timeout = options.timeout.min(QUERY_TIMEOUT);
    Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(io::Error::other)
}

/// Resolves the absolute name only. The machine's search list would derive other names, and a
/// wildcard below one of them would receive the deliveries. Drop cancels the queries.
async fn look_up(resolver: &TokioResolver, name: &str) -> io::Result<Vec<IpAddr>> {
    let mut absolute = Name::from_str_relaxed(name).map_err(io::Error::other)?;
    absolute.set_fqdn(true);
    let found = resolver
        .lookup_ip(absolute)
        .await
        .map_err(io::Error::other)?;
    Ok(found.iter().collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use hickory_resolver::proto::op::{Message, ResponseCode};
    use hickory_resolver::proto::rr::{RData, Record, RecordType};
    use hickory_resolver::system_conf::parse_resolv_conf;
    use kernel::Mode;
    use partner_core::webhooks::target::{AllowPrivate, Target};
    use tokio::net::{TcpListener, UdpSocket};

    use super::*;
    use crate::connect::Connector;
    use crate::tls::{Tls, Trust};

    const SYSTEM: &str = "nameserver 127.0.0.1\n\
                          search shop.svc.cluster.local svc.cluster.local cluster.local\n\
                          options ndots:5\n";

    /// A machine in a Kubernetes cluster, with a name server on another port.
    struct Kubernetes(SocketAddr);

    #[async_trait]
    impl Resolve for Kubernetes {
        async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            let (system, options) = parse_resolv_conf(SYSTEM).unwrap();
            assert_eq!((options.ndots, system.search().len()), (5, 3));
            let (domain, search, _) = system.into_parts();
            let (_, _, servers) = only(self.0).into_parts();
            let config = ResolverConfig::from_parts(domain, search, servers);
            look_up(&resolver(config, options)?, name).await
        }
    }

    /// Starts a name server with one name and a wildcard below `cluster.local`. Returns its address
    /// and the names of its queries.
    async fn name_server(known: Ipv4Addr) -> (SocketAddr, Arc<Mutex<BTreeSet<String>>>) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::<Mutex<BTreeSet<String>>>::default();
        let recorded = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let mut message = Message::from_vec(&buffer[..length])
                    .unwrap()
                    .into_response();
                let query = message.queries[0].clone();
                let name = query.name.to_string();
                let found = match &*name {
                    "hooks.partner.example." => Some(known),
                    _ if name.ends_with(".cluster.local.") => Some(Ipv4Addr::LOCALHOST),
                    _ => None,
                };
                message.metadata.response_code = match found {
                    Some(_) => ResponseCode::NoError,
                    None => ResponseCode::NXDomain,
                };
                if let (Some(found), RecordType::A) = (found, query.query_type) {
                    let data = RData::A(found.into());
                    message.add_answer(Record::from_rdata(query.name, 0, data));
                }
                recorded.lock().unwrap().insert(name);
                let response = message.to_vec().unwrap();
                socket.send_to(&response, from).await.unwrap();
            }
        });
        (address, asked)
    }

    // rule: webhook.absolute-name
    #[tokio::test]
    async fn delivery_asks_for_absolute_name_only_despite_search_list_and_wildcard() {
        let real = Ipv4Addr::new(127, 0, 0, 2);
        let wildcard = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = wildcard.local_addr().unwrap().port();
        let endpoint = TcpListener::bind((real, port)).await.unwrap();
        let (server, asked) = name_server(real).await;
        let connector = Connector {
            resolver: Arc::new(Kubernetes(server)),
            allow: AllowPrivate::Loopback,
            tls: Tls::new(Trust::Only(Vec::new())),
        };
        let target = |host: &str| {
            let url = format!("http://{host}:{port}/");
            Target::parse(&url, Mode::Test, AllowPrivate::Loopback).unwrap()
        };
        let reached = connector.connect(&target("hooks.partner.example")).await;
        assert!(reached.is_ok());
        endpoint.accept().await.unwrap();
        // An unknown name, also of a single label, is not searched elsewhere.
        for host in ["gone.partner.example", "gone"] {
            assert!(connector.connect(&target(host)).await.is_err(), "{host}");
        }
        let asked: Vec<String> = asked.lock().unwrap().iter().cloned().collect();
        assert_eq!(
            asked,
            ["gone.", "gone.partner.example.", "hooks.partner.example."]
        );
        let waiting = tokio::time::timeout(Duration::from_millis(50), wildcard.accept());
        assert!(waiting.await.is_err(), "connected to the wildcard");
    }
}
