//! The identities that we show to clients: pairs of a certificate chain and its key, read from files.
//!
//! A pair is checked when it is read, not when a client asks for it: a chain that has expired, or a key of
//! another certificate, would be noticed by clients alone, and all they could say is that the connection
//! failed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use tokio_rustls::rustls;
use x509_cert::der::Decode;

/// Where a pair lies, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, then those that lead to its root.
    pub certificate: PathBuf,
    /// Its private key (PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
}

/// When a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateValidity {
    /// `notBefore` of the certificate: the first moment at which it is valid.
    pub from: SystemTime,
    /// `notAfter` of the certificate: it is expired from this moment on.
    pub until: SystemTime,
}

impl CertificateValidity {
    /// The validity of the first certificate in a PEM text; `None` if none can be read there.
    pub fn of_pem(text: &[u8]) -> Option<Self> {
        Self::of(&CertificateDer::pem_slice_iter(text).next()?.ok()?)
    }

    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let validity = x509_cert::Certificate::from_der(certificate).ok()?.tbs_certificate.validity;
        Some(Self { from: validity.not_before.to_system_time(), until: validity.not_after.to_system_time() })
    }
}

/// Why a pair cannot be used.
#[derive(Debug, Error)]
pub enum CertificateProblem {
    /// A file is missing, or not ours to read.
    #[error("{} cannot be read; check its path and permissions", .file.display())]
    Unreadable {
        /// The file that was to be read.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file holds no certificate that can be read.
    #[error("{} holds no certificate that can be read; write the chain in PEM (BEGIN CERTIFICATE), the server's own first", .0.display())]
    NoCertificate(PathBuf),
    /// The file holds no private key that can be read.
    #[error("{} holds no private key that can be read; write it in PEM (BEGIN PRIVATE KEY), without a passphrase", .0.display())]
    NoKey(PathBuf),
    /// The two are not a pair.
    #[error("the key in {} is not that of the certificate in {}; name the key that belongs to it", .key.display(), .certificate.display())]
    NotAPair {
        /// The file with the certificate chain.
        certificate: PathBuf,
        /// The file with the private key.
        key: PathBuf,
    },
    /// The certificate of a pair has expired.
    #[error("the certificate in {} expired on {}; renew it", .file.display(), httpdate::fmt_http_date(*.at))]
    Expired {
        /// The file with the certificate.
        file: PathBuf,
        /// The end of its time.
        at: SystemTime,
    },
    /// Its time has not come.
    #[error("the certificate in {} is not valid before {}; check this machine's clock", .file.display(), httpdate::fmt_http_date(*.from))]
    NotYetValid {
        /// The file with the certificate.
        file: PathBuf,
        /// `notBefore` of the certificate, which lies in the future.
        from: SystemTime,
    },
}

/// The pairs that are presented now. A client that asks for a name gets the first pair that is valid for the
/// name, or the first of all.
#[derive(Debug)]
pub struct Certificates(ArcSwap<Vec<Pair>>);

#[derive(Debug)]
struct Pair {
    key: Arc<CertifiedKey>,
    expires: SystemTime,
}

impl Certificates {
    /// Reads pairs, of which there is at least one. Every problem is told, not only the first.
    pub fn read(files: &[CertificateFiles], now: SystemTime) -> Result<Self, Vec<CertificateProblem>> {
        Ok(Self(ArcSwap::from_pointee(read_all(files, now)?)))
    }

    /// Reads them again. With a problem, those that were presented before still are.
    pub fn read_again(
        &self,
        files: &[CertificateFiles],
        now: SystemTime,
    ) -> Result<(), Vec<CertificateProblem>> {
        self.0.store(Arc::new(read_all(files, now)?));
        Ok(())
    }

    /// When the first of them expires.
    pub fn expires(&self) -> SystemTime {
        self.0.load().iter().map(|pair| pair.expires).min().expect("there is at least one pair")
    }

    /// The time of [`Certificates::expires`] in the form of HTTP dates.
    pub fn expires_as_text(&self) -> String {
        httpdate::fmt_http_date(self.expires())
    }

    /// Whether one of them is valid for a name.
    pub fn cover(&self, name: &str) -> bool {
        self.0.load().iter().any(|pair| covers(&pair.key, name))
    }

    /// The pair that a client is shown that asks for this name, or for none.
    fn presented_for(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let pairs = self.0.load();
        let named = name.filter(|_| pairs.len() > 1);
        let pair = named.and_then(|name| pairs.iter().find(|pair| covers(&pair.key, name)));
        Arc::clone(&pair.or(pairs.first()).expect("there is at least one pair").key)
    }

    /// Whether this is the only pair.
    fn are_only(&self, key: &Arc<CertifiedKey>) -> bool {
        matches!(self.0.load().as_slice(), [pair] if Arc::ptr_eq(&pair.key, key))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.presented_for(hello.server_name()))
    }
}

/// The certificate that the client of one connection was shown, beside those that it would be shown on
/// another one.
#[derive(Debug)]
pub(crate) struct PresentedCertificate {
    key: Arc<CertifiedKey>,
    all: Arc<Certificates>,
}

impl PresentedCertificate {
    /// What a client was shown that asked for this name, or for none. To be asked right after its handshake:
    /// rustls does not say which certificate it took. A client whose handshake runs while the files are
    /// replaced may be told to open one connection more than it needs.
    pub(crate) fn to(name: Option<&str>, all: &Arc<Certificates>) -> Self {
        Self { key: all.presented_for(name), all: Arc::clone(all) }
    }

    /// Whether a request for this host (a name or an address, without its port) belongs on another
    /// connection: the certificate here does not cover the host, and another one does. Where none does,
    /// another connection would be no better.
    pub(crate) fn misdirects(&self, host: &str) -> bool {
        // The usual case costs no look into a certificate.
        if self.all.are_only(&self.key) {
            return false;
        }
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        !covers(&self.key, host) && self.all.cover(host)
    }
}

fn covers(key: &CertifiedKey, name: &str) -> bool {
    let Ok(name) = ServerName::try_from(name) else { return false };
    let certificate = key.end_entity_cert().and_then(ParsedCertificate::try_from);
    certificate.is_ok_and(|certificate| verify_server_name(&certificate, &name).is_ok())
}

fn read_all(files: &[CertificateFiles], now: SystemTime) -> Result<Vec<Pair>, Vec<CertificateProblem>> {
    let (mut pairs, mut problems) = (Vec::new(), Vec::new());
    for files in files {
        match read_pair(files, now) {
            Ok(pair) => pairs.push(pair),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(pairs) } else { Err(problems) }
}

fn read_pair(files: &CertificateFiles, now: SystemTime) -> Result<Pair, CertificateProblem> {
    let certificate = || files.certificate.clone();
    let chain = CertificateDer::pem_slice_iter(&bytes_of(&files.certificate)?)
        .collect::<Result<Vec<_>, pem::Error>>();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| CertificateProblem::NoCertificate(certificate()))?;
    let validity = CertificateValidity::of(&chain[0]);
    let CertificateValidity { from, until: at } =
        validity.ok_or_else(|| CertificateProblem::NoCertificate(certificate()))?;
    if now < from {
        return Err(CertificateProblem::NotYetValid { file: certificate(), from });
    }
    if now >= at {
        return Err(CertificateProblem::Expired { file: certificate(), at });
    }
    let no_key = || CertificateProblem::NoKey(files.key.clone());
    let key = PrivateKeyDer::from_pem_slice(&bytes_of(&files.key)?).map_err(|_| no_key())?;
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
        if matches!(error, rustls::Error::InconsistentKeys(_)) {
            CertificateProblem::NotAPair { certificate: certificate(), key: files.key.clone() }
        } else if matches!(error, rustls::Error::InvalidCertificate(_)) {
            CertificateProblem::NoCertificate(certificate())
        } else {
            no_key()
        }
    })?;
    Ok(Pair { key: Arc::new(key), expires: at })
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, CertificateProblem> {
    std::fs::read(file).map_err(|source| CertificateProblem::Unreadable { file: file.to_owned(), source })
}
