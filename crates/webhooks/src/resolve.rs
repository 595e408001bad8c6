//! Names to addresses.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Looks names up. Asked once for each connection; whatever it answers is judged before anything
/// is connected to.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of a name, in the order in which they should be tried.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
