//! Names to addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Resolver, TokioResolver};

/// How long one question may wait for its answer before it is asked again: a name server that
/// leaves some questions unanswered must not cost the whole attempt.
const QUESTION: Duration = Duration::from_secs(2);

/// Looks names up. Asked once for each connection; whatever it answers is judged before anything
/// is connected to.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of a name, in the order in which they should be tried.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's hosts file and name servers, read anew for each name, because they change while
/// a service runs. Nothing is remembered from one name to the next.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let resolver = tokio::task::spawn_blocking(of_system).await??;
        look_up(&resolver, name).await
    }
}

/// One name server, whatever the machine is set up with.
#[derive(Debug, Clone, Copy)]
pub struct NameServer(pub SocketAddr);

#[async_trait]
impl Resolve for NameServer {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let options = ResolverOpts::default();
        look_up(&resolver(only(self.0), options)?, name).await
    }
}

fn of_system() -> io::Result<TokioResolver> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
    // Without that file, says resolv.conf(5), the machine's own name server is asked.
    let (config, options) = read_system_conf().unwrap_or_else(|error| {
        tracing::debug!(%error, "Cannot read which name servers the machine is set up with");
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
    options.timeout = options.timeout.min(QUESTION);
    Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(io::Error::other)
}

/// Dropped, it asks nothing more.
async fn look_up(resolver: &TokioResolver, name: &str) -> io::Result<Vec<IpAddr>> {
    let found = resolver.lookup_ip(name).await.map_err(io::Error::other)?;
    Ok(found.iter().collect())
}
