//! TLS. Certificates are always verified against this host's trusted roots.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Age at which the roots are read again, so that a minion that runs for months uses the system's updates.
const FRESH: Duration = Duration::from_secs(3600);

/// TLS connections that trust the system's roots.
#[derive(Default)]
pub struct Tls {
    now: Mutex<Option<(Instant, Arc<ClientConfig>)>>,
    /// Instead of the system's.
    roots: Option<RootCertStore>,
}

impl Tls {
    /// Connections that trust these roots alone.
    pub fn with_roots(roots: RootCertStore) -> Self {
        Self { now: Mutex::default(), roots: Some(roots) }
    }

    pub(crate) async fn connector(&self) -> Result<TlsConnector, String> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, config)) = now.filter(|(since, _)| since.elapsed() < FRESH) {
            return Ok(config.into());
        }
        let roots = self.roots().await?;
        let versions = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        let mut config = versions.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&config)));
        Ok(config.into())
    }

    async fn roots(&self) -> Result<RootCertStore, String> {
        if let Some(roots) = &self.roots {
            return Ok(roots.clone());
        }
        let load = tokio::task::spawn_blocking(|| {
            let mut roots = RootCertStore::empty();
            // A certificate that cannot be parsed is left out; the others are still used.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        });
        let roots = load.await.map_err(|_| "this host's certificates cannot be read".to_owned())?;
        if roots.is_empty() {
            return Err("this host has no root certificates to verify servers by; install ca-certificates".to_owned());
        }
        Ok(roots)
    }
}
