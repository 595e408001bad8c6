//! TLS to endpoints, through rustls, and the trusted certificates.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

/// The root certificates that prove an endpoint's identity.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The machine's certificates, read at first use. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    System,
    /// Only these.
    Only(Vec<CertificateDer<'static>>),
}

/// Encrypts connections and verifies the host.
pub(crate) struct Tls {
    trust: Trust,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(crate) const fn new(trust: Trust) -> Self {
        Self {
            trust,
            connector: OnceCell::const_new(),
        }
    }

    pub(crate) async fn wrap(
        &self,
        host: Host<&str>,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = match host {
            // Certificates write a name without its final dot.
            Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(io::Error::other)?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(address)),
        };
        let connector = self
            .connector
            .get_or_try_init(|| connector(self.trust.clone()))
            .await?;
        connector.connect(name, stream).await
    }
}

async fn connector(trust: Trust) -> io::Result<TlsConnector> {
    let roots = tokio::task::spawn_blocking(move || roots(trust))
        .await
        .map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(trust: Trust) -> RootCertStore {
    let certificates = match trust {
        Trust::Only(certificates) => certificates,
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                tracing::error!(
                    errors = ?found.errors,
                    "The machine trusts no certificate: no event can be delivered over https. Install its CA certificates or name them in SSL_CERT_FILE"
                );
            }
            found.certs
        }
    };
    let mut roots = RootCertStore::empty();
    // Skips malformed certificates: only endpoints that need one of them fail.
    roots.add_parsable_certificates(certificates);
    roots
}
