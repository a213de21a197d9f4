//! How the two ends of a link prove their roles, on a cluster: TLS 1.3, with a role in each certificate.
//!
//! | end | shows | asks of the other |
//! |---|---|---|
//! | autoscaler, to a pod | its certificate, of role autoscaler | nothing: the load belongs to whose address was dialled |
//! | autoscaler, to an activator | the same | a certificate of role activator |
//! | queue-proxy | a key that it made itself | a certificate of role autoscaler |
//! | activator | its certificate, of role activator | the same |
//!
//! A role is a name in the certificate ([`LinkRole::name`]), so any library can check it. What is shown may
//! be replaced at any time: links that stand are not touched. A chain may lead to a new root by way of the
//! old one's signature, so a peer that knows only the old root goes on.

use std::fmt;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, rustls};
use vocabulary::{LinkAddress, LinkChannel, LinkRole};

use crate::connection::{ByteStream, Dial, reach_by_tcp};

/// Why certificates or keys cannot be used.
#[derive(Debug, Error)]
pub enum TlsProblem {
    /// The text holds no certificate.
    #[error("{0} holds no certificate that can be read; write it in PEM (BEGIN CERTIFICATE)")]
    NoCertificate(&'static str),
    /// The text holds no private key.
    #[error("the identity holds no private key that can be read; write it in PEM (BEGIN PRIVATE KEY)")]
    NoKey,
    /// Certificate and key do not fit each other, or are not allowed for TLS.
    #[error("the certificate cannot be used")]
    Unusable(#[from] rustls::Error),
    /// The roots cannot be used.
    #[error("the authority's certificate cannot be used")]
    Roots(#[from] rustls::server::VerifierBuilderError),
    /// A key of our own could not be made.
    #[error("a key could not be made")]
    OwnKey(#[from] rcgen::Error),
}

/// A program's certificate and key, and the roots by which it knows others.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Arc<RootCertStore>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads PEM: its own certificate and those that lead to a root, its key, and the roots.
    pub fn from_pem(chain: &[u8], key: &[u8], roots: &[u8]) -> Result<Self, TlsProblem> {
        Ok(Self {
            chain: certificates(chain, "the program's own certificate")?,
            key: PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsProblem::NoKey)?,
            roots: roots_of(roots)?,
        })
    }

    /// A key with a self-signed certificate, and the roots.
    fn self_made(roots: &[u8]) -> Result<Self, TlsProblem> {
        // A pod gets no certificate of the authority's: it would be one more secret in every namespace, and
        // nothing that a pod says on its link is worth one.
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::default().self_signed(&key)?;
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            roots: roots_of(roots)?,
        })
    }
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsProblem> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok().filter(|read| !read.is_empty()).ok_or(TlsProblem::NoCertificate(what))
}

fn roots_of(pem: &[u8]) -> Result<Arc<RootCertStore>, TlsProblem> {
    let mut roots = RootCertStore::empty();
    for root in certificates(pem, "the authority's certificate")? {
        roots.add(root)?;
    }
    Ok(Arc::new(roots))
}

fn server_name(role: LinkRole) -> ServerName<'static> {
    ServerName::try_from(role.name()).expect("it is a name")
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The autoscaler's dialler to pods and activators, over TLS or plain TCP as the address says.
#[derive(Debug)]
pub struct TlsDialler(ArcSwap<DiallerConfigs>);

#[derive(Debug)]
struct DiallerConfigs {
    to_pods: Arc<ClientConfig>,
    to_activators: Arc<ClientConfig>,
}

impl TlsDialler {
    /// A dialler that shows this identity.
    pub fn new(identity: &Identity) -> Result<Self, TlsProblem> {
        Ok(Self(ArcSwap::from_pointee(DiallerConfigs::of(identity)?)))
    }

    /// New links show this identity from now on.
    pub fn show(&self, identity: &Identity) -> Result<(), TlsProblem> {
        self.0.store(Arc::new(DiallerConfigs::of(identity)?));
        Ok(())
    }
}

impl DiallerConfigs {
    fn of(identity: &Identity) -> Result<Self, TlsProblem> {
        let config = |builder: rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>| {
            let mut config =
                builder.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?;
            // Links last; what a resumption would need costs memory for each of ten thousand.
            config.resumption = Resumption::disabled();
            Ok::<_, TlsProblem>(Arc::new(config))
        };
        let builder = || {
            ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&rustls::version::TLS13])
        };
        let any_key = Arc::new(AnyKeyVerifier(provider()));
        Ok(Self {
            // The platform has said to which pod or activator the address belongs. On this link only the
            // dialler has to prove its role.
            to_pods: config(builder()?.dangerous().with_custom_certificate_verifier(any_key))?,
            to_activators: config(builder()?.with_root_certificates(Arc::clone(&identity.roots)))?,
        })
    }
}

impl Dial for TlsDialler {
    fn connect(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<ByteStream>> {
        // Taken once for the whole attempt: a renewal in the middle must not mix two identities.
        let configs = self.0.load_full();
        Box::pin(async move {
            let stream = TcpStream::connect(address.socket).await?;
            let config = match address.channel {
                LinkChannel::Plain => return Ok(stream.into()),
                LinkChannel::TlsOfPod => &configs.to_pods,
                LinkChannel::TlsOfActivator => &configs.to_activators,
                LinkChannel::Scraped | LinkChannel::Unasked | LinkChannel::Pushed => {
                    let why = format!("{} takes no link: a program of Knative's is there", address.socket);
                    return Err(io::Error::new(io::ErrorKind::Unsupported, why));
                }
            };
            let _ = stream.set_nodelay(true);
            let connector = TlsConnector::from(Arc::clone(config));
            Ok(ByteStream::of(connector.connect(server_name(LinkRole::Activator), stream).await?))
        })
    }

    fn reach(&self, address: LinkAddress) -> BoxFuture<'static, io::Result<()>> {
        reach_by_tcp(address)
    }
}

/// The TLS end of a program that accepts links: its certificate, and the roots by which it knows the
/// autoscaler. Clones share both.
#[derive(Clone, Debug)]
pub struct LinkTlsAcceptor(Arc<ArcSwap<ServerConfig>>);

impl LinkTlsAcceptor {
    /// Shows a key made here and now, and takes autoscalers of these roots, in PEM.
    pub fn of_pod(roots: &[u8]) -> Result<Self, TlsProblem> {
        Self::new(&Identity::self_made(roots)?)
    }

    /// Shows this identity, and takes autoscalers of its roots.
    pub fn new(identity: &Identity) -> Result<Self, TlsProblem> {
        Ok(Self(Arc::new(ArcSwap::new(server_config(identity)?))))
    }

    /// New links are shown this identity, and are measured by its roots, from now on.
    pub fn show(&self, identity: &Identity) -> Result<(), TlsProblem> {
        self.0.store(server_config(identity)?);
        Ok(())
    }

    /// Does the handshake. After it the caller has proved that it is an autoscaler; else this is an error.
    /// There is no time limit; [`crate::Acceptor`] has one.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<ByteStream> {
        let _ = stream.set_nodelay(true);
        let acceptor = TlsAcceptor::from(self.0.load_full());
        Ok(ByteStream::of(acceptor.accept(stream).await?))
    }
}

fn server_config(identity: &Identity) -> Result<Arc<ServerConfig>, TlsProblem> {
    let chain =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&identity.roots), provider()).build()?;
    let builder =
        ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&rustls::version::TLS13])?;
    let verifier = Arc::new(RoleVerifier { chain, role: LinkRole::Autoscaler });
    let builder = builder.with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(identity.chain.clone(), identity.key.clone_key())?;
    // A ticket would let its holder in again without a certificate, also after that has run out.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Accepts a peer with a chain to a known root and with the name of a role.
#[derive(Debug)]
struct RoleVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    role: LinkRole,
}

impl ClientCertVerifier for RoleVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(end_entity, intermediates, now)?;
        // A chain to the root alone is not enough: activators have certificates of the same authority, and
        // none of them may give orders.
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, &server_name(self.role))?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Accepts a peer with any key.
#[derive(Debug)]
struct AnyKeyVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKeyVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
