//! TLS where requests are taken: where, with which certificates, and what becomes of them while they are
//! used.

mod development;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use activator::TlsListener;
use anyhow::anyhow;
use dataplane::{CertificateFiles, Certificates};
use platform_local::{CertifiedNames, LoadedManifest};
use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

use crate::cli::{TlsMode, TlsOptions, UpOptions};
use crate::output;

/// How often the files are looked at, as the manifests are.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The default port of TLS, which stands to 8080 as 443 to 80.
const PORT_DEFAULT: u16 = 8443;

/// The option that says otherwise.
pub(crate) const LISTEN_OPTION: &str = "--tls-listen";

/// Where TLS is to be spoken, if it is to be at all.
pub(crate) fn address(options: &TlsOptions, listen: SocketAddr) -> Option<SocketAddr> {
    let is_wanted = options.tls.is_some() || !options.tls_cert.is_empty();
    is_wanted.then(|| options.tls_listen.unwrap_or_else(|| SocketAddr::new(listen.ip(), PORT_DEFAULT)))
}

/// For which names there is a certificate.
pub(super) fn names(options: &TlsOptions) -> CertifiedNames {
    match options.tls {
        Some(TlsMode::Dev) => CertifiedNames::All,
        None => CertifiedNames::Hosts,
    }
}

/// The certificates, and where they come from.
pub(super) struct FrontTls {
    files: Vec<CertificateFiles>,
    certificates: Arc<Certificates>,
}

impl FrontTls {
    /// What was asked for, if anything was. Every problem is told.
    pub(super) fn prepare(
        up: &UpOptions,
        loaded: &LoadedManifest,
    ) -> Result<Option<Self>, Vec<anyhow::Error>> {
        let (options, listen) = (&up.tls, up.listen);
        let Some(address) = address(options, listen) else {
            return refuse_lone_address(options).map(|()| None);
        };
        let files = match options.tls {
            Some(TlsMode::Dev) => {
                let names = development::names(address, loaded);
                let files = development::certificate(&names).map_err(|error| vec![error])?;
                let trusted = files.certificate.display();
                let warning =
                    format!("--tls dev: clients must be told to trust {trusted}, such as with curl --cacert");
                output::print_warning(&warning);
                vec![files]
            }
            None => pairs(&options.tls_cert, &options.tls_key).map_err(|error| vec![error])?,
        };
        let certificates = Arc::new(read(&files)?);
        Ok(Some(Self { files, certificates }))
    }

    /// A listener that accepts connections at the socket with these certificates.
    pub(super) fn at(&self, socket: TcpListener) -> TlsListener {
        TlsListener { socket, certificates: Arc::clone(&self.certificates) }
    }

    /// Presents what the files say, whenever they change. Connections that stand keep what they were shown.
    pub(super) async fn watch(self) {
        self.tell_expiry();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut presented = marks(&self.files);
        // What was refused last, and at how many looks.
        let mut refused: Option<(Vec<Mark>, u32)> = None;
        loop {
            looks.tick().await;
            let found = marks(&self.files);
            if found == presented {
                continue;
            }
            match self.certificates.read_again(&self.files, runtime::wall_time()) {
                Ok(()) => {
                    self.tell_expiry();
                    (presented, refused) = (found, None);
                }
                Err(problems) => {
                    let looks = match refused.take() {
                        Some((marks, looks)) if marks == found => looks + 1,
                        _ => 1,
                    };
                    // A certificate and its key are seldom written in the same instant, so what is wrong is
                    // told once it has been so for two looks.
                    if looks == 2 {
                        for problem in problems {
                            warn!("{:#}; the certificates before stay in use", anyhow::Error::from(problem));
                        }
                    }
                    refused = Some((found, looks));
                }
            }
        }
    }

    fn tell_expiry(&self) {
        let until = self.certificates.expires_as_text();
        info!(until, certificates = self.files.len(), "requests are taken over TLS");
    }
}

/// By what a file that was written again differs.
type Mark = Option<(i64, i64, u64, u64)>;

fn marks(files: &[CertificateFiles]) -> Vec<Mark> {
    let mark = |file: &PathBuf| {
        let found = fs::metadata(file).ok()?;
        Some((found.mtime(), found.mtime_nsec(), found.size(), found.ino()))
    };
    files.iter().flat_map(|pair| [mark(&pair.certificate), mark(&pair.key)]).collect()
}

/// The certificates that the options name, if `ebb up` could present them now. A development certificate is
/// none of them: it is made when it is needed.
pub(crate) fn named_certificates(options: &TlsOptions) -> Result<Vec<CertificateFiles>, Vec<anyhow::Error>> {
    let files = pairs(&options.tls_cert, &options.tls_key).map_err(|error| vec![error])?;
    if !files.is_empty() {
        read(&files)?;
    } else if options.tls.is_none() {
        refuse_lone_address(options)?;
    }
    Ok(files)
}

fn refuse_lone_address(options: &TlsOptions) -> Result<(), Vec<anyhow::Error>> {
    match options.tls_listen {
        None => Ok(()),
        Some(_) => Err(vec![anyhow!(
            "{LISTEN_OPTION} needs a certificate; add --tls-cert and --tls-key, or --tls dev"
        )]),
    }
}

fn read(files: &[CertificateFiles]) -> Result<Certificates, Vec<anyhow::Error>> {
    Certificates::read(files, runtime::wall_time())
        .map_err(|problems| problems.into_iter().map(anyhow::Error::from).collect())
}

/// Each certificate with its key.
fn pairs(certificates: &[PathBuf], keys: &[PathBuf]) -> anyhow::Result<Vec<CertificateFiles>> {
    if certificates.len() != keys.len() {
        return Err(anyhow!(
            "--tls-cert is given {} times and --tls-key {} times; give each certificate its key, in the same order",
            certificates.len(),
            keys.len()
        ));
    }
    let pair = |(certificate, key): (&PathBuf, &PathBuf)| CertificateFiles {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    Ok(certificates.iter().zip(keys).map(pair).collect())
}
