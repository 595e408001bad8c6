//! Connects to endpoints. The guard is here: a socket is opened only to an address that was just
//! checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use partner_core::webhooks::target::{AllowPrivate, Target, forbidden_kind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Host;

use crate::post_error::PostError;
use crate::resolve::Resolve;
use crate::tls::Tls;

/// Addresses tried per name.
const MAX_ADDRESSES: usize = 8;
/// How long to wait for one address before also trying the next.
const HEAD_START: Duration = Duration::from_millis(250);

/// A connected stream, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens connections to targets.
pub(crate) struct Connector {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) allow: AllowPrivate,
    pub(crate) tls: Tls,
}

impl Connector {
    pub(crate) async fn connect(&self, target: &Target) -> Result<Box<dyn Stream>, PostError> {
        let addresses = self.allowed(target).await?;
        let stream = first_of(addresses).await.map_err(PostError::Unconnected)?;
        let peer = stream.peer_addr().map_err(PostError::Unconnected)?;
        self.check(peer.ip())?;
        stream.set_nodelay(true).map_err(PostError::Unconnected)?;
        if !target.tls() {
            return Ok(Box::new(stream));
        }
        let encrypted = self.tls.wrap(target.host(), stream).await;
        Ok(Box::new(encrypted.map_err(PostError::Handshake)?))
    }

    /// The allowed addresses of a target, from one look-up. A literal address is checked the same way.
    async fn allowed(&self, target: &Target) -> Result<Vec<SocketAddr>, PostError> {
        let found = match target.host() {
            Host::Ipv4(address) => vec![address.into()],
            Host::Ipv6(address) => vec![address.into()],
            Host::Domain(name) => {
                let found = self.resolver.resolve(name).await;
                found.map_err(PostError::Unresolved)?
            }
        };
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            match self.check(address) {
                Ok(()) => allowed.push(SocketAddr::new(address, target.port())),
                Err(error) => refused = Some(error),
            }
        }
        if let (true, Some(error)) = (allowed.is_empty(), refused) {
            return Err(error);
        }
        allowed.truncate(MAX_ADDRESSES);
        Ok(allowed)
    }

    fn check(&self, address: IpAddr) -> Result<(), PostError> {
        forbidden_kind(address, self.allow).map_or(Ok(()), |kind| Err(PostError::Forbidden(kind)))
    }
}

/// The first connection that succeeds. Each address gets a head start before the next is also
/// tried, so an address that drops packets costs little time.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut left = addresses.into_iter();
    let mut tried = JoinSet::new();
    loop {
        if let Some(address) = left.next() {
            tried.spawn(TcpStream::connect(address));
        }
        if tried.is_empty() {
            return Err(last);
        }
        tokio::select! {
            Some(ended) = tried.join_next() => match ended {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(gone) => last = io::Error::other(gone),
            },
            () = tokio::time::sleep(HEAD_START), if left.len() > 0 => {}
        }
    }
}
