//! Which authorities vouch for a server that is asked over TLS?

use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The authorities that the machine trusts, read once: they change with the machine.
static OF_THE_MACHINE: OnceLock<Arc<ClientConfig>> = OnceLock::new();

/// A connector that trusts the authorities of a file, or those of the machine. A file is read at each
/// question, for authorities are renewed.
pub(super) async fn connector(ca_file: Option<&str>) -> Result<TlsConnector, String> {
    let config = match (ca_file, OF_THE_MACHINE.get()) {
        (Some(file), _) => Arc::new(config_of(roots_of_file(file).await?)),
        (None, Some(config)) => Arc::clone(config),
        (None, None) => {
            // It reads some hundred files.
            // A panic in it is this question's failure.
            let read = tokio::task::spawn_blocking(roots_of_machine).await;
            let roots = read.map_err(|error| error.to_string())??;
            Arc::clone(OF_THE_MACHINE.get_or_init(|| Arc::new(config_of(roots))))
        }
    };
    Ok(TlsConnector::from(config))
}

async fn roots_of_file(file: &str) -> Result<RootCertStore, String> {
    let pem = tokio::fs::read(file).await.map_err(|error| format!("{file}: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|error| format!("{file}: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!("{file} holds no certificate; write those of the authority in PEM"));
    }
    Ok(roots)
}

fn roots_of_machine() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read vouches for no server; the others still do.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let remedy = "install ca-certificates, or set prometheus-ca-file in ConfigMap config-autoscaler";
        return Err(format!("this machine trusts no authority; {remedy}"));
    }
    Ok(roots)
}

fn config_of(roots: RootCertStore) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .expect("ring speaks the versions that rustls thinks safe");
    builder.with_root_certificates(roots).with_no_client_auth()
}
